"""The paper's figures and tables, and some that it lacks: each recomputed by one command, step by step, from a cache.

`Target`: a figure or table by name; `targets`: all of them; `reproduce`: compute what is missing, then draw.
"""

import lazy_loader

# Names are looked up when first used: a worker process that only simulates never loads the neural side.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
