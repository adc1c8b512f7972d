"""Log priors and log likelihoods of the toy studies, for the baselines that need a likelihood.

Parameters carry any leading axes, usually (size,); the last axis of data is the observations, and the axes before it
broadcast against the parameters': pass one data set of shape (num_obs,), or one a parameter, (size, num_obs).
Parameters and data may be NumPy or JAX arrays, traced ones too, so that gradient-based samplers can use these
functions. Parameters outside their open range have log density -inf.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln

from deepbf_studies.problems.array_library import Array, library_of, log_gamma_of

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


def log_beta(probs: Array, *, shapes: tuple[float, float]) -> Array:
    """Return the log density of a Beta distribution."""
    xp, probs = library_of(probs)
    a, b = shapes
    inside, safe = _restrict(xp, probs, (probs > 0) & (probs < 1), 0.5)
    return xp.where(inside, (a - 1) * xp.log(safe) + (b - 1) * xp.log1p(-safe) - float(betaln(a, b)), -xp.inf)


def log_gamma(values: Array, *, shape_and_rate: tuple[float, float]) -> Array:
    """Return the log density of a Gamma distribution given by its shape and rate."""
    xp, values = library_of(values)
    shape, rate = shape_and_rate
    inside, safe = _restrict(xp, values, values > 0, 1.0)
    constant = float(shape * np.log(rate) - gammaln(shape))
    return xp.where(inside, constant + (shape - 1) * xp.log(safe) - rate * safe, -xp.inf)


def log_normal(values: Array, *, mean: float, scale: float) -> Array:
    """Return the log density of a normal distribution."""
    _, values = library_of(values)
    return -0.5 * ((values - mean) / scale) ** 2 - float(np.log(scale) + _LOG_SQRT_2PI)


def log_normal_pair(values: Array, *, means: tuple[float, float], scale: float) -> Array:
    """Return the log density of two independent normals; `values` has shape (..., 2)."""
    _, values = library_of(values)
    first, second = means
    return log_normal(values[..., 0], mean=first, scale=scale) + log_normal(values[..., 1], mean=second, scale=scale)


def log_negative_binomial(probs: Array, data: ArrayLike) -> Array:
    """Return the log probability of counts of failures before the first success."""
    xp, probs = library_of(probs)
    num_obs, total = _count_and_sum(data)
    inside, safe = _restrict(xp, probs, (probs > 0) & (probs < 1), 0.5)
    return xp.where(inside, num_obs * xp.log(safe) + total * xp.log1p(-safe), -xp.inf)


def log_poisson(rates: Array, data: ArrayLike) -> Array:
    """Return the log probability of Poisson counts."""
    xp, rates = library_of(rates)
    num_obs, total = _count_and_sum(data)
    log_factorials = log_gamma_of(library_of(data)[1] + 1).sum(axis=-1)
    inside, safe = _restrict(xp, rates, rates > 0, 1.0)
    return xp.where(inside, total * xp.log(safe) - num_obs * safe - log_factorials, -xp.inf)


def log_normal_mixture(means: Array, data: ArrayLike, *, scale: float) -> Array:
    """Return the log density of data from an equal mixture of two normals; `means` has shape (..., 2)."""
    xp, means = library_of(means)
    _, values = library_of(data)
    first = log_normal(values - means[..., :1], mean=0.0, scale=scale)
    second = log_normal(values - means[..., 1:], mean=0.0, scale=scale)
    return (xp.logaddexp(first, second) - float(np.log(2))).sum(axis=-1)


def log_normal_sample(means: Array, data: ArrayLike, *, scale: float) -> Array:
    """Return the log density of independent normal data; `means` has shape (...)."""
    _, means = library_of(means)
    _, values = library_of(data)
    return log_normal(values - means[..., None], mean=0.0, scale=scale).sum(axis=-1)


def log_exponential(rates: Array, data: ArrayLike) -> Array:
    """Return the log density of exponential waiting times."""
    xp, rates = library_of(rates)
    num_obs, total = _count_and_sum(data)
    inside, safe = _restrict(xp, rates, rates > 0, 1.0)
    return xp.where(inside, num_obs * xp.log(safe) - safe * total, -xp.inf)


def log_exponential_known_rate(params: None, data: ArrayLike, *, rate: float) -> NDArray[np.float64]:
    """Return the log density of exponential waiting times with one rate; there are no parameters."""
    del params
    num_obs, total = _count_and_sum(data)
    return num_obs * np.log(rate) - rate * total


def _restrict(xp: Any, params: Array, inside: Array, replacement: float) -> tuple[Array, Array]:
    """Return `inside`, and `params` with what lies outside replaced, so that no logarithm or gradient of it is nan."""
    return inside, xp.where(inside, params, replacement)


def _count_and_sum(data: Array) -> tuple[int, Array]:
    _, values = library_of(data)
    return values.shape[-1], values.sum(axis=-1)
