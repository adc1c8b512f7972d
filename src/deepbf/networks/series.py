"""Networks for time series: fixed features in the shared head, with learned ones beside them or without."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp

from deepbf.networks.base import AbstractNetwork, InputLayout
from deepbf.networks.head import Head, HeadAlone

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
        self.layers = [
            _without_shift(eqx.nn.Linear(width, channels, key=layer_key))
            for width, channels, layer_key in zip(widths, CHANNELS, keys[1:], strict=True)
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
        present = values[:, :, :1] < ABSENT
        hidden = _windows(jnp.where(present, values, 0.0))
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


def _windows(values: jax.Array) -> jax.Array:
    """Return each observation with those before it, shape (batch, length, WINDOW * columns); 0 before the start."""
    length = values.shape[1]
    padded = jnp.pad(values, ((0, 0), (WINDOW - 1, 0), (0, 0)))
    return jnp.concatenate([padded[:, i : i + length] for i in range(WINDOW)], axis=2)


def _joined(hidden: jax.Array) -> jax.Array:
    """Return groups of STRIDE steps side by side; the last is filled up with 0."""
    batch, length, channels = hidden.shape
    padded = jnp.pad(hidden, ((0, 0), (0, -length % STRIDE), (0, 0)))
    return padded.reshape(batch, -1, STRIDE * channels)


def _without_shift(layer: eqx.nn.Linear) -> eqx.nn.Linear:
    """Return the layer with shifts of 0: its tanh then starts out with a mean near 0, which the gain leaves there."""
    return eqx.tree_at(lambda linear: linear.bias, layer, jnp.zeros(layer.out_features))


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
