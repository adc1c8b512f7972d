"""Variants of the Bayes factor: partial, posterior, fractional and intrinsic ones, and one tailored to the data."""

import lazy_loader

# Names are looked up when first used: a worker process that only simulates never loads the neural side.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
