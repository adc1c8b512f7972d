"""The bootstrap: how far a statistic moves when other data sets had been simulated.

A statistic is a function of how often each data set counts. Ones give the estimate, multinomial counts a replicate, so
one definition serves both, and a thousand replicates are a few matrix products.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

# One array a model, shape (replicates, data sets): how often each data set counts.
Weights = tuple[NDArray[np.float64], NDArray[np.float64]]
# Weights of one model -> one number a replicate.
ModelStatistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
# Weights of both -> shape (replicates, numbers that the statistic consists of).
Statistic = Callable[[Weights], NDArray[np.float64]]

# Entries of a batch of weights: small enough for the cache of a laptop, large enough for matrix products.
BATCH_ENTRIES = 1_000_000


def with_errors(
    statistics: Mapping[str, Statistic], num_datasets: tuple[int, int], *, num_replicates: int, seed: int
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the estimate and the bootstrap standard error of every statistic.

    Data sets are drawn anew within each model. The same seed draws the same ones for every estimator, so that
    differences between estimators are not blurred.
    """
    everything: Weights = (np.ones((1, num_datasets[0])), np.ones((1, num_datasets[1])))
    replicates: dict[str, list[NDArray[np.float64]]] = {name: [] for name in statistics}
    for weights in draw_weights(num_datasets, num_replicates, seed):
        for name, statistic in statistics.items():
            replicates[name].append(statistic(weights))
    result = {}
    for name, statistic in statistics.items():
        estimate = statistic(everything)[0]
        # An infinite estimate has no error: nan says so. A replicate may be undefined where the estimate is not.
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            error = np.nanstd(np.concatenate(replicates[name]), axis=0, ddof=1)
        result[name] = (estimate, np.where(np.isfinite(estimate), error, np.nan))
    return result


def draw_weights(num_datasets: tuple[int, int], num_replicates: int, seed: int) -> Iterator[Weights]:
    """Yield batches of bootstrap counts."""
    rng = np.random.default_rng(seed)
    batch = max(1, BATCH_ENTRIES // max(num_datasets))
    for start in range(0, num_replicates, batch):
        size = min(batch, num_replicates - start)
        first, second = (
            rng.multinomial(number, np.full(number, 1 / number), size).astype(np.float64) for number in num_datasets
        )
        yield first, second


def mean_of(values: NDArray[np.float64]) -> ModelStatistic:
    """Return the statistic that averages one number a data set; infinite where a counted one is infinite."""
    infinite = np.isinf(values)
    finite = np.where(infinite, 0.0, values)

    def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = weights @ finite / weights.sum(axis=1)
        return np.where(weights[:, infinite].sum(axis=1) > 0, np.inf, mean) if infinite.any() else mean

    return statistic


def by_model(first: ModelStatistic, second: ModelStatistic, prior_probs: NDArray[np.float64]) -> Statistic:
    """Return the statistic under the first model, under the second, and weighted by the prior probabilities."""

    def statistic(weights: Weights) -> NDArray[np.float64]:
        at_first, at_second = first(weights[0]), second(weights[1])
        return np.stack([at_first, at_second, prior_probs[0] * at_first + prior_probs[1] * at_second], axis=-1)

    return statistic
