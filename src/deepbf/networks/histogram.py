"""Soft histograms: the mean of fixed piecewise-linear ramps over the observations of a data set.

Any mean-pooled function of one scalar observation is, up to interpolation, a linear map of these means. So nothing
needs to be learned before pooling, and a training step does not depend on n.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import Storable

# Ramps for a scalar observation. More showed no gain on any study.
MOST_RAMPS = 48
FEWEST_RAMPS = 4
SIMD_WIDTH = 8
# Shared by the directions along which vector observations are seen.
RAMPS_IN_ALL = 256
NUM_DIRECTIONS = 16
DIRECTION_SEED = 20_170_601
# The error of linear interpolation is spread evenly when knots are as dense as a small power of the data's density;
# this also reaches far into the tails, where quantiles would place nothing.
DENSITY_POWER = 1 / 3
NUM_BINS = 512
# Knots nearer to each other than this would make a slope that float32 cannot hold.
SMALLEST_GAP = 1e-30
# Beyond the reach of any slope times any standardised value.
FAR_BELOW = 1e37
# Observations in one fused step of the pooling loop: wide enough to amortise the loop, small enough for registers.
UNROLL = 8


class SoftHistogram(Storable):
    """Means over observations of ramps that climb from 0 to 1 between neighbouring knots.

    Vector observations are seen along several directions: a function of a vector is, to any accuracy, a sum of
    functions of single directions of it.
    """

    slope: jax.Array
    intercept: jax.Array

    @classmethod
    def fit(cls, observations: NDArray[np.float32]) -> SoftHistogram:
        """Return ramps with knots where the observations are, shape (observations, columns)."""
        directions = choose_directions(observations.shape[1])
        most = int(np.clip(RAMPS_IN_ALL // directions.shape[1], FEWEST_RAMPS, MOST_RAMPS))
        knots = [choose_knots(observations @ direction, most + 1) for direction in directions.T]
        width = np.concatenate([np.diff(column) for column in knots])
        start = np.concatenate([column[:-1] for column in knots])
        along = np.repeat(directions, [len(column) - 1 for column in knots], axis=1)
        # Flat ramps fill up to whole SIMD registers: a remainder would run one number at a time.
        num_flat = -len(width) % SIMD_WIDTH
        return cls(
            jnp.asarray(np.pad(along / width, ((0, 0), (0, num_flat))), jnp.float32),
            jnp.asarray(np.pad(-start / width, (0, num_flat)), jnp.float32),
        )

    @property
    def num_ramps(self) -> int:
        return self.slope.shape[1]

    def __call__(self, data: jax.Array, present: jax.Array | None = None) -> jax.Array:
        """Return (batch, num_ramps) from data of shape (batch, observations, columns).

        `present`, shape (batch, observations), is 1 for observations that are there and 0 for those that are absent.
        """
        batch, num_obs, num_columns = data.shape
        by_obs = jnp.moveaxis(data, 1, 0)
        # Absent observations are taken below the start of every ramp, where they add exactly 0.
        below = None if present is None else jnp.moveaxis((present - 1.0) * FAR_BELOW, 1, 0)[:, :, None]
        if below is not None:
            by_obs = jnp.concatenate([by_obs, below], axis=2)
        num_whole = num_obs // UNROLL
        # A loop over observations with the ramps as its inner, vectorised axis: twenty times faster on a CPU than
        # forming all ramps of all observations and reducing.
        total, _ = jax.lax.scan(
            lambda total, group: (self._add(total, group, num_columns), None),
            jnp.zeros((batch, self.num_ramps), jnp.float32),
            by_obs[: num_whole * UNROLL].reshape(num_whole, UNROLL, *by_obs.shape[1:]),
        )
        total = self._add(total, by_obs[num_whole * UNROLL :], num_columns)
        return total / num_obs if present is None else total / present.sum(axis=1, keepdims=True)

    def _add(self, total: jax.Array, group: jax.Array, num_columns: int) -> jax.Array:
        for row in group:
            observation, below = row[:, :num_columns], row[:, num_columns:]
            # For one column a product of matrices is a plain product, and fuses with what follows.
            climbed = observation * self.slope if num_columns == 1 else observation @ self.slope
            climbed = climbed + self.intercept
            total = total + jnp.clip(climbed + below if below.shape[1] else climbed, 0.0, 1.0)
        return total


def choose_directions(num_columns: int) -> NDArray[np.float64]:
    """Return directions to see observations along, shape (columns, directions): each column, then mixtures of them.

    Of two columns, directions at even angles; of more, sums and differences of pairs as far as they fit, then random
    directions, always the same.
    """
    if num_columns == 1:
        return np.ones((1, 1))
    if num_columns == 2:
        angles = np.pi * np.arange(NUM_DIRECTIONS) / NUM_DIRECTIONS
        return np.stack([np.cos(angles), np.sin(angles)])
    own = np.eye(num_columns)
    pairs = [
        (own[:, i] + sign * own[:, j]) / np.sqrt(2)
        for i, j in itertools.combinations(range(num_columns), 2)
        for sign in (1, -1)
    ]
    random = np.random.default_rng(DIRECTION_SEED).standard_normal((num_columns, NUM_DIRECTIONS))
    random /= np.linalg.norm(random, axis=0)
    mixtures = [*pairs, *random.T] if len(pairs) <= NUM_DIRECTIONS else list(random.T)
    return np.stack([*own.T, *mixtures], axis=1)


def choose_knots(values: NDArray[np.float32], most: int) -> NDArray[np.float64]:
    """Return at most `most` increasing knots among the values: all distinct ones if few, else denser where they are.

    Knots are actual values, so that counts get a knot on every small integer.
    """
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    apart = np.concatenate([[True], np.diff(distinct) > SMALLEST_GAP])
    distinct, counts = distinct[apart], counts[apart]
    if len(distinct) == 1:
        return np.array([distinct[0] - 1.0, distinct[0] + 1.0])
    if len(distinct) <= most:
        return distinct
    # Bins on a squashed scale, or one far value would leave all others in a single bin.
    squashed = np.arcsinh(distinct)
    weights, edges = np.histogram(squashed, bins=NUM_BINS, weights=counts.astype(np.float64))
    cumulative = np.concatenate([[0.0], np.cumsum(weights**DENSITY_POWER)])
    wanted = np.interp(np.linspace(0, cumulative[-1], most), cumulative, edges)
    above = np.clip(np.searchsorted(squashed, wanted), 1, len(distinct) - 1)
    nearer_below = wanted - squashed[above - 1] < squashed[above] - wanted
    return np.unique(distinct[np.where(nearer_below, above - 1, above)])
