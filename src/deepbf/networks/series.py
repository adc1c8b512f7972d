"""Time series: fixed features at several scales, and networks on them with learned features beside them or without."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf._compilation import IN_A_HURRY, compiled
from deepbf.networks.base import (
    AbstractNetwork,
    AbstractPreparation,
    Head,
    HeadAlone,
    InputLayout,
    Pilot,
    Storable,
    squash,
)
from deepbf.networks.features import MultiScale, SoftHistogram
from deepbf.networks.series_features import (
    Series,
    fit_histogram,
    linear_features,
    neighbours,
    ramp_means,
)
from deepbf.networks.series_predictions import SeriesPredictions

HEAD_WIDTH = 32
NUM_DIRECTIONS = 16
STRAIGHT_SCALE = 3.0
# Observations that the first layer sees at once, at every point in time.
WINDOW = 4
# Outputs in a row that each further layer joins, without overlap: only the first layer runs at full length.
STRIDE = 4
CHANNELS = (8, 16, 16)
# Marks absent observations in a row: beyond any squashed value, which end at arcsinh(1e15) = 35.
ABSENT = 1e3


class SummarySeries(HeadAlone):
    """The shared head on fixed features of a series alone: a training step does not depend on the length."""

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        self.head = _head(layout, layout.num_summary, num_models, key)


class ConvSeries(AbstractNetwork):
    """The shared head on fixed features and on learned ones: strided convolutions, each layer averaged over time.

    The cost is linear in the length.
    """

    layers: list[eqx.nn.Linear]
    head: Head
    layout: InputLayout = eqx.field(static=True)

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        keys = jax.random.split(key, len(CHANNELS) + 1)
        widths = [WINDOW * layout.obs_dim, *(STRIDE * channels for channels in CHANNELS[:-1])]
        linears = [
            eqx.nn.Linear(width, channels, key=layer_key)
            for width, channels, layer_key in zip(widths, CHANNELS, keys[1:], strict=True)
        ]
        # With shifts of 0, a tanh starts out with a mean near 0, which the gain leaves there.
        self.layers = [
            eqx.tree_at(lambda layer: layer.bias, linear, jnp.zeros(linear.out_features)) for linear in linears
        ]
        self.head = _head(layout, layout.num_summary + sum(CHANNELS), num_models, keys[0])
        self.layout = layout

    def __call__(self, inputs: jax.Array) -> jax.Array:
        summary = inputs[:, : self.layout.num_summary]
        # By the width of the row, not by the layout: the same series with more padding is read the same.
        values = inputs[:, self.layout.num_summary :].reshape(len(inputs), -1, self.layout.obs_dim)
        return self.head(jnp.concatenate([summary, self._pooled(values)], axis=1))

    def _pooled(self, values: jax.Array) -> jax.Array:
        """Return the mean over time of every layer's outputs, shape (batch, channels of all layers)."""
        length = values.shape[1]
        present = values[:, :, :1] < ABSENT
        # Each observation with those before it, shape (batch, length, WINDOW * columns); 0 before the start.
        padded = jnp.pad(jnp.where(present, values, 0.0), ((0, 0), (WINDOW - 1, 0), (0, 0)))
        hidden = jnp.concatenate([padded[:, i : i + length] for i in range(WINDOW)], axis=2)
        mask = present.astype(jnp.float32)
        pooled = []
        for layer in self.layers:
            if pooled:
                # A group counts if it has begun.
                hidden, mask = _joined(hidden), _joined(mask)[:, :, :1]
            hidden = mask * jnp.tanh(jax.vmap(jax.vmap(layer))(hidden))
            # Means vary by about one over the root of the length; without this, long series would start out flat.
            gain = math.sqrt(self.layout.num_obs)
            pooled.append(gain * hidden.sum(axis=1) / jnp.maximum(mask.sum(axis=1), 1.0))
        return jnp.concatenate(pooled, axis=1)


def _joined(hidden: jax.Array) -> jax.Array:
    """Return groups of STRIDE steps side by side; the last is filled up with 0."""
    batch, length, channels = hidden.shape
    padded = jnp.pad(hidden, ((0, 0), (0, -length % STRIDE), (0, 0)))
    return padded.reshape(batch, -1, STRIDE * channels)


def _head(layout: InputLayout, num_inputs: int, num_models: int, key: jax.Array) -> Head:
    return Head(
        layout,
        num_inputs,
        num_models,
        num_directions=NUM_DIRECTIONS,
        width=HEAD_WIDTH,
        straight_scale=STRAIGHT_SCALE,
        key=key,
    )


