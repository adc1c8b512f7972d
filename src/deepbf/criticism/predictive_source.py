"""Where predictions come from: a posterior sampler of one model, neural or exact, asked for data and checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.models.model import Model, fresh_seed

Floats = NDArray[np.float64]
# (rng, observed, num_draws, left_out) to draws of shape (rows, num_draws, ...): one row given all observations, or, if
# left_out, one row for each observation, given the others.
DrawParams = Callable[[np.random.Generator, Floats, int, bool], Floats]
# Squares of larger numbers are not finite.
LARGEST = 1e150


@runtime_checkable
class PredictiveSource(Protocol):
    """What the checks need of a posterior sampler: `PosteriorSampler` and `ExactPosterior` have it.

    Any object with this property and these two methods will do, such as draws of your own MCMC.
    """

    @property
    def model(self) -> Model:
        """The model whose posterior is sampled."""
        ...

    def predictive(self, observed: Any, num_draws: int, *, seed: int = 0) -> Any:
        """Return `num_draws` data sets from the posterior predictive, one parameter draw each."""
        ...

    def leave_one_out(self, observed: Any, num_draws: int, *, seed: int = 0) -> Any:
        """Return draws of each observation given the others, shape (num_obs, num_draws, ...)."""
        ...


@dataclass(frozen=True)
class ExactPosterior:
    """Draws from the exact posterior of a model, and from its posterior predictive, where the posterior is known.

    Use it in place of a trained sampler when the model is conjugate or has no parameters, and to judge trained ones.
    Observations are single numbers, independent given the parameters.

    Parameters
    ----------
    model
        The model, whose simulator takes the number of observations.
    draw_params
        ``draw_params(rng, observed, num_draws, left_out)`` returns parameters with leading axes (rows, num_draws): one
        row given all observations, or, if `left_out`, one row for each observation, given the others. None for a model
        without parameters, which predicts the same whatever was observed.

    Examples
    --------
    >>> import numpy as np
    >>> from deepbf.example import counts_example
    >>> poisson = counts_example().models[1]
    >>> def draw_rate(rng, counts, num_draws, left_out):  # the prior is Gamma(4, 4)
    ...     total, n = (counts.sum() - counts[:, None], len(counts) - 1) if left_out else (counts.sum(), len(counts))
    ...     return rng.gamma(4 + total, 1 / (4 + n), (len(counts) if left_out else 1, num_draws))
    >>> posterior = ExactPosterior(poisson, draw_rate)
    >>> counts = np.array([2.0, 0.0, 1.0, 1.0])
    >>> posterior.sample(counts, 1000).shape, posterior.predictive(counts, 1000).shape
    ((1000,), (1000, 4))
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


def check_source(sampler: object) -> PredictiveSource:
    """Return `sampler` if it has what predictions need: a model, `predictive` and `leave_one_out`.

    A Model itself is a common mistake; the error says what to pass instead.
    """
    if not isinstance(sampler, PredictiveSource):
        raise TypeError(
            f"sampler must be a posterior sampler with a model, predictive and leave_one_out; received "
            f"{type(sampler).__name__}. Pass what fit_posterior returned."
        )
    return sampler


def check_observed(model: Model, observed: ArrayLike, *, least: int, why: str) -> Floats:
    """Return one observed data set as floats: finite, of at least `least` observations, of the model's own shape.

    Observations lie along the first axis. `why` says, at the end of the error for too few of them, why so many are
    needed and what to do. The model simulates one data set, whose shape must be that of the observed one; where its
    simulator takes the number of observations, it is asked for as many as were observed.
    """
    values = _checks.check_numeric_array("observed", observed)
    if values.ndim == 0 or values.size == 0:
        raise ValueError(
            f"observed must be one data set, with its observations along the first axis; received shape {values.shape}."
        )
    values = values.astype(np.float64)
    problem = _checks.describe_nonfinite(values)
    if problem is not None:
        raise ValueError(f"observed has {problem}; leave out or repair what is missing.")
    if np.abs(values).max() > LARGEST:
        raise ValueError(
            f"observed must lie within {LARGEST:g} of 0, so that squares are finite; received "
            f"{np.abs(values).max():g}. Change the unit of the data."
        )
    if len(values) < least:
        raise ValueError(f"observed holds {len(values)} observations along its first axis; {why}")
    try:
        inspect.signature(model.simulator).bind(None, None, 1)
        num_obs = len(values)
    except (TypeError, ValueError):
        num_obs = None
    made = np.shape(model.simulate(1, 0, num_obs).data)[1:]
    if made != values.shape:
        raise ValueError(
            f"observed has shape {values.shape}, but the sampler is for model {model.name!r}, whose data sets have "
            f"shape {made}; pass a posterior sampler for the model of these data."
        )
    return values


def draw_predictive(sampler: PredictiveSource, observed: Floats, num_draws: int, seed: int) -> Floats:
    """Return `num_draws` data sets from the posterior predictive, shape (num_draws, *observed.shape).

    They are checked: a sampler for data of another shape, or draws that are not finite, raise a ValueError.
    """
    drawn = sampler.predictive(observed, num_draws, seed=seed)
    return checked_draws(sampler.model, drawn, (num_draws, *observed.shape), "predictive")


def checked_draws(model: Model, drawn: Any, wanted: tuple[int, ...], what: str) -> Floats:
    """Return predictive draws of a model as floats, within 1e150 of 0.

    Raises a ValueError, which calls the draws `what`, unless they are finite and of the shape `wanted`.
    """
    values = np.asarray(drawn, dtype=np.float64)
    if values.shape != wanted:
        raise ValueError(
            f"{what} draws of model {model.name!r} have shape {values.shape} where the observed data need {wanted}; "
            "pass a posterior sampler for data of this shape."
        )
    problem = _checks.describe_nonfinite(values)
    if problem is not None:
        raise ValueError(f"{what} draws of model {model.name!r} have {problem}; check its posterior and its simulator.")
    # Farther draws of a heavy-tailed model say the same, and their squares must stay finite.
    return np.clip(values, -LARGEST, LARGEST)
