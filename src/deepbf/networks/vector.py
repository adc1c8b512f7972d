"""Networks for vectors of fixed length: the paper's two, and the default."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from deepbf.networks.base import AbstractNetwork, InputLayout
from deepbf.networks.head import Head, HeadAlone


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
