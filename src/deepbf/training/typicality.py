"""Typicality: how far the summary of a data set lies from those that each model makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deepbf.networks import InputLayout
from deepbf.networks.features import whitening

# Data sets a model to learn the usual spread from; nearest neighbours and local densities among as many were no better
# at telling strange data, and often worse (Data 1 to 3, n = 128).
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
        """Return the distances for prepared rows like these, one array a model; None if there is nothing to go by."""
        num_columns = columns_of(layout)
        if num_columns > MOST_COLUMNS or min(len(rows) for rows in fitted) < 2:
            return None
        parts = [_fit_one(rows[:, :num_columns]) for rows in fitted]
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


def columns_of(layout: InputLayout) -> int:
    """Return how many leading columns of prepared data sets summarise them; all, where nothing does."""
    return layout.num_summary or layout.width


def _fit_one(
    rows: NDArray[np.float32],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    values = rows.astype(np.float64)
    low, location, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
    spread = values.std(axis=0)
    # Columns that are mostly constant have no interquartile range; those that never vary are strange if they do.
    smallest = 1e-6 * (1.0 + np.abs(location))
    scale = np.where(high - low > smallest, high - low, np.where(spread > smallest, spread, 1.0))
    scaled = np.arcsinh((values - location) / scale).astype(np.float32)
    mean, matrix = whitening(scaled, SMALLEST_SPREAD)
    return location, scale, mean @ matrix, matrix
