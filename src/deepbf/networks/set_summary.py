"""The summary of a set of exchangeable observations: a soft histogram and moments, at several scales."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import AbstractPreparation, InputLayout
from deepbf.networks.histogram import SoftHistogram
from deepbf.networks.multiscale import MultiScale
from deepbf.networks.size_columns import layout_with_size, with_size
from deepbf.networks.squash import squash


class SetSummary(AbstractPreparation):
    """Soft histogram and moments of the observations, at several scales.

    Complete for scalar observations, up to interpolation between knots. Vectors are seen along many directions.
    Observations of nan are absent. Where some are, the number that is there joins the summary, and its linear part
    appears a second time in proportion to that number, as the log evidence of independent observations is.
    """

    histogram: SoftHistogram
    scales: MultiScale
    moment_mean: jax.Array
    moment_spread: jax.Array
    with_shape: bool = eqx.field(static=True)
    # The most observations of a data set if their number varies, else 0.
    largest: int = eqx.field(static=True)

    @classmethod
    def fit(cls, pilot: Sequence[NDArray[np.float32]]) -> SetSummary:
        """Return the summary for data sets like these, one array a model."""
        largest = pilot[0].shape[1] if any(np.isnan(data).any() for data in pilot) else 0
        sets = [_as_columns(jnp.asarray(data), any_size=largest > 0) for data in pilot]
        observations = np.concatenate([_present_rows(*one) for one in sets])
        histogram = SoftHistogram.fit(observations)
        pooled_ramps = [np.asarray(eqx.filter_jit(histogram)(*one)) for one in sets]
        # Where values repeat, as counts do, knots sit on the values themselves and the histogram has every shape.
        with_shape = len(np.unique(observations)) > 0.1 * observations.size
        moments = [np.asarray(_moments(*one, with_shape)) for one in sets]
        mean = np.stack([m.mean(axis=0) for m in moments])
        spread = np.stack([m.std(axis=0) for m in moments])
        return cls(
            histogram,
            # Below this share of the widest, a direction of float32 means carries rounding rather than data.
            MultiScale.fit(pooled_ramps, smallest_spread=1e-3),
            jnp.asarray(mean, jnp.float32),
            jnp.asarray(np.where(spread > 1e-6, spread, 1.0), jnp.float32),
            with_shape,
            largest,
        )

    def __call__(self, data: jax.Array, fraction: float = 1.0) -> jax.Array:
        """Return the summary; where their number varies, observations may count as a `fraction` of what they are."""
        sets, present = _as_columns(data, any_size=self.largest > 0)
        moments = _moments(sets, present, self.with_shape)[:, None, :]
        scaled_moments = squash((moments - self.moment_mean) / self.moment_spread).reshape(data.shape[0], -1)
        columns = jnp.concatenate([self.scales(self.histogram(sets, present)), scaled_moments], axis=1)
        if present is None:
            return columns
        number = fraction * present.sum(axis=1, keepdims=True)
        return with_size(columns, self.scales.num_linear, number, self.largest)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        num_linear, num_columns = self.scales.num_linear, self.scales.num_columns + self.moment_mean.size
        return layout_with_size(num_linear, num_columns) if self.largest else InputLayout(num_linear, num_columns)


def _as_columns(data: jax.Array, *, any_size: bool) -> tuple[jax.Array, jax.Array | None]:
    """Return observations as rows of columns, shape (batch, observations, columns), and which of them are there.

    Vectors are squashed first: directions mix their columns, and one heavy tail would drown the others. Absent
    observations are 0. Where none is absent, nothing says so.
    """
    sets = data.reshape(data.shape[0], data.shape[1], -1)
    present = None
    if any_size:
        there = ~jnp.isnan(sets).any(axis=2)
        sets = jnp.where(there[:, :, None], sets, 0.0)
        present = there.astype(jnp.float32)
    return sets if sets.shape[2] == 1 else squash(sets), present


def _present_rows(sets: jax.Array, present: jax.Array | None) -> NDArray[np.float32]:
    """Return all observations that are there, one a row."""
    rows = np.asarray(sets).reshape(-1, sets.shape[2])
    return rows if present is None else rows[np.asarray(present).ravel() > 0]


# Beyond this many columns their products outnumber everything else, and the directions have to do.
MOST_MULTIPLIED = 12


def _moments(sets: jax.Array, present: jax.Array | None, with_shape: bool) -> jax.Array:
    """Return means of the columns and of their products, squashed, and the columns' shapes if wanted.

    The means see past the outermost knots.
    """
    num_columns = sets.shape[2]
    if num_columns > MOST_MULTIPLIED:
        products = sets * sets
    else:
        first, second = np.triu_indices(num_columns)
        products = sets[:, :, first] * sets[:, :, second]
    moments = squash(jnp.concatenate([_mean(sets, present), _mean(products, present)], axis=1))
    return jnp.concatenate([moments, _shape_of(sets, present)], axis=1) if with_shape else moments


# In interquartile ranges: far enough for every shape of interest, near enough for fourth powers in float32.
FARTHEST_FOR_SHAPE = 20.0
SMALLEST_VARIANCE = 1e-4


def _shape_of(sets: jax.Array, present: jax.Array | None) -> jax.Array:
    """Return log spread, skewness and kurtosis of each column: a histogram has them only in many faint directions."""
    near = jnp.clip(sets, -FARTHEST_FOR_SHAPE, FARTHEST_FOR_SHAPE)
    centred = near - _mean(near, present)[:, None, :]
    squares = centred * centred
    variance = _mean(squares, present) + SMALLEST_VARIANCE
    skewness = _mean(squares * centred, present) / (variance * jnp.sqrt(variance))
    kurtosis = _mean(squares * squares, present) / (variance * variance)
    return jnp.concatenate([jnp.log(variance), skewness, jnp.log(kurtosis + 1.0)], axis=1)


def _mean(sets: jax.Array, present: jax.Array | None) -> jax.Array:
    """Return the mean over observations, as a product with a vector: a plain reduction would not be vectorised."""
    num_obs = sets.shape[1]
    if present is None:
        return jnp.tensordot(sets, jnp.full(num_obs, 1.0 / num_obs), axes=([1], [0]))
    return jnp.einsum("bnc,bn->bc", sets, present / present.sum(axis=1, keepdims=True))
