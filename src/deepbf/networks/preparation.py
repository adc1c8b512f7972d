"""Preparations: from standardised data sets to the rows that networks read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import AbstractPreparation, InputLayout
from deepbf.networks.count_logs import CountLogs
from deepbf.networks.multiscale import MultiScale
from deepbf.networks.squash import squash

Pilot = Sequence[NDArray[np.float32]]
FitPreparation = Callable[[Pilot], AbstractPreparation]


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
