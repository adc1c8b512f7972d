"""Waiting times: gamma with unknown shape, or Weibull with unknown shape.

Under both models the logarithm of the mean is N(0, 1). First model: gamma, log shape ~ N(1.4, 0.7^2). Second model:
Weibull, log shape ~ N(0.75, 0.4^2); both then vary about as much.

Given its shape k, a gamma's n waiting times of average ybar and log total L have the likelihood, with u the logarithm
of the mean over ybar::

    n (k log k - log Gamma(k)) + (k - 1) L - n k log(ybar) - n k (u + exp(-u))

A Weibull's, with T = sum y^k and u = k log(scale) - log(T / n)::

    n log k + (k - 1) L - n log(T / n) - n (u + exp(-u))

So the integral over the mean has nodes that do not depend on the data, and so has that over the logarithm of the
shape; both are by the trapezoidal rule.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gamma, gammaln, logsumexp

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.quadrature import even_nodes, log_integrals
from deepbf_studies.problems.study import OfSize, Study

Floats = NDArray[np.float64]

NUM_OBS = 64
# Mean and standard deviation of the logarithm of each shape.
GAMMA_SHAPE = (1.4, 0.7)
WEIBULL_SHAPE = (0.75, 0.4)
# How far the integrals over the logarithm of the shape go, in standard deviations of its prior.
LARGEST_IN_SCALES = 5.5
# Steps in units of the narrowest posterior that so many waiting times can have.
STEP_IN_WIDTHS = 0.7
# Nodes for u, in units of its width.
U_NODES, _ = even_nodes(-14.0, 14.0, step=0.6)
# Fisher's information of one waiting time about the logarithm of the shape: at most 1 for a gamma of known mean, and
# pi^2 / 6 + (1 - Euler's constant)^2 for a Weibull of known scale.
GAMMA_INFORMATION, WEIBULL_INFORMATION = 1.0, 1.8237


def gamma_waits_study(name: str, num_obs: int) -> Study:
    """Return waiting times, shape (data sets, num_obs): gamma or Weibull, both of unknown mean and shape."""
    models = (
        Model("gamma", prior=partial(_prior, log_shape=GAMMA_SHAPE), simulator=OfSize(_gamma_waits, num_obs)),
        Model("Weibull", prior=partial(_prior, log_shape=WEIBULL_SHAPE), simulator=OfSize(_weibull_waits, num_obs)),
    )
    return Study(
        name=name,
        title=f"Gamma or Weibull: {num_obs} waiting times of unknown mean and shape",
        num_obs=num_obs,
        models=models,
        structure="exchangeable",
        exact_log_bf=gamma_waits_log_bf,
    )


def _prior(rng: np.random.Generator, size: int, *, log_shape: tuple[float, float]) -> dict[str, Floats]:
    """Return means and shapes, both lognormal."""
    shape = np.exp(log_shape[0] + log_shape[1] * rng.standard_normal(size))
    return {"mean": np.exp(rng.standard_normal(size)), "shape": shape}


def _gamma_waits(rng: np.random.Generator, params: dict[str, Floats], *, num_obs: int) -> Floats:
    """Return gamma waiting times of this mean and shape."""
    shape = params["shape"][:, None]
    waits = rng.standard_gamma(shape, (len(shape), num_obs)) * (params["mean"][:, None] / shape)
    return _above_zero(waits)


def _weibull_waits(rng: np.random.Generator, params: dict[str, Floats], *, num_obs: int) -> Floats:
    """Return Weibull waiting times of this mean and shape."""
    shape = params["shape"]
    scale = params["mean"] / gamma(1 + 1 / shape)
    waits = scale[:, None] * rng.standard_exponential((len(shape), num_obs)) ** (1 / shape)[:, None]
    return _above_zero(waits)


def _above_zero(waits: Floats) -> Floats:
    """Return waiting times with those that rounding made 0, at the smallest shapes, set to the smallest number."""
    return np.maximum(waits, np.finfo(np.float64).tiny)


def gamma_waits_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of gamma over Weibull waiting times, for each data set.

    `data` has shape (data sets, observations), and the result (data sets,).

    Examples
    --------
    >>> gamma_waits_log_bf([[0.7, 0.8, 1.0, 1.1, 3.5], [0.2, 1.0, 1.3, 1.4, 1.5]]).round(3)
    array([ 0.49 , -0.693])
    """
    waits = _checks.check_datasets("data", data)
    if (waits <= 0).any():
        raise ValueError(f"data must be waiting times above 0; received {waits.min():g}. Both models exclude it.")
    return gamma_log_evidence(waits) - weibull_log_evidence(waits)