# Series described at a time: their running totals stay in the cache, and memory stays small however long they are.
ROWS_AT_A_TIME = 256
# Neighbours that place the histogram's knots: plenty for a few dozen knots, whatever the length.
MOST_FOR_KNOTS = 200_000
# Not tuned: on AR(1) against MA(1) twelve and twenty differed by no more than the noise of a run.
MOST_LAGS = 20
# Shared by the columns of a series, so that wide series do not bring thousands of features.
LAGS_IN_ALL = 60
# A feature that varies less than this is constant but for rounding.
SMALLEST_FEATURE_SPREAD = 1e-6
# Of the widest; narrower directions are left out to keep rows narrow. Not tuned.
SMALLEST_SPREAD = 1e-2


class SeriesFeatures(Storable):
    """The fixed features of a batch of series, each at about unit scale.

    `longest` is the length of the simulated series, with those that end early filled up by nan if `varies`.
    """

    histogram: SoftHistogram
    location: jax.Array
    spread: jax.Array
    num_lags: int = eqx.field(static=True)
    longest: int = eqx.field(static=True)
    varies: bool = eqx.field(static=True)
    # Files from before there were any have none. What they find stands last.
    predictions: SeriesPredictions | None = None

    @property
    def num_predicted(self) -> int:
        """How many features, the last ones, come from predictions."""
        return 0 if self.predictions is None else self.predictions.num_features

    @classmethod
    def fit(cls, pilot: Pilot) -> tuple[SeriesFeatures, list[NDArray[np.float32]]]:
        """Return the features that suit data like these, and what they are for the data."""
        length = pilot[0].shape[1]
        varies = any(bool(np.isnan(data).any()) for data in pilot)
        num_columns = pilot[0][0].size // length
        num_lags = min(length - 1, MOST_LAGS, max(2, LAGS_IN_ALL // num_columns))
        most = max(1, MOST_FOR_KNOTS // (len(pilot) * pilot[0][0].size))
        parts = []
        for data in pilot:
            some = jnp.asarray(data[:most])
            values = jnp.transpose(some.reshape(*some.shape[:2], -1), (1, 2, 0))
            parts.append(np.asarray(jnp.moveaxis(neighbours(values), 1, 2).reshape(-1, 2 * num_columns)))
        pairs = np.concatenate(parts)
        # The pairs at the end of a series that ends early hold nan, and go.
        histogram = fit_histogram(pairs[~np.isnan(pairs).any(axis=1)])
        predictions = SeriesPredictions.fit(pilot)
        unscaled = cls(histogram, jnp.zeros(()), jnp.ones(()), num_lags, length, varies, predictions)
        describe = compiled(cls.__call__, unscaled, options=IN_A_HURRY)
        unscaled_features = np.split(np.asarray(describe(jnp.asarray(np.concatenate(pilot)))), len(pilot))
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
            log_share = jnp.log(series.num_obs) - math.log(self.longest)
            features = jnp.concatenate([features, log_share[None]])
        described = [features.T, ramp_means(series, self.histogram)]
        if self.predictions is not None:
            described.append(self.predictions(series).T)
        return jnp.concatenate(described, axis=1)


class SeriesSummary(AbstractPreparation):
    """Fixed features of a series, at several scales; with `keeps_values` the squashed values follow, for a network.

    What predictions find comes first, as it is: of linear models it is the log evidence, which nothing should bend.
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
        others = [values[:, : values.shape[1] - features.num_predicted] for values in described]
        return cls(features, MultiScale.fit(others, smallest_spread=SMALLEST_SPREAD), keeps_values)

    def __call__(self, data: jax.Array) -> jax.Array:
        described = self.features(data)
        others, predicted = jnp.split(described, [described.shape[1] - self.features.num_predicted], axis=1)
        summary = jnp.concatenate([predicted, self.scales(others)], axis=1)
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
        varies, num_predicted = self.features.varies, self.features.num_predicted
        num_linear = num_predicted + self.scales.num_linear
        num_summary = num_predicted + self.scales.num_columns + int(varies)
        if not self.keeps_values:
            return InputLayout(num_linear, num_summary, knows_size=varies)
        return InputLayout(
            num_linear,
            num_summary,
            num_obs=data_shape[0],
            obs_dim=math.prod(data_shape[1:]),
            knows_size=varies,
        )
