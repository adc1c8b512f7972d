"""Vectors of fixed length: how they are prepared, the paper's two networks, and the default."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from deepbf.networks.base import (
    MOST_FOR_SCALES,
    AbstractColumns,
    AbstractNetwork,
    AbstractPreparation,
    Head,
    HeadAlone,
    InputLayout,
    Pilot,
    PlainView,
    Storable,
    squash,
)
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


# Added to variances of plain views before logarithms are taken.
PLAIN_VARIANCE = 1e-6
NUM_RATIO_DIRECTIONS = 6
# Wider vectors are read value by value alone: scatters cost the cube of the width.
WIDEST_SCATTER = 512
NUM_TYLER_STEPS = 25
# A vector is nearer to a scatter that it was itself fitted to: by 2 p / n in the logarithm of the distance, for n
# vectors of p columns each, where new vectors vary by the root of 2 / p. Below so many times p ** 1.5 vectors, where
# this is half of that, networks trained on the same vectors learn from it what holds of no other. A full pilot is
# enough: most of what is trained on comes after it. Of 512 images of 16 x 16 pixels in all (field, seed 1) boosted
# trees told models apart by these columns almost without an error; on new images they were worse than a coin.
FEWEST_FOR_SCATTER = 2.8


class Ellipses(Storable):
    """How far a vector is from the middle of each model, measured by the scatter of that model's own data.

    Of a linear model with unknown scale the log evidence is a linear function of the logarithm of this distance, up to
    a small constant inside it. Then follow the vector itself in proportion to its size, and directions of it along
    which the scatters of models differ most: for a regression, t-values of what one model has and the other lacks.
    """

    location: jax.Array
    matrices: jax.Array
    directions: jax.Array

    @classmethod
    def fit(cls, pilot: Pilot) -> Ellipses:
        """Return the distances for vectors like these, one array (data sets, columns) per model."""
        values = [data[:MOST_FOR_SCALES].astype(np.float64) for data in pilot]
        location = np.median(np.concatenate(values), axis=0)
        scatters = [tyler_scatter(own - location) for own in values]
        matrices = np.stack([np.linalg.cholesky(np.linalg.inv(scatter)) for scatter in scatters])
        directions = []
        for k, scatter in enumerate(scatters):
            others = np.mean([other for j, other in enumerate(scatters) if j != k], axis=0)
            ratios, found = eigh(scatter, others)
            order = np.argsort(-np.abs(np.log(np.maximum(ratios, 1e-12))))[:NUM_RATIO_DIRECTIONS]
            directions.append(found[:, order])
        arrays = (location, matrices, np.concatenate(directions, axis=1))
        return cls(*(jnp.asarray(array, jnp.float32) for array in arrays))

    def __call__(self, flat: jax.Array) -> jax.Array:
        """Return log distances, one per model, directions, and the vectors in proportion to their own size."""
        centred = flat - self.location
        steps = jnp.stack([centred @ matrix for matrix in self.matrices], axis=1)
        distances = (steps * steps).mean(axis=2) + PLAIN_VARIANCE
        size = jnp.sqrt(distances.min(axis=1, keepdims=True))
        along = (centred @ self.directions) / size
        return jnp.concatenate([jnp.log(distances), squash(along), centred / size], axis=1)


class VectorColumns(AbstractColumns):
    """Every value, squashed, and counts by their logarithms too; with how elliptical models see the vector."""

    logs: CountLogs
    ellipses: Ellipses | None

    def __call__(self, data: jax.Array) -> jax.Array:
        flat = data.reshape(data.shape[0], -1)
        columns = [squash(flat), self.logs(flat)]
        return jnp.concatenate([*columns, *([] if self.ellipses is None else [self.ellipses(flat)])], axis=1)


def tyler_scatter(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shape of the scatter of vectors about 0, whatever the scale of each of them (Tyler 1987).

    Vectors have shape (vectors, columns). The result has trace one per column. Few vectors are eked out by the identity
    (Abramovich and Spencer 2007).
    """
    num_vectors, num_columns = centred.shape
    share = min(0.5, num_columns / num_vectors)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    # Only directions count.
    kept = (centred / np.where(norms > 0, norms, 1.0))[norms[:, 0] > 0]
    identity = np.eye(num_columns)
    scatter = identity
    if len(kept) == 0:
        return scatter
    for _ in range(NUM_TYLER_STEPS):
        distances = np.einsum("ni,ij,nj->n", kept, np.linalg.inv(scatter), kept, optimize=True)
        found = num_columns * (kept / distances[:, None]).T @ kept / len(kept)
        found *= num_columns / np.trace(found)
        scatter = (1.0 - share) * found + share * identity
    return scatter + 1e-6 * identity


def fit_vector_columns(pilot: Pilot) -> VectorColumns:
    """Return the columns of the plain view of vectors like these, one array per model."""
    flat = [data.reshape(len(data), -1) for data in pilot]
    num_vectors, num_columns = min(map(len, flat)), flat[0].shape[1]
    enough = num_vectors >= min(MOST_FOR_SCALES, FEWEST_FOR_SCATTER * num_columns**1.5)
    return VectorColumns(
        CountLogs.fit(flat), Ellipses.fit(flat) if enough and 1 < num_columns <= WIDEST_SCATTER else None
    )


def plain_vector(pilot: Pilot) -> PlainView:
    """Return the plain view of vectors and arrays of fixed shape."""
    return PlainView.fit(fit_vector_columns(pilot), pilot)
