"""Fixed features of time series: lagged products, partial autocorrelations, ends, and a histogram of neighbours.

Inside, arrays have time first and data sets last, (length, columns, batch): loops run along time, and every step of
them is vectorised over data sets. Absent observations, at the end of a series, are 0 and left out by their mask.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import AbstractColumns, Pilot, PlainView, squash
from deepbf.networks.features import FEWEST_RAMPS, UNROLL, SoftHistogram, choose_directions, choose_knots
from deepbf.networks.sets import at_even_steps

# Points in time in one fused step of the loop: fewer passes over the running totals.
LAGS_UNROLL = 8
# A constant or perfectly predictable series leaves no variance to explain; below this share it is rounding.
SMALLEST_UNEXPLAINED = 1e-3


def lagged_sums(first: jax.Array, second: jax.Array, num_lags: int) -> jax.Array:
    """Return sums over t of first_t times second_(t-k), shape (num_lags + 1, columns, batch), for k = 0, 1, ...

    Both have time as their leading axis: (length, columns, batch). Values before the start count as 0.
    """
    length, *rest = first.shape
    short = -length % LAGS_UNROLL
    padded = jnp.pad(second, ((num_lags, short), (0, 0), (0, 0)))
    groups = jnp.pad(first, ((0, short), (0, 0), (0, 0))).reshape(-1, LAGS_UNROLL, *rest)

    def add(total: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        start, group = step
        window = jax.lax.dynamic_slice_in_dim(padded, start, num_lags + LAGS_UNROLL)
        for i, current in enumerate(group):
            total = total + current * window[i : i + num_lags + 1]
        return total, None

    start = jnp.zeros((num_lags + 1, *rest), jnp.float32)
    total, _ = jax.lax.scan(add, start, (LAGS_UNROLL * jnp.arange(len(groups)), groups))
    # A window runs from the past to the present: its last entry is lag 0.
    return total[::-1]


def partial_autocorrelations(correlations: jax.Array) -> jax.Array:
    """Return partial autocorrelations from autocorrelations at lags 1, 2, ..., same shape, lags first.

    By the Durbin-Levinson recursion: entry k is what lag k adds to the best linear prediction from the lags below it.
    """
    num_lags = len(correlations)
    flipped = correlations[::-1]

    def step(carry: tuple[jax.Array, jax.Array], k: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        # Entries from k on are 0, so that rolling the whole flipped array flips the first k in place. A loop rather
        # than an expression for each lag: those take the compiler longer.
        coefficients, variance = carry
        predicted = (coefficients * jnp.roll(flipped, k, axis=0)).sum(axis=0)
        partial = jnp.clip((correlations[k] - predicted) / jnp.maximum(variance, SMALLEST_UNEXPLAINED), -1.0, 1.0)
        coefficients = coefficients - partial * jnp.roll(coefficients[::-1], k, axis=0)
        return (coefficients.at[k].set(partial), variance * (1.0 - partial * partial)), partial

    start = (jnp.zeros_like(correlations), jnp.ones_like(correlations[0]))
    return jax.lax.scan(step, start, jnp.arange(num_lags))[1]


# Lags of the sizes of values: fewer than of the values, for the sake of time.
MOST_SIZE_LAGS = 5
# Up to this many columns every column meets every other; beyond it only itself.
MOST_CROSSED = 3
# Ramps for neighbours, shared by their directions.
RAMPS_IN_ALL = 96
# Values at each end whose products are kept: what a model says about its start shows in the first few.
MOST_ENDS = 3
# Of the squared mean and absolute: float32 cannot tell a smaller variance from rounding.
RELATIVE_VARIANCE = 1e-10
SMALLEST_VARIANCE = 1e-12
# Where the log of a squared, unit-variance value bends into a constant: near 0 its sign and size are mere noise.
SIZE_FLOOR = 0.1


class Series(NamedTuple):
    """A batch of series, time first: values (length, columns, batch), mask (length, 1, batch), lengths (batch,)."""

    values: jax.Array
    mask: jax.Array | None
    num_obs: jax.Array

    @classmethod
    def of(cls, data: jax.Array, *, varies: bool) -> Series:
        """Return standardised data of shape (batch, length, ...) as series; `varies` if nan marks their ends."""
        batch, length = data.shape[:2]
        values = jnp.transpose(data.reshape(batch, length, -1), (1, 2, 0))
        if not varies:
            return cls(values, None, jnp.full(batch, length, jnp.float32))
        present = ~jnp.isnan(values).any(axis=1, keepdims=True)
        mask = present.astype(jnp.float32)
        # An empty series is no data set; counting it as one observation keeps the division finite.
        return cls(jnp.where(present, values, 0.0), mask, jnp.maximum(mask.sum(axis=(0, 1)), 1.0))

    def mean(self, values: jax.Array) -> jax.Array:
        """Return the mean over time of values that are 0 where absent."""
        return values.sum(axis=0) / self.num_obs

    def masked(self, values: jax.Array) -> jax.Array:
        """Return the values with 0 where absent."""
        return values if self.mask is None else values * self.mask


def neighbours(values: jax.Array) -> jax.Array:
    """Return each observation with the one before it, shape (length, 2 * columns, batch), squashed.

    The first is its own predecessor, so that there are as many pairs as observations.
    """
    squashed = squash(values)
    return jnp.concatenate([jnp.concatenate([squashed[:1], squashed[:-1]]), squashed], axis=1)


def fit_histogram(pairs: NDArray[np.float32]) -> SoftHistogram:
    """Return ramps for neighbours, shape (pairs, 2 * columns): fewer than for sets, where they are all there is."""
    directions = choose_directions(pairs.shape[1])
    if pairs.shape[1] == 2:
        # Every other angle: each value, their sum, their difference, and four between.
        directions = directions[:, ::2]
    most = max(FEWEST_RAMPS, RAMPS_IN_ALL // directions.shape[1])
    knots = [choose_knots(pairs @ direction, most + 1) for direction in directions.T]
    width = np.concatenate([np.diff(column) for column in knots])
    start = np.concatenate([column[:-1] for column in knots])
    along = np.repeat(directions, [len(column) - 1 for column in knots], axis=1)
    return SoftHistogram(jnp.asarray(along / width, jnp.float32), jnp.asarray(-start / width, jnp.float32))


def linear_features(series: Series, num_lags: int) -> jax.Array:
    """Return level, spread, lagged products of values and of their sizes, and the ends; shape (features, batch)."""
    _, num_columns, batch = series.values.shape
    mean = series.mean(series.values)
    scaled, variance = _standardised(series, series.values, mean)
    log_squares = series.masked(jnp.log(scaled * scaled + SIZE_FLOOR))
    sizes, _ = _standardised(series, log_squares, series.mean(log_squares))
    first = second = np.arange(num_columns)
    if num_columns <= MOST_CROSSED:
        first, second = np.repeat(first, num_columns), np.tile(second, num_columns)
    # Raw products as well as correlations: where a model knows its level and scale, they are what it predicts.
    sums = lagged_sums(
        jnp.concatenate([series.values[:, first], scaled[:, first]], axis=1),
        jnp.concatenate([series.values[:, second], scaled[:, second]], axis=1),
        num_lags,
    )
    raw, correlations = jnp.split(sums / series.num_obs, 2, axis=1)
    correlations = correlations[1:]
    with_sizes = lagged_sums(
        jnp.concatenate([sizes, sizes, scaled], axis=1),
        jnp.concatenate([sizes, scaled, sizes], axis=1),
        min(num_lags, MOST_SIZE_LAGS),
    )
    with_sizes = with_sizes / series.num_obs
    features = [squash(mean), jnp.log(variance), squash(raw), correlations, with_sizes, _ends(series, num_lags + 1)]
    if num_lags > 0:
        features.append(partial_autocorrelations(correlations[:, first == second]))
    return jnp.concatenate([part.reshape(-1, batch) for part in features])


def _standardised(series: Series, values: jax.Array, mean: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the values at mean 0 and variance 1 within each series, and the variance they had."""
    centred = series.masked(values - mean)
    variance = series.mean(centred * centred) + RELATIVE_VARIANCE * mean * mean + SMALLEST_VARIANCE
    return centred / jnp.sqrt(variance), variance


