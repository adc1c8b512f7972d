"""The acceptance region: which simulations count as near the observed data, fixed before they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepbf.standardise import Standardiser

# No model gets less of the screening than this, for the pilot's rates are themselves estimates.
LEAST_SHARE = 0.02
# Of the way from the observed data to the middle of the model that lies furthest off: beyond it nothing is near.
LARGEST_REACH = 0.5


@dataclass(frozen=True)
class Region:
    """All data sets whose summary lies within `radius` of the observed one, each column in units of its scale."""

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    radius: float

    @classmethod
    def around(cls, observed: NDArray[np.float64], pilot: Sequence[NDArray[np.float64]]) -> Region:
        """Return the region of every data set, with the robust scale that the models' pilots show."""
        finite = [summaries[np.isfinite(summaries).all(axis=1)] for summaries in pilot]
        return cls(observed, Standardiser.fit(finite, num_axes=0).scale, np.inf)

    def distance(self, summaries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far each summary, shape (data sets, columns), is; inf where it is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.sqrt((((summaries - self.centre) / self.scale) ** 2).sum(axis=1))
        return np.where(np.isnan(found), np.inf, found)

    def accepts(self, summaries: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which data sets are near."""
        distance = self.distance(summaries)
        return (distance <= self.radius) & np.isfinite(distance)


def choose_radius(
    distances: Sequence[NDArray[np.float64]], costs: NDArray[np.float64], budget: float, num_near: int
) -> tuple[float, NDArray[np.int64]]:
    """Return the smallest radius that promises `num_near` of every model, and how many data sets of each to screen.

    `distances` holds those of the pilot, one array a model, `costs` what one data set of each model costs, `budget`
    what all may cost. Where no radius within reach promises as many, the largest comes back.
    """
    reach = LARGEST_REACH * max(float(np.median(of_model)) for of_model in distances)
    candidates = np.unique(np.concatenate([of_model[of_model <= reach] for of_model in distances]))
    candidates = np.append(candidates, reach) if np.isfinite(reach) else candidates
    if len(candidates) == 0:
        candidates = np.zeros(1)
    rates = np.stack([_rates_within(np.sort(of_model), candidates) for of_model in distances])
    screened = allocate(rates, costs, budget)
    enough = (screened * rates).min(axis=0) >= num_near
    chosen = int(np.argmax(enough)) if enough.any() else len(candidates) - 1
    return float(candidates[chosen]), np.maximum(1, screened[:, chosen]).astype(np.int64)


def allocate(rates: NDArray[np.float64], costs: NDArray[np.float64], budget: float) -> NDArray[np.float64]:
    """Return how many data sets of each model to draw, shape (models, candidates), from acceptance rates so shaped.

    The variance of the log ratio of two rates is about 1 / (n_1 p_1) + 1 / (n_2 p_2); at a given cost it is least for
    n_k in proportion to 1 / sqrt(p_k c_k). The model that comes near least often is drawn most.
    """
    spent = np.sqrt(costs[:, None] / rates)
    shares = np.maximum(spent / spent.sum(axis=0), LEAST_SHARE)
    return budget * shares / shares.sum(axis=0) / costs[:, None]


def _rates_within(ordered: NDArray[np.float64], radii: NDArray[np.float64]) -> NDArray[np.float64]:
    # Half a data set more, so that a model none of whose pilot came near is drawn often rather than for ever.
    return (np.searchsorted(ordered, radii, side="right") + 0.5) / (len(ordered) + 1)
