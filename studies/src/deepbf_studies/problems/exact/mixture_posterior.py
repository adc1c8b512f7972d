"""The posterior of Data 2's two means, drawn from a fine grid.

In the coordinates of `mixture_quadrature`, centre m and half-gap d, the posterior given all
observations, and given all but one, are evaluated on one grid over the region that holds them. Draws come from the
bilinear interpolant of the density: a node by its weight, moved by the sum of two uniforms in each direction, which
adds h^2 / 6 to the variance; with the grid's spacing h of about a tenth of a posterior standard deviation, 0.2%.

The likelihood is even in d, so the grid covers d >= 0, with the prior at d and at -d added together; which of the two
it was, is drawn afterwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from deepbf_studies.problems.exact.mixture_quadrature import COMPONENT_SCALE, PRIOR_MEAN, PRIOR_SCALE

Floats = NDArray[np.float64]

NUM_SEARCH, NUM_FINE = 64, 128
# A node counts where the density is at least exp(-18) of the highest: 1e-8, for what lies beyond six deviations.
LOG_DISCARD = -18.0
# Searches narrow the box until it holds little else than the posterior; each narrows it at most this many times over.
MOST_SEARCHES = 8
# Of the prior, and the posterior is narrower: 7 standard deviations.
REACH = 7.0 * PRIOR_SCALE
_CENTRE_VAR = PRIOR_SCALE**2 / 2


def draw_mixture_means(rng: np.random.Generator, observed: Floats, num_draws: int, left_out: bool) -> Floats:
    """Return both means given all observations, shape (1, num_draws, 2); or, left out, given all but each in turn."""
    low = min(-PRIOR_MEAN, float(observed.min(initial=np.inf))) - REACH
    high = max(PRIOR_MEAN, float(observed.max(initial=-np.inf))) + REACH
    box = np.array([[low, high], [0.0, (high - low) / 2]])
    for _ in range(MOST_SEARCHES):
        narrowed = _narrowed(box, _log_densities(observed, _nodes(box, NUM_SEARCH), left_out))
        shrunk = np.ptp(narrowed, axis=1) < 0.8 * np.ptp(box, axis=1)
        box = narrowed
        if not shrunk.any():
            break
    nodes = _nodes(box, NUM_FINE)
    log_density = _log_densities(observed, nodes, left_out).reshape(-1, NUM_FINE**2)
    spacing = np.ptp(box, axis=1) / (NUM_FINE - 1)
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
    keep = (log_density > log_density.max(axis=(1, 2), keepdims=True) + LOG_DISCARD).any(axis=0)
    narrowed = np.empty_like(box)
    for axis, (low, high) in enumerate(box):
        kept = np.flatnonzero(keep.any(axis=1 - axis))
        first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, num_nodes - 1)
        narrowed[axis] = np.linspace(low, high, num_nodes)[[first, last]]
    return narrowed
