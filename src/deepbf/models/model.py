"""A model: a prior, a simulator, and one checked way to run them; and sets of competing models."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.models.covariates import Covariates
from deepbf.models.hyperparameters import FixedPrior, Ranges, check_ranges, check_values, draw_values
from deepbf.models.transform import check_transform

# Any, for a simulator alone decides whether it returns an array or a dict, and its user knows.
Data = Any


def with_nan_for_absent(masked: Any) -> NDArray[np.float64]:
    """Return a masked array as floats, nan where it is masked: the one mark of absence behind the public edge."""
    return np.ma.filled(np.ma.asarray(masked).astype(np.float64), np.nan)


def masked_where_absent(data: Data) -> Data:
    """Return simulated data as users pass them: masked where nan marks what is absent."""
    if isinstance(data, Mapping):
        return {name: masked_where_absent(array) for name, array in data.items()}
    return np.ma.masked_invalid(data) if data.dtype.kind == "f" and np.isnan(data).any() else data


def _problem_with_data(drawn: object, size: int, num_obs: int | None) -> str | None:
    """Return what is wrong with a simulator's output as the end of a sentence, or None."""
    if not isinstance(drawn, Mapping):
        problem = _problem_with_array(drawn, size)
        if problem is not None or num_obs is None:
            return problem
        shape = np.asarray(drawn).shape
        if len(shape) < 2 or shape[1] != num_obs:
            return f"returned an array of shape {shape} for num_obs={num_obs}; axis 1 must be {num_obs} long"
        return None
    if not drawn:
        return "returned an empty dict; return arrays by name, each with one data set per leading index"
    for name, array in drawn.items():
        if not isinstance(name, str):
            return f"returned a dict with the key {name!r}; name its arrays by strings"
        problem = _problem_with_array(array, size)
        if problem is not None:
            return f"returned a dict in which {name!r} is wrong: it {problem}"
    shapes = {name: np.shape(array) for name, array in drawn.items()}
    if num_obs is not None and not any(len(shape) > 1 and shape[1] == num_obs for shape in shapes.values()):
        return f"returned arrays of shapes {shapes} for num_obs={num_obs}; axis 1 of one must be {num_obs} long"
    return None


def _problem_with_array(drawn: object, size: int) -> str | None:
    if drawn is None:
        return "returned None; return an array with one data set per leading index"
    try:
        data = np.asarray(drawn)
    except ValueError as error:
        return f"returned {type(drawn).__name__}, which is not one array ({error}); return equally shaped data sets"
    if data.dtype.kind not in "biuf":
        return f"returned an array of dtype {data.dtype}; return real numbers"
    if data.ndim == 0:
        return f"returned a single number ({drawn!r}); return an array with leading axis {size}"
    if data.shape[0] != size:
        return f"returned an array of shape {data.shape}; the leading axis must be {size}, one entry per data set"
    if data.size == 0:
        return f"returned an empty array of shape {data.shape}; every data set needs at least one value"
    if np.ma.isMaskedArray(drawn):
        # What is masked is not there; what lies under the mask is of no account.
        data = np.where(np.ma.getmaskarray(drawn), 0, data)
    nonfinite = _checks.describe_nonfinite(data)
    return None if nonfinite is None else f"returned {nonfinite}; return finite numbers only"


def _as_array(drawn: object) -> NDArray[np.generic]:
    """Return what a simulator drew as an array of plain numbers, nan where it was masked."""
    return with_nan_for_absent(drawn) if np.ma.isMaskedArray(drawn) else np.asarray(drawn)


Params = NDArray[np.generic] | Mapping[str, NDArray[np.generic]] | None
Seed = int | np.random.SeedSequence
DEFAULT_POOL_SIZE = np.random.SeedSequence().pool_size


class Simulations(NamedTuple):
    """Parameters and data sets drawn from one model, matched along their leading axes."""

    params: Params
    data: Data


class Call(NamedTuple):
    """What a model was asked for, to be told again if it fails."""

    size: int
    seed: Seed
    num_obs: int | None
    given: bool = False


class SimulationError(RuntimeError):
    """A model's prior or simulator failed; the message names the model, the seed and a line that reproduces it."""


