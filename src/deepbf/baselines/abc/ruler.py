"""The unit of distance: which point is the origin and how long each feature's unit is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DISTANCES = ("euclidean", "scaled")
# Median absolute deviation to standard deviation, for a normal.
_MAD_TO_SD = 1.4826


class Ruler(NamedTuple):
    """How summaries become points.

    Distances are Euclidean between values / scale. `centre` and `unit`, in those units, only make numbers moderate
    for single precision; no distance depends on them.
    """

    scale: NDArray[np.float64]
    centre: NDArray[np.float64]
    unit: float

    @classmethod
    def of(cls, distance: str, observed: NDArray[np.float64], pilot: NDArray[np.float64]) -> Ruler:
        """Return the ruler for these observed summaries, learned from the summaries of the first stratum."""
        scale = feature_scale(pilot) if distance == "scaled" else np.ones(pilot.shape[1])
        centre = np.median(pilot / scale, axis=0)
        reach = max(np.abs(observed / scale - centre).max(), np.quantile(np.abs(pilot / scale - centre), 0.9))
        # A power of two, so that dividing by it rounds nothing.
        unit = float(2.0 ** np.ceil(np.log2(reach))) if reach > 0 else 1.0
        return cls(scale, centre, unit)


def feature_scale(pilot: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each feature's spread: the median absolute deviation, as robust as heavy-tailed counts need it.

    Where more than half of the values are equal that is 0, and the mean absolute deviation stands in; a constant
    feature keeps its unit.
    """
    deviations = np.abs(pilot - np.median(pilot, axis=0))
    scale = _MAD_TO_SD * np.median(deviations, axis=0)
    scale = np.where(scale > 0, scale, deviations.mean(axis=0))
    return np.where(scale > 0, scale, 1.0)
