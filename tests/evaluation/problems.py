"""Exact log Bayes factors to evaluate with: two normals a known distance apart, one observation."""

import numpy as np
from numpy.typing import NDArray

# Near enough that the mean Bayes factor is visible: its variance is exp(SHIFT^2) - 1.
SHIFT = 0.8


def shifted_normals(num_datasets: int, seed: int, shift: float = SHIFT) -> list[NDArray[np.float64]]:
    """Return log p(y | N(shift, 1)) - log p(y | N(0, 1)) at data of each."""
    rng = np.random.default_rng(seed)
    return [shift * (rng.normal(mean, 1, num_datasets) - shift / 2) for mean in (shift, 0.0)]


def stretched(log_bfs: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Return deliberately wrong log Bayes factors."""
    return [1.5 * part + 1 for part in log_bfs]
