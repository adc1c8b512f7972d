"""Prior recovery: averaged over data of all models, posterior probabilities give back the prior ones (Section 5.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from deepbf.evaluation.log_bfs import ByModel

ROUNDING = 1e-9


class EstimatedPrior(NamedTuple):
    """The first model's prior probability as the estimator has it, its standard error, and its distance in errors."""

    prob: float
    error: float
    z: float


def estimated_prior(log_odds: ByModel, prior_probs: NDArray[np.float64]) -> EstimatedPrior:
    """Return the mean posterior probability of the first model over data sets drawn from the prior predictive.

    `log_odds` are posterior log odds, first over second. As many data sets come from a model as it has prior
    probability, by weighting, so the error is that of a stratified mean. The mean equals the prior probability for the
    exact Bayes factor, and for many wrong ones too: it is necessary, not sufficient.
    """
    probs = [expit(values) for values in log_odds]
    mean = sum(weight * values.mean() for weight, values in zip(prior_probs, probs, strict=True))
    variance = sum(
        weight**2 * values.var(ddof=1) / len(values) for weight, values in zip(prior_probs, probs, strict=True)
    )
    return EstimatedPrior(float(mean), float(np.sqrt(variance)), z_score(mean - prior_probs[0], np.sqrt(variance)))


def z_score(difference: float, error: float) -> float:
    """Return the difference in units of its error; 0 for no difference, infinite for one without error."""
    if error > ROUNDING:
        return float(difference / error)
    # Rounding in a mean of numbers that are all the same is neither a difference nor an error.
    return 0.0 if abs(difference) <= ROUNDING else float(np.copysign(np.inf, difference))
