"""Plain views: the data themselves, laid out for a network that can learn anything from them.

No view knows what the models are about. Vectors are read value by value, sets in increasing order, rows of sets in the
order of their first column, series window by window. A few statistics stand beside the values that a network of sums
would need long to find: logarithms of counts, moments, products of neighbours, what each column leaves unexplained.
"""

from __future__ import annotations

import abc
import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from deepbf.networks.base import AbstractNetwork, AbstractPreparation, InputLayout, Pilot, Storable, squash
from deepbf.networks.features import CountLogs
from deepbf.networks.sets import FAR_ABOVE, at_even_steps

# Sets of up to so many scalars, or rows, are read in order.
MOST_PLACES = 32
MOST_ROWS = 12
# Columns that rows of sets and windows of series share.
MOST_COLUMNS = 512
# Up to this many columns every one meets every other.
MOST_CROSSED = 12
# A column that varies less than this is constant but for rounding.
SMALLEST_SPREAD = 1e-6
# Data sets of the pilot that the columns' scales are taken from.
MOST_FOR_SCALES = 4096
SMALLEST_VARIANCE = 1e-6
# Where the log of a squared value bends into a constant: nearer to 0 it is mere noise.
SIZE_FLOOR = 1e-2
# Of the trace of a correlation matrix, added before it is inverted: float32 has seven digits.
RIDGE = 1e-4


class AbstractColumns(Storable):
    """The columns of a plain view, before they are scaled."""

    @abc.abstractmethod
    def __call__(self, data: jax.Array) -> jax.Array:
        """Return columns, shape (batch, columns), from standardised data of shape (batch, ...)."""


