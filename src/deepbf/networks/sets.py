"""Exchangeable observations: their summary, few scalars in increasing order, and the networks that read them.

The order of the observations never changes the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf._compilation import IN_A_HURRY, compiled
from deepbf.networks.base import (
    AbstractColumns,
    AbstractPreparation,
    Head,
    HeadAlone,
    InputLayout,
    Pilot,
    PlainView,
    Storable,
    squash,
)
from deepbf.networks.features import CountLogs, MultiScale, SoftHistogram
from deepbf.networks.vector import MOST_OWN_DIRECTIONS


def with_size(columns: jax.Array, num_linear: int, number: jax.Array, largest: int) -> jax.Array:
    """Return the columns of a summary with the number of observations, and what grows in proportion to it.

    The leading linear columns appear a second time in proportion to the number, as the log evidence of independent
    observations is. The logarithm of the number runs from about -2 at one observation to 2 at the most; its share of
    the most stands last.
    """
    share = number / largest
    log_size = 4.0 * jnp.log(number) / np.log(max(largest, 2)) - 2.0
    linear, others = columns[:, :num_linear], columns[:, num_linear:]
    return jnp.concatenate([linear, share * linear, others, log_size, share], axis=1)


def _layout_with_size(num_linear: int, num_columns: int) -> InputLayout:
    """Return what the columns are that `with_size` makes of so many."""
    return InputLayout(2 * num_linear, num_columns + num_linear + 2, knows_size=True)


class SetSums(Storable):
    """Means over the observations that nothing bounds: of the values, of their logarithms, and logarithms of means.

    A histogram ends at its outermost knots, and the log Bayes factor of exponential families does not: it is linear in
    such sums however far out. Each has the scale of the model under which it varies least, the one that is soon left.
    """

    logs: CountLogs
    location: jax.Array
    spread: jax.Array

    @classmethod
    def fit(cls, pilot: Pilot) -> SetSums:
        """Return the sums for data sets like these, one array per model; observations of nan are absent."""
        rows = [data.reshape(-1, math.prod(data.shape[2:])) for data in pilot]
        logs = CountLogs.fit([one[~np.isnan(one).any(axis=1)] for one in rows], continuous=True)
        unscaled = cls(logs, jnp.zeros(()), jnp.ones(()))
        read = compiled(cls.__call__, unscaled, options=IN_A_HURRY)
        found = [np.asarray(read(jnp.asarray(data))) for data in pilot]
        ranges = np.stack([np.subtract(*np.quantile(one, [0.75, 0.25], axis=0)) for one in found])
        narrowest = np.where(ranges > SMALLEST_RANGE, ranges, np.inf).min(axis=0)
        location = np.median(np.concatenate(found), axis=0)
        spread = np.where(np.isfinite(narrowest), narrowest, 1.0)
        return cls(logs, jnp.asarray(location, jnp.float32), jnp.asarray(spread, jnp.float32))

    def __call__(self, data: jax.Array) -> jax.Array:
        """Return the scaled sums, shape (batch, sums), of standardised data (batch, observations, ...)."""
        rows = data.reshape(data.shape[0], data.shape[1], -1)
        there = ~jnp.isnan(rows).any(axis=2)
        weight = there / jnp.maximum(there.sum(axis=1, keepdims=True), 1)
        present = jnp.where(there[:, :, None], rows, 0.0)
        mean = jnp.einsum("bnc,bn->bc", present, weight)
        of_each = self.logs(present.reshape(-1, present.shape[2])).reshape(*present.shape[:2], -1)
        mean_log = jnp.einsum("bnc,bn->bc", of_each, weight)
        sums = jnp.concatenate([mean, self.logs(mean), mean_log], axis=1)
        return (sums - self.location) / self.spread


# Below this, in interquartile ranges of single values, a mean does not vary but for rounding.
SMALLEST_RANGE = 1e-5


class SetSummary(AbstractPreparation):
    """Soft histogram and moments of the observations, at several scales.

    Complete for scalar observations, up to interpolation between knots. Vectors are seen along many directions.
    Observations of nan are absent. Where some are, the number that is there joins the summary, and its linear part
    appears a second time in proportion to that number, as the log evidence of independent observations is.
    """

    histogram: SoftHistogram
    scales: MultiScale
    moment_mean: jax.Array
    moment_spread: jax.Array
    with_shape: bool = eqx.field(static=True)
    # The most observations of a data set if their number varies, else 0.
    largest: int = eqx.field(static=True)
    # Files from before there were any have none.
    sums: SetSums | None = None

    @classmethod
    def fit(cls, pilot: Sequence[NDArray[np.float32]]) -> SetSummary:
        """Return the summary for data sets like these, one array per model."""
        largest = pilot[0].shape[1] if any(np.isnan(data).any() for data in pilot) else 0
        sets = [_as_columns(jnp.asarray(data), any_size=largest > 0) for data in pilot]
        rows = np.concatenate([np.asarray(values).reshape(-1, values.shape[2]) for values, _ in sets])
        there = [np.asarray(present).ravel() > 0 for _, present in sets if present is not None]
        observations = rows[np.concatenate(there)] if there else rows
        histogram = SoftHistogram.fit(observations)
        count = compiled(SoftHistogram.__call__, histogram, options=IN_A_HURRY)
        pooled_ramps = [np.asarray(count(*one)) for one in sets]
        # Where values repeat, as counts do, knots sit on the values themselves and the histogram has every shape.
        with_shape = len(np.unique(observations)) > 0.1 * observations.size
        moments = [np.asarray(compiled(_moments, with_shape, options=IN_A_HURRY)(*one)) for one in sets]
        sums = SetSums.fit(pilot)
        mean = np.stack([m.mean(axis=0) for m in moments])
        spread = np.stack([m.std(axis=0) for m in moments])
        return cls(
            histogram,
            # Below this share of the widest, a direction of float32 means carries rounding rather than data.
            MultiScale.fit(pooled_ramps, smallest_spread=1e-3),
            jnp.asarray(mean, jnp.float32),
            jnp.asarray(np.where(spread > 1e-6, spread, 1.0), jnp.float32),
            with_shape,
            largest,
            sums,
        )

    def __call__(self, data: jax.Array, fraction: float = 1.0) -> jax.Array:
        """Return the summary; where their number varies, observations may count as a `fraction` of what they are."""
        sets, present = _as_columns(data, any_size=self.largest > 0)
        moments = _moments(self.with_shape, sets, present)[:, None, :]
        scaled_moments = squash((moments - self.moment_mean) / self.moment_spread).reshape(data.shape[0], -1)
        ramps = self.scales(self.histogram(sets, present))
        sums = [] if self.sums is None else [self.sums(data)]
        columns = jnp.concatenate([*sums, ramps, scaled_moments], axis=1)
        if present is None:
            return columns
        number = fraction * present.sum(axis=1, keepdims=True)
        return with_size(columns, self._num_linear, number, self.largest)

    @property
    def _num_linear(self) -> int:
        return self.scales.num_linear + (0 if self.sums is None else self.sums.location.size)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        num_linear = self._num_linear
        num_columns = self.scales.num_columns + self.moment_mean.size + num_linear - self.scales.num_linear
        return _layout_with_size(num_linear, num_columns) if self.largest else InputLayout(num_linear, num_columns)


def _as_columns(data: jax.Array, *, any_size: bool) -> tuple[jax.Array, jax.Array | None]:
    """Return observations as rows of columns, shape (batch, observations, columns), and which of them are there.

    Vectors are squashed first: directions mix their columns, and one heavy tail would drown the others. Absent
    observations are 0. Where none is absent, nothing says so.
    """
    sets = data.reshape(data.shape[0], data.shape[1], -1)
    present = None
    if any_size:
        there = ~jnp.isnan(sets).any(axis=2)
        sets = jnp.where(there[:, :, None], sets, 0.0)
        present = there.astype(jnp.float32)
    return sets if sets.shape[2] == 1 else squash(sets), present


# Beyond this many columns their products outnumber everything else, and the directions have to do.
MOST_MULTIPLIED = 12
# In interquartile ranges: far enough for every shape of interest, near enough for fourth powers in float32.
FARTHEST_FOR_SHAPE = 20.0
SMALLEST_VARIANCE = 1e-4


def _moments(with_shape: bool, sets: jax.Array, present: jax.Array | None) -> jax.Array:
    """Return means of the columns and of their products, squashed, and the columns' shapes if wanted.

    The means see past the outermost knots. Shapes are log spread, skewness and log kurtosis, which a histogram has only
    in many faint directions.
    """
    num_columns = sets.shape[2]
    if num_columns > MOST_MULTIPLIED:
        products = sets * sets
    else:
        first, second = np.triu_indices(num_columns)
        products = sets[:, :, first] * sets[:, :, second]
    moments = squash(jnp.concatenate([_mean(sets, present), _mean(products, present)], axis=1))
    if not with_shape:
        return moments
    near = jnp.clip(sets, -FARTHEST_FOR_SHAPE, FARTHEST_FOR_SHAPE)
    centred = near - _mean(near, present)[:, None, :]
    squares = centred * centred
    variance = _mean(squares, present) + SMALLEST_VARIANCE
    skewness = _mean(squares * centred, present) / (variance * jnp.sqrt(variance))
    kurtosis = _mean(squares * squares, present) / (variance * variance)
    return jnp.concatenate([moments, jnp.log(variance), skewness, jnp.log(kurtosis + 1.0)], axis=1)


def _mean(sets: jax.Array, present: jax.Array | None) -> jax.Array:
    """Return the mean over observations, as a product with a vector: a plain reduction would not be vectorised."""
    num_obs = sets.shape[1]
    if present is None:
        return jnp.tensordot(sets, jnp.full(num_obs, 1.0 / num_obs), axes=([1], [0]))
    return jnp.einsum("bnc,bn->bc", sets, present / present.sum(axis=1, keepdims=True))


# Above all standardised values: absent observations come last.
FAR_ABOVE = 1e37


def in_increasing_order(values: jax.Array) -> jax.Array:
    """Return each row of values, shape (batch, values), in increasing order; none is nan, or above FAR_ABOVE.

    A sorting network (Batcher 1968), which compares the same places of all rows at once: of 128 values 0.8 us per row,
    where the compiler's own sort takes 17 and the histogram of a set 0.5.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> print(in_increasing_order(jnp.array([[3.0, 1.0, 2.0], [0.5, 0.5, -4.0]])))
    [[ 1.   2.   3. ]
     [-4.   0.5  0.5]]
    """
    num_rows, number = values.shape
    # Rows side by side, filled up to a power of two.
    size = 1 << (number - 1).bit_length()
    columns = jnp.pad(values.T, [(0, size - number), (0, 0)], constant_values=FAR_ABOVE)
    merged = 2
    while merged <= size:
        # Two sorted runs make a longer one: each value meets its mirror image, then ever nearer ones.
        first, second = jnp.moveaxis(columns.reshape(-1, 2, merged // 2, num_rows), 1, 0)
        pairs = [jnp.minimum(first, second[:, ::-1]), jnp.maximum(first, second[:, ::-1])[:, ::-1]]
        columns = jnp.stack(pairs, axis=1).reshape(size, num_rows)
        apart = merged // 4
        while apart:
            first, second = jnp.moveaxis(columns.reshape(-1, 2, apart, num_rows), 1, 0)
            pairs = [jnp.minimum(first, second), jnp.maximum(first, second)]
            columns = jnp.stack(pairs, axis=1).reshape(size, num_rows)
            apart //= 2
        merged *= 2
    return columns[:number].T


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
        """Return the preparation for data sets like these, one array (data sets, observations) per model."""
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
        return _layout_with_size(num_linear, num_columns) if self.largest else InputLayout(num_linear, num_columns)


def sorted_features(data: jax.Array, logs: CountLogs, largest: int) -> jax.Array:
    """Return the features of each observation, smallest observation first, then those of their mean.

    Of data sets that differ in size, `largest` is the most observations, and they are seen at as many even steps.
    """
    absent = jnp.isnan(data)
    number = jnp.sum(~absent, axis=1, keepdims=True)
    ordered = in_increasing_order(jnp.where(absent, FAR_ABOVE, data))
    mean = jnp.where(absent, 0.0, data).sum(axis=1, keepdims=True) / number
    seen = _sorted_columns(ordered, logs)
    places = at_even_steps(seen, number, largest) if largest else seen
    return jnp.concatenate([places, _sorted_columns(mean, logs)], axis=1).reshape(data.shape[0], -1)


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


def at_fixed_places(values: jax.Array, num_places: int) -> jax.Array:
    """Return rows of values, shape (batch, values), at so many even steps from first to last, interpolated."""
    number = values.shape[1]
    if number == num_places:
        return values
    place = np.linspace(0.0, number - 1.0, num_places)
    below = np.minimum(place.astype(int), number - 2)
    share = jnp.asarray(place - below, values.dtype)
    return (1.0 - share) * values[:, below] + share * values[:, below + 1]


def _sorted_columns(values: jax.Array, logs: CountLogs) -> jax.Array:
    """Return each value squashed, and by its logarithms if it is a count, along a new last axis."""
    column = values.reshape(-1, 1)
    return jnp.concatenate([squash(column), logs(column)], axis=1).reshape(*values.shape, -1)


HEAD_WIDTH = 32
# Directions in the summary for the head to bend along: two for a start and two for each further model.
DIRECTIONS_PER_MODEL = 2
# The straight part stands for a sum over observations; its inputs have unit variance over data sets.
STRAIGHT_SCALE = 10.0


class DeepSet(HeadAlone):
    """The default for sets: pooled features of single observations, then the shared head.

    The pooled features arrive ready made, a soft histogram of the observations, along many directions if they are
    vectors. Fixed features pool as well as learned ones do, and leave nothing that grows with n to the training step.
    """

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        self.head = Head(
            layout,
            layout.num_summary,
            num_models,
            num_directions=DIRECTIONS_PER_MODEL * num_models,
            width=HEAD_WIDTH,
            straight_scale=STRAIGHT_SCALE,
            key=key,
        )


# Sets of up to so many scalars are read in order, at no more than so many places.
MOST_ORDERED = 256
# The histogram of counts has a knot at every value, and misses nothing: reading many in order only cost steps (Data
# 1 (i), n = 128, 60 s: 9,400 steps and an excess of 1.4e-4, without 6.9e-5).
MOST_COUNTS_ORDERED = 32
MOST_PLACES = 64
# Values at neighbouring places say much the same: together they count as so many columns, or what the moments say is
# learned late. Excess after 3,000 steps, ensemble of 2, seed 1, of a normal mean (n = 50), normal or Laplace (n = 64)
# and lognormal or gamma waiting times (n = 128): the ends alone, without logarithms of distances, 5.6e-5, 2.2e-2 and
# 9.8e-3; all places 1.3e-4, 1.2e-3 and 4.0e-3; counted as four columns, with distances, 6.4e-5, 9.1e-4 and 8.6e-4.
PLACES_COUNT_AS = 4.0
# Sets of up to so many rows are read in order.
MOST_ROWS = 12
# Up to this many columns every one meets every other.
MOST_CROSSED = 12
# Added to variances of plain views before logarithms are taken.
PLAIN_VARIANCE = 1e-6
# Of the trace of a correlation matrix, added before it is inverted: float32 has seven digits.
RIDGE = 1e-4
# Of what is eliminated: with the ridge only rounding makes it smaller.
SMALLEST_PIVOT = 1e-5


class SortedColumns(AbstractColumns):
    """Scalar observations in increasing order and their moments; of very many, the least and the greatest alone.

    Of values that crowd at an end, as waiting times do at 0, the same of the logarithms of their distances from it.
    """

    logs: CountLogs
    num_places: int = eqx.field(static=True)
    # Files from before there were any have none.
    distances: CountLogs | None = None

    @property
    def num_distances(self) -> int:
        """How many ends there are where values crowd."""
        return 0 if self.distances is None else len(self.distances.rising) + len(self.distances.falling)

    @property
    def at_places(self) -> NDArray[np.bool_]:
        """Which columns are values, or distances, at a place in the order."""
        place, other = [True] * self.num_places, [False]
        means = len(self.logs.rising) + len(self.logs.falling) + 1
        return np.array(place + (means + 3) * other + self.num_distances * (place + 4 * other))

    def __call__(self, data: jax.Array) -> jax.Array:
        absent = jnp.isnan(data)
        number = jnp.maximum(jnp.sum(~absent, axis=1, keepdims=True), 1)
        if self.num_places > 2:
            places = at_fixed_places(in_increasing_order(data), self.num_places)
        else:
            ends = [jnp.where(absent, FAR_ABOVE, data).min(axis=1), jnp.where(absent, -FAR_ABOVE, data).max(axis=1)]
            places = jnp.stack(ends, axis=1)
        present = jnp.where(absent, 0.0, data)
        mean = present.sum(axis=1, keepdims=True) / number
        _, *shape = _four_moments(squash(present), absent, number)
        columns = [squash(places), squash(mean), self.logs(mean), *shape]
        if self.distances is not None:
            near, at_places = (
                self.distances(values.reshape(-1, 1)).reshape(*values.shape, -1) for values in (present, places)
            )
            for end in range(self.num_distances):
                columns += [at_places[..., end], *_four_moments(near[..., end], absent, number)]
        return jnp.concatenate(columns, axis=1)


def _four_moments(values: jax.Array, absent: jax.Array, number: jax.Array) -> list[jax.Array]:
    """Return mean, log variance, skewness and kurtosis over the observations that are there, one column each."""
    mean = jnp.where(absent, 0.0, values).sum(axis=1, keepdims=True) / number
    centred = jnp.where(absent, 0.0, values - mean)
    variance = (centred**2).sum(axis=1, keepdims=True) / number + PLAIN_VARIANCE
    shape = [(centred**power).sum(axis=1, keepdims=True) / number / variance ** (power / 2) for power in (3, 4)]
    return [mean, jnp.log(variance), *map(squash, shape)]


class RowColumns(AbstractColumns):
    """Observations that are vectors, few of them in the order of their first column: moments, and what is unexplained.

    Of each column: its mean, the logarithm of its variance, and that of what the other columns leave of it in a linear
    regression; of each pair, the correlation and the partial correlation. Column means of counts appear by their
    logarithms.
    """

    logs: CountLogs
    num_places: int = eqx.field(static=True)

    def __call__(self, data: jax.Array) -> jax.Array:
        rows = data.reshape(data.shape[0], data.shape[1], -1)
        there = ~jnp.isnan(rows).any(axis=2)
        number = jnp.maximum(there.sum(axis=1, keepdims=True), 1)
        present = jnp.where(there[:, :, None], rows, 0.0)
        means = present.sum(axis=1) / number
        columns = [squash(means), self.logs(means)]
        # Of the values themselves, which is what normal models go by, and squashed, which heavy tails do not spoil.
        columns += [_second_moments(values, there, number) for values in (present, squash(present))]
        if self.num_places:
            order = jnp.argsort(jnp.where(there, rows[:, :, 0], FAR_ABOVE), axis=1)
            ordered = jnp.take_along_axis(squash(present), order[:, :, None], axis=1)
            columns.append(at_even_steps(ordered, number, self.num_places).reshape(len(rows), -1))
        return jnp.concatenate(columns, axis=1)


def _second_moments(rows: jax.Array, there: jax.Array, number: jax.Array) -> jax.Array:
    """Return log variances, log residual variances, correlations and partial correlations of a set's columns."""
    mean = jnp.where(there[:, :, None], rows, 0.0).sum(axis=1) / number
    centred = jnp.where(there[:, :, None], rows - mean[:, None, :], 0.0)
    covariance = jnp.einsum("bni,bnj->bij", centred, centred) / number[:, :, None]
    variance = jnp.diagonal(covariance, axis1=1, axis2=2) + PLAIN_VARIANCE
    if rows.shape[2] > MOST_CROSSED:
        return jnp.log(variance)
    scale = jnp.sqrt(variance)
    correlation = covariance / (scale[:, :, None] * scale[:, None, :])
    precision = inverse(correlation + RIDGE * jnp.eye(rows.shape[2]))
    own = jnp.maximum(jnp.diagonal(precision, axis1=1, axis2=2), PLAIN_VARIANCE)
    partial = -precision / jnp.sqrt(own[:, :, None] * own[:, None, :])
    first, second = np.triu_indices(rows.shape[2], 1)
    pairs = [matrix[:, first, second] for matrix in (correlation, partial)]
    # Fisher's transform: differences between strong correlations count.
    bounded = [jnp.arctanh(jnp.clip(pair, -0.9999, 0.9999)) for pair in pairs]
    return jnp.concatenate([jnp.log(variance), -jnp.log(own), *bounded], axis=1)