def gamma_log_evidence(waits: Floats) -> Floats:
    """Return the log evidence of gamma waiting times for each data set of shape (data sets, observations)."""
    num_obs = waits.shape[1]
    k, log_weights = _shape_nodes(GAMMA_SHAPE, num_obs * GAMMA_INFORMATION)
    log_total, log_mean = np.log(waits).sum(axis=1), np.log(waits.mean(axis=1))
    u, log_kernel = _kernel(num_obs * k, np.ones_like(k))
    log_kernel += (log_weights + num_obs * (k * np.log(k) - gammaln(k)))[:, None]

    def log_integrand(rows: slice) -> Floats:
        given_shape = (k - 1) * log_total[rows, None] - num_obs * k * log_mean[rows, None]
        log_prior = -0.5 * (u + log_mean[rows, None, None]) ** 2
        return (given_shape[:, :, None] + log_prior).reshape(len(given_shape), -1)

    return log_integrals(log_integrand, log_kernel.ravel(), len(waits)) - 0.5 * np.log(2 * np.pi)


def weibull_log_evidence(waits: Floats) -> Floats:
    """Return the log evidence of Weibull waiting times for each data set of shape (data sets, observations)."""
    num_obs = waits.shape[1]
    k, log_weights = _shape_nodes(WEIBULL_SHAPE, num_obs * WEIBULL_INFORMATION)
    log_waits = np.log(waits)
    log_total = log_waits.sum(axis=1)
    # u is the logarithm of the scale times the shape, and so the prior of the logarithm of the mean is k wide in u.
    u, log_kernel = _kernel(np.full_like(k, num_obs), k)
    log_kernel += (log_weights + (num_obs - 1) * np.log(k))[:, None]
    log_mean_over_scale = gammaln(1 + 1 / k)

    def log_integrand(rows: slice) -> Floats:
        log_power_mean = np.stack(
            [np.asarray(logsumexp(shape * log_waits[rows], axis=1)) for shape in k], axis=1
        ) - np.log(num_obs)
        given_shape = (k - 1) * log_total[rows, None] - num_obs * log_power_mean
        log_prior = -0.5 * ((u + log_power_mean[:, :, None]) / k[:, None] + log_mean_over_scale[:, None]) ** 2
        return (given_shape[:, :, None] + log_prior).reshape(len(given_shape), -1)

    return log_integrals(log_integrand, log_kernel.ravel(), len(waits)) - 0.5 * np.log(2 * np.pi)


def _shape_nodes(log_shape: tuple[float, float], information: float) -> tuple[Floats, Floats]:
    """Return nodes for the shape, and log weights that include its prior."""
    centre, scale = log_shape
    step = STEP_IN_WIDTHS / np.sqrt(1 / scale**2 + information)
    nodes, log_step = even_nodes(centre - LARGEST_IN_SCALES * scale, centre + LARGEST_IN_SCALES * scale, step=step)
    log_prior = -0.5 * ((nodes - centre) / scale) ** 2 - 0.5 * np.log(2 * np.pi) - np.log(scale)
    return np.exp(nodes), log_step + log_prior


def _kernel(precision: Floats, prior_scale: Floats) -> tuple[Floats, Floats]:
    """Return nodes u and -precision (u + exp(-u)) plus the log of their distance, both of shape (shapes, nodes)."""
    width = 1 / np.sqrt(precision + 1 / prior_scale**2)
    u = width[:, None] * U_NODES
    log_distance = np.log(width * (U_NODES[1] - U_NODES[0]))
    return u, log_distance[:, None] - precision[:, None] * (u + np.exp(-u))
