"""The few lines that everything numerical shares: arithmetic on log odds, never on probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

# Log Bayes factors closer than this share of their size (of 1, if they are smaller than that) differ by rounding alone.
# Of float32: networks have relative errors of 6e-8 in numbers of some hundreds, whose sum may be about 1.
FLOAT32_ROUNDING = 1e-5
# Of float64: relative errors of 1e-16 in terms that cancel, and that may be a million times larger than what remains.
FLOAT64_ROUNDING = 1e-9


def log_posterior_probs(log_evidence: NDArray[np.float64], log_prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log posterior probabilities of the models, shape (batch, K).

    `log_evidence` has shape (batch, K) and may be shifted by any constant per row; `log_prior` has shape (K,).
    """
    return log_softmax(log_evidence + log_prior, axis=-1)


def log_evidence(log_odds: ArrayLike) -> NDArray[np.float64]:
    """Return log evidences up to a constant per row, shape (..., K), from log odds against the last model."""
    odds = np.asarray(log_odds, dtype=np.float64)
    return np.concatenate([odds, np.zeros_like(odds[..., :1])], axis=-1)


def log_ratio(log_odds: ArrayLike, first: int, second: int) -> NDArray[np.float64]:
    """Return log evidence of model `first` minus that of `second`, from log odds against the last model.

    `log_odds` has shape (..., K - 1), the result shape (...). A swap of the two models flips its sign exactly.
    """
    odds = np.asarray(log_odds)
    last = odds.shape[-1]
    above = odds[..., first].astype(np.float64) if first != last else np.zeros(odds.shape[:-1])
    return above if second == last else above - odds[..., second]


def cross_entropy(log_evidence: NDArray[np.float64], label: int) -> NDArray[np.float64]:
    """Return the negative log posterior probability of model `label` under equal priors, one entry per data set."""
    return -log_softmax(log_evidence, axis=-1)[..., label]


def rounding_of(log_bf: NDArray[np.float64], relative: float = FLOAT32_ROUNDING) -> NDArray[np.float64]:
    """Return how far log Bayes factors may lie apart for no other reason than rounding: relative x max(1, size).

    The shape is that of the log Bayes factors. For infinite ones, which are equal or not, it is `relative` itself.
    """
    return relative * np.maximum(1.0, np.where(np.isfinite(log_bf), np.abs(log_bf), 1.0))


def ensemble_error(members: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the standard error that an ensemble's spread shows, or None if it has fewer than two members.

    `members` has one entry per member along its leading axis, and the result has the shape of one entry: the standard
    deviation over the members, with one degree of freedom less than there are members. Each member is trained on a
    random half of the simulations, and the spread among random halves estimates the standard error of an estimator
    trained on all of them, so it is not divided by the number of members. What all members get wrong alike does not
    show in it.

    Examples
    --------
    >>> ensemble_error(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])).tolist()
    [1.0, 0.0]
    >>> ensemble_error(np.array([[1.0, 5.0]])) is None
    True
    """
    return None if len(members) < 2 else np.asarray(members.std(axis=0, ddof=1))
