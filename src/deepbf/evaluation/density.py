"""Kernel densities of log Bayes factors, and the Kullback-Leibler divergence between two of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

NUM_GRID = 512
# Bandwidths beyond the outermost values, where a normal kernel has fallen to a thousandth.
MARGIN = 3.5
# Stands for 0 where a logarithm is taken: near the least float.
TINIEST = 1e-300


def common_grid(samples: list[NDArray[np.float64]], num_points: int = NUM_GRID) -> NDArray[np.float64]:
    """Return equally spaced points that cover every sample and its kernels, in increasing order.

    The points reach 3.5 kernel widths beyond the outermost values. Samples of a single value get a narrow grid too.
    """
    margin = MARGIN * max(_scott_bandwidth(sample) for sample in samples)
    low, high = min(sample.min() for sample in samples), max(sample.max() for sample in samples)
    # Values that are all the same, up to rounding, still get a grid of some width.
    margin = max(margin, 1e-3 * max(1.0, abs(low), abs(high)))
    return np.linspace(low - margin, high + margin, num_points)


def density(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the kernel density of a sample at the points of a grid, as `scipy.stats.gaussian_kde` gives it.

    The kernels are normal and as wide as Scott's rule says, but never narrower than the distance between two points of
    the grid, for such kernels would fall between the points.

    Examples
    --------
    >>> values = np.array([-1.0, 0.0, 1.0])
    >>> grid = common_grid([values])
    >>> round(float(np.trapezoid(density(values, grid), grid)), 3)
    1.0
    """
    width = _kernel_width(values, grid)
    scaled = (grid[None, :] - values[:, None]) / width
    return (np.exp(-0.5 * scaled**2) / (width * np.sqrt(2 * np.pi))).mean(axis=0)


def _scott_bandwidth(values: NDArray[np.float64]) -> float:
    """Return the kernel's standard deviation by Scott's rule, the default of `scipy.stats.gaussian_kde`."""
    return float(np.std(values, ddof=1)) * len(values) ** (-1 / 5)


def _kernel_width(values: NDArray[np.float64], grid: NDArray[np.float64]) -> float:
    return max(_scott_bandwidth(values), float(grid[1] - grid[0]))


class Divergence:
    """Kullback-Leibler divergence from the density of one sample to that of another, under any weights.

    The divergence is the sum over a grid of p log(p / q), where p and q are the kernel densities of the two samples,
    kept as logarithms. So it grows without bound as the samples move apart, and is finite for all finite samples.

    Three things are approximate. Beyond the outermost values of a sample no density is known: it is taken to fall like
    that of the normal distribution of the same mean and variance, for the tail of a single kernel falls as fast as its
    own narrow width says, which is no property of the sample. (Where all of N(0, 1) meets the tails of a sample of
    N(0, 0.01), the divergence is 47.2; kernel tails alone would make it 550 for 1,500 values.) For samples whose tails
    are not normal, a large divergence is right in its order of magnitude only. Second, a density narrower than the
    distance between two of the 512 points counts as that wide; the divergence to a sample of a single value, which is
    infinite, comes out large and finite. Third, kernels smooth both densities, which hides differences finer than
    Scott's bandwidth, such as the atoms of discrete data.
    """

    def __init__(self, exact: NDArray[np.float64], estimated: NDArray[np.float64]) -> None:
        grid = common_grid([exact, estimated])
        self._exact, self._estimated = (_WeightedLogDensity(values, grid) for values in (exact, estimated))

    def __call__(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the divergence in nats, one number per replicate."""
        log_p, log_q = self._exact(weights), self._estimated(weights)
        # Rounding may end just below 0.
        return np.maximum((np.exp(log_p) * (log_p - log_q)).sum(axis=1), 0.0)


class _WeightedLogDensity:
    """Log probabilities of the points of a grid by the density of a sample, under any weights of its values.

    Between the outermost values the density is the kernel density; beyond them it falls like a normal one.
    """

    def __init__(self, values: NDArray[np.float64], grid: NDArray[np.float64]) -> None:
        width = _kernel_width(values, grid)
        between = np.clip(grid, values.min(), values.max())
        log_kernels = -0.5 * ((between[None, :] - values[:, None]) / width) ** 2
        # Relative to the nearest value, so that no sum of kernels is 0 just because all values are far.
        self._log_nearest = log_kernels.max(axis=0)
        self._kernels = np.exp(log_kernels - self._log_nearest)
        # The kernel density has this standard deviation.
        mean, deviation = np.mean(values), np.hypot(np.std(values, ddof=1), width)
        self._log_fall = 0.5 * (((between - mean) / deviation) ** 2 - ((grid - mean) / deviation) ** 2)

    def __call__(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        # A replicate without the values near a point may have no more than rounding there.
        log_sums = np.log(np.maximum(weights @ self._kernels, TINIEST))
        log_density = log_sums + (self._log_nearest + self._log_fall)
        return log_density - logsumexp(log_density, axis=1, keepdims=True)
