"""Order: whether observations that should be exchangeable come in an order that is no accident.

Under any model of exchangeable observations every order is as probable as every other, whatever the parameters. So
shuffling the observations gives the exact distribution of any statistic of their order, and its tail area does not
depend on what the values are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, rankdata

NUM_SHUFFLES = 999
# Fewer shuffles for long data sets: about a second at most.
MOST_SHUFFLED_VALUES = 20_000_000
FEWEST_SHUFFLES = 99
FEWEST_OBSERVATIONS = 4
BLOCK_VALUES = 500_000
# A twentieth is usual. A fifth of two hundred does not come about by chance, nor by the chi-squared approximation.
DATASETS_LOOKED_AT = 200
MOST_UNUSUAL = 0.2
SHUFFLE_SEED = 20_240_229


def order_tail_area(observations: NDArray[np.generic]) -> float | None:
    """Return the share of orders in which neighbours or the trend are as unusual as in this one.

    `observations` has shape (n,) or (n, columns...). None for fewer than four. Small means that the order matters.

    Examples
    --------
    >>> order_tail_area(np.arange(20.0))
    0.001
    """
    if len(observations) < FEWEST_OBSERVATIONS:
        return None
    ranks = centred_ranks(observations)
    observed = order_statistic(ranks[None])[0]
    num_shuffles = int(np.clip(MOST_SHUFFLED_VALUES // ranks.size, FEWEST_SHUFFLES, NUM_SHUFFLES))
    shuffled = np.concatenate([order_statistic(ranks[orders]) for orders in kept_shuffles(len(ranks), num_shuffles)])
    # Equal up to rounding is equal: ties are common where values repeat.
    as_unusual = np.count_nonzero(shuffled >= observed - 1e-9 * (1.0 + observed))
    return float((1 + as_unusual) / (1 + num_shuffles))


def shuffles(num_obs: int, num_shuffles: int) -> Iterator[NDArray[np.intp]]:
    """Yield that many random orders, always the same, in blocks of shape (orders, num_obs)."""
    rng = np.random.default_rng(SHUFFLE_SEED)
    block = max(1, BLOCK_VALUES // num_obs)
    for start in range(0, num_shuffles, block):
        orders = np.tile(np.arange(num_obs), (min(block, num_shuffles - start), 1))
        yield rng.permuted(orders, axis=1)


def kept_shuffles(num_obs: int, num_shuffles: int) -> Iterable[NDArray[np.intp]]:
    """Return the shuffles, from memory where they are few: the same serve every data set of a size."""
    if num_obs * num_shuffles > BLOCK_VALUES:
        return shuffles(num_obs, num_shuffles)
    return _remembered_shuffles(num_obs, num_shuffles)


@lru_cache(maxsize=8)
def _remembered_shuffles(num_obs: int, num_shuffles: int) -> tuple[NDArray[np.intp], ...]:
    return tuple(shuffles(num_obs, num_shuffles))


def comes_in_any_order(data: Sequence[NDArray[np.generic]]) -> bool:
    """Return whether simulated observations seem exchangeable, given data sets (size, n, ...) of each model.

    Simulators may well sort what they draw; then an order like theirs is nothing unusual. Observations of nan are
    absent.
    """
    return all(_share_unusual(own[:DATASETS_LOOKED_AT]) <= MOST_UNUSUAL for own in data)


def _share_unusual(data: NDArray[np.generic]) -> float:
    """Return in how many of these data sets the order is beyond what one in twenty has."""
    unusual = []
    for one in data:
        columns = np.asarray(one, np.float64).reshape(len(one), -1)
        present = columns[~np.isnan(columns).any(axis=1)]
        if len(present) >= FEWEST_OBSERVATIONS:
            statistic = order_statistic(centred_ranks(present)[None])[0]
            unusual.append(statistic > chi2.isf(0.05, 2 * columns.shape[1]))
    return float(np.mean(unusual)) if unusual else 0.0


def centred_ranks(observations: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return ranks of each column about 0, of unit variance, shape (n, columns); zeros for a constant column."""
    columns = np.asarray(observations, np.float64).reshape(len(observations), -1)
    ranks = rankdata(columns, axis=0)
    centred = ranks - ranks.mean(axis=0)
    spread = centred.std(axis=0)
    return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)


def order_statistic(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared correlation of neighbours and that with time, in standard errors, summed over columns.

    Of `ranks`, shape (data sets, n, columns). For many observations it is chi-squared with two degrees of freedom for
    each column.
    """
    num_obs = ranks.shape[1]
    neighbours = (ranks[:, 1:] * ranks[:, :-1]).sum(axis=1) / num_obs + 1.0 / num_obs
    time = np.arange(num_obs) - (num_obs - 1) / 2
    trend = np.einsum("bnc,n->bc", ranks, time / time.std()) / num_obs
    return num_obs * (neighbours**2 + trend**2).sum(axis=1)
