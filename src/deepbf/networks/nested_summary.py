"""The preparation of nested data: all observations, how groups differ, and a few numbers for each group."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import AbstractPreparation, InputLayout
from deepbf.networks.between_groups import between_groups
from deepbf.networks.group_summary import GroupSummary
from deepbf.networks.multiscale import MultiScale
from deepbf.networks.preparation import Pilot
from deepbf.networks.squash import squash

# Values of the widest array that one pass over data sets makes: 256 KB, which a core's cache holds. Ten times as many
# take ten times as long.
VALUES_A_PASS = 65_536


class Described(NamedTuple):
    """What is known of each data set before anything is scaled."""

    ramps: jax.Array  # (batch, ramps): means over all observations
    moments: jax.Array  # (batch, moments): over groups
    features: jax.Array  # (batch, groups, features)
    relative: jax.Array  # (batch, groups, features + 1): against the other groups, and so the log size
    sizes: jax.Array  # (batch, groups)


class NestedSummary(AbstractPreparation):
    """A summary of all observations and of how groups differ, then the groups one by one.

    Absent observations and absent groups carry no weight anywhere, so no answer depends on how many there are. A
    group's row holds its features, the same and its log size relative to the other groups, and 1 if it is there.
    """

    groups: GroupSummary
    scales: MultiScale
    moment_mean: jax.Array
    moment_spread: jax.Array
    feature_mean: jax.Array
    feature_spread: jax.Array
    usual_num_obs: float = eqx.field(static=True)

    @classmethod
    def fit(cls, pilot: Pilot) -> NestedSummary:
        nested = [data.reshape(*data.shape[:3], -1) for data in pilot]
        groups = GroupSummary.fit(nested)
        # Run once a model, so compiled in a hurry: that takes less time than any optimisation saves.
        describe = jax.jit(lambda data: in_passes(groups, data), compiler_options={"xla_backend_optimization_level": 0})
        described = [describe(jnp.asarray(data)) for data in nested]
        # Sums over observations, as in the log likelihood of any independent observations, in units that are moderate.
        num_obs = [np.asarray(part.sizes.sum(axis=1, keepdims=True)) for part in described]
        usual_num_obs = float(np.mean([counts.mean() for counts in num_obs]))
        totals = [part.ramps * counts / usual_num_obs for part, counts in zip(described, num_obs, strict=True)]
        moments = [np.asarray(part.moments) for part in described]
        features = np.concatenate([np.asarray(part.features)[np.asarray(part.sizes) > 0] for part in described])
        return cls(
            groups,
            # Below this share of the widest, a direction of float32 means carries rounding rather than data.
            MultiScale.fit([np.asarray(total) for total in totals], smallest_spread=1e-3),
            jnp.asarray(np.stack([m.mean(axis=0) for m in moments]), jnp.float32),
            jnp.asarray(np.stack([_spread(m) for m in moments]), jnp.float32),
            jnp.asarray(features.mean(axis=0), jnp.float32),
            jnp.asarray(_spread(features), jnp.float32),
            usual_num_obs,
        )

    def __call__(self, data: jax.Array) -> jax.Array:
        described = in_passes(self.groups, data.reshape(*data.shape[:3], -1))
        num_obs = described.sizes.sum(axis=1, keepdims=True)
        moments = squash((described.moments[:, None, :] - self.moment_mean) / self.moment_spread)
        summary = [
            self.scales(described.ramps * num_obs / self.usual_num_obs),
            moments.reshape(data.shape[0], -1),
        ]
        rows = self._group_rows(described)
        return jnp.concatenate([*summary, rows.reshape(data.shape[0], -1)], axis=1)

    def _group_rows(self, described: Described) -> jax.Array:
        there = (described.sizes > 0).astype(jnp.float32)[..., None]
        features = squash((described.features - self.feature_mean) / self.feature_spread)
        return jnp.concatenate([features * there, described.relative, there], axis=2)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        return InputLayout(
            num_linear=self.scales.num_linear,
            num_summary=self.scales.num_columns + self.moment_mean.size,
            num_obs=data_shape[0],
            obs_dim=2 * self.feature_mean.size + 2,  # the log size, relative to the others', and whether it is there
        )


def in_passes(groups: GroupSummary, nested: jax.Array) -> Described:
    """Return the data sets described, a few at a time: what is made on the way is many times as wide as the data."""
    num_datasets = nested.shape[0]
    rows = min(num_datasets, max(1, VALUES_A_PASS // (nested.shape[1] * groups.histogram.num_ramps)))
    padded = jnp.pad(nested, [(0, -num_datasets % rows), (0, 0), (0, 0), (0, 0)])
    passes = jax.lax.map(lambda part: _describe(groups, part), padded.reshape(-1, rows, *nested.shape[1:]))
    return Described(*(part.reshape(-1, *part.shape[2:])[:num_datasets] for part in passes))


def _describe(groups: GroupSummary, nested: jax.Array) -> Described:
    # Fenced off, or the compiler writes out all that leads up to them once more in each of their uses.
    found = jax.lax.optimization_barrier(groups(nested))
    shares = found.sizes / found.sizes.sum(axis=1, keepdims=True)
    moments, relative = between_groups(found.features, found.sizes)
    ramps = (shares[..., None] * found.ramps).sum(axis=1)
    return Described(ramps, moments, found.features, relative, found.sizes)


def _spread(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return standard deviations of the columns, 1 where a column never varies."""
    spread = values.std(axis=0)
    return np.where(spread > 1e-6, spread, 1.0)
