"""Fixed features made ready for networks: soft histograms, logarithms of counts, maps at the scales of all models.

A soft histogram is the mean of fixed piecewise-linear ramps over the observations of a data set. Any mean-pooled
function of one scalar observation is, up to interpolation, a linear map of these means. So nothing needs to be learned
before pooling, and a training step does not depend on n.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import Storable, squash

# Ramps for a scalar observation. More showed no gain on any study.
MOST_RAMPS = 48
FEWEST_RAMPS = 4
SIMD_WIDTH = 8
# Shared by the directions along which vector observations are seen.
RAMPS_IN_ALL = 256
NUM_DIRECTIONS = 16
DIRECTION_SEED = 20_170_601
# The error of linear interpolation is spread evenly when knots are as dense as a small power of the data's density;
# this also reaches far into the tails, where quantiles would place nothing.
DENSITY_POWER = 1 / 3
NUM_BINS = 512
# Knots nearer to each other than this would make a slope that float32 cannot hold.
SMALLEST_GAP = 1e-30
# Beyond the reach of any slope times any standardised value.
FAR_BELOW = 1e37
# Of more columns than these a product of matrices is faster than one that fuses with the ramps.
FEW_COLUMNS = 8
# Observations in one fused step of the pooling loop: wide enough to amortise the loop, small enough for registers.
UNROLL = 8


class SoftHistogram(Storable):
    """Means over observations of ramps that climb from 0 to 1 between neighbouring knots.

    Vector observations are seen along several directions: a function of a vector is, to any accuracy, a sum of
    functions of single directions of it.
    """

    slope: jax.Array
    intercept: jax.Array

    @classmethod
    def fit(cls, observations: NDArray[np.float32]) -> SoftHistogram:
        """Return ramps with knots where the observations are, shape (observations, columns)."""
        directions = choose_directions(observations.shape[1])
        most = int(np.clip(RAMPS_IN_ALL // directions.shape[1], FEWEST_RAMPS, MOST_RAMPS))
        knots = [choose_knots(observations @ direction, most + 1) for direction in directions.T]
        width = np.concatenate([np.diff(column) for column in knots])
        start = np.concatenate([column[:-1] for column in knots])
        along = np.repeat(directions, [len(column) - 1 for column in knots], axis=1)
        # Flat ramps fill up to whole SIMD registers: a remainder would run one number at a time.
        num_flat = -len(width) % SIMD_WIDTH
        return cls(
            jnp.asarray(np.pad(along / width, ((0, 0), (0, num_flat))), jnp.float32),
            jnp.asarray(np.pad(-start / width, (0, num_flat)), jnp.float32),
        )

    @property
    def num_ramps(self) -> int:
        return self.slope.shape[1]

    def __call__(self, data: jax.Array, present: jax.Array | None = None) -> jax.Array:
        """Return (batch, num_ramps) from data of shape (batch, observations, columns).

        `present`, shape (batch, observations), is 1 for observations that are there and 0 for those that are absent.
        """
        batch, num_obs, num_columns = data.shape
        by_obs = jnp.moveaxis(data, 1, 0)
        # Absent observations are taken below the start of every ramp, where they add exactly 0.
        below = None if present is None else jnp.moveaxis((present - 1.0) * FAR_BELOW, 1, 0)[:, :, None]
        if below is not None:
            by_obs = jnp.concatenate([by_obs, below], axis=2)
        num_whole = num_obs // UNROLL
        # A loop over observations with the ramps as its inner, vectorised axis: twenty times faster on a CPU than
        # forming all ramps of all observations and reducing.
        total, _ = jax.lax.scan(
            lambda total, group: (self._add(total, group, num_columns), None),
            jnp.zeros((batch, self.num_ramps), jnp.float32),
            by_obs[: num_whole * UNROLL].reshape(num_whole, UNROLL, *by_obs.shape[1:]),
        )
        total = self._add(total, by_obs[num_whole * UNROLL :], num_columns)
        return total / num_obs if present is None else total / present.sum(axis=1, keepdims=True)

    def _add(self, total: jax.Array, group: jax.Array, num_columns: int) -> jax.Array:
        for row in group:
            observation, below = row[:, :num_columns], row[:, num_columns:]
            climbed = self.intercept
            if num_columns <= FEW_COLUMNS:
                # Column by column rather than as a product of matrices: it fuses with the rest.
                for value, slope in zip(jnp.split(observation, num_columns, axis=1), self.slope, strict=True):
                    climbed = climbed + value * slope
            else:
                climbed = climbed + observation @ self.slope
            total = total + jnp.clip(climbed + below if below.shape[1] else climbed, 0.0, 1.0)
        return total


def choose_directions(num_columns: int) -> NDArray[np.float64]:
    """Return directions to see observations along, shape (columns, directions): each column, then mixtures of them.

    Of two columns, directions at even angles; of more, sums and differences of pairs as far as they fit, then random
    directions, always the same.
    """
    if num_columns == 1:
        return np.ones((1, 1))
    if num_columns == 2:
        angles = np.pi * np.arange(NUM_DIRECTIONS) / NUM_DIRECTIONS
        return np.stack([np.cos(angles), np.sin(angles)])
    own = np.eye(num_columns)
    pairs = [
        (own[:, i] + sign * own[:, j]) / np.sqrt(2)
        for i, j in itertools.combinations(range(num_columns), 2)
        for sign in (1, -1)
    ]
    random = np.random.default_rng(DIRECTION_SEED).standard_normal((num_columns, NUM_DIRECTIONS))
    random /= np.linalg.norm(random, axis=0)
    mixtures = [*pairs, *random.T] if len(pairs) <= NUM_DIRECTIONS else list(random.T)
    return np.stack([*own.T, *mixtures], axis=1)


def choose_knots(values: NDArray[np.float32], most: int) -> NDArray[np.float64]:
    """Return at most `most` increasing knots among the values: all distinct ones if few, else denser where they are.

    Knots are actual values, so that counts get a knot on every small integer.
    """
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    apart = np.concatenate([[True], np.diff(distinct) > SMALLEST_GAP])
    distinct, counts = distinct[apart], counts[apart]
    if len(distinct) == 1:
        return np.array([distinct[0] - 1.0, distinct[0] + 1.0])
    if len(distinct) <= most:
        return distinct
    # Bins on a squashed scale, or one far value would leave all others in a single bin.
    squashed = np.arcsinh(distinct)
    weights, edges = np.histogram(squashed, bins=NUM_BINS, weights=counts.astype(np.float64))
    cumulative = np.concatenate([[0.0], np.cumsum(weights**DENSITY_POWER)])
    wanted = np.interp(np.linspace(0, cumulative[-1], most), cumulative, edges)
    above = np.clip(np.searchsorted(squashed, wanted), 1, len(distinct) - 1)
    nearer_below = wanted - squashed[above - 1] < squashed[above] - wanted
    return np.unique(distinct[np.where(nearer_below, above - 1, above)])


# Ends farther from the middle than this, in interquartile ranges, are where a heavy tail happened to stop: squashed
# values already are logarithms there. Counts of trials end within 5, those of normal shape within 3.
FARTHEST_END = 10.0
# Of values that are no counts, in interquartile ranges beyond the quartile: normal tails reach farther than that, those
# that end in a wall do not. And where the logarithm of the distance from the end bends into a constant.
NEAREST_END = 1.5
CONTINUOUS_STEP = 0.02
# Values a column must have at least: logarithms of two or three are the values themselves.
FEWEST_VALUES = 8
# Steps between values may differ from whole multiples of the smallest by this share of it: float32 has seven digits.
ROUNDING = 0.02


class CountLogs(Storable):
    """Logarithms of how far counts are from their least and from their greatest value, half a step added.

    Models of counts are full of products of probabilities, whose logarithms are sums. Columns that are not on a grid of
    values, and ends of heavy tails, are left out.
    """

    # Standardised values of the ends, and half a step, one entry per logarithm.
    low: jax.Array
    half_step_up: jax.Array
    high: jax.Array
    half_step_down: jax.Array
    rising: tuple[int, ...] = eqx.field(static=True)
    falling: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def fit(cls, pilot: Sequence[NDArray[np.float32]], *, continuous: bool = False) -> CountLogs:
        """Return the logarithms for columns like these, one array (data sets, columns) per model.

        With `continuous`, also those of how far values that are no counts are from an end where they crowd, as waiting
        times do at 0 and shares at either end.
        """
        pooled = np.concatenate(pilot).astype(np.float64)
        low, high, rising, falling = [], [], [], []
        for column, values in enumerate(pooled.T):
            step = _step_of(values)
            if step is None and not continuous:
                continue
            lower, middle, upper = np.quantile(values, [0.25, 0.5, 0.75])
            if step is None:
                reach = (NEAREST_END + 0.5) * (upper - lower)
                step = CONTINUOUS_STEP * (upper - lower)
            else:
                reach = FARTHEST_END * max(upper - lower, step)
            if middle - values.min() < reach:
                rising.append(column)
                low.append((values.min(), step / 2))
            if values.max() - middle < reach:
                falling.append(column)
                high.append((values.max(), step / 2))
        ends = [jnp.asarray(np.reshape(end, (-1, 2)), jnp.float32) for end in (low, high)]
        return cls(ends[0][:, 0], ends[0][:, 1], ends[1][:, 0], ends[1][:, 1], tuple(rising), tuple(falling))

    def __check_init__(self) -> None:
        # An empty array would broadcast against one of any length, and a damaged file pass.
        for array, columns in zip(
            (self.low, self.half_step_up, self.high, self.half_step_down),
            (self.rising, self.rising, self.falling, self.falling),
            strict=True,
        ):
            if getattr(array, "shape", (len(columns),)) != (len(columns),):
                raise ValueError(f"logarithms of {len(columns)} columns have ends of shape {array.shape}")

    def __call__(self, data: jax.Array) -> jax.Array:
        """Return one column per logarithm, for standardised data of shape (batch, columns)."""
        up = data[:, np.array(self.rising, dtype=int)] - self.low
        down = self.high - data[:, np.array(self.falling, dtype=int)]
        # Observed counts may lie beyond all simulated ones.
        near = [jnp.maximum(up, 0.0) + self.half_step_up, jnp.maximum(down, 0.0) + self.half_step_down]
        return jnp.log(jnp.concatenate(near, axis=1))


def _step_of(values: NDArray[np.float64]) -> float | None:
    """Return the distance of neighbouring values if all are whole multiples of it apart, else None."""
    distinct = np.unique(values)
    if len(distinct) < FEWEST_VALUES:
        return None
    gaps = np.diff(distinct)
    multiples = gaps / gaps.min()
    # A continuous column has gaps of any size, a few of them tiny.
    on_grid = np.abs(multiples - np.round(multiples)) < ROUNDING * np.maximum(multiples, 1.0)
    return float(gaps.min()) if on_grid.all() and (multiples < 1.5).mean() > 0.1 else None


# Of Student's t for logarithms of scales, and the least standard deviation of those.
DEGREES = 10.0
SMALLEST_DEVIATION = 0.05


def log_density_of_scale(
    log_scale: jax.Array | NDArray[np.float64],
    location: jax.Array | NDArray[np.float64],
    deviation: jax.Array | NDArray[np.float64],
) -> jax.Array:
    """Return the log density of logarithms of scales, up to a constant: Student's t, a bell with cautious tails.

    An elliptical distribution has any density of its scale, and for each scale the form of a normal. So the log density
    of data is this, plus that of a normal at the scale that fits the data best.
    """
    z = (log_scale - location) / deviation
    return -0.5 * (DEGREES + 1.0) * jnp.log1p(z * z / DEGREES) - jnp.log(deviation)


MOST_PER_MODEL = 8
DATASETS_PER_DIRECTION = 32
# Directions are filled up with zeros to whole multiples of this, of many to multiples of more: how many are left out as
# too faint depends on the simulations, and every other number would be another program to compile.
DIRECTIONS_TOGETHER, MANY_TOGETHER = 8, 32


class MultiScale(Storable):
    """Linear maps of a feature vector: whitened over the pooled models, then whitened for each model and squashed.

    Competing models often differ a thousandfold in how far their summaries spread. Whitening for the pool alone
    leaves the narrow model's data in one corner; whitening for each model as well keeps both in focus.
    """

    offset: jax.Array
    matrix: jax.Array
    num_linear: int = eqx.field(static=True)

    @classmethod
    def fit(
        cls, features: Sequence[NDArray[np.float32]], *, smallest_spread: float, most_per_model: int = MOST_PER_MODEL
    ) -> MultiScale:
        """Return the maps for features like these, one array (data sets, features) per model.

        Directions whose spread is below `smallest_spread` of the widest are left out, and of a model's own all but the
        widest `most_per_model`.
        """
        pooled = whitening(np.concatenate(features), smallest_spread)
        own = [whitening(model_features, smallest_spread, most_per_model) for model_features in features]
        filled = [_filled_up(matrix) for _, matrix in (pooled, *own)]
        matrix = np.concatenate(filled, axis=1)
        offset = np.concatenate([mean @ one for (mean, _), one in zip((pooled, *own), filled, strict=True)])
        return cls(jnp.asarray(offset, jnp.float32), jnp.asarray(matrix, jnp.float32), filled[0].shape[1])

    @property
    def num_columns(self) -> int:
        return self.matrix.shape[1]

    def __call__(self, features: jax.Array) -> jax.Array:
        """Return (batch, num_columns): the linear columns first, then the squashed ones."""
        scaled = features @ self.matrix - self.offset
        return jnp.concatenate([scaled[:, : self.num_linear], squash(scaled[:, self.num_linear :])], axis=1)


def _filled_up(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix with columns of zeros after its own, so that their number is one of few."""
    number = matrix.shape[1]
    together = DIRECTIONS_TOGETHER if number <= 2 * MANY_TOGETHER else MANY_TOGETHER
    return np.pad(matrix, ((0, 0), (0, -number % together)))


def whitening(
    features: NDArray[np.float32], smallest_spread: float, most: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the matrix that takes features to their leading principal components, at unit variance."""
    values = np.asarray(features, dtype=np.float64)
    mean = values.mean(axis=0)
    centred = (values - mean) / np.sqrt(max(len(values) - 1, 1))
    # Four times as fast as singular values for 400 columns (one run, busy machine). Squaring costs half the digits;
    # float64 has more than the smallest spread kept needs.
    variances, directions = np.linalg.eigh(centred.T @ centred)
    spreads, directions = np.sqrt(np.maximum(variances[::-1], 0.0)), directions[:, ::-1]
    if spreads[0] <= 0:
        # Features that never vary carry nothing: one column of zeros keeps the shapes alive.
        return mean, np.zeros((values.shape[1], 1))
    # Directions of small spread are guesswork when there are few data sets: scaled up, they would be mostly noise.
    known = max(2, len(values) // DATASETS_PER_DIRECTION)
    kept = np.flatnonzero(spreads > smallest_spread * spreads[0])[: min(known, most or known)]
    return mean, directions[:, kept] / spreads[kept]
