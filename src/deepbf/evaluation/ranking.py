"""Ranks under weights: everything that depends on the order of log Bayes factors alone, infinite ones included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Ranking:
    """Values sorted once, so that their distribution function under any weights is one cumulative sum."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        self._order = np.argsort(values, kind="stable")
        self._sorted = values[self._order]

    def share_below(self, weights: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted share of values below each entry of `at`, shape (replicates, entries)."""
        return self._shares(weights)[:, np.searchsorted(self._sorted, at, "left")]

    def share_at_most(self, weights: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted share of values at or below each entry of `at`, shape (replicates, entries)."""
        return self._shares(weights)[:, np.searchsorted(self._sorted, at, "right")]

    def share_mid(self, weights: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of the share below and the share at most: ties count half."""
        shares = self._shares(weights)
        left, right = (np.searchsorted(self._sorted, at, side) for side in ("left", "right"))
        return 0.5 * (shares[:, left] + shares[:, right])

    def _shares(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of the k smallest values, for k from 0 to all, one row a replicate."""
        shares = np.zeros((len(weights), len(self._order) + 1))
        np.cumsum(weights[:, self._order], axis=1, out=shares[:, 1:])
        return shares / shares[:, -1:]


def rank_correlation(
    x: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Spearman's rho, one entry a replicate; nan where one of the two is constant."""
    x_rank, y_rank = (Ranking(values).share_mid(weights, values) for values in (x, y))
    total = weights.sum(axis=1, keepdims=True)
    x_centred, y_centred = (rank - (weights * rank).sum(axis=1, keepdims=True) / total for rank in (x_rank, y_rank))
    covariance, x_variance, y_variance = (
        (weights * a * b).sum(axis=1)
        for a, b in ((x_centred, y_centred), (x_centred, x_centred), (y_centred, y_centred))
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return covariance / np.sqrt(x_variance * y_variance)
