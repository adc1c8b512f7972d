"""Preparations of time series: fixed features at several scales, with the values themselves or without."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import AbstractPreparation, InputLayout
from deepbf.networks.histogram import SoftHistogram
from deepbf.networks.multiscale import MultiScale
from deepbf.networks.preparation import Pilot
from deepbf.networks.series import ABSENT
from deepbf.networks.series_features import (
    Series,
    fit_histogram,
    fitting_num_lags,
    linear_features,
    log_length,
    neighbours,
    ramp_means,
)
from deepbf.networks.squash import squash

# Series described at a time: their running totals stay in the cache, and memory stays small however long they are.
ROWS_AT_A_TIME = 256
# Neighbours that place the histogram's knots: plenty for a few dozen knots, whatever the length.
MOST_FOR_KNOTS = 200_000
# A feature that varies less than this is constant but for rounding.
SMALLEST_FEATURE_SPREAD = 1e-6
# Of the widest; narrower directions are left out to keep rows narrow. Not tuned.
SMALLEST_SPREAD = 1e-2


class SeriesFeatures(eqx.Module):
    """The fixed features of a batch of series, each at about unit scale.

    `longest` is the length of the simulated series, with those that end early filled up by nan if `varies`.
    """

    histogram: SoftHistogram
    location: jax.Array
    spread: jax.Array
    num_lags: int = eqx.field(static=True)
    longest: int = eqx.field(static=True)
    varies: bool = eqx.field(static=True)

    @classmethod
    def fit(cls, pilot: Pilot) -> tuple[SeriesFeatures, list[NDArray[np.float32]]]:
        """Return the features that suit data like these, and what they are for the data."""
        length = pilot[0].shape[1]
        varies = any(bool(np.isnan(data).any()) for data in pilot)
        num_columns = pilot[0][0].size // length
        unscaled = cls(
            fit_histogram(_pilot_neighbours(pilot)),
            jnp.zeros(()),
            jnp.ones(()),
            fitting_num_lags(length, num_columns),
            length,
            varies,
        )
        unscaled_features = np.split(_describe_once(unscaled, np.concatenate(pilot)), len(pilot))
        pooled = np.concatenate(unscaled_features)
        location, spread = pooled.mean(axis=0), pooled.std(axis=0)
        spread = np.where(spread > SMALLEST_FEATURE_SPREAD, spread, np.float32(1.0))
        fitted = eqx.tree_at(
            lambda features: (features.location, features.spread),
            unscaled,
            (jnp.asarray(location), jnp.asarray(spread)),
        )
        return fitted, [(values - location) / spread for values in unscaled_features]

    def __call__(self, data: jax.Array) -> jax.Array:
        """Return (batch, features) from standardised data of shape (batch, length, ...)."""
        batch = data.shape[0]
        rows = min(ROWS_AT_A_TIME, batch)
        padded = jnp.pad(data, ((0, -batch % rows), *[(0, 0)] * (data.ndim - 1)))
        described = jax.lax.map(self._describe, padded.reshape(-1, rows, *data.shape[1:]))
        return (described.reshape(len(padded), -1)[:batch] - self.location) / self.spread

    def _describe(self, data: jax.Array) -> jax.Array:
        series = Series.of(data, varies=self.varies)
        features = linear_features(series, self.num_lags)
        if self.varies:
            # Evidence adds up along a series: a mean times the length is the sum that it needs.
            features = jnp.concatenate([features, features * (series.num_obs / self.longest)])
            features = jnp.concatenate([features, log_length(series, self.longest)])
        return jnp.concatenate([features.T, ramp_means(series, self.histogram)], axis=1)


def _describe_once(features: SeriesFeatures, data: NDArray[np.float32]) -> NDArray[np.float32]:
    # Run once, so compiled in a hurry.
    describe = jax.jit(lambda data: features(data), compiler_options={"xla_backend_optimization_level": 0})
    return np.asarray(describe(jnp.asarray(data)))


def _pilot_neighbours(pilot: Pilot) -> NDArray[np.float32]:
    """Return neighbouring observations of some pilot series, shape (pairs, 2 * columns)."""
    most = max(1, MOST_FOR_KNOTS // (len(pilot) * pilot[0][0].size))
    # The pairs at the end of a series that ends early hold nan, and go.
    pairs = np.concatenate([_flat_neighbours(data[:most]) for data in pilot])
    return pairs[~np.isnan(pairs).any(axis=1)]


def _flat_neighbours(data: NDArray[np.float32]) -> NDArray[np.float32]:
    values = jnp.transpose(jnp.asarray(data).reshape(*data.shape[:2], -1), (1, 2, 0))
    return np.asarray(jnp.moveaxis(neighbours(values), 1, 2).reshape(-1, 2 * values.shape[1]))


class SeriesSummary(AbstractPreparation):
    """Fixed features of a series, at several scales; with `keeps_values` the squashed values follow, for a network.

    Absent observations among the values are marked by a number beyond all others.
    """

    features: SeriesFeatures
    scales: MultiScale
    keeps_values: bool = eqx.field(static=True)

    @classmethod
    def fit(cls, pilot: Pilot) -> SeriesSummary:
        """Return the summary alone: rows as narrow for long series as for short."""
        return cls._fit(pilot, keeps_values=False)

    @classmethod
    def fit_with_values(cls, pilot: Pilot) -> SeriesSummary:
        """Return the summary with all values after it."""
        return cls._fit(pilot, keeps_values=True)

    @classmethod
    def _fit(cls, pilot: Pilot, *, keeps_values: bool) -> SeriesSummary:
        features, described = SeriesFeatures.fit(pilot)
        return cls(features, MultiScale.fit(described, smallest_spread=SMALLEST_SPREAD), keeps_values)

    def __call__(self, data: jax.Array) -> jax.Array:
        summary = self.scales(self.features(data))
        if self.features.varies:
            present = ~jnp.isnan(data.reshape(*data.shape[:2], -1)).any(axis=2)
            share = present.sum(axis=1, keepdims=True) / self.features.longest
            summary = jnp.concatenate([summary, share.astype(summary.dtype)], axis=1)
        if not self.keeps_values:
            return summary
        absent = jnp.isnan(data)
        values = jnp.where(absent, ABSENT, squash(jnp.where(absent, 0.0, data)))
        return jnp.concatenate([summary, values.reshape(data.shape[0], -1)], axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        varies = self.features.varies
        num_summary = self.scales.num_columns + int(varies)
        if not self.keeps_values:
            return InputLayout(self.scales.num_linear, num_summary, knows_size=varies)
        return InputLayout(
            self.scales.num_linear,
            num_summary,
            num_obs=data_shape[0],
            obs_dim=math.prod(data_shape[1:]),
            knows_size=varies,
        )
