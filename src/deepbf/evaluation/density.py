"""Kernel densities of log Bayes factors, and the divergence between two of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NUM_GRID = 512
# Bandwidths beyond the outermost values, where a normal kernel has fallen to a thousandth.
MARGIN = 3.5


def scott_bandwidth(values: NDArray[np.float64]) -> float:
    """Return the kernel's standard deviation by Scott's rule, the default of `scipy.stats.gaussian_kde`."""
    return float(np.std(values, ddof=1)) * len(values) ** (-1 / 5)


def common_grid(samples: list[NDArray[np.float64]], num_points: int = NUM_GRID) -> NDArray[np.float64]:
    """Return equally spaced points that cover every sample and its kernels."""
    margin = MARGIN * max(scott_bandwidth(sample) for sample in samples)
    low, high = min(sample.min() for sample in samples), max(sample.max() for sample in samples)
    # Values that are all the same, up to rounding, still get a grid of some width.
    margin = max(margin, 1e-3 * max(1.0, abs(low), abs(high)))
    return np.linspace(low - margin, high + margin, num_points)


def kernels(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a normal density about each value, shape (values, grid)."""
    # Kernels narrower than the grid would fall between its points.
    width = max(scott_bandwidth(values), float(grid[1] - grid[0]))
    scaled = (grid[None, :] - values[:, None]) / width
    return np.exp(-0.5 * scaled**2) / (width * np.sqrt(2 * np.pi))


def density(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the kernel density of a sample at the points of the grid."""
    return kernels(values, grid).mean(axis=0)


class Divergence:
    """Kullback-Leibler divergence from the kernel density of one sample to that of another, under any weights."""

    def __init__(self, exact: NDArray[np.float64], estimated: NDArray[np.float64]) -> None:
        grid = common_grid([exact, estimated])
        self._exact, self._estimated = kernels(exact, grid), kernels(estimated, grid)
        self._num_values = len(exact)

    def __call__(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the divergence in nats, one entry a replicate."""
        p, q = (self._shares(weights @ kernel) for kernel in (self._exact, self._estimated))
        return (p * np.log(p / q)).sum(axis=1)

    def _shares(self, densities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities of the grid's points, as if one more value had been spread evenly over all of them.

        Without it the divergence would hang on kernel tails of 1e-300, wherever one sample reaches and the other not.
        """
        shares = densities / densities.sum(axis=1, keepdims=True)
        return (self._num_values * shares + 1 / shares.shape[1]) / (self._num_values + 1)
