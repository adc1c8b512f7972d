"""deepbf: Bayes factors for models that can only be simulated."""

import lazy_loader

from deepbf._version import __version__ as __version__

# Names are looked up when first used: a worker process that only simulates never loads the neural side.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
