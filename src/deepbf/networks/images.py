"""Images: fixed features at several scales, and networks on them with learned features beside them or without."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from deepbf._compilation import IN_A_HURRY, compiled
from deepbf.networks.base import AbstractNetwork, AbstractPreparation, Head, HeadAlone, InputLayout, Pilot, squash
from deepbf.networks.features import MultiScale
from deepbf.networks.image_features import ImageStatistics

HEAD_WIDTH = 32
NUM_DIRECTIONS = 16
STRAIGHT_SCALE = 3.0
# The first layer sees squares of so many pixels, about every second one of each row and column: they overlap. With one
# about every pixel, a fit of a minute to 16 x 16 pixels had 72 steps instead of 928 (one core, one run each).
WINDOW = 3
# From one window to the next; and squares of outputs that each further layer joins, without overlap.
STRIDE = 2
CHANNELS = (8, 16, 16)
# A feature that varies less than this is constant but for rounding.
SMALLEST_FEATURE_SPREAD = 1e-6
# Of the widest; narrower directions are left out. With 0.001 there were 256 instead of about 100, and no smaller error
# (0.24 instead of 0.23 inside 1:1000 on Gaussian fields, one run each).
SMALLEST_SPREAD = 0.05


class ImageSummary(AbstractPreparation):
    """Fixed features of an image, at several scales; with `keeps_values` the squashed values follow, for a network."""

    statistics: ImageStatistics
    location: jax.Array
    spread: jax.Array
    scales: MultiScale
    keeps_values: bool = eqx.field(static=True)

    @classmethod
    def fit(cls, pilot: Pilot) -> ImageSummary:
        """Return the summary alone: rows as narrow for large images as for small."""
        return cls._fit(pilot, keeps_values=False)

    @classmethod
    def fit_with_values(cls, pilot: Pilot) -> ImageSummary:
        """Return the summary with all values after it."""
        return cls._fit(pilot, keeps_values=True)

    @classmethod
    def _fit(cls, pilot: Pilot, *, keeps_values: bool) -> ImageSummary:
        statistics = ImageStatistics.fit(pilot)
        describe = compiled(ImageStatistics.__call__, statistics, options=IN_A_HURRY)
        found = [np.asarray(describe(jnp.asarray(data))) for data in pilot]
        pooled = np.concatenate(found)
        location, spread = pooled.mean(axis=0), pooled.std(axis=0)
        spread = np.where(spread > SMALLEST_FEATURE_SPREAD, spread, np.float32(1.0))
        described = [((one - location) / spread)[:, statistics.predictions.num_features :] for one in found]
        scales = MultiScale.fit(described, smallest_spread=SMALLEST_SPREAD)
        return cls(statistics, jnp.asarray(location), jnp.asarray(spread), scales, keeps_values)

    def __call__(self, data: jax.Array) -> jax.Array:
        described = (self.statistics(data) - self.location) / self.spread
        # Predictions go to the head as they are: among the directions of the others they might be lost.
        num_direct = self.statistics.predictions.num_features
        summary = jnp.concatenate([described[:, :num_direct], self.scales(described[:, num_direct:])], axis=1)
        if not self.keeps_values:
            return summary
        return jnp.concatenate([summary, squash(data).reshape(len(data), -1)], axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        num_direct = self.statistics.predictions.num_features
        linear, columns = num_direct + self.scales.num_linear, num_direct + self.scales.num_columns
        if not self.keeps_values:
            return InputLayout(linear, columns)
        rows, across = data_shape[:2]
        return InputLayout(linear, columns, num_obs=rows * across, obs_dim=math.prod(data_shape[2:]), num_across=across)


class SummaryImage(HeadAlone):
    """The shared head on fixed features of an image alone: a training step does not depend on its size."""

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        self.head = _head(layout, layout.num_summary, num_models, key)


class ConvImage(AbstractNetwork):
    """The shared head on fixed features and on learned ones: strided convolutions, each layer averaged over the image.

    Windows are cut out and multiplied by matrices: convolutions of an ensemble, whose members have weights of their
    own, are slow on CPUs. The cost is linear in the number of pixels.
    """

    layers: list[eqx.nn.Linear]
    head: Head
    layout: InputLayout = eqx.field(static=True)

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        keys = jax.random.split(key, len(CHANNELS) + 1)
        widths = [WINDOW**2 * layout.obs_dim, *(STRIDE**2 * channels for channels in CHANNELS[:-1])]
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
        values = inputs[:, self.layout.num_summary :].reshape(
            len(inputs), -1, self.layout.num_across, self.layout.obs_dim
        )
        return self.head(jnp.concatenate([summary, self._pooled(values)], axis=1))

    def _pooled(self, values: jax.Array) -> jax.Array:
        """Return the mean over the image of every layer's outputs, shape (batch, channels of all layers)."""
        rows, columns = values.shape[1:3]
        # Pixels with those about them, 0 beyond the edges.
        padded = jnp.pad(values, ((0, 0), (WINDOW // 2,) * 2, (WINDOW // 2,) * 2, (0, 0)))
        shifts = [(i, j) for i in range(WINDOW) for j in range(WINDOW)]
        cut = [padded[:, i : i + rows : STRIDE, j : j + columns : STRIDE] for i, j in shifts]
        hidden = jnp.concatenate(cut, axis=3)
        # Means vary by about one over the root of the number of pixels; large images would start out flat.
        gain = math.sqrt(self.layout.num_obs)
        pooled = []
        for layer in self.layers:
            if pooled:
                hidden = _joined(hidden)
            hidden = jnp.tanh(jax.vmap(jax.vmap(jax.vmap(layer)))(hidden))
            pooled.append(gain * hidden.mean(axis=(1, 2)))
        return jnp.concatenate(pooled, axis=1)


def _joined(hidden: jax.Array) -> jax.Array:
    """Return squares of STRIDE by STRIDE outputs side by side; the last of a row or column are filled up with 0."""
    batch, rows, columns, channels = hidden.shape
    padded = jnp.pad(hidden, ((0, 0), (0, -rows % STRIDE), (0, -columns % STRIDE), (0, 0)))
    squares = padded.reshape(batch, -(-rows // STRIDE), STRIDE, -(-columns // STRIDE), STRIDE, channels)
    return jnp.swapaxes(squares, 2, 3).reshape(batch, squares.shape[1], squares.shape[3], STRIDE**2 * channels)


def _head(layout: InputLayout, num_inputs: int, num_models: int, key: jax.Array) -> Head:
    return Head(
        layout,
        num_inputs,
        num_models,
        num_directions=min(NUM_DIRECTIONS, num_inputs),
        width=HEAD_WIDTH,
        straight_scale=STRAIGHT_SCALE,
        key=key,
    )