def _ends(series: Series, length: int) -> jax.Array:
    """Return the first and the last few observations and their products, shape (features, batch)."""
    values, batch = squash(series.values), series.values.shape[2]
    num_ends = min(MOST_ENDS, length)
    if series.mask is None:
        last = values[-num_ends:][::-1]
    else:
        back = series.num_obs.astype(jnp.int32) - 1 - jnp.arange(num_ends)[:, None]
        last = jnp.take_along_axis(values, jnp.maximum(back, 0)[:, None, :], axis=0) * (back >= 0)[:, None, :]
    features = []
    for end in (values[:num_ends], last):
        flat = end.reshape(-1, batch)
        # Of wide series only squares: products of all columns would outnumber everything else.
        first, second = np.triu_indices(len(flat)) if values.shape[1] <= MOST_CROSSED else [np.arange(len(flat))] * 2
        features += [flat, flat[first] * flat[second]]
    return jnp.concatenate(features)


def ramp_means(series: Series, histogram: SoftHistogram) -> jax.Array:
    """Return the soft histogram of neighbours, shape (batch, ramps), absent observations left out."""
    pairs = neighbours(series.values)
    length, num_columns, batch = pairs.shape
    mask = jnp.ones((length, 0, batch)) if series.mask is None else series.mask
    short = -length % UNROLL
    # Groups to fill up are left out of the total afterwards; with a mask they have weight 0 as it is.
    steps = jnp.pad(jnp.concatenate([pairs, mask], axis=1), ((0, short), (0, 0), (0, 0)))
    groups = steps.reshape(-1, UNROLL, num_columns + mask.shape[1], batch)

    def add(total: jax.Array, group: jax.Array) -> tuple[jax.Array, None]:
        for step in group:
            climbed = histogram.intercept
            # Column by column rather than as a product of matrices: it fuses with the rest, seven times as fast.
            for value, slope in zip(step[:num_columns], histogram.slope, strict=True):
                climbed = climbed + value[:, None] * slope
            ramps = jnp.clip(climbed, 0.0, 1.0)
            total = total + (ramps if series.mask is None else ramps * step[num_columns][:, None])
        return total, None

    total, _ = jax.lax.scan(add, jnp.zeros((batch, histogram.num_ramps), jnp.float32), groups)
    if series.mask is None:
        total = total - short * jnp.clip(histogram.intercept, 0.0, 1.0)
    return total / series.num_obs[:, None]


