"""Densities of the studies take NumPy or JAX arrays: which library made an array, and its log gamma function.

JAX is never loaded here on behalf of NumPy arrays: workers that simulate a study do without it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

Array = Any
"""A NumPy array, a JAX array, traced or not, or a number; results are of the same library."""


def library_of(values: Array) -> tuple[Any, Array]:
    """Return the library that made `values` (NumPy for lists and numbers), and `values` as its array of floats."""
    if hasattr(values, "__array_namespace__") and not isinstance(values, np.ndarray | np.generic):
        return values.__array_namespace__(), values
    # Float before any sum: integer sums of large counts would wrap around in silence.
    return np, np.asarray(values, dtype=np.float64)


def log_gamma_of(values: Array) -> Array:
    """Return the log of the gamma function, by the library that made `values`."""
    xp, array = library_of(values)
    if xp is np:
        return gammaln(array)
    from jax.scipy.special import gammaln as jax_gammaln

    return jax_gammaln(array)
