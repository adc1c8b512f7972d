"""The network for nested data: the order of the groups never changes the answer."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from deepbf.networks.base import AbstractNetwork, InputLayout
from deepbf.networks.head import Head
from deepbf.networks.sets import DIRECTIONS_PER_MODEL, HEAD_WIDTH, STRAIGHT_SCALE

GROUP_WIDTH = 16
NUM_POOLED = 8


class NestedDeepSet(AbstractNetwork):
    """The default for nested data: learned features of single groups, pooled, beside the summary in the shared head."""

    group: eqx.nn.MLP
    head: Head
    layout: InputLayout = eqx.field(static=True)

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        group_key, head_key = jax.random.split(key)
        self.layout = layout
        self.group = eqx.nn.MLP(layout.obs_dim - 1, NUM_POOLED, GROUP_WIDTH, 1, activation=jax.nn.silu, key=group_key)
        self.head = Head(
            layout,
            layout.num_summary + 2 * NUM_POOLED,
            num_models,
            num_directions=DIRECTIONS_PER_MODEL * num_models,
            width=HEAD_WIDTH,
            straight_scale=STRAIGHT_SCALE,
            key=head_key,
        )

    def __call__(self, inputs: jax.Array) -> jax.Array:
        summary, groups = jnp.split(inputs, [self.layout.num_summary], axis=1)
        rows = groups.reshape(inputs.shape[0], self.layout.num_obs, self.layout.obs_dim)
        there = rows[..., -1:]
        features = jax.vmap(jax.vmap(self.group))(rows[..., :-1])
        total = (features * there).sum(axis=1)
        # A mean says what groups are like, a sum how much they weigh together.
        mean, share = total / there.sum(axis=1), total / self.layout.num_obs
        return self.head(jnp.concatenate([summary, mean, share], axis=1))
