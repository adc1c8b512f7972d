"""Features made ready for networks: logarithms of counts, and linear maps at the scales of all models."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import Storable, squash

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

    # Standardised values of the ends, and half a step, one entry a logarithm.
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
        """Return one column a logarithm, for standardised data of shape (batch, columns)."""
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


MOST_PER_MODEL = 8
DATASETS_PER_DIRECTION = 32


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
        matrix = np.concatenate([pooled[1], *(matrix for _, matrix in own)], axis=1)
        offset = np.concatenate([pooled[0] @ pooled[1], *(mean @ matrix for mean, matrix in own)])
        return cls(jnp.asarray(offset, jnp.float32), jnp.asarray(matrix, jnp.float32), pooled[1].shape[1])

    @property
    def num_columns(self) -> int:
        return self.matrix.shape[1]

    def __call__(self, features: jax.Array) -> jax.Array:
        """Return (batch, num_columns): the linear columns first, then the squashed ones."""
        scaled = features @ self.matrix - self.offset
        return jnp.concatenate([scaled[:, : self.num_linear], squash(scaled[:, self.num_linear :])], axis=1)


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
