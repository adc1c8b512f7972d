"""The networks of the paper as printed, for comparison: FNN, BNN and DeepSet2 (Sections S3 and S4)."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp

from deepbf.networks.base import AbstractNetwork, AbstractPreparation, InputLayout, Pilot, squash

# Observations that a learned layer sees at a time: their hidden values stay in the processor's cache, and are computed
# again for the gradient rather than fetched from memory, which takes three times as long.
OBSERVATIONS_AT_ONCE = 1024


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


class DeepSet2(AbstractNetwork):
    """The paper's set network as printed (Section S4), for comparison.

    Its second layer treats the 16 pooled features of the first as an exchangeable set of scalars, which loses which
    feature is which. Vector observations, which the paper does not consider, enter the first layer whole.
    """

    first: eqx.nn.MLP
    second: eqx.nn.MLP
    classifier: eqx.nn.MLP
    layout: InputLayout = eqx.field(static=True)

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        keys = jax.random.split(key, 3)
        self.layout = layout
        self.first = eqx.nn.MLP(layout.obs_dim, 16, 64, 3, key=keys[0])
        self.second = eqx.nn.MLP(1, 2, 64, 3, key=keys[1])
        self.classifier = eqx.nn.MLP(2, num_models - 1, 64, 3, key=keys[2])

    def __call__(self, inputs: jax.Array) -> jax.Array:
        observations = inputs.reshape(inputs.shape[0], self.layout.num_obs, self.layout.obs_dim)
        pooled = mean_over_observations(self.first, observations)
        pooled = mean_over_observations(self.second, pooled[:, :, None])
        return jax.vmap(self.classifier)(pooled)


def mean_over_observations(network: eqx.nn.MLP, observations: jax.Array) -> jax.Array:
    """Return what a network makes of single observations, averaged within each set.

    Observations have shape (sets, observations, values); the result has one row per set.
    """
    num_sets, num_obs, _ = observations.shape
    sets_at_once = min(num_sets, max(1, OBSERVATIONS_AT_ONCE // num_obs))
    num_blocks = -(-num_sets // sets_at_once)
    padded = jnp.pad(observations, ((0, num_blocks * sets_at_once - num_sets), (0, 0), (0, 0)))

    @jax.checkpoint
    def block_means(rows: jax.Array) -> jax.Array:
        # By products of whole matrices: faster here than mapping the network over rows.
        for i, layer in enumerate(network.layers):
            inputs = network.activation(rows) if i > 0 else rows
            product = inputs @ layer.weight.T
            rows = product if layer.bias is None else product + layer.bias
        return rows.reshape(sets_at_once, num_obs, -1).mean(axis=1)

    means = jax.lax.map(block_means, padded.reshape(num_blocks, sets_at_once * num_obs, -1))
    return means.reshape(num_blocks * sets_at_once, -1)[:num_sets]