def inverse(matrices: jax.Array) -> jax.Array:
    """Return the inverses of small positive definite matrices, shape (batch, columns, columns).

    By Gauss and Jordan's eliminations, all matrices at once. `jnp.linalg.inv` calls LAPACK, whose threads wait for each
    other for ever where another part of the same program keeps them busy: on two cores, a fit of sets of 42 vectors of
    6 columns never came to an end.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> inverse(jnp.array([[[2.0, 1.0], [1.0, 1.0]]])).tolist()
    [[[1.0, -1.0], [-1.0, 2.0]]]
    """
    # Matrices side by side: every step is vectorised over them.
    left = jnp.moveaxis(matrices, 0, 2)
    for k in range(left.shape[0]):
        pivot = jnp.maximum(left[k, k], SMALLEST_PIVOT)
        row, column = left[k] / pivot, left[:, k]
        left = (left - column[:, None] * row).at[k].set(row).at[:, k].set(-column / pivot).at[k, k].set(1.0 / pivot)
    return jnp.moveaxis(left, 2, 0)


def plain_set(pilot: Pilot) -> PlainView:
    """Return the plain view of exchangeable observations, scalars or vectors."""
    num_obs, num_columns = pilot[0].shape[1], math.prod(pilot[0].shape[2:])
    rows = [data.reshape(-1, num_columns) for data in pilot]
    present = [one[~np.isnan(one).any(axis=1)] for one in rows]
    logs = CountLogs.fit(present)
    # Half a step of one count in the sum over all observations is the n-th part of it in their mean.
    steps = (logs.half_step_up / num_obs, logs.half_step_down / num_obs)
    logs = eqx.tree_at(lambda found: (found.half_step_up, found.half_step_down), logs, steps)
    # Of sets of all sizes only what depends on the frequencies of values, as fractional Bayes factors need it.
    varies = any(bool(np.isnan(data).any()) for data in pilot)
    if pilot[0].ndim == 2:
        counts = bool(logs.rising or logs.falling)
        most = MOST_COUNTS_ORDERED if counts else MOST_ORDERED
        num_places = min(num_obs, MOST_PLACES) if num_obs <= most and not varies else 2
        # The logarithms of counts say it already.
        distances = None if counts else CountLogs.fit(present, continuous=True)
        columns: AbstractColumns = SortedColumns(logs, num_places, distances)
    else:
        columns = RowColumns(logs, num_obs if num_obs <= MOST_ROWS and not varies else 0)
    view = PlainView.fit(columns, pilot, any_size=True)
    if not isinstance(columns, SortedColumns):
        return view
    wider = np.where(columns.at_places, max(1.0, math.sqrt(columns.num_places / PLACES_COUNT_AS)), 1.0)
    return eqx.tree_at(lambda one: one.spread, view, view.spread * jnp.asarray(wider, jnp.float32))
