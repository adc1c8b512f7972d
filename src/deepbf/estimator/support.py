"""Support: how typical data are of each model, before any Bayes factor between the models is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepbf.estimator.sized_data import FEWEST_OF_SIZE, of_about_the_size
from deepbf.evaluation.tail_areas import binomial_interval
from deepbf.training.order import order_tail_area
from deepbf.training.structured import count_present
from deepbf.training.typicality import Typicality

if TYPE_CHECKING:
    from deepbf.estimator.bayes_factor import BayesFactor


class Support(NamedTuple):
    """Tail areas of data sets under each model, shape (data sets, K), with their 95% intervals.

    Tail areas are nan for a data set of a size that too few simulations have. `order` has those of the observations'
    order alone, one a data set; nan where order means nothing.
    """

    tail_area: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    order: NDArray[np.float64]


def support_of(bf: BayesFactor, data: NDArray[np.generic]) -> Support | None:
    """Return how typical data sets, as networks read them, are of each model; None if that is not known.

    Under each model, the share of simulations set aside that lie as far from its usual summaries as the data do. For
    exchangeable observations, also the share of their orders that are as unusual: given the values, every order is
    as probable, so the two shares are independent under the model, and the smaller one of them counts.
    """
    typicality = bf.ensemble.typicality
    # Simulations over all values of hyperparameters say nothing about one of them.
    if typicality is None or bf.ensemble.hyperparameters or typicality.distances.shape[1] < FEWEST_OF_SIZE:
        return None
    if len(data) == 0:
        none = np.zeros((0, len(bf.names)))
        return Support(none, none, none, np.zeros(0))
    summaries = bf.summaries(data)[:, : typicality.location.shape[1]]
    sizes = None if bf.ensemble.reference_num_obs is None else count_present(bf.ensemble.sized(data))
    parts = [_within_model(bf, typicality, summaries, sizes, k) for k in range(len(bf.names))]
    tail_area, low, high = (np.stack([part[i] for part in parts], axis=1) for i in range(3))
    if not bf.ensemble.any_order:
        return Support(tail_area, low, high, np.full(len(data), np.nan))
    order = np.array([order_of(one) for one in data])
    tail_area, low, high = (smaller_of_two(area, order[:, None]) for area in (tail_area, low, high))
    return Support(tail_area, low, high, order)


def _within_model(
    bf: BayesFactor,
    typicality: Typicality,
    summaries: NDArray[np.float32],
    sizes: NDArray[np.integer] | None,
    model: int,
) -> tuple[NDArray[np.float64], ...]:
    """Return the share of one model's simulations that are at least as far out, with its interval."""
    found, reference = typicality.distance(summaries, model), typicality.distances[model]
    if sizes is None or bf.ensemble.reference_num_obs is None:
        counts = len(reference) - np.searchsorted(np.sort(reference), found, "left")
        totals = np.full(len(found), len(reference))
    else:
        near = of_about_the_size(bf.ensemble.reference_num_obs[model], sizes[:, None])
        counts = (near & (reference >= found[:, None])).sum(axis=1)
        totals = near.sum(axis=1)
    low, high = binomial_interval(counts, totals)
    # Among few simulations everything would pass for typical.
    known = totals >= FEWEST_OF_SIZE
    # With the data themselves among the simulations, the share of a model's own data below any level is that level.
    found_areas = ((counts + 1) / (totals + 1), low, high)
    return tuple(np.where(known, area, np.nan) for area in found_areas)


def order_of(observations: NDArray[np.generic]) -> float:
    """Return the tail area of the order of those observations that are there; nan if they are too few."""
    columns = np.asarray(observations).reshape(len(observations), -1)
    absent = np.isnan(columns).any(axis=1) if columns.dtype.kind == "f" else np.zeros(len(columns), bool)
    found = order_tail_area(columns[~absent])
    return np.nan if found is None else found


def smaller_of_two(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the tail area of the smaller of two independent tail areas; if the second is nan, the first.

    Examples
    --------
    >>> smaller_of_two(np.array([0.5, 0.5]), np.array([0.1, np.nan])).round(3).tolist()
    [0.19, 0.5]
    """
    return np.where(np.isnan(second), first, 1.0 - (1.0 - np.minimum(first, second)) ** 2)
