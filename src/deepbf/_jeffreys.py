"""Jeffreys' scale: words for the size of a Bayes factor."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Jeffreys (1961, appendix B): half-units of log10, each with his own words.
JEFFREYS_SCALE = (
    (0.5, "barely worth mentioning"),
    (1.0, "substantial"),
    (1.5, "strong"),
    (2.0, "very strong"),
    (math.inf, "decisive"),
)


def strength_on_jeffreys_scale(log_bf: float) -> str:
    """Return Jeffreys' words for a Bayes factor of this size, whichever model it favours.

    Examples
    --------
    >>> strength_on_jeffreys_scale(-2.09)
    'substantial'
    """
    # At an infinite size no bound lies above it.
    size = min(abs(log_bf) / math.log(10), 1e300)
    return next(words for bound, words in JEFFREYS_SCALE if size < bound)


def jeffreys_category(log_bf: ArrayLike) -> NDArray[np.intp]:
    """Return the category of each log Bayes factor, 0 (decisive for the second model) to 9 (decisive for the first).

    Examples
    --------
    >>> jeffreys_category([-5.0, -0.1, 0.1, 2.09]).tolist()
    [0, 4, 5, 6]
    """
    bounds = [bound for bound, _ in JEFFREYS_SCALE[:-1]]
    cuts = math.log(10) * np.array([*(-bound for bound in reversed(bounds)), 0.0, *bounds])
    values = np.asarray(log_bf, dtype=np.float64)
    # A value on a cut belongs to the stronger category, whichever model it favours.
    return np.where(values < 0, np.searchsorted(cuts, values, "left"), np.searchsorted(cuts, values, "right"))
