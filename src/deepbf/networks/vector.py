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
        mean = inputs.mean(axis=0) if self.mean is None else self.mean
        variance = inputs.var(axis=0) if self.variance is None else self.variance
        return self.gain * (inputs - mean) / jnp.sqrt(variance + 1e-5) + self.shift


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


class ScaledMLP(HeadAlone):
    """The default for vectors: the shared head on values decorrelated at several scales."""

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        self.head = Head(
            layout,
            layout.num_summary,
            num_models,
            num_directions=min(layout.num_summary, 32),
            width=64,
            straight_scale=3.0,
            key=key,
        )
