"""Where predictions come from: a posterior sampler of one model, asked for data and checked."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.models import Model

Floats = NDArray[np.float64]
# Squares of larger numbers are not finite.
LARGEST = 1e150


@runtime_checkable
class PredictiveSource(Protocol):
    """What the checks need of a posterior sampler, neural or exact."""

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


def check_source(sampler: object) -> PredictiveSource:
    """Return `sampler` if it has the methods that predictions need."""
    if not isinstance(sampler, PredictiveSource):
        raise TypeError(
            f"sampler must be a posterior sampler with a model, predictive and leave_one_out; received "
            f"{type(sampler).__name__}. Pass what fit_posterior returned."
        )
    return sampler


def check_observed(model: Model, observed: ArrayLike, *, least: int, why: str) -> Floats:
    """Return one observed data set as floats: finite, of at least `least` observations, of the model's own shape."""
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
    _check_shape(model, values.shape)
    return values


def draw_predictive(sampler: PredictiveSource, observed: Floats, num_draws: int, seed: int) -> Floats:
    """Return `num_draws` data sets from the posterior predictive, shape (num_draws, *observed.shape), checked."""
    drawn = np.asarray(sampler.predictive(observed, num_draws, seed=seed), dtype=np.float64)
    return _checked_draws(sampler.model, drawn, (num_draws, *observed.shape), "predictive")


def draw_left_out(sampler: PredictiveSource, observed: Floats, num_draws: int, seed: int) -> Floats:
    """Return draws of each observation given the others, shape (num_obs, num_draws, ...), checked."""
    drawn = np.asarray(sampler.leave_one_out(observed, num_draws, seed=seed), dtype=np.float64)
    return _checked_draws(
        sampler.model, drawn, (len(observed), num_draws, *observed.shape[1:]), "leave-one-out predictive"
    )


def _check_shape(model: Model, shape: tuple[int, ...]) -> None:
    """Raise if one simulation of the model has another shape than the observed data set."""
    simulator_seed = 0
    if _takes_num_obs(model):
        made = np.shape(model.simulate(1, simulator_seed, num_obs=shape[0]).data)[1:]
    else:
        made = np.shape(model.simulate(1, simulator_seed).data)[1:]
    if made != shape:
        raise _wrong_model(model, shape, made)


def _wrong_model(model: Model, shape: tuple[int, ...], made: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"observed has shape {shape}, but the sampler is for model {model.name!r}, whose data sets have shape {made}; "
        "pass a posterior sampler for the model of these data."
    )


def _takes_num_obs(model: Model) -> bool:
    try:
        inspect.signature(model.simulator).bind(None, None, 1)
    except (TypeError, ValueError):
        return False
    return True


def _checked_draws(model: Model, drawn: Floats, wanted: tuple[int, ...], what: str) -> Floats:
    if drawn.shape != wanted:
        raise ValueError(
            f"{what} draws of model {model.name!r} have shape {drawn.shape} where the observed data need {wanted}; "
            "pass a posterior sampler for data of this shape."
        )
    problem = _checks.describe_nonfinite(drawn)
    if problem is not None:
        raise ValueError(f"{what} draws of model {model.name!r} have {problem}; check its posterior and its simulator.")
    # Farther draws of a heavy-tailed model say the same, and their squares must stay finite.
    return np.clip(drawn, -LARGEST, LARGEST)
