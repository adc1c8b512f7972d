"""Proposals: a normal fitted to some of the posterior draws, met by the posterior as it is or warped.

Both methods work in coordinates where the proposal is a standard normal. The warp (Meng and Schilling, 2002) also
makes the posterior symmetric about its mean, by mixing it with its mirror image, which leaves its integral as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LogDensity = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Log unnormalised posterior of each data set at its own points: (data sets, points, d) to (data sets, points)."""

# Keeps the factor of a covariance of nearly collinear draws well defined.
RELATIVE_JITTER = 1e-9


@dataclass(frozen=True)
class NormalProposal:
    """Mean and lower factor of the covariance, one a data set: shapes (data sets, d) and (data sets, d, d)."""

    mean: NDArray[np.float64]
    factor: NDArray[np.float64]

    @classmethod
    def fit(cls, draws: NDArray[np.float64]) -> NormalProposal:
        """Return the proposal with the moments of the draws, shape (data sets, draws, d)."""
        mean = draws.mean(axis=1)
        centred = draws - mean[:, None, :]
        covariance = np.einsum("bni,bnj->bij", centred, centred) / (draws.shape[1] - 1)
        spread = np.einsum("bii->bi", covariance)
        jitter = RELATIVE_JITTER * spread + np.finfo(np.float64).tiny
        covariance = covariance + jitter[:, :, None] * np.eye(draws.shape[2])
        return cls(mean, np.linalg.cholesky(covariance))

    def standardise(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points in the proposal's coordinates, shape (data sets, points, d)."""
        centred = np.swapaxes(points - self.mean[:, None, :], 1, 2)
        return np.swapaxes(np.linalg.solve(self.factor, centred).astype(np.float64), 1, 2)

    def place(self, standard: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points on the posterior's scale from the proposal's coordinates."""
        return self.mean[:, None, :] + np.einsum("bij,bnj->bni", self.factor, standard)

    def log_ratio(self, standard: NDArray[np.float64], log_density: LogDensity, *, warp: bool) -> NDArray[np.float64]:
        """Return log unnormalised posterior minus log proposal at points in the proposal's coordinates."""
        log_posterior = log_density(self.place(standard))
        if warp:
            log_posterior = np.logaddexp(log_posterior, log_density(self.place(-standard))) - np.log(2)
        log_volume = np.log(np.einsum("bii->bi", self.factor)).sum(axis=1)
        num_coordinates = standard.shape[2]
        log_normal = -0.5 * (standard**2).sum(axis=2) - 0.5 * num_coordinates * np.log(2 * np.pi)
        return log_posterior + log_volume[:, None] - log_normal
