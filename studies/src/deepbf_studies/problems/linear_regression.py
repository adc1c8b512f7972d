"""Normal linear regressions in which a second covariate matters or not, with answers in closed form.

Responses are y = X b + noise, noise ~ N(0, sigma^2), with coefficients b ~ N(0, sigma^2 V) and variance sigma^2 ~
inverse gamma(a, c). The columns of X are 1, x and z under the first model, 1 and x under the second. Then y has a
multivariate t distribution; with C = I + X V X', up to a constant that all models share::

    log p(y) = -1/2 log det C - (a + n / 2) log(c + 1/2 y' C^-1 y)

Two studies use it: in one, the covariates are fixed by design and part of the problem; in the other, they are drawn
anew for each data set and are part of the data.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.study import OfSize, Study, check_rows

Floats = NDArray[np.float64]

NUM_OBS = 40
# Shape and scale of the inverse gamma prior of the variance: mean 1, and heavy tails.
VARIANCE_SHAPE, VARIANCE_SCALE = 3.0, 2.0
INTERCEPT_SCALE = 1.0
# How strongly x and z are correlated: on the fixed design, and where they are drawn.
DESIGN_CORRELATION = 0.8
DRAWN_CORRELATION = 0.6
# Standard deviation of both coefficients in units of sigma, where the covariates are drawn.
COEFFICIENT_SCALE = 0.8
GOLDEN_RATIO = (1 + 5**0.5) / 2


def correlated_covariates_study(name: str, num_obs: int) -> Study:
    """Return responses on a fixed design of two correlated covariates: on both, or on the first alone.

    Responses have shape (data sets, num_obs). The coefficients of the covariates have Zellner's g-prior with g =
    `num_obs`, which is worth one observation (Zellner, 1986; Kass and Wasserman, 1995). `covariates` has the columns
    "x" and "z" of the design.
    """
    on_both, on_first = (
        Model(
            model_name,
            prior=partial(_g_prior, num_obs=num_obs, num_covariates=num_covariates),
            simulator=OfSize(_responses, num_obs),
        )
        for model_name, num_covariates in (("x and z", 2), ("x alone", 1))
    )
    return Study(
        name=name,
        title=f"Two correlated covariates or one: {num_obs} normal responses on a fixed design",
        num_obs=num_obs,
        models=(on_both, on_first),
        structure="vector",
        exact_log_bf=correlated_covariates_log_bf,
        covariates=design(num_obs),
    )


def regression_rows_study(name: str, num_obs: int) -> Study:
    """Return rows of a response and two covariates drawn anew: a response that depends on both, or on the first.

    Rows (y, x, z) have shape (data sets, num_obs, 3). The covariates are standard normal with correlation 0.6 under
    both models, so that they alone say nothing.
    """
    on_both, on_first = (
        Model(
            model_name,
            prior=partial(_independent_prior, num_covariates=num_covariates),
            simulator=OfSize(_rows, num_obs),
        )
        for model_name, num_covariates in (("x and z", 2), ("x alone", 1))
    )
    return Study(
        name=name,
        title=f"Regression on x and z or on x alone: {num_obs} rows with covariates of their own",
        num_obs=num_obs,
        models=(on_both, on_first),
        structure="exchangeable",
        exact_log_bf=regression_rows_log_bf,
    )


def design(num_obs: int) -> dict[str, Floats]:
    """Return the fixed design: the columns "x" and "z", each of shape (num_obs,), with correlation near 0.8.

    x is evenly spread between -1.7 and 1.7, which gives it a variance of 1. z is 0.8 x + 0.6 w, where w goes through
    quantiles of the standard normal in the order of multiples of the golden ratio, which has nothing to do with x.

    Examples
    --------
    >>> columns = design(40)
    >>> np.corrcoef(columns["x"], columns["z"])[0, 1].round(2)
    np.float64(0.8)
    """
    x = np.sqrt(3) * (2 * np.arange(num_obs) + 1 - num_obs) / num_obs
    w = ndtri((np.arange(1, num_obs + 1) * GOLDEN_RATIO) % 1.0)
    return {"x": x, "z": DESIGN_CORRELATION * x + np.sqrt(1 - DESIGN_CORRELATION**2) * w}


def _design_matrix(num_obs: int) -> Floats:
    """Return the columns 1, x and z of the fixed design, shape (num_obs, 3)."""
    columns = design(num_obs)
    return np.stack([np.ones(num_obs), columns["x"], columns["z"]], axis=1)


def g_prior_covariance(X: Floats) -> Floats:
    """Return the covariance of the coefficients in units of sigma^2, shape (columns, columns).

    The first column of `X`, shape (observations, columns), is the intercept, whose variance is 1. The others have
    Zellner's g-prior with g the number n of observations: n (X'X)^-1.
    """
    covariance = np.zeros((X.shape[1], X.shape[1]))
    covariance[0, 0] = INTERCEPT_SCALE**2
    covariance[1:, 1:] = len(X) * np.linalg.inv(X[:, 1:].T @ X[:, 1:])
    return covariance


# Priors return sigma, shape (size,), and three coefficients, shape (size, 3), the last 0 where z does not matter.


def _g_prior(rng: np.random.Generator, size: int, *, num_obs: int, num_covariates: int) -> dict[str, Floats]:
    """Return the intercept and coefficients with Zellner's g-prior."""
    covariance = g_prior_covariance(_design_matrix(num_obs)[:, : 1 + num_covariates])
    root: Floats = np.linalg.cholesky(covariance).astype(np.float64)
    return _coefficients(rng, size, root)


