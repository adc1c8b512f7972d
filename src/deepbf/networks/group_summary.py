"""What is kept of each group of observations: a few numbers, none of them learned, and how many they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.histogram import SoftHistogram
from deepbf.networks.multiscale import whitening
from deepbf.networks.squash import squash

# Principal components of a group's histogram. Groups are small: what lies in fainter directions is mostly noise.
NUM_COMPONENTS = 4
# Columns of an observation whose mean and spread are kept as they are; of more, the histogram's directions have to do.
MOST_COLUMNS = 4
# In interquartile ranges: far enough for every location of interest, near enough for fourth powers in float32.
FARTHEST = 20.0
SMALLEST_VARIANCE = 1e-4
# From so many the pilot's knots and components are known well enough.
MOST_OBSERVATIONS = 500_000
MOST_GROUPS = 20_000


class Groups(NamedTuple):
    """Summaries of the groups of each data set; those of absent groups, of size 0, are 0."""

    features: jax.Array  # (batch, groups, features)
    sizes: jax.Array  # (batch, groups)
    ramps: jax.Array  # (batch, groups, ramps): means over each group's observations


class GroupSummary(eqx.Module):
    """Principal components of each group's soft histogram, then means and log variances of its columns."""

    histogram: SoftHistogram
    offset: jax.Array
    components: jax.Array

    @classmethod
    def fit(cls, nested: Sequence[NDArray[np.float32]]) -> GroupSummary:
        """Return the summary for data sets like these, shape (data sets, groups, observations, columns), a model."""
        groups = np.concatenate([data.reshape(-1, *data.shape[2:]) for data in nested])
        groups = _evenly(groups[present_observations(groups).any(axis=1)], MOST_GROUPS)
        observations = groups[present_observations(groups)]
        histogram = SoftHistogram.fit(np.asarray(as_columns(jnp.asarray(_evenly(observations, MOST_OBSERVATIONS)))))
        ramps = np.asarray(eqx.filter_jit(mean_ramps)(histogram, *split_absent(jnp.asarray(groups[None]))))[0]
        mean, components = whitening(ramps, 1e-2, NUM_COMPONENTS)
        return cls(histogram, jnp.asarray(mean @ components, jnp.float32), jnp.asarray(components, jnp.float32))

    def __call__(self, nested: jax.Array) -> Groups:
        """Return the groups of data sets of shape (batch, groups, observations, columns), nan where absent."""
        values, present = split_absent(nested)
        ramps = mean_ramps(self.histogram, values, present)
        sizes = present.sum(axis=2)
        features = [ramps @ self.components - self.offset]
        if values.shape[3] <= MOST_COLUMNS:
            features += _moments(values, present)
        there = (sizes > 0)[:, :, None]
        return Groups(jnp.where(there, jnp.concatenate(features, axis=2), 0.0), sizes, ramps)


def present_observations(nested: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which observations are there: an absent one is nan in every column."""
    return ~np.isnan(nested[..., 0])


def split_absent(nested: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the observations, 0 where absent, and 1 or 0 for each that is there or not."""
    present = ~jnp.isnan(nested).any(axis=-1)
    return as_columns(jnp.where(present[..., None], nested, 0.0)), present.astype(jnp.float32)


def as_columns(observations: jax.Array) -> jax.Array:
    """Return observations ready to be mixed: vectors are squashed, or one heavy tail would drown the other columns."""
    return observations if observations.shape[-1] == 1 else squash(observations)


def mean_ramps(histogram: SoftHistogram, values: jax.Array, present: jax.Array) -> jax.Array:
    """Return each group's mean ramps, shape (batch, groups, ramps), over observations that are there; 0 if none is."""
    batch, num_groups, num_obs, num_columns = values.shape
    there = present.reshape(-1, num_obs)
    # An absent group is given one observation, or its mean would be 0 / 0.
    empty = (there.sum(axis=1) == 0.0).astype(jnp.float32)[:, None]
    ramps = histogram(values.reshape(-1, num_obs, num_columns), there + empty / num_obs)
    return ((1.0 - empty) * ramps).reshape(batch, num_groups, histogram.num_ramps)


def _moments(values: jax.Array, present: jax.Array) -> list[jax.Array]:
    """Return each group's mean and log variance of every column.

    The variance counts the whole data set's own as one further observation: a group of one has no other.
    """
    weights = present[..., None]
    sizes = jnp.maximum(present.sum(axis=2), 1.0)[..., None]
    near = jnp.clip(values, -FARTHEST, FARTHEST)
    means = (weights * near).sum(axis=2) / sizes
    centred = weights * (near - means[:, :, None, :])
    squares = (centred * centred).sum(axis=2)
    pooled = squares.sum(axis=1, keepdims=True) / jnp.maximum(present.sum(axis=(1, 2)), 1.0)[:, None, None]
    return [means, jnp.log((squares + pooled) / sizes + SMALLEST_VARIANCE)]


def _evenly(rows: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """Return at most so many of the rows, evenly spaced, so that every model has its share."""
    return rows[:: -(-len(rows) // most)] if len(rows) > most else rows
