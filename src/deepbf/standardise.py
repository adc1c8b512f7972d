"""Robust standardisation: any finite data become float32 numbers of moderate size, without overflow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Far beyond any plausible datum, and a sum of many squares is still a finite float32: log odds stay finite.
LARGEST = 1e15
# Values standardised at a time: a scratch array that stays in the cache, and is never given back to the system.
BLOCK_VALUES = 65_536


@dataclass(frozen=True)
class Standardiser:
    """Subtracts a location and divides by a scale, column by column; plain arrays, so it travels to any worker.

    Location and scale come from the middle of the data, so that a few counts in the millions do not squash the rest:
    the median and the interquartile range, or a wider measure where that is zero; 1 for a constant column.
    """

    location: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def fit(cls, pilot: Sequence[NDArray[np.generic]], *, num_axes: int) -> Standardiser:
        """Return the standardiser for data like `pilot`, one array of data sets per model.

        The first `num_axes` axes of a data set run over observations, which share one location and scale. Observations
        of nan are absent, and stay nan.
        """
        columns = [_as_columns(data, num_axes) for data in pilot]
        pooled = np.concatenate(columns)
        # Not np.median, which adds the two middle values before it halves them, and overflows near the largest float.
        low, high = (np.quantile(pooled, 0.5, axis=0, method=side) for side in ("lower", "higher"))
        location = np.asarray(low / 2 + high / 2)
        with np.errstate(over="ignore", invalid="ignore"):
            lower, upper = np.quantile(pooled, [0.25, 0.75], axis=0)
            scale = upper - lower
            # Mostly-constant columns (rare events) have no interquartile range: take the mean distance instead.
            scale = np.where(scale > 0, scale, np.mean(np.abs(pooled - location), axis=0))
        # The smallest normal number as a floor keeps the division finite for scales like 1e-320.
        usable = np.isfinite(scale) & (scale > np.finfo(np.float64).tiny)
        return cls(location, np.asarray(np.where(usable, scale, 1.0)))

    @classmethod
    def joined(cls, parts: Sequence[Standardiser], shapes: Sequence[tuple[int, ...]]) -> Standardiser:
        """Return one standardiser for arrays of these shapes, flattened side by side into one row."""
        pairs = list(zip(parts, shapes, strict=True))
        location = np.concatenate([np.broadcast_to(part.location, shape).ravel() for part, shape in pairs])
        scale = np.concatenate([np.broadcast_to(part.scale, shape).ravel() for part, shape in pairs])
        return cls(location, scale)

    def __call__(self, data: NDArray[np.generic]) -> NDArray[np.float32]:
        """Return the standardised data, same shape, float32, within +-1e15."""
        scaled = np.empty(data.shape, np.float32)
        rows = max(1, BLOCK_VALUES // max(1, data[:1].size))
        centred = np.empty((min(rows, len(data)), *data.shape[1:]), np.float64)
        inverse = 1.0 / self.scale
        with np.errstate(over="ignore"):
            for start in range(0, len(data), rows):
                part = scaled[start : start + rows]
                scratch = centred[: len(part)]
                # Differences in float64, for data like 1e9 +- 1; what then overflows float32 is clipped all the same.
                np.subtract(data[start : start + rows], self.location, out=scratch)
                np.multiply(scratch, inverse, out=part, casting="same_kind")
                np.clip(part, -LARGEST, LARGEST, out=part)
        return scaled


def _as_columns(data: NDArray[np.generic], num_axes: int) -> NDArray[np.float64]:
    """Return every observation that is there as a row."""
    values = np.asarray(data, dtype=np.float64)
    rows = values.reshape(math.prod(values.shape[: num_axes + 1]), *values.shape[num_axes + 1 :])
    absent = np.isnan(rows).any(axis=tuple(range(1, rows.ndim)))
    return rows[~absent] if absent.any() else rows
