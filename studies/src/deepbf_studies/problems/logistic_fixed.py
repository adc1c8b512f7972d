"""Logistic regression on a fixed covariate: with a slope, or an intercept only.

Responses are 1 with probability 1 / (1 + exp(-a - b x)), a ~ N(0, 1.5^2). First model: b ~ N(0, 1.5^2). Second model:
b = 0. The log likelihood a sum(y) + b sum(x y) - sum log(1 + exp(a + b x)) needs two sums of each data set; integrals
over a and b are by the trapezoidal rule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf.models import Model
from deepbf_studies.problems.quadrature import even_nodes, log_integrals
from deepbf_studies.problems.study import OfSize, Study, check_binary

Floats = NDArray[np.float64]

NUM_RESPONSES = 30
INTERCEPT_SCALE = 1.5
SLOPE_SCALE = 1.5
# How far the integrals go, in standard deviations of the priors, and their steps in units of the narrowest posterior.
LARGEST_IN_SCALES = 6.5
STEP_IN_WIDTHS = 1.0


def logistic_fixed_study(name: str, num_obs: int) -> Study:
    """Return binary responses on a fixed covariate, shape (data sets, num_obs): with a slope, or without.

    `covariates` has the column "x" of the design.
    """
    slope = Model("slope", prior=_slope_prior, simulator=OfSize(_responses, num_obs))
    intercept_only = Model("intercept only", prior=_intercept_prior, simulator=OfSize(_responses, num_obs))
    return Study(
        name=name,
        title=f"Logistic regression with a slope or without: {num_obs} binary responses on a fixed covariate",
        num_obs=num_obs,
        models=(slope, intercept_only),
        structure="vector",
        exact_log_bf=logistic_fixed_log_bf,
        covariates=design(num_obs),
    )


def design(num_obs: int) -> dict[str, Floats]:
    """Return the fixed design: the column "x" of shape (num_obs,), evenly spread between -1.7 and 1.7.

    Examples
    --------
    >>> design(3)["x"].round(2)
    array([-1.15,  0.  ,  1.15])
    """
    return {"x": np.sqrt(3) * (2 * np.arange(num_obs) + 1 - num_obs) / num_obs}


def _slope_prior(rng: np.random.Generator, size: int) -> dict[str, Floats]:
    """Return intercepts and slopes, normal."""
    return {**_intercept_prior(rng, size), "slope": SLOPE_SCALE * rng.standard_normal(size)}


def _intercept_prior(rng: np.random.Generator, size: int) -> dict[str, Floats]:
    """Return intercepts, normal, and slopes of 0."""
    return {"intercept": INTERCEPT_SCALE * rng.standard_normal(size), "slope": np.zeros(size)}


def _responses(rng: np.random.Generator, params: dict[str, Floats], *, num_obs: int) -> NDArray[np.int64]:
    """Return binary responses."""
    predictor = params["intercept"][:, None] + params["slope"][:, None] * design(num_obs)["x"]
    return (rng.uniform(size=predictor.shape) < 1 / (1 + np.exp(-predictor))).astype(np.int64)


def logistic_fixed_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of a slope over an intercept only, for each data set of binary responses.

    `data` has shape (data sets, responses), in the order of `design`, and the result (data sets,).

    Examples
    --------
    >>> logistic_fixed_log_bf([[0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0, 1, 0]]).round(3)
    array([ 2.661, -0.776])
    """
    responses = check_binary("data", data)
    num_obs = responses.shape[1]
    x = design(num_obs)["x"]
    sums = np.stack([responses.sum(axis=1), responses @ x], axis=1)
    intercepts, log_intercept_weights = _normal_nodes(INTERCEPT_SCALE, num_obs)
    slopes, log_slope_weights = _normal_nodes(SLOPE_SCALE, num_obs)
    a, b = (part.ravel() for part in np.meshgrid(intercepts, slopes, indexing="ij"))
    log_weights = np.add.outer(log_intercept_weights, log_slope_weights).ravel()
    log_first = _log_evidence(sums, np.stack([a, b]), log_weights, x)
    without = np.stack([intercepts, np.zeros_like(intercepts)])
    return log_first - _log_evidence(sums, without, log_intercept_weights, x)


def _normal_nodes(scale: float, num_obs: int) -> tuple[Floats, Floats]:
    """Return nodes for a coefficient that is N(0, scale^2), and log weights that include this prior."""
    # A response tells most where its probability is 1/2: 1/4.
    step = STEP_IN_WIDTHS / np.sqrt(1 / scale**2 + num_obs / 4)
    nodes, log_step = even_nodes(-LARGEST_IN_SCALES * scale, LARGEST_IN_SCALES * scale, step=step)
    return nodes, log_step - 0.5 * (nodes / scale) ** 2 - 0.5 * np.log(2 * np.pi) - np.log(scale)


def _log_evidence(sums: Floats, coefficients: Floats, log_weights: Floats, x: Floats) -> Floats:
    """Return log evidences from sum(y) and sum(x y), shape (data sets, 2), at nodes of shape (2, nodes)."""
    log_constant = np.logaddexp(0.0, coefficients[0] + coefficients[1] * x[:, None]).sum(axis=0)
    return log_integrals(lambda rows: sums[rows] @ coefficients, log_weights - log_constant, len(sums))
