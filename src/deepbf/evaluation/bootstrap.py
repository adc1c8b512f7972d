"""The bootstrap: how far a statistic would move if other data sets had been simulated; and ranks under its weights.

A statistic is a function of how often each data set counts. Ones give the estimate, multinomial counts a replicate, so
one definition serves both, and a thousand replicates are a few matrix products.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from deepbf._numerics import rounding_of
from deepbf.evaluation.log_bf_arrays import ByModel

# How often each data set counts: an array of shape (replicates, data sets) for each model.
Weights = tuple[NDArray[np.float64], NDArray[np.float64]]
# From the weights of one model to one number per replicate.
ModelStatistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
# From the weights of both models to shape (replicates, numbers that the statistic consists of).
Statistic = Callable[[Weights], NDArray[np.float64]]

# Entries of a batch of weights: small enough for the cache of a laptop, large enough for matrix products.
BATCH_ENTRIES = 1_000_000

# A run of neighbours that is this many roundings long is no single value, but a sample that lies so dense.
LONGEST_RUN = 10.0


def with_errors(
    statistics: Mapping[str, Statistic], num_datasets: tuple[int, int], *, num_replicates: int, seed: int
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the estimate and the bootstrap standard error of every statistic, one array of numbers each.

    Data sets are drawn anew within each model. The same seed draws the same ones for every estimator, so that
    differences between estimators are not blurred. An infinite estimate has the error nan.
    """
    everything: Weights = (np.ones((1, num_datasets[0])), np.ones((1, num_datasets[1])))
    replicates: dict[str, list[NDArray[np.float64]]] = {name: [] for name in statistics}
    rng = np.random.default_rng(seed)
    batch = max(1, BATCH_ENTRIES // max(num_datasets))
    for start in range(0, num_replicates, batch):
        size = min(batch, num_replicates - start)
        # How often each data set counts: every row adds up to the number of data sets.
        first, second = (
            rng.multinomial(number, np.full(number, 1 / number), size).astype(np.float64) for number in num_datasets
        )
        for name, statistic in statistics.items():
            replicates[name].append(statistic((first, second)))
    result = {}
    for name, statistic in statistics.items():
        estimate = statistic(everything)[0]
        # A replicate may be undefined where the estimate is not: it does not count.
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            error = np.nanstd(np.concatenate(replicates[name]), axis=0, ddof=1)
        result[name] = (estimate, np.where(np.isfinite(estimate), error, np.nan))
    return result


def mean_of(values: NDArray[np.float64]) -> ModelStatistic:
    """Return the mean of one number per data set as a statistic.

    It is infinite in those replicates in which a data set with an infinite number counts, and finite in the others.
    """
    infinite = np.isinf(values)
    finite = np.where(infinite, 0.0, values)

    def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = weights @ finite / weights.sum(axis=1)
        return np.where(weights[:, infinite].sum(axis=1) > 0, np.inf, mean) if infinite.any() else mean

    return statistic


def by_model(first: ModelStatistic, second: ModelStatistic, prior_probs: NDArray[np.float64]) -> Statistic:
    """Return three numbers as one statistic: under the first model, under the second, and weighted by the prior.

    The third is the sum of the first two, each times the prior probability of its model.
    """

    def statistic(weights: Weights) -> NDArray[np.float64]:
        at_first, at_second = first(weights[0]), second(weights[1])
        return np.stack([at_first, at_second, prior_probs[0] * at_first + prior_probs[1] * at_second], axis=-1)

    return statistic


def merge_rounding(log_bf: ByModel) -> ByModel:
    """Return the values with those that differ by rounding alone made equal, so that ties are ties.

    Discrete data give the same Bayes factor again and again, and a sum taken in another order, or a network, gives it
    with another last digit each time. Whatever depends on ranks needs this on both sides, estimated and exact, with
    the same tolerance: then an estimator that is the exact answer is found to be perfect. The tolerance is that of
    float32 for both, since it is networks that are compared; no decision depends on what is tied so. Neighbours
    closer than that form a run, and a run becomes one value, its least, unless it is longer than ten roundings.

    Examples
    --------
    >>> first, second = merge_rounding((np.array([0.1 + 0.2, 1.0]), np.array([0.3, 2.0])))
    >>> bool(first[0] == second[0])
    True
    """
    values = np.concatenate(log_bf)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    tolerance = rounding_of(ordered)
    with np.errstate(invalid="ignore"):
        apart = np.concatenate([[True], ~(np.diff(ordered) <= tolerance[1:])])
    # Equal infinities differ by nan.
    apart[1:] &= ordered[1:] != ordered[:-1]
    begins = np.flatnonzero(apart)
    ends = np.append(begins[1:], len(values)) - 1
    with np.errstate(invalid="ignore"):
        is_dense = ordered[ends] - ordered[begins] > LONGEST_RUN * tolerance[ends]
    run = np.cumsum(apart) - 1
    merged = np.empty_like(values)
    merged[order] = np.where(is_dense[run], ordered, ordered[begins][run])
    return merged[: len(log_bf[0])], merged[len(log_bf[0]) :]


class Ranking:
    """Values sorted once, so that their distribution function under any weights is one cumulative sum.

    Infinite values are ranked like any other. Equal values are tied, and the three methods differ in how they count
    ties.
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        self._order = np.argsort(values, kind="stable")
        self._sorted = values[self._order]

    def share_below(self, weights: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted share of values below each entry of `at`, shape (replicates, entries)."""
        return self._shares(weights)[:, np.searchsorted(self._sorted, at, "left")]

    def share_at_most(self, weights: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted share of values at or below each entry of `at`, shape (replicates, entries)."""
        return self._shares(weights)[:, np.searchsorted(self._sorted, at, "right")]

    def share_mid(self, weights: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of the share below and the share at most: ties count half."""
        shares = self._shares(weights)
        left, right = (np.searchsorted(self._sorted, at, side) for side in ("left", "right"))
        return 0.5 * (shares[:, left] + shares[:, right])

    def _shares(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of the k smallest values, for k from 0 to all of them, shape (replicates, k)."""
        shares = np.zeros((len(weights), len(self._order) + 1))
        np.cumsum(weights[:, self._order], axis=1, out=shares[:, 1:])
        return shares / shares[:, -1:]


def rank_correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> ModelStatistic:
    """Return Spearman's rho of two arrays as a statistic; nan where one of the two is constant.

    It is the correlation of mid-ranks: tied values share the mean of their ranks, so pass values whose ties are ties
    (`merge_rounding`). Under weights it is that of the data sets so repeated. Where one side has ties that the other
    does not have, it stays below 1: an estimator that tells equal Bayes factors apart has another order.
    """

    def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        x_rank, y_rank = (Ranking(values).share_mid(weights, values) for values in (x, y))
        total = weights.sum(axis=1, keepdims=True)
        x_centred, y_centred = (rank - (weights * rank).sum(axis=1, keepdims=True) / total for rank in (x_rank, y_rank))
        covariance, x_variance, y_variance = (
            (weights * a * b).sum(axis=1)
            for a, b in ((x_centred, y_centred), (x_centred, x_centred), (y_centred, y_centred))
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            return covariance / np.sqrt(x_variance * y_variance)

    return statistic
