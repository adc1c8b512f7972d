"""Vectors of fixed length: how they are prepared, the paper's two networks, and the default."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from deepbf.networks.base import AbstractNetwork, AbstractPreparation, Head, HeadAlone, InputLayout, Pilot, squash
from deepbf.networks.features import CountLogs, MultiScale


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


class CountedVector(AbstractPreparation):
    """Values squashed, and counts by their logarithms too; then decorrelated at several scales."""

    logs: CountLogs
    scales: MultiScale

    @classmethod
    def fit(cls, pilot: Pilot) -> CountedVector:
        flat = [data.reshape(len(data), -1) for data in pilot]
        logs = CountLogs.fit(flat)
        features = [np.concatenate([np.arcsinh(data), np.asarray(logs(jnp.asarray(data)))], axis=1) for data in flat]
        # A model that ties its columns to each other shows in the directions along which it hardly varies.
        return cls(logs, MultiScale.fit(features, smallest_spread=1e-4, most_per_model=MOST_OWN_DIRECTIONS))

    def __call__(self, data: jax.Array) -> jax.Array:
        flat = data.reshape(data.shape[0], -1)
        return self.scales(jnp.concatenate([squash(flat), self.logs(flat)], axis=1))

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        return InputLayout(num_linear=self.scales.num_linear, num_summary=self.scales.num_columns)


# Enough for all directions of a few dozen columns; of more, the widest have to do.
MOST_OWN_DIRECTIONS = 64
# Decorrelating costs the cube of the width, and with more columns than pilot data sets it would be noise.
WIDEST_DECORRELATED = 512


def prepare_vector(pilot: Pilot) -> AbstractPreparation:
    """Return the default preparation of vectors: decorrelated, unless they are too wide for that."""
    width = math.prod(pilot[0].shape[1:])
    return CountedVector.fit(pilot) if width <= WIDEST_DECORRELATED else SquashedVector.fit(pilot)


def prepare_plain_vector(pilot: Pilot) -> AbstractPreparation:
    """Return the same without logarithms of counts, as "mlp" has it."""
    width = math.prod(pilot[0].shape[1:])
    return ScaledVector.fit(pilot) if width <= WIDEST_DECORRELATED else SquashedVector.fit(pilot)


class FNN(AbstractNetwork):
    """The paper's feed-forward network (Section S3): 64-64-64, ReLU."""

    layers: eqx.nn.MLP

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        self.layers = eqx.nn.MLP(layout.width, num_models - 1, 64, 3, key=key)

    def __call__(self, inputs: jax.Array) -> jax.Array:
        return jax.vmap(self.layers)(inputs)


class BatchNorm(eqx.Module):
    """Standardises each column by the batch's own statistics, or by those of a reference batch once settled."""

    gain: jax.Array
    shift: jax.Array
    mean: jax.Array | None = None
    variance: jax.Array | None = None

    @classmethod
    def of_width(cls, width: int) -> BatchNorm:
        return cls(jnp.ones(width), jnp.zeros(width))

    def settle(self, reference: jax.Array) -> BatchNorm:
        return BatchNorm(self.gain, self.shift, reference.mean(axis=0), reference.var(axis=0))

    def __call__(self, inputs: jax.Array) -> jax.Array:
        centred = inputs - (inputs.mean(axis=0) if self.mean is None else self.mean)
        variance = jnp.mean(centred * centred, axis=0) if self.variance is None else self.variance
        # One factor a column: the gradient of a division in every cell takes a third of the network's time.
        return centred * (self.gain / jnp.sqrt(variance + 1e-5)) + self.shift


