"""The head that the default networks share: a straight part and a bend through a few learned directions."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from deepbf.networks.base import AbstractNetwork, InputLayout


class Head(eqx.Module):
    """Log odds as a linear function of the summary plus a smooth function of a few of its directions.

    For competing exponential families this is the exact form: a linear statistic plus a function of the sufficient
    statistics. What training sees in the middle of the range then also holds in the tails, where the other model's
    data are too rare to teach anything.
    """

    straight: eqx.nn.Linear
    directions: eqx.nn.Linear
    bend: eqx.nn.MLP
    num_linear: int = eqx.field(static=True)
    straight_scale: float = eqx.field(static=True)
    size_column: int | None = eqx.field(static=True)

    def __init__(
        self,
        layout: InputLayout,
        num_inputs: int,
        num_models: int,
        *,
        num_directions: int,
        width: int,
        straight_scale: float,
        key: jax.Array,
    ) -> None:
        keys = jax.random.split(key, 3)
        straight = eqx.nn.Linear(layout.num_linear, num_models - 1, use_bias=False, key=keys[0])
        # Starting flat: the bend, not chance, decides what the first steps look like.
        self.straight = eqx.tree_at(lambda layer: layer.weight, straight, 0.0 * straight.weight)
        self.directions = eqx.nn.Linear(num_inputs, num_directions, use_bias=False, key=keys[1])
        num_outputs = (num_models - 1) * (2 if layout.knows_size else 1)
        self.bend = eqx.nn.MLP(num_directions, num_outputs, width, 2, activation=jax.nn.silu, key=keys[2])
        self.num_linear = layout.num_linear
        self.size_column = layout.num_summary - 1 if layout.knows_size else None
        self.straight_scale = straight_scale

    def __call__(self, inputs: jax.Array) -> jax.Array:
        bent = jax.vmap(lambda row: self.bend(self.directions(row)))(inputs)
        if self.size_column is not None:
            # The evidence grows with the number of observations, bent or not.
            constant, growing = jnp.split(bent, 2, axis=1)
            bent = constant + self.straight_scale * inputs[:, self.size_column, None] * growing
        return self.straight_scale * jax.vmap(self.straight)(inputs[:, : self.num_linear]) + bent


class HeadAlone(AbstractNetwork):
    """A network that is nothing but the head, on all that its inputs have; kinds differ in how they start it."""

    head: Head

    def __call__(self, inputs: jax.Array) -> jax.Array:
        return self.head(inputs)