def _independent_prior(rng: np.random.Generator, size: int, *, num_covariates: int) -> dict[str, Floats]:
    """Return the intercept and coefficients, independent given sigma."""
    return _coefficients(rng, size, np.diag(_independent_scales(1 + num_covariates)))


def _independent_scales(num_columns: int) -> Floats:
    return np.array([INTERCEPT_SCALE] + [COEFFICIENT_SCALE] * (num_columns - 1))


def _coefficients(rng: np.random.Generator, size: int, root: Floats) -> dict[str, Floats]:
    sigma = np.sqrt(VARIANCE_SCALE / rng.standard_gamma(VARIANCE_SHAPE, size))
    coefficients = np.zeros((size, 3))
    coefficients[:, : len(root)] = sigma[:, None] * (rng.standard_normal((size, len(root))) @ root.T)
    return {"sigma": sigma, "coefficients": coefficients}


def _responses(rng: np.random.Generator, params: dict[str, Floats], *, num_obs: int) -> Floats:
    """Return responses on the fixed design."""
    noise = rng.standard_normal((len(params["sigma"]), num_obs))
    return params["coefficients"] @ _design_matrix(num_obs).T + params["sigma"][:, None] * noise


def _rows(rng: np.random.Generator, params: dict[str, Floats], *, num_obs: int) -> Floats:
    """Return rows (y, x, z) with covariates drawn anew."""
    sigma, coefficients = params["sigma"][:, None], params["coefficients"][:, None, :]
    rows = rng.standard_normal((len(sigma), num_obs, 3))
    rows[:, :, 2] *= np.sqrt(1 - DRAWN_CORRELATION**2)
    rows[:, :, 2] += DRAWN_CORRELATION * rows[:, :, 1]
    rows[:, :, 0] *= sigma
    rows[:, :, 0] += coefficients[:, :, 0] + (rows[:, :, 1:] * coefficients[:, :, 1:]).sum(axis=2)
    return rows


# The exact answers.


def correlated_covariates_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of both covariates over the first alone, for each data set of responses.

    `data` has shape (data sets, observations), and the result (data sets,). The covariates are those of `design`.

    Examples
    --------
    >>> columns = design(8)
    >>> correlated_covariates_log_bf([3 * columns["z"], 3 * columns["x"]]).round(3)
    array([ 4.906, -1.092])
    """
    responses = _checks.check_datasets("data", data)
    X = _design_matrix(responses.shape[1])
    first, second = (
        log_linear_evidence(responses, X[:, :columns], g_prior_covariance(X[:, :columns])) for columns in (3, 2)
    )
    return first - second


def regression_rows_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of a response that depends on x and z over one that depends on x alone.

    `data` has rows (y, x, z) and shape (data sets, observations, 3); the result has shape (data sets,).

    Examples
    --------
    >>> regression_rows_log_bf([[[4.0, 0.0, 2.0], [2.0, 1.0, 1.0], [-4.0, 0.0, -2.0]]]).round(3)
    array([5.415])
    """
    rows = check_rows("data", data, num_columns=3)
    X = rows.copy()
    X[:, :, 0] = 1.0
    first, second = (
        log_linear_evidence(rows[:, :, 0], X[:, :, :columns], np.diag(_independent_scales(columns) ** 2))
        for columns in (3, 2)
    )
    return first - second


def log_linear_evidence(responses: Floats, X: Floats, covariance: Floats) -> Floats:
    """Return the log evidence of a linear regression for each data set, up to a constant that all models share.

    `responses` has shape (data sets, n), `X` shape (n, columns) or (data sets, n, columns), and `covariance` (columns,
    columns): that of the coefficients in units of sigma^2. By the identities of Woodbury and Sylvester only matrices
    of size (columns, columns) are inverted: with R the root of the covariance, W = X R, and L the root of I + W'W::

        log det C = 2 log det L,    y' C^-1 y = y'y - |L^-1 W'y|^2
    """
    num_obs = responses.shape[1]
    W = X @ np.linalg.cholesky(covariance)
    root = np.linalg.cholesky(np.eye(W.shape[-1]) + W.swapaxes(-1, -2) @ W)
    projected = np.linalg.solve(root, np.einsum("...ni,...n->...i", W, responses)[..., None])[..., 0]
    squares = (responses**2).sum(axis=1) - (projected**2).sum(axis=1)
    log_det = 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    return -0.5 * log_det - (VARIANCE_SHAPE + num_obs / 2) * np.log(VARIANCE_SCALE + 0.5 * squares)
