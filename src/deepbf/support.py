"""Support: how typical data are of each model, before any Bayes factor between the models is believed.

Two things are looked at: how far the summary of a data set lies from those that each model makes (`Typicality`), and
whether observations that should be exchangeable come in an order that is no accident (`order_tail_area`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, rankdata

from deepbf.evaluation.tail_areas import binomial_interval
from deepbf.layout.data_layout import DataLayout
from deepbf.layout.structure import is_absent
from deepbf.networks.base import InputLayout
from deepbf.networks.features import whitening

# Data sets per model to learn the usual spread from; nearest neighbours and local densities among as many were no
# better at telling strange data, and often worse (Data 1 to 3, n = 128).
MOST_FITTED = 4096
# Wider inputs are no summaries, and their covariance would take longer than is worth it.
MOST_COLUMNS = 512
# Directions below this share of the widest carry rounding.
SMALLEST_SPREAD = 1e-3


@dataclass(frozen=True)
class Typicality:
    """Distances from each model in the space of summaries, and those of simulations set aside to compare them with.

    Columns are centred and scaled as the model spreads them, squashed, and decorrelated: the distance is a sum of
    squares, Mahalanobis' for summaries without heavy tails. What makes it calibrated is the comparison.

    Parameters
    ----------
    location, scale
        Of every column under each model, shape (K, columns).
    offset, matrix
        The decorrelation after that, (K, directions) and (K, columns, directions).
    distances
        Of simulations set aside, each from its own model, shape (K, data sets).
    """

    location: NDArray[np.float32]
    scale: NDArray[np.float32]
    offset: NDArray[np.float32]
    matrix: NDArray[np.float32]
    distances: NDArray[np.float32]

    @classmethod
    def fit(
        cls, fitted: Sequence[NDArray[np.float32]], set_aside: Sequence[NDArray[np.float32]], layout: InputLayout
    ) -> Typicality | None:
        """Return the distances for prepared rows like these, one array per model; None if there is nothing to go by."""
        num_columns = layout.num_describing
        if num_columns > MOST_COLUMNS or min(len(rows) for rows in fitted) < 2:
            return None
        parts = []
        for rows in fitted:
            values = rows[:, :num_columns].astype(np.float64)
            low, location, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
            spread = values.std(axis=0)
            # Columns that are mostly constant have no interquartile range; those that never vary are strange if they
            # do.
            smallest = 1e-6 * (1.0 + np.abs(location))
            scale = np.where(high - low > smallest, high - low, np.where(spread > smallest, spread, 1.0))
            scaled = np.arcsinh((values - location) / scale).astype(np.float32)
            mean, matrix = whitening(scaled, SMALLEST_SPREAD)
            parts.append((location, scale, mean @ matrix, matrix))
        widest = max(matrix.shape[1] for *_, matrix in parts)
        location, scale = (np.stack([part[i] for part in parts]).astype(np.float32) for i in (0, 1))
        # Directions of zeros add nothing to the distance, and keep the models' matrices in one array.
        offset = np.stack([np.pad(part[2], (0, widest - len(part[2]))) for part in parts])
        matrix = np.stack([np.pad(part[3], ((0, 0), (0, widest - part[3].shape[1]))) for part in parts])
        unseen = cls(
            location, scale, offset.astype(np.float32), matrix.astype(np.float32), np.zeros((0, 0), np.float32)
        )
        distances = [unseen.distance(rows[:, :num_columns], k) for k, rows in enumerate(set_aside)]
        return replace(unseen, distances=np.stack(distances))

    def distance(self, summaries: NDArray[np.float32], model: int) -> NDArray[np.float32]:
        """Return how far each summary is from what is usual under one model."""
        scaled = np.arcsinh((summaries.astype(np.float64) - self.location[model]) / self.scale[model])
        steps = scaled @ self.matrix[model].astype(np.float64) - self.offset[model]
        # Rounded before it is compared, so that a distance and the same distance from a file never differ.
        return (steps * steps).sum(axis=1).astype(np.float32)


class Support(NamedTuple):
    """Tail areas of data sets under each model, shape (data sets, K), with their 95% intervals.

    Tail areas are nan for a data set of a size that too few simulations have. `order` has those of the observations'
    order alone, one per data set; nan where order means nothing.
    """

    tail_area: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    order: NDArray[np.float64]


# A tail area among data sets of other sizes: not far from this one's, and enough of them.
MOST_SIZE_RATIO = 1.25
FEWEST_OF_SIZE = 100


def of_about_the_size(simulated: NDArray[np.integer], num_obs: int | NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return which simulations have about as many observations as `num_obs`, within a quarter either way.

    `num_obs` is one number, or an array that broadcasts against the simulated numbers. A data set is compared only
    with simulations of about its size, for what is usual depends on it.
    """
    return np.maximum(simulated / num_obs, num_obs / simulated) <= MOST_SIZE_RATIO


