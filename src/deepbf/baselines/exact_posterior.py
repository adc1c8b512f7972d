"""Exact posterior draws, and the predictions they make, where the posterior is known: the judge of posterior samplers.

Conjugate models need only the total of the observations; the posterior of Data 2's mixture is in
`deepbf.baselines.mixture_posterior`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.models import Model
from deepbf.models.model import fresh_seed

Floats = NDArray[np.float64]
# (rng, observed, num_draws, left_out) to draws of shape (rows, num_draws, ...): one row given all observations, or, if
# left out, one row an observation, given the others.
DrawParams = Callable[[np.random.Generator, Floats, int, bool], Floats]


@dataclass(frozen=True)
class ExactPosterior:
    """Draws from the exact posterior of a model, and from its posterior predictive.

    Parameters
    ----------
    model
        The model, whose simulator takes the number of observations.
    draw_params
        ``draw_params(rng, observed, num_draws, left_out)``; None for a model without parameters, which predicts the
        same whatever was observed.
    """

    model: Model
    draw_params: DrawParams | None

    def sample(self, observed: ArrayLike, num_draws: int, *, seed: int = 0) -> Floats:
        """Return parameters given the observed data, `num_draws` along the leading axis."""
        if self.draw_params is None:
            raise ValueError(f"model {self.model.name!r} has no parameters to draw; call predictive.")
        return _draw(self.draw_params, observed, num_draws, seed, left_out=False)[0]

    def predictive(self, observed: ArrayLike, num_draws: int, *, seed: int = 0) -> Any:
        """Return data sets of the observed size from the posterior predictive, one parameter draw each."""
        num_obs = len(np.asarray(observed))
        params_seed, data_seed = fresh_seed(seed).spawn(2)
        if self.draw_params is None:
            return self.model.simulate(num_draws, data_seed, num_obs).data
        params = _draw(self.draw_params, observed, num_draws, params_seed, left_out=False)[0]
        return self.model.simulate_given(params, data_seed, num_obs)

    def leave_one_out(self, observed: ArrayLike, num_draws: int, *, seed: int = 0) -> Any:
        """Return predictions of each observation given the others, shape (num_obs, num_draws)."""
        num_obs = len(np.asarray(observed))
        params_seed, data_seed = fresh_seed(seed).spawn(2)
        if self.draw_params is None:
            data = self.model.simulate(num_obs * num_draws, data_seed, 1).data
        else:
            params = _draw(self.draw_params, observed, num_draws, params_seed, left_out=True)
            data = self.model.simulate_given(params.reshape(-1, *params.shape[2:]), data_seed, 1)
        return data.reshape(num_obs, num_draws)


def _draw(
    draw_params: DrawParams, observed: ArrayLike, num_draws: int, seed: int | np.random.SeedSequence, *, left_out: bool
) -> Floats:
    values = np.asarray(observed, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"observed must be one data set of finite numbers; received shape {values.shape}.")
    rng = np.random.default_rng(fresh_seed(seed))
    return draw_params(rng, values, _checks.check_count("num_draws", num_draws), left_out)


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
