"""LineFit: a line through points by least squares; between logarithms, its slope is the power of a power law."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class LineFit:
    """A line, with the standard error of its slope.

    Parameters
    ----------
    slope, intercept
        Of the line.
    error
        Standard error of the slope; nan of two points, which say nothing about scatter.
    misfit
        Weighted sum of squared distances of the points from the line: of two lines through the same points, the one
        with the smaller misfit describes them better.
    """

    slope: float
    intercept: float
    error: float
    misfit: float

    def at(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the line's values."""
        return self.intercept + self.slope * np.asarray(x, dtype=np.float64)

    def __str__(self) -> str:
        return f"{self.slope:.2f}" if math.isnan(self.error) else f"{self.slope:.2f} ± {self.error:.2f}"


def fit_line(x: ArrayLike, y: ArrayLike, variances: ArrayLike | None = None) -> LineFit:
    """Return the line through points (x, y) by least squares.

    Parameters
    ----------
    x, y
        At least two points, at two places or more.
    variances
        Of each y, where they are known: points then count by their precision, and the slope's error is at least what
        these variances make of it, more where the points scatter about the line by more than that. Otherwise all
        points count the same, and their scatter alone gives the error.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(np.unique(x)) < 2:
        raise ValueError(f"a line needs points at two places or more; received {len(x)} at x = {np.unique(x)}.")
    weights = np.ones_like(x) if variances is None else 1 / np.asarray(variances, dtype=np.float64)
    centre = np.average(x, weights=weights)
    spread = np.sum(weights * (x - centre) ** 2)
    slope = float(np.sum(weights * (x - centre) * y) / spread)
    intercept = float(np.average(y, weights=weights) - slope * centre)
    misfit = float(np.sum(weights * (y - intercept - slope * x) ** 2))
    free = len(x) - 2
    scatter = misfit / free if free else math.nan
    if variances is not None:
        scatter = max(1.0, scatter) if free else 1.0
    return LineFit(slope, intercept, math.sqrt(scatter / spread), misfit)
