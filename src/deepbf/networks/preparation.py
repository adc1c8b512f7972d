"""Preparations: from standardised data sets to the rows that networks read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import AbstractPreparation, InputLayout
from deepbf.networks.histogram import SoftHistogram
from deepbf.networks.multiscale import MultiScale
from deepbf.networks.squash import squash

Pilot = Sequence[NDArray[np.float32]]


class SquashedVector(AbstractPreparation):
    """Every value squashed, data sets flattened: all that the paper's networks for vectors need."""

    @classmethod
    def fit(cls, pilot: Pilot) -> SquashedVector:
        del pilot
        return cls()

    def __call__(self, data: jax.Array) -> jax.Array:
        return squash(data).reshape(data.shape[0], -1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        width = math.prod(data_shape)
        return InputLayout(num_linear=width, num_summary=width)


class SquashedSet(AbstractPreparation):
    """Every value squashed, observations kept apart: for networks that learn what to do with each observation."""

    @classmethod
    def fit(cls, pilot: Pilot) -> SquashedSet:
        del pilot
        return cls()

    def __call__(self, data: jax.Array) -> jax.Array:
        return squash(data).reshape(data.shape[0], -1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        return InputLayout(num_linear=0, num_summary=0, num_obs=data_shape[0], obs_dim=math.prod(data_shape[1:]))


class ScaledVector(AbstractPreparation):
    """Values squashed, then decorrelated at several scales."""

    scales: MultiScale

    @classmethod
    def fit(cls, pilot: Pilot) -> ScaledVector:
        flat = [np.arcsinh(data.reshape(len(data), -1)) for data in pilot]
        return cls(MultiScale.fit(flat, smallest_spread=1e-4))

    def __call__(self, data: jax.Array) -> jax.Array:
        return self.scales(squash(data).reshape(data.shape[0], -1))

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        return InputLayout(num_linear=self.scales.num_linear, num_summary=self.scales.num_columns)


# Decorrelating costs the cube of the width, and with more columns than pilot data sets it would be noise.
WIDEST_DECORRELATED = 512


def prepare_vector(pilot: Pilot) -> AbstractPreparation:
    """Return the default preparation of vectors: decorrelated, unless they are too wide for that."""
    width = math.prod(pilot[0].shape[1:])
    return ScaledVector.fit(pilot) if width <= WIDEST_DECORRELATED else SquashedVector.fit(pilot)


class SetSummary(AbstractPreparation):
    """Soft histogram and moments of the observations, at several scales.

    Complete for scalar observations, up to interpolation between knots. Vectors are seen along many directions.
    """

    histogram: SoftHistogram
    scales: MultiScale
    moment_mean: jax.Array
    moment_spread: jax.Array
    with_shape: bool = eqx.field(static=True)

    @classmethod
    def fit(cls, pilot: Pilot) -> SetSummary:
        sets = [np.asarray(_as_columns(jnp.asarray(data))) for data in pilot]
        observations = np.concatenate([data.reshape(-1, data.shape[2]) for data in sets])
        histogram = SoftHistogram.fit(observations)
        pooled_ramps = [np.asarray(eqx.filter_jit(histogram)(jnp.asarray(data))) for data in sets]
        # Where values repeat, as counts do, knots sit on the values themselves and the histogram has every shape.
        with_shape = len(np.unique(observations)) > 0.1 * observations.size
        moments = [np.asarray(_moments(jnp.asarray(data), with_shape)) for data in sets]
        mean = np.stack([m.mean(axis=0) for m in moments])
        spread = np.stack([m.std(axis=0) for m in moments])
        return cls(
            histogram,
            # Below this share of the widest, a direction of float32 means carries rounding rather than data.
            MultiScale.fit(pooled_ramps, smallest_spread=1e-3),
            jnp.asarray(mean, jnp.float32),
            jnp.asarray(np.where(spread > 1e-6, spread, 1.0), jnp.float32),
            with_shape,
        )

    def __call__(self, data: jax.Array) -> jax.Array:
        sets = _as_columns(data)
        moments = _moments(sets, self.with_shape)[:, None, :]
        scaled_moments = squash((moments - self.moment_mean) / self.moment_spread)
        summary = [self.scales(self.histogram(sets)), scaled_moments.reshape(data.shape[0], -1)]
        return jnp.concatenate(summary, axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        num_moments = self.moment_mean.size
        return InputLayout(num_linear=self.scales.num_linear, num_summary=self.scales.num_columns + num_moments)


def _as_columns(data: jax.Array) -> jax.Array:
    """Return observations as rows of columns, shape (batch, observations, columns).

    Vectors are squashed first: directions mix their columns, and one heavy tail would drown the others.
    """
    sets = data.reshape(data.shape[0], data.shape[1], -1)
    return sets if sets.shape[2] == 1 else squash(sets)


# Beyond this many columns their products outnumber everything else, and the directions have to do.
MOST_MULTIPLIED = 12


def _moments(sets: jax.Array, with_shape: bool) -> jax.Array:
    """Return means of the columns and of their products, squashed, and the columns' shapes if wanted.

    The means see past the outermost knots.
    """
    num_columns = sets.shape[2]
    if num_columns > MOST_MULTIPLIED:
        products = sets * sets
    else:
        first, second = np.triu_indices(num_columns)
        products = sets[:, :, first] * sets[:, :, second]
    moments = squash(jnp.concatenate([_mean(sets), _mean(products)], axis=1))
    return jnp.concatenate([moments, _shape_of(sets)], axis=1) if with_shape else moments


# In interquartile ranges: far enough for every shape of interest, near enough for fourth powers in float32.
FARTHEST_FOR_SHAPE = 20.0
SMALLEST_VARIANCE = 1e-4


def _shape_of(sets: jax.Array) -> jax.Array:
    """Return log spread, skewness and kurtosis of each column: a histogram has them only in many faint directions."""
    near = jnp.clip(sets, -FARTHEST_FOR_SHAPE, FARTHEST_FOR_SHAPE)
    centred = near - _mean(near)[:, None, :]
    squares = centred * centred
    variance = _mean(squares) + SMALLEST_VARIANCE
    skewness = _mean(squares * centred) / (variance * jnp.sqrt(variance))
    kurtosis = _mean(squares * squares) / (variance * variance)
    return jnp.concatenate([jnp.log(variance), skewness, jnp.log(kurtosis + 1.0)], axis=1)


def _mean(sets: jax.Array) -> jax.Array:
    """Return the mean over observations, as a product with a vector: a plain reduction would not be vectorised."""
    num_obs = sets.shape[1]
    return jnp.tensordot(sets, jnp.full(num_obs, 1.0 / num_obs), axes=([1], [0]))
