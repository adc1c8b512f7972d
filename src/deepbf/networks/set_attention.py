"""Set attention: for sets whose observations interact, so that pooling them one by one loses what matters.

Induced points (Lee et al., 2019, "Set Transformer") stand between the observations: each point looks at all
observations, and each observation looks at all points, so the cost is linear in the number of observations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import AbstractNetwork, AbstractPreparation, Head, InputLayout, squash
from deepbf.networks.sets import SetSummary

# Small, for every observation goes through them in every training step.
WIDTH = 16
NUM_INDUCED = 8
NUM_LAYERS = 2
HEAD_WIDTH = 32
DIRECTIONS_PER_MODEL = 3
STRAIGHT_SCALE = 10.0
# As good as minus infinity in a softmax, and no nan where a whole row is absent.
NEVER = -1e30


class SummaryAndObservations(AbstractPreparation):
    """The default summary of a set, followed by its observations, squashed, each with a 1 if it is there."""

    summary: SetSummary

    @classmethod
    def fit(cls, pilot: Sequence[NDArray[np.float32]]) -> SummaryAndObservations:
        """Return the preparation for data sets like these, one array per model."""
        return cls(SetSummary.fit(pilot))

    def __call__(self, data: jax.Array) -> jax.Array:
        rows = data.reshape(data.shape[0], data.shape[1], -1)
        there = ~jnp.isnan(rows).any(axis=2, keepdims=True)
        observations = jnp.concatenate([squash(jnp.where(there, rows, 0.0)), there.astype(jnp.float32)], axis=2)
        return jnp.concatenate([self.summary(data), observations.reshape(data.shape[0], -1)], axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        summary = self.summary.layout(data_shape)
        return InputLayout(
            summary.num_linear,
            summary.num_summary,
            num_obs=data_shape[0],
            obs_dim=math.prod(data_shape[1:]) + 1,
            knows_size=summary.knows_size,
        )


class InducedLayer(eqx.Module):
    """Observations look at each other through a few points that have looked at all of them.

    One head: on a processor without an accelerator, many small products cost more than one of the same size in all.
    """

    score: eqx.nn.Linear
    value: eqx.nn.Linear
    query: eqx.nn.Linear
    key: eqx.nn.Linear
    answer: eqx.nn.Linear
    inner: eqx.nn.MLP

    def __init__(self, *, key: jax.Array) -> None:
        keys = jax.random.split(key, 6)
        # A learned point asks the same of every data set, so its query is a weight.
        self.score = eqx.nn.Linear(WIDTH, NUM_INDUCED, key=keys[0])
        self.value, self.query, self.key, self.answer = (eqx.nn.Linear(WIDTH, WIDTH, key=k) for k in keys[1:5])
        self.inner = eqx.nn.MLP(WIDTH, WIDTH, 2 * WIDTH, 1, activation=jax.nn.silu, key=keys[5])

    def __call__(self, observations: jax.Array, present: jax.Array) -> jax.Array:
        """Return (observations, width), where absent observations are never looked at."""
        scores = jnp.where(present[:, None] > 0, jax.vmap(self.score)(observations), NEVER)
        points = jax.nn.softmax(scores, axis=0).T @ jax.vmap(self.value)(observations)
        looked = jax.vmap(self.query)(observations) @ jax.vmap(self.key)(points).T / math.sqrt(WIDTH)
        observations = observations + jax.nn.softmax(looked, axis=1) @ jax.vmap(self.answer)(points)
        return observations + jax.vmap(self.inner)(observations)


class SetAttention(AbstractNetwork):
    """Induced set attention, joined with the summary that the default network has.

    What single observations say is in the summary; attention adds what they say together.
    """

    embed: eqx.nn.Linear
    layers: list[InducedLayer]
    head: Head
    layout: InputLayout = eqx.field(static=True)

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        keys = jax.random.split(key, NUM_LAYERS + 2)
        self.layout = layout
        self.embed = eqx.nn.Linear(layout.obs_dim, WIDTH, key=keys[0])
        self.layers = [InducedLayer(key=k) for k in keys[1:-1]]
        self.head = Head(
            layout,
            layout.num_summary + 2 * WIDTH,
            num_models,
            num_directions=DIRECTIONS_PER_MODEL * num_models,
            width=HEAD_WIDTH,
            straight_scale=STRAIGHT_SCALE,
            key=keys[-1],
        )

    def __call__(self, inputs: jax.Array) -> jax.Array:
        summary = inputs[:, : self.layout.num_summary]
        rows = inputs[:, self.layout.num_summary :]
        observations = rows.reshape(len(inputs), self.layout.num_obs, self.layout.obs_dim)
        return self.head(jnp.concatenate([summary, jax.vmap(self._pooled)(observations)], axis=1))

    def _pooled(self, observations: jax.Array) -> jax.Array:
        """Return the mean and the largest of the features of one data set."""
        present = observations[:, -1]
        features = jax.vmap(self.embed)(observations)
        for layer in self.layers:
            features = layer(features, present)
        mean = present @ features / jnp.maximum(present.sum(), 1.0)
        largest = jnp.where(present[:, None] > 0, features, NEVER).max(axis=0)
        return jnp.concatenate([mean, largest])
