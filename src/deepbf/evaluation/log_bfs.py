"""What the toolkit works on: log Bayes factors at data sets simulated from each of two models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Natural log Bayes factors, first model over second: at data of the first model, and at data of the second.
ByModel = tuple[NDArray[np.float64], NDArray[np.float64]]


def log_losses(log_odds: ByModel) -> ByModel:
    """Return the negative log posterior probability of the model that each data set came from."""
    # log(1 + exp(-x)) is 0 at +inf and inf at -inf: no probability is formed that could round to 0.
    return np.logaddexp(0.0, -log_odds[0]), np.logaddexp(0.0, log_odds[1])


def shift(log_bf: ByModel, log_prior_odds: float) -> ByModel:
    """Return posterior log odds."""
    return log_bf[0] + log_prior_odds, log_bf[1] + log_prior_odds


# Of a log Bayes factor, or of 1 if that is larger: what float32 arithmetic leaves open.
RELATIVE_ROUNDING = 1e-5


def rounding_of(log_bf: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far log Bayes factors may lie apart for no other reason than rounding."""
    return RELATIVE_ROUNDING * np.maximum(1.0, np.where(np.isfinite(log_bf), np.abs(log_bf), 1.0))


def merge_rounding(log_bf: ByModel) -> ByModel:
    """Return the values with those that differ by rounding alone made equal, so that ties are ties.

    Discrete data give the same Bayes factor again and again, and a network gives it with another last digit each time.
    """
    values = np.concatenate(log_bf)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    with np.errstate(invalid="ignore"):
        apart = np.concatenate([[True], ~(np.diff(ordered) <= rounding_of(ordered[1:]))])
    # Equal infinities differ by nan.
    apart[1:] &= ordered[1:] != ordered[:-1]
    merged = np.empty_like(values)
    merged[order] = ordered[np.maximum.accumulate(np.where(apart, np.arange(len(values)), 0))]
    return merged[: len(log_bf[0])], merged[len(log_bf[0]) :]
