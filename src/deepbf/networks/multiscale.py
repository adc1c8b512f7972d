"""Summaries seen at several scales: decorrelated over all models, and again as each model spreads them."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.squash import squash

MOST_PER_MODEL = 8
DATASETS_PER_DIRECTION = 32


class MultiScale(eqx.Module):
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
        """Return the maps for features like these, one array (data sets, features) a model.

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
