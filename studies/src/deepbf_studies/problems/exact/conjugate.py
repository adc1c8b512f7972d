"""Exact posterior draws of conjugate models, which need only the total of the observations."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from deepbf.criticism.predictive_source import DrawParams

Floats = NDArray[np.float64]


def beta_geometric(shapes: tuple[float, float]) -> DrawParams:
    """Return the posterior of a geometric's probability with a Beta prior: Beta(a + n, b + total)."""
    return partial(_draw_beta, shapes=shapes)


def gamma_poisson(shape_and_rate: tuple[float, float]) -> DrawParams:
    """Return the posterior of a Poisson rate with a Gamma prior: Gamma(a + total, b + n)."""
    return partial(_draw_poisson_rate, shape_and_rate=shape_and_rate)


def gamma_exponential(shape_and_rate: tuple[float, float]) -> DrawParams:
    """Return the posterior of an exponential's rate with a Gamma prior: Gamma(a + n, b + total)."""
    return partial(_draw_exponential_rate, shape_and_rate=shape_and_rate)


def normal_mean(prior_scale: float, noise_scale: float) -> DrawParams:
    """Return the posterior of a normal's mean with the prior N(0, prior_scale^2)."""
    return partial(_draw_normal_mean, prior_scale=prior_scale, noise_scale=noise_scale)


def _totals(observed: Floats, left_out: bool) -> tuple[Floats, int]:
    """Return the total that each row is given, shape (rows, 1), and of how many observations."""
    total = np.array([[observed.sum()]])
    return (total - observed[:, None], len(observed) - 1) if left_out else (total, len(observed))


def _draw_beta(
    rng: np.random.Generator, observed: Floats, num_draws: int, left_out: bool, *, shapes: tuple[float, float]
) -> Floats:
    total, num_obs = _totals(observed, left_out)
    return rng.beta(shapes[0] + num_obs, shapes[1] + total, (len(total), num_draws))


def _draw_poisson_rate(
    rng: np.random.Generator, observed: Floats, num_draws: int, left_out: bool, *, shape_and_rate: tuple[float, float]
) -> Floats:
    total, num_obs = _totals(observed, left_out)
    return rng.standard_gamma(shape_and_rate[0] + total, (len(total), num_draws)) / (shape_and_rate[1] + num_obs)


def _draw_exponential_rate(
    rng: np.random.Generator, observed: Floats, num_draws: int, left_out: bool, *, shape_and_rate: tuple[float, float]
) -> Floats:
    total, num_obs = _totals(observed, left_out)
    return rng.standard_gamma(shape_and_rate[0] + num_obs, (len(total), num_draws)) / (shape_and_rate[1] + total)


def _draw_normal_mean(
    rng: np.random.Generator,
    observed: Floats,
    num_draws: int,
    left_out: bool,
    *,
    prior_scale: float,
    noise_scale: float,
) -> Floats:
    total, num_obs = _totals(observed, left_out)
    precision = 1 / prior_scale**2 + num_obs / noise_scale**2
    noise = rng.standard_normal((len(total), num_draws)) / np.sqrt(precision)
    return total / noise_scale**2 / precision + noise
