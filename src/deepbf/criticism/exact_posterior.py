"""Exact posterior draws and their predictions, where a posterior is known: the judge of posterior samplers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
