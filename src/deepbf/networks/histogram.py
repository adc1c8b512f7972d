"""Soft histograms: the mean of fixed piecewise-linear ramps over the observations of a data set.

Any mean-pooled function of one scalar observation is, up to interpolation, a linear map of these means. So for
scalar observations nothing needs to be learned before pooling, and a training step does not depend on n.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

# Ramps for a scalar observation. More showed no gain on any study.
MOST_RAMPS = 48
SIMD_WIDTH = 8
FEWEST_RAMPS = 4
# Shared by the columns of a vector observation: its joint behaviour is left to a learned map.
RAMPS_IN_ALL = 192
# The error of linear interpolation is spread evenly when knots are as dense as a small power of the data's density;
# this also reaches far into the tails, where quantiles would place nothing.
DENSITY_POWER = 1 / 3
NUM_BINS = 512
# Observations in one fused step of the pooling loop: wide enough to amortise the loop, small enough for registers.
UNROLL = 8


class SoftHistogram(eqx.Module):
    """Means over observations of ramps that climb from 0 to 1 between neighbouring knots."""

    slope: jax.Array
    intercept: jax.Array
    ramps_per_column: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def fit(cls, observations: NDArray[np.float32]) -> SoftHistogram:
        """Return ramps with knots where the observations are, shape (observations, columns)."""
        num_columns = observations.shape[1]
        most = int(np.clip(RAMPS_IN_ALL // num_columns, FEWEST_RAMPS, MOST_RAMPS))
        knots = [choose_knots(observations[:, column], most + 1) for column in range(num_columns)]
        width = np.concatenate([np.diff(column) for column in knots])
        start = np.concatenate([column[:-1] for column in knots])
        # Flat ramps fill up to whole SIMD registers: a remainder would run one number at a time.
        num_flat = -len(width) % SIMD_WIDTH
        counts = [len(column) - 1 for column in knots]
        counts[-1] += num_flat
        return cls(
            jnp.asarray(np.pad(1 / width, (0, num_flat)), jnp.float32),
            jnp.asarray(np.pad(-start / width, (0, num_flat)), jnp.float32),
            tuple(counts),
        )

    @property
    def num_ramps(self) -> int:
        return sum(self.ramps_per_column)

    def __call__(self, data: jax.Array) -> jax.Array:
        """Return (batch, num_ramps) from data of shape (batch, observations, columns)."""
        batch, num_obs, _ = data.shape
        by_obs = jnp.moveaxis(data, 1, 0)
        num_whole = num_obs // UNROLL
        # A loop over observations with the ramps as its inner, vectorised axis: twenty times faster on a CPU than
        # forming all ramps of all observations and reducing.
        total, _ = jax.lax.scan(
            lambda total, group: (self._add(total, group), None),
            jnp.zeros((batch, self.num_ramps), jnp.float32),
            by_obs[: num_whole * UNROLL].reshape(num_whole, UNROLL, batch, -1),
        )
        return self._add(total, by_obs[num_whole * UNROLL :]) / num_obs

    def _add(self, total: jax.Array, group: jax.Array) -> jax.Array:
        for observation in group:
            columns = [observation[:, i : i + 1] for i in range(observation.shape[1])]
            spread = columns[0] if len(columns) == 1 else self._repeat(columns)
            total = total + jnp.clip(spread * self.slope + self.intercept, 0.0, 1.0)
        return total

    def _repeat(self, columns: list[jax.Array]) -> jax.Array:
        return jnp.concatenate(
            [
                jnp.broadcast_to(column, (column.shape[0], count))
                for column, count in zip(columns, self.ramps_per_column, strict=True)
            ],
            axis=1,
        )


def choose_knots(values: NDArray[np.float32], most: int) -> NDArray[np.float64]:
    """Return at most `most` increasing knots among the values: all distinct ones if few, else denser where they are.

    Knots are actual values, so that counts get a knot on every small integer.
    """
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
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
