"""A linear regression on a fixed design, with or without a quadratic term: exact as two multivariate t densities."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.normal_evidence import CovarianceGrid, covariance_grid, log_t_evidence
from deepbf_studies.problems.study import OfSize, Study

Floats = NDArray[np.float64]

NUM_RESPONSES = 20
# Prior scales of the intercept, the slope and the quadratic term, in units of the noise's standard deviation.
COEFFICIENT_SCALES = np.array([2.0, 2.0, 4.0])
# Shape and rate of the inverse gamma prior of the noise's variance.
VARIANCE_PRIOR = (3.0, 2.0)


def fixed_design_study(name: str, num_obs: int) -> Study:
    """Return the responses of a linear regression on equally spaced points: quadratic or straight.

    The design is the same for every data set and is no part of the data. The exact answer is `fixed_design_log_bf`.
    """
    return Study(
        name=name,
        title=f"Linear regression, {num_obs} responses on a fixed design: a quadratic curve or a straight line",
        num_obs=num_obs,
        models=(
            Model(
                "quadratic",
                prior=partial(_prior, num_terms=3),
                simulator=OfSize(_simulate_responses, num_obs),
            ),
            Model(
                "straight",
                prior=partial(_prior, num_terms=2),
                simulator=OfSize(_simulate_responses, num_obs),
            ),
        ),
        structure="vector",
        exact_log_bf=fixed_design_log_bf,
    )


def design(num_obs: int) -> Floats:
    """Return the columns 1, x and x^2 for x equally spaced from -1 to 1, shape (num_obs, 3).

    Examples
    --------
    >>> design(3)
    array([[ 1., -1.,  1.],
           [ 1.,  0.,  0.],
           [ 1.,  1.,  1.]])
    """
    return np.linspace(-1.0, 1.0, num_obs)[:, None] ** np.arange(3)


def _prior(rng: np.random.Generator, size: int, *, num_terms: int) -> dict[str, Floats]:
    """Return variances of the noise, inverse gamma, and coefficients, normal in units of the noise."""
    shape, rate = VARIANCE_PRIOR
    variance = rate / rng.standard_gamma(shape, size)
    scales = np.sqrt(variance)[:, None] * COEFFICIENT_SCALES[:num_terms]
    return {"variance": variance, "coefficients": scales * rng.standard_normal((size, num_terms))}


def _simulate_responses(rng: np.random.Generator, params: dict[str, Floats], *, num_obs: int) -> Floats:
    """Return responses about the curve that the coefficients give, shape (data sets, num_obs)."""
    coefficients = params["coefficients"]
    noise = rng.standard_normal((len(coefficients), num_obs))
    return coefficients @ design(num_obs)[:, : coefficients.shape[1]].T + np.sqrt(params["variance"])[:, None] * noise


def fixed_design_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of a quadratic curve over a straight line, per data set.

    `data` has shape (data sets, n). First model: y = X b + e, with X the columns 1, x, x^2 of `design`,
    e ~ N(0, v I), b ~ N(0, v V) with V diagonal of 2^2, 2^2 and 4^2, and v inverse gamma of shape 3 and rate 2. Second
    model: the same without x^2. Given v, y ~ N(0, v (I + X V X')); with v integrated out, it is multivariate t.

    Examples
    --------
    >>> fixed_design_log_bf([[0.0, 0.0, 0.0, 0.0, 0.0], [4.0, 1.0, 0.0, 1.0, 4.0]]).round(4)
    array([-1.3848,  6.0133])
    """
    responses = _checks.check_datasets("data", data)
    quadratic, straight = (
        log_t_evidence(responses, grid, shape=VARIANCE_PRIOR[0], rate=VARIANCE_PRIOR[1])
        for grid in _grids(responses.shape[1])
    )
    return quadratic - straight


@lru_cache(maxsize=8)
def _grids(num_obs: int) -> tuple[CovarianceGrid, CovarianceGrid]:
    """Return the covariance matrix of the responses, in units of the variance, with and without the quadratic term."""
    scaled = design(num_obs) * COEFFICIENT_SCALES
    quadratic, straight = (np.eye(num_obs) + scaled[:, :terms] @ scaled[:, :terms].T for terms in (3, 2))
    return covariance_grid(quadratic[None]), covariance_grid(straight[None])
