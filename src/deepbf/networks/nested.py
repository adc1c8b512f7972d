"""Nested data, exchangeable groups of exchangeable observations: a summary within groups, then between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf._compilation import IN_A_HURRY, compiled
from deepbf.networks.base import AbstractColumns, AbstractPreparation, InputLayout, Pilot, PlainView, Storable, squash
from deepbf.networks.features import CountLogs, MultiScale, SoftHistogram, whitening
from deepbf.networks.sets import MOST_ROWS, RowColumns

# Far below the variance between groups of any size that is simulated, far above rounding in float32.
SMALLEST_VARIANCE = 1e-8


def between_groups(features: jax.Array, sizes: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return moments over groups, (batch, moments), and each group relative to the others, (batch, groups, features).

    Groups count equally, and again by their sizes: where groups hardly differ large ones are known better, where
    they differ much all are known equally well.
    """
    there = (sizes > 0).astype(jnp.float32)
    weights = jnp.stack([there, sizes], axis=1)
    # At least 1, for a simulated data set without a single group.
    totals = jnp.maximum(weights.sum(axis=2), 1.0)
    shares = weights / totals[..., None]
    log_sizes = jnp.log(jnp.maximum(sizes, 1.0))[..., None]
    columns = jnp.concatenate([features, log_sizes], axis=2)
    means = jnp.einsum("bwg,bgd->bwd", shares, columns)
    centred = columns[:, None] - means[:, :, None, :]
    variances = jnp.einsum("bwg,bwgd->bwd", shares, centred * centred)
    # Fenced off, or the compiler writes out all that leads up to it once more in each of its uses.
    relative = jax.lax.optimization_barrier(
        there[..., None] * centred[:, 1] / jnp.sqrt(variances[:, 1, None, :] + SMALLEST_VARIANCE)
    )
    equal_shares = shares[:, 0, :, None]
    # Of the features with each other and with the logarithm of the size.
    correlations = jnp.einsum("bgi,bgj->bij", equal_shares * relative, relative)
    by_column = [means, squash(variances), jnp.log(variances + SMALLEST_VARIANCE)]
    moments = [
        *(part.reshape(part.shape[0], -1) for part in by_column),
        squash((equal_shares * jnp.concatenate([relative**3, relative**4], axis=2)).sum(axis=1)),
        squash(correlations[:, *np.triu_indices(relative.shape[2], k=1)]),
        jnp.log(totals),
    ]
    return jnp.concatenate(moments, axis=1), relative


# Principal components of a group's histogram. Groups are small: what lies in fainter directions is mostly noise.
NUM_COMPONENTS = 4
# Columns of an observation whose mean and spread are kept as they are; of more, the histogram's directions have to do.
MOST_COLUMNS = 4
# In interquartile ranges: far enough for every location of interest, near enough for fourth powers in float32.
FARTHEST = 20.0
SMALLEST_GROUP_VARIANCE = 1e-4
# From so many the pilot's knots and components are known well enough.
MOST_OBSERVATIONS = 500_000
MOST_GROUPS = 20_000


class Groups(NamedTuple):
    """Summaries of the groups of each data set; those of absent groups, of size 0, are 0."""

    features: jax.Array  # (batch, groups, features)
    sizes: jax.Array  # (batch, groups)
    ramps: jax.Array  # (batch, groups, ramps): means over each group's observations


class GroupSummary(Storable):
    """Principal components of each group's soft histogram, then means and log variances of its columns."""

    histogram: SoftHistogram
    offset: jax.Array
    components: jax.Array

    @classmethod
    def fit(cls, nested: Sequence[NDArray[np.float32]]) -> GroupSummary:
        """Return the summary for data sets like these, shape (data sets, groups, observations, columns), a model."""
        groups = np.concatenate([data.reshape(-1, *data.shape[2:]) for data in nested])
        groups = _evenly(groups[_present_observations(groups).any(axis=1)], MOST_GROUPS)
        observations = groups[_present_observations(groups)]
        histogram = SoftHistogram.fit(np.asarray(as_columns(jnp.asarray(_evenly(observations, MOST_OBSERVATIONS)))))
        ramps = np.asarray(compiled(_mean_ramps, histogram)(*_split_absent(jnp.asarray(groups[None]))))[0]
        mean, components = whitening(ramps, 1e-2, NUM_COMPONENTS)
        return cls(histogram, jnp.asarray(mean @ components, jnp.float32), jnp.asarray(components, jnp.float32))

    def __call__(self, nested: jax.Array) -> Groups:
        """Return the groups of data sets of shape (batch, groups, observations, columns), nan where absent."""
        values, present = _split_absent(nested)
        ramps = _mean_ramps(self.histogram, values, present)
        sizes = present.sum(axis=2)
        features = [ramps @ self.components - self.offset]
        if values.shape[3] <= MOST_COLUMNS:
            features += _moments(values, present)
        there = (sizes > 0)[:, :, None]
        return Groups(jnp.where(there, jnp.concatenate(features, axis=2), 0.0), sizes, ramps)