@dataclass(frozen=True)
class Model:
    """A model that can be simulated: draws parameters from a prior, and data given parameters.

    Parameters
    ----------
    name
        What answers and plots call this model.
    simulator
        ``simulator(rng, params)`` returns an array with one data set per leading index, or a dict of such arrays.
        ``rng`` is a `numpy.random.Generator`; draw every random number from it. Without a prior:
        ``simulator(rng, size)``.
        For a range of sample sizes, ``simulator(rng, params, num_obs)`` draws data sets of `num_obs` observations.
        Observations that are not there, such as trials beyond the last of a shorter group, are masked in a
        `numpy.ma.MaskedArray`. An argument called `covariates`, of this function or of the others, is given the table
        that is passed to `deepbf.fit`, a dict of columns.
    prior
        ``prior(rng, size)`` returns an array with leading axis ``size``, or a dict of such arrays, which reaches the
        simulator as a dict. None for a model without parameters.
    log_prior, log_likelihood
        ``log_prior(params)`` and ``log_likelihood(params, data)``, one number per parameter, used by the likelihood
        baselines alone. ``params`` are as the prior draws them; ``data`` holds one data set per parameter, along the
        same leading axis. Bridge sampling needs them written with `jax.numpy`.
    transform
        Where parameters live: "real" (the default), "positive", "unit" or an interval (low, high), one for all
        parameters, a dict by name, or a list by column; used by the likelihood baselines and by `deepbf.fit_posterior`.
    hyperparameters
        Ranges of numbers that the prior depends on, such as ``{"scale": (0.1, 10)}``. The prior then takes them by
        name, one value per data set: ``prior(rng, size, scale)``. `deepbf.fit` draws them over their ranges, evenly on
        a log scale if positive, and the Bayes factor can be read at any of them. Models may share them by name.

    Examples
    --------
    >>> coin = Model("coin", prior=lambda rng, size: rng.beta(1, 1, size),
    ...              simulator=lambda rng, p: rng.binomial(1, p[:, None], (len(p), 10)))
    >>> coin.simulate(3, seed=1).data.shape
    (3, 10)
    """

    name: str
    _: KW_ONLY
    simulator: Callable[..., Any]
    prior: Callable[..., Any] | None = None
    log_prior: Callable[..., Any] | None = None
    log_likelihood: Callable[..., Any] | None = None
    transform: Any = None
    hyperparameters: Mapping[str, tuple[float, float]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise TypeError(f"name must be a non-empty string; received {self.name!r}. Pass what answers should say.")
        if not callable(self.simulator):
            raise TypeError(
                f"simulator of model {self.name!r} must be a function of (rng, params); received {self.simulator!r}."
            )
        for argument in ("prior", "log_prior", "log_likelihood"):
            value = getattr(self, argument)
            if value is not None and not callable(value):
                raise TypeError(f"{argument} of model {self.name!r} must be a function or None; received {value!r}.")
        check_transform(f"transform of model {self.name!r}", self.transform)
        if self.hyperparameters is not None:
            if self.prior is None:
                raise ValueError(f"hyperparameters of model {self.name!r} need a prior that takes them; it has none.")
            ranges = check_ranges(f"hyperparameters of model {self.name!r}", self.hyperparameters)
            object.__setattr__(self, "hyperparameters", ranges)

    def at(self, **values: float) -> Model:
        """Return the model with its hyperparameters fixed; those that it does not have make no difference."""
        if self.hyperparameters is None or self.prior is None:
            return self
        ranges = dict(self.hyperparameters)
        own = {name: value for name, value in values.items() if name in ranges}
        fixed = FixedPrior(self.prior, check_values(f"hyperparameters of model {self.name!r}", ranges, own))
        return replace(self, prior=fixed, hyperparameters=None)

    def with_covariates(self, table: Any) -> Model:
        """Return the model whose functions have been given a table of covariates.

        `table` is a dict from names to columns, a data frame, or an array with one row per response. Functions that
        have an argument called `covariates` get it as a dict of columns; others are left as they are.

        Examples
        --------
        >>> line = Model("line", prior=lambda rng, size: rng.standard_normal(size),
        ...              simulator=lambda rng, slope, covariates: slope[:, None] * covariates["x"])
        >>> line.with_covariates({"x": [1.0, 2.0, 3.0]}).simulate(5, seed=1).data.shape
        (5, 3)
        """
        columns = Covariates.of(table).columns
        functions = {name: getattr(self, name) for name in ("simulator", "prior", "log_prior", "log_likelihood")}
        told = {name: partial(fn, covariates=columns) for name, fn in functions.items() if _takes_covariates(fn)}
        return replace(self, **told)

    def simulate(self, size: int, seed: Seed, num_obs: int | None = None) -> Simulations:
        """Return `size` data sets with the parameters that gave them; the same seed gives the same bits.

        `seed` is an int or a `numpy.random.SeedSequence`, so that any chunk of a longer run can be drawn again alone.
        `num_obs` is passed on to a simulator that takes it. Hyperparameters are drawn over their ranges; fix them with
        ``model.at(scale=1.0).simulate(...)``.
        """
        call = Call(_checks.check_count("size", size), seed, num_obs)
        rng = np.random.default_rng(fresh_seed(seed))
        params = self._draw_params(rng, call)
        data = self._draw_data(rng, params, call)
        return Simulations(params, data)

    def simulate_given(self, params: Params, seed: Seed, num_obs: int | None = None) -> Data:
        """Return one data set for each of `params`, an array or a dict of arrays laid out as the prior draws them."""
        if self.prior is None:
            raise ValueError(
                f"params mean nothing to model {self.name!r}, which has no prior; call model.simulate(size, seed)."
            )
        arrays: list[Any] = list(params.values()) if isinstance(params, Mapping) else [params]
        lengths = {len(np.atleast_1d(np.asarray(array))) for array in arrays}
        if len(lengths) != 1 or any(np.ndim(array) == 0 for array in arrays):
            shapes = ", ".join(str(np.shape(array)) for array in arrays)
            raise ValueError(f"params must have one leading axis, one entry per data set; received shapes {shapes}.")
        call = Call(lengths.pop(), seed, num_obs, given=True)
        return self._draw_data(np.random.default_rng(fresh_seed(seed)), params, call)

    def check_takes_num_obs(self) -> None:
        """Raise unless the simulator can be told how many observations to draw."""
        first = "params" if self.prior is not None else "size"
        try:
            inspect.signature(self.simulator).bind(None, None, 1)
        except TypeError as error:
            raise TypeError(
                f"num_obs is a range, so the simulator of model {self.name!r} must be a function of "
                f"(rng, {first}, num_obs); received one that cannot take three arguments ({error})."
            ) from error
        except ValueError:
            # Compiled functions may not say what they take; the first call will.
            return

    def _draw_params(self, rng: np.random.Generator, call: Call) -> Params:
        if self.prior is None:
            return None
        try:
            ranges = dict(self.hyperparameters or {})
            values = draw_values(ranges, call.size, fresh_seed(call.seed)) if ranges else {}
            drawn = self.prior(rng, call.size, **values)
        except Exception as error:
            raise self.failure(f"its prior raised {_describe(error)}", call) from error
        if isinstance(drawn, Mapping):
            return {name: self._check_params(f"parameter {name!r}", v, call) for name, v in drawn.items()}
        return self._check_params("parameters", drawn, call)

    def _check_params(self, what: str, value: object, call: Call) -> NDArray[np.generic]:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise self.failure(f"its prior returned {what} that are not one array ({error})", call) from error
        if array.ndim == 0 or array.shape[0] != call.size:
            raise self.failure(
                f"its prior returned {what} of shape {array.shape} for size={call.size}; "
                f"the leading axis must be {call.size}",
                call,
            )
        return array

    def _draw_data(self, rng: np.random.Generator, params: Params, call: Call) -> Data:
        try:
            arguments = (call.size if self.prior is None else params,)
            drawn = self.simulator(rng, *arguments, *(() if call.num_obs is None else (call.num_obs,)))
        except Exception as error:
            raise self.failure(f"its simulator raised {_describe(error)}", call) from error
        problem = _problem_with_data(drawn, call.size, call.num_obs)
        if problem is not None:
            raise self.failure(f"its simulator {problem}", call)
        if isinstance(drawn, Mapping):
            return {str(name): _as_array(array) for name, array in drawn.items()}
        return _as_array(drawn)

    def failure(self, what: str, call: Call) -> SimulationError:
        """Return the error that says what went wrong in a call, and how to see it again."""
        # As Python that a person can paste to draw the same data again.
        written_seed = str(call.seed)
        if isinstance(call.seed, np.random.SeedSequence):
            entropy = np.asarray(call.seed.entropy).tolist()
            spawn_key = tuple(int(k) for k in call.seed.spawn_key)
            pool_size = "" if call.seed.pool_size == DEFAULT_POOL_SIZE else f", pool_size={call.seed.pool_size}"
            written_seed = f"np.random.SeedSequence({entropy}, spawn_key={spawn_key}{pool_size})"
        num_obs = "" if call.num_obs is None else f", num_obs={call.num_obs}"
        command = "simulate_given(params" if call.given else f"simulate({call.size}"
        told = any("covariates" in getattr(function, "keywords", {}) for function in (self.simulator, self.prior))
        model = "model.with_covariates(covariates)" if told else "model"
        return SimulationError(
            f"Model {self.name!r} failed with seed {written_seed}: {what}. "
            f"Reproduce it with: {model}.{command}, seed={written_seed}{num_obs})"
        )


def _takes_covariates(function: Callable[..., Any] | None) -> bool:
    """Return whether a function has an argument called `covariates`."""
    try:
        return function is not None and "covariates" in inspect.signature(function).parameters
    except ValueError:
        # Compiled functions may not say what they take.
        return False


def fresh_seed(seed: Seed) -> np.random.SeedSequence:
    """Return a new seed sequence equal to `seed`: one that has spawned children before would spawn others next."""
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    return np.random.SeedSequence(_checks.check_seed("seed", seed))


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@dataclass(frozen=True)
class ModelSet:
    """Two or more models, their order, and a prior probability for each.

    The order is the direction of every Bayes factor: the first over the second unless asked otherwise.
    """

    models: tuple[Model, ...]
    prior_probs: NDArray[np.float64]

    @classmethod
    def of(cls, models: Sequence[Model], prior_probs: ArrayLike | None = None) -> ModelSet:
        """Return the checked set; equal prior probabilities when none are given."""
        if isinstance(models, Model):
            raise TypeError(f"models must be a list of two or more models; received the one model {models.name!r}.")
        if not isinstance(models, Sequence):
            raise TypeError(f"models must be a list of two or more deepbf.Model; received {models!r}.")
        members = tuple(models)
        for position, model in enumerate(members):
            if not isinstance(model, Model):
                raise TypeError(
                    f"models[{position}] must be a deepbf.Model; received {type(model).__name__}. "
                    "Wrap it: deepbf.Model(name, prior=..., simulator=...)."
                )
        if len(members) < 2:
            raise ValueError(
                f"models needs at least two models to compare; received {len(members)}. Add a competing model."
            )
        names = [model.name for model in members]
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(
                f"models need distinct names, or answers could not tell them apart; {repeated[0]!r} appears "
                f"{names.count(repeated[0])} times. Rename one of them."
            )
        first: dict[str, tuple[Model, tuple[float, float]]] = {}
        for model in members:
            for name, ends in (model.hyperparameters or {}).items():
                other, before = first.setdefault(name, (model, ends))
                if ends != before:
                    raise ValueError(
                        f"models share the hyperparameter {name!r} by name, so its range must be the same; "
                        f"{other.name!r} has {before}, {model.name!r} has {ends}. Make them equal, or rename one."
                    )
        return cls(members, _checks.check_probs("prior_probs", prior_probs, names))

    @property
    def names(self) -> tuple[str, ...]:
        """The models' names, in order."""
        return tuple(model.name for model in self.models)

    @property
    def hyperparameters(self) -> Ranges:
        """The ranges of all hyperparameters, by name."""
        found: Ranges = {}
        for model in self.models:
            found |= dict(model.hyperparameters or {})
        return dict(sorted(found.items()))

    def __len__(self) -> int:
        return len(self.models)