# Columns that rows of sets and windows of series share.
MOST_COLUMNS = 512
# Added to variances of plain views before logarithms are taken.
PLAIN_VARIANCE = 1e-6
# Where the log of a squared value bends into a constant: nearer to 0 it is mere noise.
PLAIN_SIZE_FLOOR = 1e-2
MOST_FREQUENCIES = 96
ROWS_AT_A_TIME = 128
# Where exponents of squares of z-values would drown all others.
LARGEST_Z = 12.0
# Lengths of windows grow by about this factor, up to half of the series.
WINDOW_GROWTH = 1.4


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
        variance = (raw**2).sum(axis=0) / number + PLAIN_VARIANCE
        # In units of the series' own spread: bounded, and not bent.
        centred = raw / jnp.sqrt(variance)
        before = jnp.concatenate([jnp.zeros_like(centred[:1]), centred[:-1]])
        columns = values.shape[1]
        first, second = np.indices((columns, columns)).reshape(2, -1) if columns <= 3 else [np.arange(columns)] * 2
        products = squash(centred[:, first] * before[:, second])
        sizes = jnp.where(there, jnp.log(centred**2 + PLAIN_SIZE_FLOOR), 0.0)
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
        scaled = signals / jnp.sqrt((signals**2).sum(axis=0) / number + PLAIN_SIZE_FLOOR)
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
        return [jnp.log(power + PLAIN_SIZE_FLOOR).reshape(-1, centred.shape[2]), evidence]


def _running_totals(values: jax.Array) -> jax.Array:
    """Return totals of all that came before along the leading axis, one entry more than there are values.

    By a loop over time, vectorised over data sets: a tenth of the time of `jnp.cumsum` on a CPU.
    """

    def add(total: jax.Array, one: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = total + one
        return total, total

    start = jnp.zeros_like(values[0])
    return jnp.concatenate([start[None], jax.lax.scan(add, start, values, unroll=8)[1]])


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


def plain_series(pilot: Pilot) -> PlainView:
    """Return the plain view of series."""
    length, num_columns = pilot[0].shape[1], math.prod(pilot[0].shape[2:])
    num_windows = min(length, max(8, MOST_COLUMNS // (4 * num_columns)))
    varies = any(bool(np.isnan(data).any()) for data in pilot)
    return PlainView.fit(WindowColumns(num_windows, length, varies), pilot, any_size=True)