class BNN(AbstractNetwork):
    """The paper's batch-normalised network (Section S3); its first layer grows with the input.

    The paper leaves the reduction from layer to layer open; here each of the two further layers halves the width,
    from twice the input (at least 64) down to no less than 16. After training, `settle` fixes the statistics to
    those of one mini-batch.
    """

    linears: list[eqx.nn.Linear]
    norms: list[BatchNorm]
    last: eqx.nn.Linear

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        first = max(64, 2 * layout.width)
        widths = [layout.width, first, max(first // 2, 16), max(first // 4, 16)]
        keys = jax.random.split(key, 4)
        self.linears = [eqx.nn.Linear(widths[i], widths[i + 1], key=keys[i]) for i in range(3)]
        self.norms = [BatchNorm.of_width(width) for width in widths[1:]]
        self.last = eqx.nn.Linear(widths[-1], num_models - 1, key=keys[3])

    def __call__(self, inputs: jax.Array) -> jax.Array:
        hidden = inputs
        for linear, norm in zip(self.linears, self.norms, strict=True):
            hidden = jax.nn.relu(norm(jax.vmap(linear)(hidden)))
        return jax.vmap(self.last)(hidden)

    def settle(self, reference: jax.Array) -> BNN:
        hidden, settled = reference, []
        for linear, norm in zip(self.linears, self.norms, strict=True):
            before = jax.vmap(linear)(hidden)
            settled.append(norm.settle(before))
            hidden = jax.nn.relu(settled[-1](before))
        return eqx.tree_at(lambda network: network.norms, self, settled)


STRAIGHT_SCALE = 3.0


class ScaledMLP(HeadAlone):
    """The shared head on values decorrelated at several scales."""

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        self.head = Head(
            layout,
            layout.num_summary,
            num_models,
            num_directions=min(layout.num_summary, 32),
            width=64,
            straight_scale=STRAIGHT_SCALE,
            key=key,
        )


GATED_WIDTH = 64
GATED_DEPTH = 3
# Root mean square of a layer's values from which on they are scaled down: products of larger ones would run away where
# data lie far from all simulations. Answers then grow no faster than the data.
LARGEST_GATED = 10.0


class GatedLayer(eqx.Module):
    """Adds a product of two linear functions of its inputs, one of them bent."""

    gate: eqx.nn.Linear
    value: eqx.nn.Linear
    out: eqx.nn.Linear

    def __init__(self, width: int, *, key: jax.Array) -> None:
        keys = jax.random.split(key, 3)
        self.gate, self.value, self.out = (eqx.nn.Linear(width, width, key=one) for one in keys)

    def __call__(self, hidden: jax.Array) -> jax.Array:
        near = hidden / jnp.sqrt(1.0 + jnp.mean(hidden * hidden) / LARGEST_GATED**2)
        return hidden + self.out(jax.nn.silu(self.gate(near)) * self.value(near))


class GatedMLP(AbstractNetwork):
    """The default for vectors: a straight part, and layers that multiply.

    A log Bayes factor is, for much data, the square of how far the data are from what a model can produce, divided by
    how precise they are there: products, of which a network of sums needs many more units and steps.
    """

    straight: eqx.nn.Linear
    first: eqx.nn.Linear
    layers: list[GatedLayer]
    last: eqx.nn.Linear
    num_linear: int = eqx.field(static=True)

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        keys = jax.random.split(key, GATED_DEPTH + 3)
        straight = eqx.nn.Linear(layout.num_linear, num_models - 1, use_bias=False, key=keys[0])
        # Starting flat, as in the shared head.
        self.straight = eqx.tree_at(lambda layer: layer.weight, straight, 0.0 * straight.weight)
        self.first = eqx.nn.Linear(layout.width, GATED_WIDTH, key=keys[1])
        self.layers = [GatedLayer(GATED_WIDTH, key=one) for one in keys[2:-1]]
        self.last = eqx.nn.Linear(GATED_WIDTH, num_models - 1, key=keys[-1])
        self.num_linear = layout.num_linear

    def __call__(self, inputs: jax.Array) -> jax.Array:
        def log_odds(row: jax.Array) -> jax.Array:
            hidden = self.first(row)
            for layer in self.layers:
                hidden = layer(hidden)
            return self.last(hidden) + STRAIGHT_SCALE * self.straight(row[: self.num_linear])

        return jax.vmap(log_odds)(inputs)
