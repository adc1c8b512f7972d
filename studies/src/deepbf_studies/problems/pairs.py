"""Pairs of normal values, correlated or not.

First model: pairs (x_i, z_i) are normal about unknown means, with variances 1 and correlation rho, uniform on (-1, 1).
Second model: rho = 0. Both means are N(0, 1) under both models.

Sums and differences u = (x + z) / sqrt(2) and v = (x - z) / sqrt(2) are independent given rho, with variances 1 + rho
and 1 - rho and means that are again N(0, 1). With ubar the mean of the n values and S the sum of squares about it, the
density of values with variance s is, up to a constant of n::

    s^(-(n-1)/2) (1 + s / n)^(-1/2) exp(-S / (2 s) - ubar^2 / (2 (1 + s / n)))

The integral over rho is by the trapezoidal rule in Fisher's z, rho = tanh(z), in which the density of the prior is
(1 - rho^2) / 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf.models import Model
from deepbf_studies.problems.quadrature import even_nodes, log_integrals
from deepbf_studies.problems.study import OfSize, Study, check_rows

Floats = NDArray[np.float64]

NUM_PAIRS = 40
# Where 1 - rho is 2e-13: pairs would have to be equal in their first twelve digits to ask for more.
LARGEST_Z = 15.0


def pairs_study(name: str, num_obs: int) -> Study:
    """Return normal pairs, shape (data sets, num_obs, 2): correlation uniform on (-1, 1), or 0."""
    correlated = Model("correlated", prior=_correlated_prior, simulator=OfSize(_pairs, num_obs))
    independent = Model("independent", prior=_independent_prior, simulator=OfSize(_pairs, num_obs))
    return Study(
        name=name,
        title=f"Correlated or independent: {num_obs} pairs of normal values with unknown means",
        num_obs=num_obs,
        models=(correlated, independent),
        structure="exchangeable",
        exact_log_bf=pairs_log_bf,
    )


def _correlated_prior(rng: np.random.Generator, size: int) -> dict[str, Floats]:
    """Return both means, standard normal, shape (size, 2), and correlations, uniform on (-1, 1)."""
    return {"means": rng.standard_normal((size, 2)), "correlation": rng.uniform(-1.0, 1.0, size)}


def _independent_prior(rng: np.random.Generator, size: int) -> dict[str, Floats]:
    """Return both means, standard normal, shape (size, 2), and correlations of 0."""
    return {"means": rng.standard_normal((size, 2)), "correlation": np.zeros(size)}


def _pairs(rng: np.random.Generator, params: dict[str, Floats], *, num_obs: int) -> Floats:
    """Return pairs of values with variance 1 and this correlation."""
    correlation = params["correlation"][:, None]
    data = rng.standard_normal((len(correlation), num_obs, 2))
    data[:, :, 1] *= np.sqrt(1 - correlation**2)
    data[:, :, 1] += correlation * data[:, :, 0]
    data += params["means"][:, None, :]
    return data


def pairs_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of a correlation uniform on (-1, 1) over none, for each data set.

    `data` has shape (data sets, pairs, 2), and the result (data sets,).

    Examples
    --------
    >>> pairs_log_bf([[[0.0, 0.1], [2.0, 1.9], [-1.0, -1.1]], [[0.0, 1.0], [2.0, -1.0], [-1.0, -1.0]]]).round(3)
    array([ 2.281, -0.783])
    """
    values = check_rows("data", data, num_columns=2)
    num_obs = values.shape[1]
    # Fisher's z has a standard error of about 1 / sqrt(n).
    z, log_step = even_nodes(-LARGEST_Z, LARGEST_Z, step=0.5 / np.sqrt(num_obs + 3))
    # Not 1 + tanh(z), which loses all its digits far below.
    plus, minus = 2 / (1 + np.exp(-2 * z)), 2 / (1 + np.exp(2 * z))
    log_weights = log_step + np.log(plus) + np.log(minus) - np.log(2)
    turned = [(values[:, :, 0] + sign * values[:, :, 1]) / np.sqrt(2) for sign in (1, -1)]
    means = [part.mean(axis=1, keepdims=True) for part in turned]
    squares = [((part - mean) ** 2).sum(axis=1, keepdims=True) for part, mean in zip(turned, means, strict=True)]

    def log_density(part: int, rows: slice, variance: Floats) -> Floats:
        of_mean = 1 + variance / num_obs
        spread = (num_obs - 1) * np.log(variance) + np.log(of_mean)
        return -0.5 * (spread + squares[part][rows] / variance + means[part][rows] ** 2 / of_mean)

    def log_correlated(rows: slice) -> Floats:
        return log_density(0, rows, plus) + log_density(1, rows, minus)

    everything, one = slice(None), np.ones(1)
    log_independent = (log_density(0, everything, one) + log_density(1, everything, one))[:, 0]
    return log_integrals(log_correlated, log_weights, len(values)) - log_independent
