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