class PlainView(AbstractPreparation):
    """Columns at mean 0 and unit spread over all models, far values pulled in; absent observations are nan.

    Where their number varies, `largest` is the most observations, and their number joins the columns.
    """

    columns: AbstractColumns
    location: jax.Array
    spread: jax.Array
    largest: int = eqx.field(static=True)

    @classmethod
    def fit(cls, columns: AbstractColumns, pilot: Pilot, *, any_size: bool = False) -> PlainView:
        """Return the view by these columns of data like the pilot's, one array per model."""
        read = eqx.filter_jit(columns)
        each = max(2, MOST_FOR_SCALES // len(pilot))
        found = np.concatenate([np.asarray(read(jnp.asarray(data[:each]))) for data in pilot]).astype(np.float64)
        location, spread = found.mean(axis=0), found.std(axis=0)
        absent = any_size and any(bool(np.isnan(data).any()) for data in pilot)
        return cls(
            columns,
            jnp.asarray(location, jnp.float32),
            jnp.asarray(np.where(spread > SMALLEST_SPREAD, spread, 1.0), jnp.float32),
            pilot[0].shape[1] if absent else 0,
        )

    def __call__(self, data: jax.Array, fraction: float = 1.0) -> jax.Array:
        """Return the scaled columns; where their number varies, observations may count as a `fraction` of theirs."""
        scaled = squash((self.columns(data) - self.location) / self.spread)
        if not self.largest:
            return scaled
        present = ~jnp.isnan(data.reshape(*data.shape[:2], -1)).any(axis=2)
        number = fraction * present.sum(axis=1, keepdims=True)
        log_size = 4.0 * jnp.log(number) / np.log(max(self.largest, 2)) - 2.0
        return jnp.concatenate([scaled, log_size, number / self.largest], axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        return InputLayout(0, self.location.size + (2 if self.largest else 0))


class VectorColumns(AbstractColumns):
    """Every value, squashed, and counts by their logarithms too; with how elliptical models see the vector."""

    logs: CountLogs
    ellipses: Ellipses | None

    def __call__(self, data: jax.Array) -> jax.Array:
        flat = data.reshape(data.shape[0], -1)
        columns = [squash(flat), self.logs(flat)]
        return jnp.concatenate([*columns, *([] if self.ellipses is None else [self.ellipses(flat)])], axis=1)


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
        distances = (steps * steps).mean(axis=2) + SMALLEST_VARIANCE
        size = jnp.sqrt(distances.min(axis=1, keepdims=True))
        along = (centred @ self.directions) / size
        return jnp.concatenate([jnp.log(distances), squash(along), centred / size], axis=1)


NUM_RATIO_DIRECTIONS = 6
# Wider vectors are read value by value alone: scatters cost the cube of the width.
WIDEST_SCATTER = 512
NUM_TYLER_STEPS = 25


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


class SortedColumns(AbstractColumns):
    """Scalar observations in increasing order and their moments; of many, the least and the greatest alone.

    Sorting many values costs more than all else, and what they say is in the histogram beside this view.
    """

    logs: CountLogs
    num_places: int = eqx.field(static=True)

    def __call__(self, data: jax.Array) -> jax.Array:
        absent = jnp.isnan(data)
        number = jnp.maximum(jnp.sum(~absent, axis=1, keepdims=True), 1)
        if self.num_places > 2:
            ordered = jnp.sort(jnp.where(absent, FAR_ABOVE, data), axis=1)
            seen = squash(at_even_steps(ordered[:, :, None], number, self.num_places)[:, :, 0])
        else:
            ends = [jnp.where(absent, FAR_ABOVE, data).min(axis=1), jnp.where(absent, -FAR_ABOVE, data).max(axis=1)]
            seen = squash(jnp.stack(ends, axis=1))
        present = jnp.where(absent, 0.0, data)
        mean = present.sum(axis=1, keepdims=True) / number
        squashed = jnp.where(absent, 0.0, squash(present))
        centred = jnp.where(absent, 0.0, squashed - squashed.sum(axis=1, keepdims=True) / number)
        variance = (centred**2).sum(axis=1, keepdims=True) / number + SMALLEST_VARIANCE
        shape = [(centred**power).sum(axis=1, keepdims=True) / number / variance ** (power / 2) for power in (3, 4)]
        return jnp.concatenate([seen, squash(mean), self.logs(mean), jnp.log(variance), *map(squash, shape)], axis=1)


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
    variance = jnp.diagonal(covariance, axis1=1, axis2=2) + SMALLEST_VARIANCE
    if rows.shape[2] > MOST_CROSSED:
        return jnp.log(variance)
    scale = jnp.sqrt(variance)
    correlation = covariance / (scale[:, :, None] * scale[:, None, :])
    precision = jnp.linalg.inv(correlation + RIDGE * jnp.eye(rows.shape[2]))
    own = jnp.maximum(jnp.diagonal(precision, axis1=1, axis2=2), SMALLEST_VARIANCE)
    partial = -precision / jnp.sqrt(own[:, :, None] * own[:, None, :])
    first, second = np.triu_indices(rows.shape[2], 1)
    pairs = [matrix[:, first, second] for matrix in (correlation, partial)]
    # Fisher's transform: differences between strong correlations count.
    bounded = [jnp.arctanh(jnp.clip(pair, -0.9999, 0.9999)) for pair in pairs]
    return jnp.concatenate([jnp.log(variance), -jnp.log(own), *bounded], axis=1)


class WindowColumns(AbstractColumns):
    """Series window by window: values, squares and products of neighbours; scans for events; the periodogram.

    A window is one point in time unless there are too many of them, or lengths vary: series of any length have as many
    windows. `longest` is the length of the simulated series.
    """

    num_windows: int = eqx.field(static=True)
    longest: int = eqx.field(static=True)
    varies: bool = eqx.field(static=True)

    def __call__(self, data: jax.Array) -> jax.Array:
        # Few at a time: what is computed of them stays in the processor's cache.
        rows = min(ROWS_AT_A_TIME, len(data))
        padded = jnp.pad(data, ((0, -len(data) % rows), *[(0, 0)] * (data.ndim - 1)))
        read = jax.lax.map(self._read, padded.reshape(-1, rows, *data.shape[1:]))
        return read.reshape(len(padded), -1)[: len(data)]

    def _read(self, data: jax.Array) -> jax.Array:
        # Time first, data sets last, as in `series_features`: loops run along time, vectorised over data sets.
        values = jnp.transpose(data.reshape(data.shape[0], data.shape[1], -1), (1, 2, 0))
        there = ~jnp.isnan(values).any(axis=1, keepdims=True)
        number = jnp.maximum(there.sum(axis=(0, 1)), 1)
        present = jnp.where(there, values, 0.0)
        mean = present.sum(axis=0) / number
        raw = jnp.where(there, present - mean, 0.0)
        variance = (raw**2).sum(axis=0) / number + SMALLEST_VARIANCE
        # In units of the series' own spread: bounded, and not bent.
        centred = raw / jnp.sqrt(variance)
        before = jnp.concatenate([jnp.zeros_like(centred[:1]), centred[:-1]])
        columns = values.shape[1]
        first, second = np.indices((columns, columns)).reshape(2, -1) if columns <= 3 else [np.arange(columns)] * 2
        products = squash(centred[:, first] * before[:, second])
        sizes = jnp.where(there, jnp.log(centred**2 + SIZE_FLOOR), 0.0)
        read = jnp.concatenate([squash(present), centred, sizes, products], axis=1)
        if self.varies or self.num_windows < self.longest:
            # Differences of running totals at even steps are means over windows, of series of any length.
            totals = jnp.transpose(_running_totals(read), (2, 0, 1))
            ends = at_even_steps(totals, number[:, None] + 1, self.num_windows + 1)
            windows = jnp.diff(ends, axis=1) * (self.num_windows / number[:, None, None])
        else:
            windows = jnp.transpose(read, (2, 0, 1))
        squares = jnp.where(there, centred**2 - 1.0, 0.0)
        found = [squash(mean), jnp.log(variance)]
        found += self._scans(jnp.concatenate([centred, squares], axis=1), number)
        found += self._log_power(centred, number)
        return jnp.concatenate([windows.reshape(data.shape[0], -1), jnp.concatenate(found).T], axis=1)

    def _scans(self, signals: jax.Array, number: jax.Array) -> list[jax.Array]:
        """Return scan statistics of signals of mean 0, shape (length, kinds, batch), 0 where absent.

        For windows of many lengths: the greatest and the least mean over all places, in standard errors, and the log
        mean over places of exp(z^2 / 2), the evidence of an event of that length at an unknown time. For the two parts
        before and after each point in time: the same of the difference of their means.
        """
        scaled = signals / jnp.sqrt((signals**2).sum(axis=0) / number + SIZE_FLOOR)
        totals = _running_totals(scaled)
        place = jnp.arange(1, len(totals), dtype=jnp.float32)[:, None, None]
        windows = [w for w in _window_lengths(self.longest) if w < len(totals)]
        z_values = [
            jnp.where(place[: len(totals) - w] + w - 1 <= number, (totals[w:] - totals[:-w]) / math.sqrt(w), 0.0)
            for w in windows
        ]
        # Differences of means before and after: a bridge, which ends where the series does.
        among = jnp.sqrt(place * jnp.maximum(number - place, 1.0) / number)
        z_values.append(jnp.where(place < number, totals[1:] / among, 0.0))
        num_places = [jnp.maximum(number - w + 1, 1) for w in windows] + [jnp.maximum(number - 1, 1)]
        found = []
        for z, num_there in zip(z_values, num_places, strict=True):
            bent = jnp.clip(z, -LARGEST_Z, LARGEST_Z)
            most = 0.5 * jnp.maximum(bent.max(axis=0), -bent.min(axis=0)) ** 2
            # Places that are not there have exp(0) each, and are taken off again.
            total = jnp.exp(0.5 * bent * bent - most).sum(axis=0) - (len(z) - num_there) * jnp.exp(-most)
            evidence = jnp.log(jnp.maximum(total, 1e-6) / num_there) + most
            found += [z.max(axis=0), z.min(axis=0), evidence]
        # Series shorter than the longest have no windows of the greatest lengths.
        num_missing = len(_window_lengths(self.longest)) - len(windows)
        return [*found, *[jnp.zeros_like(found[0])] * (3 * num_missing)]

    def _log_power(self, centred: jax.Array, number: jax.Array) -> list[jax.Array]:
        """Return the periodogram of series of mean 0 and unit variance, shape (length, columns, batch).

        Per frequency the logarithm of the power; then the log mean over frequencies of its exponential, the evidence
        of a wave of unknown frequency in noise. A season of unknown period shows in them.
        """
        # Twice as dense as the frequencies that are orthogonal, so that none falls between two of them.
        num_frequencies = min(self.longest, MOST_FREQUENCIES)
        angles = np.pi * np.outer(np.arange(1, num_frequencies + 1) / num_frequencies, np.arange(len(centred)))
        cosines, sines = (jnp.asarray(wave, jnp.float32) for wave in (np.cos(angles), np.sin(angles)))
        power = (jnp.tensordot(cosines, centred, 1) ** 2 + jnp.tensordot(sines, centred, 1) ** 2) / number
        evidence = jax.nn.logsumexp(jnp.minimum(power, 0.5 * LARGEST_Z**2), axis=0) - math.log(num_frequencies)
        return [jnp.log(power + SIZE_FLOOR).reshape(-1, centred.shape[2]), evidence]


def _running_totals(values: jax.Array) -> jax.Array:
    """Return totals of all that came before along the leading axis, one entry more than there are values.

    By a loop over time, vectorised over data sets: a tenth of the time of `jnp.cumsum` on a CPU.
    """

    def add(total: jax.Array, one: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = total + one
        return total, total

    start = jnp.zeros_like(values[0])
    return jnp.concatenate([start[None], jax.lax.scan(add, start, values, unroll=8)[1]])


MOST_FREQUENCIES = 96
ROWS_AT_A_TIME = 128
# Where exponents of squares of z-values would drown all others.
LARGEST_Z = 12.0
# Lengths of windows grow by about this factor, up to half of the series.
WINDOW_GROWTH = 1.4


def _window_lengths(length: int) -> list[int]:
    """Return lengths of windows from 1 to half of the series, evenly spread on a log scale.

    Examples
    --------
    >>> _window_lengths(40)
    [1, 2, 3, 4, 5, 7, 10, 14, 20]
    """
    most = max(1, length // 2)
    steps = math.ceil(math.log(most) / math.log(WINDOW_GROWTH)) + 1
    return sorted({round(most ** (i / max(steps - 1, 1))) for i in range(steps)})


def plain_vector(pilot: Pilot) -> PlainView:
    """Return the plain view of vectors and arrays of fixed shape."""
    flat = [data.reshape(len(data), -1) for data in pilot]
    ellipses = Ellipses.fit(flat) if 1 < flat[0].shape[1] <= WIDEST_SCATTER else None
    return PlainView.fit(VectorColumns(CountLogs.fit(flat), ellipses), pilot)


def plain_set(pilot: Pilot) -> PlainView:
    """Return the plain view of exchangeable observations, scalars or vectors."""
    num_obs, num_columns = pilot[0].shape[1], math.prod(pilot[0].shape[2:])
    rows = [data.reshape(-1, num_columns) for data in pilot]
    logs = CountLogs.fit([one[~np.isnan(one).any(axis=1)] for one in rows])
    # Half a step of one count in the sum over all observations is the n-th part of it in their mean.
    steps = (logs.half_step_up / num_obs, logs.half_step_down / num_obs)
    logs = eqx.tree_at(lambda found: (found.half_step_up, found.half_step_down), logs, steps)
    # Of sets of all sizes only what depends on the frequencies of values, as fractional Bayes factors need it.
    varies = any(bool(np.isnan(data).any()) for data in pilot)
    if pilot[0].ndim == 2:
        columns: AbstractColumns = SortedColumns(logs, num_obs if num_obs <= MOST_PLACES and not varies else 2)
    else:
        columns = RowColumns(logs, num_obs if num_obs <= MOST_ROWS and not varies else 0)
    return PlainView.fit(columns, pilot, any_size=True)


def plain_series(pilot: Pilot) -> PlainView:
    """Return the plain view of series."""
    length, num_columns = pilot[0].shape[1], math.prod(pilot[0].shape[2:])
    num_windows = min(length, max(8, MOST_COLUMNS // (4 * num_columns)))
    varies = any(bool(np.isnan(data).any()) for data in pilot)
    return PlainView.fit(WindowColumns(num_windows, length, varies), pilot, any_size=True)


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
        described = [mean, jnp.log(variance + SIZE_FLOOR), jnp.log(jnp.maximum(number, 1))]
        # A group without observations is absent.
        return self.rows(jnp.where(number > 0, jnp.concatenate(described, axis=2), jnp.nan))


def plain_groups(pilot: Pilot) -> PlainView:
    """Return the plain view of groups of observations."""
    num_groups = pilot[0].shape[1]
    logs = CountLogs.fit([np.zeros((2, 1), np.float32)])
    return PlainView.fit(GroupColumns(RowColumns(logs, num_groups if num_groups <= MOST_ROWS else 0)), pilot)


FREE_WIDTH = 64
FREE_DEPTH = 3


class FreeNetwork(AbstractNetwork):
    """Dense layers on everything that is known of the data: given time, it can learn any answer.

    Its matrices take Muon's steps, with which it learned the same from a quarter of the time of Adam's.
    """

    orthogonal: ClassVar[bool] = True

    layers: eqx.nn.MLP

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        self.layers = eqx.nn.MLP(layout.width, num_models - 1, FREE_WIDTH, FREE_DEPTH, activation=jax.nn.gelu, key=key)

    def __call__(self, inputs: jax.Array) -> jax.Array:
        return jax.vmap(self.layers)(inputs)
