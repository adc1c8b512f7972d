"""Two identities of any right Bayes factor, and whether these simulations can show them.

The mean of BF12 over data of M2 is 1, for it is the integral of p(Y | M1); likewise the mean of BF21 over data of M1.
Yet BF12 over data of M2 is the importance weight of M1 against M2, and where the models are told apart well, a few data
sets that are never simulated carry the whole mean. The same identity, cut off at a bound, has no such trouble:
the mean of BF12 over data of M2 where BF12 <= c is the probability of BF12 <= c under M1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from deepbf.evaluation.prior_recovery import z_score

# Above it the variance is infinite or as good as that: the limit which Pareto-smoothed importance sampling uses
# (Vehtari et al., 2024, Journal of Machine Learning Research 25).
MOST_TAIL_INDEX = 0.7
FEWEST_DATASETS = 100
# Where the bounded identity is cut off: high enough to see most of what decides, low enough for a small variance.
LOG_BOUND = float(np.log(10))


class Identity(NamedTuple):
    """The log of the mean Bayes factor over data of the model in its denominator, which should be 0.

    `error` is the standard error of the log mean, `z` the mean's distance from 1 in errors, `tail_index` the index of
    the Pareto tail of the Bayes factors, `effective_size` how many equal ones would give the same error, `missing` the
    part of the mean that lies beyond the largest simulated Bayes factor. Read `z` only where `usable`. `bounded_gap` is
    the left minus the right side of the bounded identity, `bounded_z` the same in errors; these can always be read.
    """

    log_mean: float
    error: float
    z: float
    tail_index: float
    effective_size: float
    missing: float
    usable: bool
    bounded_gap: float
    bounded_z: float


def mean_bf_identity(log_bf: NDArray[np.float64], elsewhere: NDArray[np.float64]) -> Identity:
    """Return the check for log Bayes factors at data of the model in their denominator.

    `elsewhere` are those at data of the model in their numerator.
    """
    num_datasets = len(log_bf)
    index = tail_index(log_bf)
    largest = log_bf.max()
    # Beyond the largest value the mean still gains what the other model has there.
    missing = float(np.mean(elsewhere > largest))
    bounded_gap, bounded_z = bounded_identity(log_bf, elsewhere)
    if np.isinf(largest):
        # An infinite Bayes factor against the model that made the data is wrong. Of zeros alone nothing can be said.
        return Identity(
            float(largest), np.nan, float(largest), index, np.nan, missing, bool(largest > 0), bounded_gap, bounded_z
        )
    log_mean = float(logsumexp(log_bf) - np.log(num_datasets))
    weights = np.exp(log_bf - largest)
    effective_size = float(weights.sum() ** 2 / (weights**2).sum())
    relative_error = float(weights.std(ddof=1) / weights.mean() / np.sqrt(num_datasets))
    # (mean - 1) / error, each divided by the mean, which may be too large or too small to write down.
    z = z_score(-np.expm1(np.clip(-log_mean, -700, 700)), relative_error)
    usable = index < MOST_TAIL_INDEX and num_datasets >= FEWEST_DATASETS and missing <= 0.5 * relative_error
    return Identity(log_mean, relative_error, z, index, effective_size, missing, bool(usable), bounded_gap, bounded_z)


def bounded_identity(log_bf: NDArray[np.float64], elsewhere: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean(BF; BF <= c) over data of the denominator minus P(BF <= c) under the numerator, and its z."""
    left = np.where(log_bf <= LOG_BOUND, np.exp(np.minimum(log_bf, LOG_BOUND)), 0.0)
    right = (elsewhere <= LOG_BOUND).astype(np.float64)
    gap = float(left.mean() - right.mean())
    return gap, z_score(gap, float(np.sqrt(left.var(ddof=1) / len(left) + right.var(ddof=1) / len(right))))


def tail_index(log_values: NDArray[np.float64]) -> float:
    """Return Hill's estimate of the tail index of exp(log_values): the mean excess of the largest logs.

    Moments of order 1 / index and above do not exist. The tail is as long as Pareto-smoothed importance sampling takes
    it. Only differences of logs occur, so no size overflows.
    """
    num_tail = int(np.ceil(min(0.2 * len(log_values), 3 * np.sqrt(len(log_values)))))
    ordered = np.sort(log_values)
    threshold, tail = ordered[-num_tail - 1], ordered[-num_tail:]
    if np.isinf(threshold):
        return np.inf
    return float(np.mean(tail - threshold))
