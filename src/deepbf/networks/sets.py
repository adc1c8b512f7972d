"""Networks for exchangeable observations: the order of the observations never changes the answer."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from deepbf.networks.base import AbstractNetwork, InputLayout
from deepbf.networks.head import Head, HeadAlone

HEAD_WIDTH = 32
# Directions in the summary for the head to bend along: two for a start and two for each further model.
DIRECTIONS_PER_MODEL = 2
# The straight part stands for a sum over observations; its inputs have unit variance over data sets.
STRAIGHT_SCALE = 10.0
# Observations that a learned layer sees at a time: their hidden values stay in the processor's cache, and are computed
# again for the gradient rather than fetched from memory, which takes three times as long.
OBSERVATIONS_AT_ONCE = 1024


class DeepSet(HeadAlone):
    """The default for sets: pooled features of single observations, then the shared head.

    The pooled features arrive ready made, a soft histogram of the observations, along many directions if they are
    vectors. Fixed features pool as well as learned ones do, and leave nothing that grows with n to the training step.
    """

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        self.head = Head(
            layout,
            layout.num_summary,
            num_models,
            num_directions=DIRECTIONS_PER_MODEL * num_models,
            width=HEAD_WIDTH,
            straight_scale=STRAIGHT_SCALE,
            key=key,
        )


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

    Observations have shape (sets, observations, values); the result has a row a set.
    """
    num_sets, num_obs, _ = observations.shape
    sets_at_once = min(num_sets, max(1, OBSERVATIONS_AT_ONCE // num_obs))
    num_blocks = -(-num_sets // sets_at_once)
    padded = jnp.pad(observations, ((0, num_blocks * sets_at_once - num_sets), (0, 0), (0, 0)))

    @jax.checkpoint
    def block_means(block: jax.Array) -> jax.Array:
        return network_of_rows(network, block).reshape(sets_at_once, num_obs, -1).mean(axis=1)

    means = jax.lax.map(block_means, padded.reshape(num_blocks, sets_at_once * num_obs, -1))
    return means.reshape(num_blocks * sets_at_once, -1)[:num_sets]


def network_of_rows(network: eqx.nn.MLP, rows: jax.Array) -> jax.Array:
    """Return a network's output a row, by products of whole matrices, which are faster here than mapping over rows."""

    def linear(layer: eqx.nn.Linear, rows: jax.Array) -> jax.Array:
        product = rows @ layer.weight.T
        return product if layer.bias is None else product + layer.bias

    for layer in network.layers[:-1]:
        rows = network.activation(linear(layer, rows))
    return linear(network.layers[-1], rows)
