"""Few scalar observations as they are: in increasing order, which is all that a set of them has to say."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from deepbf.networks.base import AbstractPreparation, InputLayout
from deepbf.networks.count_logs import CountLogs
from deepbf.networks.multiscale import MultiScale
from deepbf.networks.preparation import MOST_OWN_DIRECTIONS, Pilot
from deepbf.networks.size_columns import layout_with_size, with_size
from deepbf.networks.squash import squash

# Above all standardised values: absent observations come last.
FAR_ABOVE = 1e37


class SortedSet(AbstractPreparation):
    """Scalar observations in increasing order and their mean, counts by their logarithms too, at several scales.

    Nothing is lost and nothing is cut into cells, so that answers are smooth between the values that were simulated,
    and go on smoothly beyond them. Observations of nan are absent. Where some are, those that are there are seen by as
    many of their quantiles as there are observations at most, and by their number.
    """

    logs: CountLogs
    scales: MultiScale
    # The most observations of a data set if their number varies, else 0.
    largest: int = eqx.field(static=True)

    @classmethod
    def fit(cls, pilot: Pilot) -> SortedSet:
        """Return the preparation for data sets like these, one array (data sets, observations) a model."""
        largest = pilot[0].shape[1] if any(np.isnan(data).any() for data in pilot) else 0
        logs = CountLogs.fit([data[~np.isnan(data)][:, None] for data in pilot])
        features = [np.asarray(sorted_features(jnp.asarray(data), logs, largest)) for data in pilot]
        # A model that ties its observations to each other shows in the directions along which it hardly varies.
        scales = MultiScale.fit(features, smallest_spread=1e-4, most_per_model=MOST_OWN_DIRECTIONS)
        return cls(logs, scales, largest)

    def __call__(self, data: jax.Array, fraction: float = 1.0) -> jax.Array:
        """Return the rows; where their number varies, observations may count as a `fraction` of what they are."""
        scaled = self.scales(sorted_features(data, self.logs, self.largest))
        if not self.largest:
            return scaled
        number = fraction * jnp.sum(~jnp.isnan(data), axis=1, keepdims=True)
        return with_size(scaled, self.scales.num_linear, number, self.largest)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        num_linear, num_columns = self.scales.num_linear, self.scales.num_columns
        return layout_with_size(num_linear, num_columns) if self.largest else InputLayout(num_linear, num_columns)


def sorted_features(data: jax.Array, logs: CountLogs, largest: int) -> jax.Array:
    """Return the features of each observation, smallest observation first, then those of their mean.

    Of data sets that differ in size, `largest` is the most observations, and they are seen at as many even steps.
    """
    absent = jnp.isnan(data)
    number = jnp.sum(~absent, axis=1, keepdims=True)
    ordered = jnp.sort(jnp.where(absent, FAR_ABOVE, data), axis=1)
    mean = jnp.where(absent, 0.0, data).sum(axis=1, keepdims=True) / number
    seen = _features(ordered, logs)
    places = at_even_steps(seen, number, largest) if largest else seen
    return jnp.concatenate([places, _features(mean, logs)], axis=1).reshape(data.shape[0], -1)


def at_even_steps(values: jax.Array, number: jax.Array, num_places: int) -> jax.Array:
    """Return the first `number` rows of each data set at so many even steps from first to last, interpolated.

    Values have shape (batch, rows, columns), the numbers (batch, 1). As many rows as places are the rows themselves.
    """
    place = jnp.arange(num_places) / max(num_places - 1, 1) * (number - 1)
    # Rounding must not take a whole place for one just below it.
    below = jnp.floor(place + 1e-4).astype(jnp.int32)
    above = jnp.minimum(below + 1, number - 1)
    lower, upper = (jnp.take_along_axis(values, index[:, :, None], axis=1) for index in (below, above))
    return lower + jnp.maximum(place - below, 0.0)[:, :, None] * (upper - lower)


def _features(values: jax.Array, logs: CountLogs) -> jax.Array:
    """Return each value squashed, and by its logarithms if it is a count, along a new last axis."""
    column = values.reshape(-1, 1)
    return jnp.concatenate([squash(column), logs(column)], axis=1).reshape(*values.shape, -1)
