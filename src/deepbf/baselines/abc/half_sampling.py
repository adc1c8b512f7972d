"""The standard error of a fit, from fits on random halves of its table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def split_in_halves(
    num_rows: int, num_splits: int, rng: np.random.Generator
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return `num_splits` ways to cut rows 0, 1, ... into two random halves."""
    splits = []
    for _ in range(num_splits):
        order = rng.permutation(num_rows)
        splits.append((np.sort(order[: num_rows // 2]), np.sort(order[num_rows // 2 :])))
    return splits


def error_from_halves(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of the fit on all rows, from estimates on both halves of each split.

    Each estimate on a half has twice the variance v of the estimate on everything, and the two of a split are
    independent, so that half their difference has variance v. `first` and `second` have shape (splits, ...).
    """
    return np.sqrt(np.mean(((first - second) / 2) ** 2, axis=0))
