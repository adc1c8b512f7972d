"""Ready-made problems: models, the shape of their data and, where there is one, the exact Bayes factor."""

import lazy_loader

# Names are looked up when first used: a worker process that only simulates never loads the neural side.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
