"""The two means of Data 2's normal mixture on a grid: its evidence with a bound on the error, and posterior draws.

With centre m = (mu1 + mu2) / 2 and half-gap d = (mu1 - mu2) / 2, the prior is m ~ N(0, v), d ~ N(2, v), independent,
v = 1.5^2 / 2, and one observation has density::

    N(y; m, s^2) exp(-d^2 / (2 s^2)) cosh((y - m) d / s^2)
        = exp(-(|y - m| - d)^2 / (2 s^2)) (1 + exp(-2 |y - m| d / s^2)) / (2 s sqrt(2 pi))

The likelihood is even in d, so only d >= 0 is integrated, with the prior at d and at -d added together.

Why the grid may be coarse. Expanding the product over observations, prior times likelihood is a sum of 2^n normal
densities with positive weights. In units of u = (n / s^2 + 1 / v)^(-1/2) each has precision matrix [[1, c], [c, 1]],
|c| < 1. By Poisson summation the trapezoidal rule with spacing h u is off by at most 6 exp(-2 pi^2 / h^2) of each, and
so of the sum, whatever the data. The same structure bounds the integrand inside a cell by its values at the corners,
which is what lets coarse grids discard regions without missing a mode.

Posterior draws come from a grid of their own, in the same coordinates: densities given all observations, or given all
but one, over the region that holds them. They are drawn from the bilinear interpolant of the density: a node by its
weight, moved by the sum of two uniforms in each direction, which adds h^2 / 6 to the variance; with the grid's spacing
h of about a tenth of a posterior standard deviation, 0.2%.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

COMPONENT_SCALE = 2.0
PRIOR_MEAN = 2.0
PRIOR_SCALE = 1.5

# Spacing of the integrating grid in units of u: a relative error below 6 exp(-2 pi^2 / 0.9^2) = 2e-10.
_FINE_SPACING = 0.9
# Searching grids have spacing 4, 12, 36, ... u, coarsest first; measured to be fastest at 128 observations.
_LAST_SEARCH_SPACING = 4.0
_SEARCH_RATIO = 3.0
# The coarsest search has about this many cells along each side, so that outliers cost more searches, not larger ones.
_FIRST_SEARCH_CELLS = 32
# Log of the largest share of the integral that a search may discard: exp(-25) = 1e-11.
_LOG_DISCARD = -25.0
# No posterior is wider than the prior, and a normal has 3e-12 of its mass beyond 7 standard deviations.
_REACH = 7.0 * PRIOR_SCALE
# 512 KB for each temporary array, measured to be fastest: fewer calls, and still in cache.
_VALUES_PER_CHUNK = 2**16
# Products of this many factors in [1, 2] cannot overflow.
_FACTORS_PER_PRODUCT = 1000
# Of the posterior's grid: nodes along each side while searching, and when drawing.
_NUM_SEARCH, _NUM_FINE = 64, 128
# A node counts where the density is at least exp(-18) of the highest: 1e-8, for what lies beyond six deviations.
_LOG_POSTERIOR_DISCARD = -18.0
# Searches narrow the box until it holds little else than the posterior; each narrows it at most this many times over.
_MOST_SEARCHES = 8

_CENTRE_VAR = PRIOR_SCALE**2 / 2


class _Box(NamedTuple):
    """The region of (centre, half-gap) that holds the mass; each array has one entry for each data set."""

    low_m: Floats
    high_m: Floats
    low_d: Floats
    high_d: Floats


class _Grid(NamedTuple):
    """Square grids of one spacing and shape, one for each data set; half-gaps are whole multiples of the spacing."""

    spacing: float
    start_m: Floats
    num_m: int
    start_d: Floats
    num_d: int

    @property
    def centres(self) -> Floats:
        return self.start_m[:, None] + self.spacing * np.arange(self.num_m)

    @property
    def half_gaps(self) -> Floats:
        return self.start_d[:, None] + self.spacing * np.arange(self.num_d)


def mixture_log_evidence(values: Floats) -> Floats:
    """Return the log evidence of the normal mixture for each data set; `values` has shape (num_datasets, num_obs).

    The relative error of the integral is below 1e-9 for any data, to which rounding adds about 1e-15 of the squares'
    sum. Coarse grids find the region that holds the mass, and a fine one integrates it.

    Examples
    --------
    >>> mixture_log_evidence(np.array([[4.0, -4.0]])).round(4)
    array([-5.6456])
    """
    num_datasets, num_obs = values.shape
    unit = (num_obs / COMPONENT_SCALE**2 + 1 / _CENTRE_VAR) ** -0.5
    # Sure to hold the mass: given any assignment, each mean is centred between the data and the prior means.
    low = values.min(axis=1, initial=-PRIOR_MEAN) - _REACH
    high = values.max(axis=1, initial=PRIOR_MEAN) + _REACH
    box = _Box(low, high, np.zeros(num_datasets), (high - low) / 2)
    for spacing in _search_spacings(box, unit):
        for rows, grid in _chunks(box, spacing * unit, num_obs):
            _shrink(box, rows, grid, _log_integrand(values[rows], grid), spacing)
    log_integral = np.empty(num_datasets)
    for rows, grid in _chunks(box, _FINE_SPACING * unit, num_obs):
        log_integral[rows] = _log_trapezoid(_log_integrand(values[rows], grid), grid)
    return log_integral


def _search_spacings(box: _Box, unit: float) -> list[float]:
    """Return the spacings of the searching grids in units of `unit`, coarsest first."""
    widest = (box.high_m - box.low_m).max(initial=0.0)
    spacings = [_LAST_SEARCH_SPACING, _SEARCH_RATIO * _LAST_SEARCH_SPACING]
    while spacings[-1] * unit * _FIRST_SEARCH_CELLS < widest:
        spacings.append(_SEARCH_RATIO * spacings[-1])
    return spacings[::-1]


def _chunks(box: _Box, spacing: float, num_obs: int) -> Iterator[tuple[NDArray[np.intp], _Grid]]:
    """Yield rows of data sets whose boxes need grids of similar shape, with one grid shape for all of them."""
    num_m = np.ceil((box.high_m - box.low_m) / spacing).astype(np.intp) + 1
    first_d = np.floor(box.low_d / spacing)
    num_d = (np.ceil(box.high_d / spacing) - first_d).astype(np.intp) + 1
    order = np.lexsort((num_d, num_m))
    stop = len(order)
    # From the largest down, so that the first of a chunk sets its size.
    while stop > 0:
        largest_m = int(num_m[order[stop - 1]])
        size = max(1, _VALUES_PER_CHUNK // (max(1, num_obs) * largest_m))
        rows = order[max(0, stop - size) : stop]
        stop -= len(rows)
        yield rows, _Grid(spacing, box.low_m[rows], largest_m, first_d[rows] * spacing, int(num_d[rows].max()))


def _log_integrand(values: Floats, grid: _Grid) -> Floats:
    """Return log prior plus log likelihood with d and -d added together, shape (num_datasets, num_d, num_m)."""
    num_obs = values.shape[1]
    centres, half_gaps = grid.centres[:, None, :], grid.half_gaps[:, :, None]
    # Observations lead, so that sums and products over them run along whole rows.
    distance = np.abs(np.ascontiguousarray(values.T)[:, :, None] - centres[:, 0, :])
    mean_distance = distance.sum(axis=0) / max(1, num_obs)
    spread = ((distance - mean_distance) ** 2).sum(axis=0)
    # Split around the mean distance: the sum of (|y - m| - d)^2 then has no cancelling terms.
    squares = spread[:, None, :] + num_obs * (mean_distance[:, None, :] - half_gaps) ** 2
    log_likelihood = -squares / (2 * COMPONENT_SCALE**2) - num_obs * np.log(2 * COMPONENT_SCALE * np.sqrt(2 * np.pi))
    for start in range(0, num_obs, _FACTORS_PER_PRODUCT):
        log_likelihood += _log_overlap(distance[start : start + _FACTORS_PER_PRODUCT], grid)
    log_prior = -0.5 * centres**2 / _CENTRE_VAR - 0.5 * (half_gaps - PRIOR_MEAN) ** 2 / _CENTRE_VAR
    log_prior += np.log1p(np.exp(-2 * PRIOR_MEAN * half_gaps / _CENTRE_VAR)) - np.log(2 * np.pi * _CENTRE_VAR)
    return log_likelihood + log_prior


def _log_overlap(distance: Floats, grid: _Grid) -> Floats:
    """Return the sum over observations of log(1 + exp(-2 |y - m| d / s^2)), shape (num_datasets, num_d, num_m).

    `distance` is |y - m|, shape (num_obs, num_datasets, num_m). Half-gaps are equally spaced, so the exponentials are
    powers of one ratio, and one logarithm of a product serves all observations: three cheap passes over the grid.
    """
    rate = -2 * distance / COMPONENT_SCALE**2
    ratio = np.exp(rate * grid.spacing)
    power = np.exp(rate * grid.start_d[:, None])
    factor = np.empty_like(power)
    product = np.empty((grid.num_d, *distance.shape[1:]))
    for k in range(grid.num_d):
        np.add(power, 1.0, out=factor)
        np.multiply.reduce(factor, axis=0, out=product[k])
        power *= ratio
    return np.log(product).swapaxes(0, 1)


def _shrink(box: _Box, rows: NDArray[np.intp], grid: _Grid, log_integrand: Floats, relative_spacing: float) -> None:
    """Cut from the boxes of `rows` the outer cells that together hold less than exp(`_LOG_DISCARD`) of the integral.

    Inside a cell of side h u each normal density is at most exp(h^2 / 2) times the sum of its values at the corners,
    and the integral is at least 2 pi u^2 times the integrand anywhere.
    """
    _, num_d, num_m = log_integrand.shape
    log_slack = relative_spacing**2 / 2 + np.log(4 * num_d * num_m * relative_spacing**2 / (2 * np.pi))
    highest = log_integrand.max(axis=(1, 2), keepdims=True)
    keep = log_integrand > highest + _LOG_DISCARD - log_slack
    for start, low, high, kept in (
        (grid.start_m, box.low_m, box.high_m, keep.any(axis=1)),
        (grid.start_d, box.low_d, box.high_d, keep.any(axis=2)),
    ):
        # The first and the last index that is True in each row; every row has one.
        first, last = kept.argmax(axis=1), kept.shape[1] - 1 - kept[:, ::-1].argmax(axis=1)
        low[rows] = np.maximum(low[rows], start + (first - 1) * grid.spacing)
        high[rows] = np.minimum(high[rows], start + (last + 1) * grid.spacing)


def _log_trapezoid(log_integrand: Floats, grid: _Grid) -> Floats:
    """Return the log of the trapezoidal sum; the integrand is negligible on every edge but d = 0."""
    highest = log_integrand.max(axis=(1, 2))
    scaled = np.exp(log_integrand - highest[:, None, None])
    # The integrand continues to d < 0 as its mirror image, which leaves half a cell to the points at d = 0.
    scaled[grid.start_d == 0, 0] *= 0.5
    return highest + np.log(scaled.sum(axis=(1, 2))) + 2 * np.log(grid.spacing)


# Posterior draws.


def draw_mixture_means(rng: np.random.Generator, observed: Floats, num_draws: int, left_out: bool) -> Floats:
    """Return posterior draws of both means: the one that the prior puts at 2, then the one at -2.

    Given all observations, shape (1, num_draws, 2); or, if `left_out`, given all but each in turn, shape (num_obs,
    num_draws, 2). The likelihood is even in the half-gap d, so the grid covers d >= 0, with the prior at d and at -d
    added together; which of the two it was is drawn afterwards.
    """
    low = min(-PRIOR_MEAN, float(observed.min(initial=np.inf))) - _REACH
    high = max(PRIOR_MEAN, float(observed.max(initial=-np.inf))) + _REACH
    box = np.array([[low, high], [0.0, (high - low) / 2]])
    for _ in range(_MOST_SEARCHES):
        narrowed = _narrowed(box, _log_densities(observed, _nodes(box, _NUM_SEARCH), left_out))
        shrunk = np.ptp(narrowed, axis=1) < 0.8 * np.ptp(box, axis=1)
        box = narrowed
        if not shrunk.any():
            break
    nodes = _nodes(box, _NUM_FINE)
    log_density = _log_densities(observed, nodes, left_out).reshape(-1, _NUM_FINE**2)
    spacing = np.ptp(box, axis=1) / (_NUM_FINE - 1)
    draws = np.empty((len(log_density), num_draws, 2))
    for row, values in zip(draws, log_density, strict=True):
        heaped = np.cumsum(np.exp(values - values.max()))
        chosen = np.searchsorted(heaped, rng.uniform(size=num_draws) * heaped[-1], side="right")
        triangular = rng.uniform(-0.5, 0.5, (2, num_draws, 2)).sum(axis=0)
        row[:] = nodes.reshape(-1, 2)[chosen] + spacing * triangular
    # Moved below 0, a half-gap stands for its mirror image.
    centre, half_gap = draws[..., 0], np.abs(draws[..., 1])
    upper_first = rng.uniform(size=half_gap.shape) < expit(_log_prior_odds(half_gap))
    half_gap = np.where(upper_first, half_gap, -half_gap)
    return np.stack([centre + half_gap, centre - half_gap], axis=-1)


def _log_prior_odds(half_gap: Floats) -> Floats:
    """Return the log prior odds of d against -d."""
    return 2 * PRIOR_MEAN * half_gap / _CENTRE_VAR


def _nodes(box: Floats, num_nodes: int) -> Floats:
    """Return pairs of centre and half-gap, shape (num_nodes, num_nodes, 2)."""
    return np.stack(np.meshgrid(*(np.linspace(low, high, num_nodes) for low, high in box), indexing="ij"), axis=-1)


def _log_densities(observed: Floats, nodes: Floats, left_out: bool) -> Floats:
    """Return log posterior densities up to a constant, shape (rows, nodes, nodes)."""
    centre, half_gap = nodes[..., 0], nodes[..., 1]
    log_prior = -0.5 * (centre**2 + (half_gap - PRIOR_MEAN) ** 2) / _CENTRE_VAR
    log_prior += np.log1p(np.exp(-_log_prior_odds(half_gap)))
    # Half of the cell about a node at d = 0 is the other half's mirror image.
    log_prior -= np.where(half_gap == 0, np.log(2), 0.0)
    distance = observed[:, None, None] - centre
    log_each = -0.5 * (distance**2 + half_gap**2) / COMPONENT_SCALE**2
    # log(2 cosh(t)), which an exponential of a large t would overflow.
    slope = np.abs(distance * half_gap) / COMPONENT_SCALE**2
    log_each += slope + np.log1p(np.exp(-2 * slope))
    together = log_prior + log_each.sum(axis=0)
    return together - log_each if left_out else together[None]


def _narrowed(box: Floats, log_density: Floats) -> Floats:
    """Return the box cut to where any of the densities is not negligible, and a node on each side."""
    num_nodes = log_density.shape[1]
    keep = (log_density > log_density.max(axis=(1, 2), keepdims=True) + _LOG_POSTERIOR_DISCARD).any(axis=0)
    narrowed = np.empty_like(box)
    for axis, (low, high) in enumerate(box):
        kept = np.flatnonzero(keep.any(axis=1 - axis))
        first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, num_nodes - 1)
        narrowed[axis] = np.linspace(low, high, num_nodes)[[first, last]]
    return narrowed