def _present_observations(nested: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which observations are there: an absent one is nan in every column."""
    return ~np.isnan(nested[..., 0])


def _split_absent(nested: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the observations, 0 where absent, and 1 or 0 for each that is there or not."""
    present = ~jnp.isnan(nested).any(axis=-1)
    return as_columns(jnp.where(present[..., None], nested, 0.0)), present.astype(jnp.float32)


def as_columns(observations: jax.Array) -> jax.Array:
    """Return observations ready to be mixed: vectors are squashed, or one heavy tail would drown the other columns."""
    return observations if observations.shape[-1] == 1 else squash(observations)


def _mean_ramps(histogram: SoftHistogram, values: jax.Array, present: jax.Array) -> jax.Array:
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
    return [means, jnp.log((squares + pooled) / sizes + SMALLEST_GROUP_VARIANCE)]


def _evenly(rows: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """Return at most so many of the rows, evenly spaced, so that every model has its share."""
    return rows[:: -(-len(rows) // most)] if len(rows) > most else rows


# Values of the widest array that one pass over data sets makes: 256 KB, which a core's cache holds. Ten times as many
# take several times as long.
VALUES_A_PASS = 65_536
# Groups are few, so the faintest directions of their histogram are noise. With 1e-1, telling a mixture of two kinds of
# groups from normal groups (20 of 10 to 30 observations, 1,000 steps) had a held-out loss of 0.207 for 0.193; without
# this histogram 0.237, and with a learned map of each group, 14-16-8, mean-pooled, in its place 0.216.
FAINTEST_BETWEEN = 3e-2
# Below this share of the widest, a direction of float32 means carries rounding rather than data.
FAINTEST_WITHIN = 1e-3


class Described(NamedTuple):
    """What is known of each data set before anything is scaled."""

    ramps: jax.Array  # (batch, ramps): means over all observations
    moments: jax.Array  # (batch, moments): over groups
    features: jax.Array  # (batch, groups, features)
    relative: jax.Array  # (batch, groups, features + 1): against the other groups, and so the log size
    sizes: jax.Array  # (batch, groups)


class NestedSummary(AbstractPreparation):
    """Soft histograms of all observations and of all groups, and moments over groups, at several scales.

    Each group shrinks to a few features, as they are and relative to the other groups, and a data set to the
    distribution of these. Nothing is learned before the head, so a training step depends neither on the number of
    groups nor on their sizes. Absent observations and absent groups carry no weight anywhere: how many there are
    never shows.
    """

    groups: GroupSummary
    observation_scales: MultiScale
    feature_mean: jax.Array
    feature_spread: jax.Array
    group_histogram: SoftHistogram
    group_scales: MultiScale
    moment_mean: jax.Array
    moment_spread: jax.Array
    # The most observations that a data set can have.
    largest: int = eqx.field(static=True)

    @classmethod
    def fit(cls, pilot: Pilot) -> NestedSummary:
        nested = [data.reshape(*data.shape[:3], -1) for data in pilot]
        groups = GroupSummary.fit(nested)
        describe = compiled(_in_passes, groups, options=IN_A_HURRY)
        described = [describe(data) for data in nested]
        there = [np.asarray(part.sizes) > 0 for part in described]
        features = np.concatenate(
            [np.asarray(part.features)[present] for part, present in zip(described, there, strict=True)]
        )
        mean, spread = features.mean(axis=0), _spread(features)
        as_rows = compiled(_group_rows, options=IN_A_HURRY)
        rows = [np.asarray(as_rows(part.features, part.relative, mean, spread)) for part in described]
        present_rows = np.concatenate([row[present] for row, present in zip(rows, there, strict=True)])
        group_histogram = SoftHistogram.fit(present_rows[:: -(-len(present_rows) // MOST_GROUPS)])
        count_groups = compiled(_count_groups, group_histogram, options=IN_A_HURRY)
        counted = [np.asarray(count_groups(*pair)) for pair in zip(rows, there, strict=True)]
        moments = [np.asarray(part.moments) for part in described]
        return cls(
            groups,
            MultiScale.fit([np.asarray(part.ramps) for part in described], smallest_spread=FAINTEST_WITHIN),
            jnp.asarray(mean),
            jnp.asarray(spread),
            group_histogram,
            MultiScale.fit(counted, smallest_spread=FAINTEST_BETWEEN),
            jnp.asarray(np.stack([m.mean(axis=0) for m in moments])),
            jnp.asarray(np.stack([_spread(m) for m in moments])),
            nested[0].shape[1] * nested[0].shape[2],
        )

    def __call__(self, data: jax.Array) -> jax.Array:
        described = _in_passes(self.groups, data.reshape(*data.shape[:3], -1))
        within = self.observation_scales(described.ramps)
        rows = _group_rows(described.features, described.relative, self.feature_mean, self.feature_spread)
        between = self.group_scales(_count_groups(self.group_histogram, rows, described.sizes > 0))
        moments = squash((described.moments[:, None, :] - self.moment_mean) / self.moment_spread)
        share = described.sizes.sum(axis=1, keepdims=True) / self.largest
        num_within, num_between = self.observation_scales.num_linear, self.group_scales.num_linear
        linear = [within[:, :num_within], share * within[:, :num_within], between[:, :num_between]]
        bent = [within[:, num_within:], between[:, num_between:], moments.reshape(data.shape[0], -1)]
        return jnp.concatenate([*linear, *bent, share], axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        within, between = self.observation_scales, self.group_scales
        num_linear = 2 * within.num_linear + between.num_linear
        num_bent = within.num_columns - within.num_linear + between.num_columns - between.num_linear
        return InputLayout(num_linear, num_linear + num_bent + self.moment_mean.size + 1)


def _in_passes(groups: GroupSummary, nested: jax.Array) -> Described:
    """Return the data sets described, a few at a time: what is made on the way is many times as wide as the data."""
    num_datasets = nested.shape[0]
    rows = min(num_datasets, max(1, VALUES_A_PASS // (nested.shape[1] * groups.histogram.num_ramps)))
    padded = jnp.pad(nested, [(0, -num_datasets % rows), (0, 0), (0, 0), (0, 0)])
    passes = jax.lax.map(lambda part: _describe(groups, part), padded.reshape(-1, rows, *nested.shape[1:]))
    return Described(*(part.reshape(-1, *part.shape[2:])[:num_datasets] for part in passes))


def _describe(groups: GroupSummary, nested: jax.Array) -> Described:
    # Fenced off, or the compiler writes out all that leads up to them once more in each of their uses.
    found = jax.lax.optimization_barrier(groups(nested))
    shares = found.sizes / jnp.maximum(found.sizes.sum(axis=1, keepdims=True), 1.0)
    moments, relative = between_groups(found.features, found.sizes)
    return Described(jnp.einsum("bg,bgr->br", shares, found.ramps), moments, found.features, relative, found.sizes)


def _group_rows(features: jax.Array, relative: jax.Array, mean: jax.Array, spread: jax.Array) -> jax.Array:
    """Return what the histogram over groups sees of each: its features as they are, and against the other groups."""
    return jnp.concatenate([squash((features - mean) / spread), squash(relative)], axis=2)


def _count_groups(histogram: SoftHistogram, rows: jax.Array, there: jax.Array) -> jax.Array:
    """Return the mean ramps over the groups of each data set, a few data sets at a time."""
    num_datasets, num_groups, num_columns = rows.shape
    per_pass = min(num_datasets, max(1, VALUES_A_PASS // histogram.num_ramps))
    padding = -num_datasets % per_pass
    padded = jnp.pad(rows, [(0, padding), (0, 0), (0, 0)]).reshape(-1, 1, per_pass, num_groups, num_columns)
    present = jnp.pad(there.astype(jnp.float32), [(0, padding), (0, 0)]).reshape(-1, 1, per_pass, num_groups)
    # The groups of a data set are to it what observations are to a group.
    counted = jax.lax.map(lambda part: _mean_ramps(histogram, *part), (padded, present))
    return counted.reshape(-1, histogram.num_ramps)[:num_datasets]


def _spread(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return standard deviations of the columns, 1 where a column never varies."""
    spread = values.std(axis=0)
    return np.where(spread > 1e-6, spread, 1.0).astype(np.float32)


# Where the log variance of a group bends into a constant.
SMALLEST_SPREAD_OF_GROUP = 1e-2


class GroupColumns(AbstractColumns):
    """Groups of observations as rows: mean and log variance of each column, and the log number, of each group."""

    rows: RowColumns

    def __call__(self, data: jax.Array) -> jax.Array:
        values = data.reshape(*data.shape[:3], -1)
        there = ~jnp.isnan(values).any(axis=3)
        number = there.sum(axis=2, keepdims=True)
        share = there / jnp.maximum(number, 1)
        squashed = squash(jnp.where(there[..., None], values, 0.0))
        mean = jnp.einsum("bgnc,bgn->bgc", squashed, share)
        variance = jnp.einsum("bgnc,bgn->bgc", (squashed - mean[:, :, None, :]) ** 2, share)
        described = [mean, jnp.log(variance + SMALLEST_SPREAD_OF_GROUP), jnp.log(jnp.maximum(number, 1))]
        # A group without observations is absent.
        return self.rows(jnp.where(number > 0, jnp.concatenate(described, axis=2), jnp.nan))


def plain_groups(pilot: Pilot) -> PlainView:
    """Return the plain view of groups of observations."""
    num_groups = pilot[0].shape[1]
    logs = CountLogs.fit([np.zeros((2, 1), np.float32)])
    return PlainView.fit(GroupColumns(RowColumns(logs, num_groups if num_groups <= MOST_ROWS else 0)), pilot)
