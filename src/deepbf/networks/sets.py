"""Networks for exchangeable observations: the order of the observations never changes the answer."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from deepbf.networks.base import AbstractNetwork, InputLayout
from deepbf.networks.head import Head

HEAD_WIDTH = 32
# Directions a pair of models: two or three sufficient statistics each, and a few to spare.
DIRECTIONS_PER_MODEL = 2
OBSERVATION_WIDTH = 16
OBSERVATION_FEATURES = 8
# The straight part stands for a sum over observations; its inputs have unit variance over data sets.
STRAIGHT_SCALE = 10.0


class DeepSet(AbstractNetwork):
    """The default for sets: pooled features of single observations, then the shared head.

    For scalar observations the pooled features arrive ready made (a soft histogram). Vector observations also pass
    through a small learned map before pooling.
    """

    observation_map: eqx.nn.MLP | None
    head: Head
    layout: InputLayout = eqx.field(static=True)

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        map_key, head_key = jax.random.split(key)
        self.layout = layout
        self.observation_map = (
            eqx.nn.MLP(layout.obs_dim, OBSERVATION_FEATURES, OBSERVATION_WIDTH, 2, activation=jax.nn.silu, key=map_key)
            if layout.num_obs
            else None
        )
        self.head = Head(
            layout,
            layout.num_summary + (OBSERVATION_FEATURES if layout.num_obs else 0),
            num_models,
            num_directions=2 + DIRECTIONS_PER_MODEL * (num_models - 1),
            width=HEAD_WIDTH,
            straight_scale=STRAIGHT_SCALE,
            key=head_key,
        )

    def __call__(self, inputs: jax.Array) -> jax.Array:
        if self.observation_map is None:
            return self.head(inputs)
        summary, observations = split_observations(inputs, self.layout)
        pooled = jax.vmap(jax.vmap(self.observation_map))(observations).mean(axis=1)
        return self.head(jnp.concatenate([summary, pooled * jnp.sqrt(1.0 * self.layout.num_obs)], axis=1))


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
        _, observations = split_observations(inputs, self.layout)
        pooled = jax.vmap(jax.vmap(self.first))(observations).mean(axis=1)
        pooled = jax.vmap(jax.vmap(self.second))(pooled[:, :, None]).mean(axis=1)
        return jax.vmap(self.classifier)(pooled)


def split_observations(inputs: jax.Array, layout: InputLayout) -> tuple[jax.Array, jax.Array]:
    """Return the summary columns and the observations, shape (batch, observations, columns)."""
    summary, flat = inputs[:, : layout.num_summary], inputs[:, layout.num_summary :]
    return summary, flat.reshape(inputs.shape[0], layout.num_obs, layout.obs_dim)