def support_of(
    typicality: Typicality,
    summaries: NDArray[np.float32],
    *,
    num_obs: NDArray[np.integer] | None = None,
    reference_num_obs: NDArray[np.integer] | None = None,
    ordered: NDArray[np.generic] | None = None,
) -> Support:
    """Return how typical data sets are of each model: tail areas, small for strange data.

    Under each model, the share of simulations set aside that lie as far from its usual summaries as the data do. For
    exchangeable observations, also the share of their orders that are as unusual: given the values, every order is
    as probable, so the two shares are independent under the model, and the smaller one of them counts.

    Parameters
    ----------
    typicality
        The distances, and those of simulations set aside.
    summaries
        Prepared rows of the data sets, of which the leading columns describe them.
    num_obs, reference_num_obs
        How many observations the data sets have, and the simulations set aside, shape (K, simulations), where that
        varies.
    ordered
        The data sets themselves, shape (data sets, observations, ...), if their order should mean nothing.
    """
    described = summaries[:, : typicality.location.shape[1]]
    counted = []
    for model, reference in enumerate(typicality.distances):
        found = typicality.distance(described, model)
        if num_obs is None or reference_num_obs is None:
            counts = len(reference) - np.searchsorted(np.sort(reference), found, "left")
            totals = np.full(len(found), len(reference))
        else:
            near = of_about_the_size(reference_num_obs[model], num_obs[:, None])
            counts = (near & (reference >= found[:, None])).sum(axis=1)
            totals = near.sum(axis=1)
        # With the data themselves among the simulations, the share of a model's own data below any level is that
        # level. Among few simulations everything would pass for typical.
        areas = ((counts + 1) / (totals + 1), *binomial_interval(counts, totals))
        counted.append([np.where(totals >= FEWEST_OF_SIZE, area, np.nan) for area in areas])
    tail_area, low, high = (np.stack(parts, axis=1) for parts in zip(*counted, strict=True))
    if ordered is None:
        return Support(tail_area, low, high, np.full(len(summaries), np.nan))
    order = np.full(len(ordered), np.nan)
    for k, one in enumerate(ordered):
        columns = np.asarray(one).reshape(len(one), -1)
        area = order_tail_area(columns[~is_absent(columns).any(axis=1)])
        if area is not None:
            order[k] = area
    # The smaller of two independent tail areas is at most p with probability 1 - (1 - p)^2, which makes it one again.
    has_order = ~np.isnan(order)[:, None]
    tail_area, low, high = (
        np.where(has_order, 1.0 - (1.0 - np.minimum(area, order[:, None])) ** 2, area)
        for area in (tail_area, low, high)
    )
    return Support(tail_area, low, high, order)


# Order. Under any model of exchangeable observations every order is as probable as every other, whatever the
# parameters. So shuffling the observations gives the exact distribution of any statistic of their order, and its tail
# area does not depend on what the values are.

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
    ranks = _centred_ranks(observations)
    observed = order_statistic(ranks[None])[0]
    num_shuffles = int(np.clip(MOST_SHUFFLED_VALUES // ranks.size, FEWEST_SHUFFLES, NUM_SHUFFLES))
    # Where they are few, shuffles are remembered: the same serve every data set of a size.
    make = _shuffles if len(ranks) * num_shuffles > BLOCK_VALUES else _remembered_shuffles
    shuffled = np.concatenate([order_statistic(ranks[orders]) for orders in make(len(ranks), num_shuffles)])
    # Equal up to rounding is equal: ties are common where values repeat.
    as_unusual = np.count_nonzero(shuffled >= observed - 1e-9 * (1.0 + observed))
    return float((1 + as_unusual) / (1 + num_shuffles))


def _shuffles(num_obs: int, num_shuffles: int) -> Iterator[NDArray[np.intp]]:
    """Yield that many random orders, always the same, in blocks of shape (orders, num_obs)."""
    rng = np.random.default_rng(SHUFFLE_SEED)
    block = max(1, BLOCK_VALUES // num_obs)
    for start in range(0, num_shuffles, block):
        orders = np.tile(np.arange(num_obs), (min(block, num_shuffles - start), 1))
        yield rng.permuted(orders, axis=1)


@lru_cache(maxsize=8)
def _remembered_shuffles(num_obs: int, num_shuffles: int) -> tuple[NDArray[np.intp], ...]:
    return tuple(_shuffles(num_obs, num_shuffles))


def simulated_in_any_order(layout: DataLayout, data: Sequence[NDArray[np.generic]]) -> bool:
    """Return whether the order of simulated observations means nothing, as it should of exchangeable ones.

    `data` are data sets of each model, shape (size, n, ...). Simulators may well sort what they draw; then an order
    like theirs is nothing unusual. Observations of nan are absent. False where the layout is not that of one array of
    exchangeable observations.
    """
    if layout.packed or not layout.arrays[0].structure.any_order:
        return False
    for own in data:
        unusual = []
        for one in own[:DATASETS_LOOKED_AT]:
            columns = np.asarray(one, np.float64).reshape(len(one), -1)
            present = columns[~np.isnan(columns).any(axis=1)]
            if len(present) >= FEWEST_OBSERVATIONS:
                statistic = order_statistic(_centred_ranks(present)[None])[0]
                # Beyond what one in twenty has.
                unusual.append(statistic > chi2.isf(0.05, 2 * columns.shape[1]))
        if unusual and np.mean(unusual) > MOST_UNUSUAL:
            return False
    return True


def _centred_ranks(observations: NDArray[np.generic]) -> NDArray[np.float64]:
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
