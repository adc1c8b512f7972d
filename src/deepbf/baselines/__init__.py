"""Independent judges of the trained estimator, first model over second.

Methods that take any models share one interface, ``method(models, observed, ..., seed=0)``, and return a
`BaselineResult`; `METHODS` lists them.
"""

import lazy_loader

METHODS = (
    "abc_epsilon",
    "abc_ranked",
    "abc_logistic",
    "abc_forest",
    "bridge",
    "warp_bridge",
    "integrate",
    "importance",
)

# Names are looked up when first used: a worker process that only simulates never loads the neural side.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["METHODS"]
