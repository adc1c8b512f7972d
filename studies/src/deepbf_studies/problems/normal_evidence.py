"""Evidences of normal models whose covariance is one of a few, known or known up to an unknown scale.

A linear regression with normal priors, a signal that may start at one of many times, and a Gaussian field with one of
several length scales have this in common: once all normal parameters are integrated out, a data set is normal about 0
with a covariance matrix that depends on one discrete parameter alone. The evidence is then a mean of normal densities,
or of multivariate t densities if the scale has an inverse gamma prior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp

from deepbf_studies.problems.study import in_blocks

Floats = NDArray[np.float64]

_LOG_2PI = float(np.log(2 * np.pi))


class CovarianceGrid(NamedTuple):
    """The covariance matrices that a model has, each with the same prior probability, and what densities need of them.

    Parameters
    ----------
    whiteners
        The inverses of the lower Cholesky factors of the matrices, shape (matrices, n, n).
    log_dets
        The log determinants of the matrices, shape (matrices,).
    """

    whiteners: Floats
    log_dets: Floats


def covariance_grid(covariances: ArrayLike) -> CovarianceGrid:
    """Return the inverse Cholesky factors and the log determinants of matrices of shape (matrices, n, n).

    Examples
    --------
    >>> covariance_grid([[[4.0]], [[16.0]]]).whiteners.ravel()
    array([0.5 , 0.25])
    """
    factors = np.linalg.cholesky(np.asarray(covariances, np.float64))
    identity = np.eye(factors.shape[-1])
    whiteners = np.stack([solve_triangular(factor, identity, lower=True) for factor in factors])
    log_dets = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    return CovarianceGrid(whiteners, log_dets)


def log_normal_evidence(data: Floats, grid: CovarianceGrid) -> Floats:
    """Return the log of the mean over the grid of normal densities N(y; 0, C), per data set.

    `data` has shape (data sets, n); the result has shape (data sets,).

    Examples
    --------
    >>> log_normal_evidence(np.zeros((1, 1)), covariance_grid([[[1.0]]])).round(4)  # -1/2 log(2 pi)
    array([-0.9189])
    """
    constant = -0.5 * data.shape[1] * _LOG_2PI - 0.5 * grid.log_dets
    return _log_mean(data, grid, lambda squares: constant - 0.5 * squares)


def log_t_evidence(data: Floats, grid: CovarianceGrid, *, shape: float, rate: float) -> Floats:
    """Return the log of the mean over the grid of the densities of y ~ N(0, v C), v inverse gamma, per data set.

    With v integrated out, y has a multivariate t distribution of 2 a degrees of freedom::

        p(y) = (2 pi)^(-n/2) |C|^(-1/2) b^a Gamma(a + n/2) / Gamma(a) (b + y' C^-1 y / 2)^-(a + n/2)

    for a the `shape` and b the `rate` of the prior. `data` has shape (data sets, n); the result has shape (data sets,).

    Examples
    --------
    >>> log_t_evidence(np.zeros((1, 1)), covariance_grid([[[1.0]]]), shape=0.5, rate=0.5).round(4)  # Cauchy: 1 / pi
    array([-1.1447])
    """
    power = shape + 0.5 * data.shape[1]
    constant = shape * np.log(rate) + gammaln(power) - gammaln(shape) - 0.5 * data.shape[1] * _LOG_2PI
    return _log_mean(data, grid, lambda squares: constant - 0.5 * grid.log_dets - power * np.log(rate + 0.5 * squares))


def _log_mean(data: Floats, grid: CovarianceGrid, log_density_fn: Callable[[Floats], Floats]) -> Floats:
    """Return the log mean over the grid of densities that depend on y' C^-1 y, per data set."""

    def of_block(block: Floats) -> Floats:
        squares = np.empty((len(block), len(grid.whiteners)))
        for column, whitener in enumerate(grid.whiteners):
            whitened = block @ whitener.T
            squares[:, column] = np.einsum("ij,ij->i", whitened, whitened)
        return np.asarray(logsumexp(log_density_fn(squares), axis=1)) - np.log(len(grid.whiteners))

    return in_blocks(of_block, data)
