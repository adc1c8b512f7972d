"""How the data sets of one model are laid out, alone and beside the parameters that made them.

Training sees data packed together with their parameters (`with_parameters`, `prepare_beside`); observed data come
without them and are checked against a `DataLayout`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf._mixed import DATA, MixedForm
from deepbf.criticism.posterior_network import ParameterScale
from deepbf.estimator.observed_data import Data, check_data
from deepbf.estimator.sized_data import check_observations
from deepbf.models import Model, ModelSet
from deepbf.models.hyperparameters import Ranges
from deepbf.models.model import Params
from deepbf.models.transform import Unconstrained
from deepbf.networks import OBSERVATION_AXES, Structure, check_network, network_kind
from deepbf.networks.base import AbstractPreparation, InputLayout
from deepbf.networks.preparation import FitPreparation
from deepbf.simulation import NumObsRange, simulate_chunks
from deepbf.standardise import Standardiser
from deepbf.training import TrainedEnsemble
from deepbf.training.structured import (
    WHOLE,
    Sizes,
    arrays_of,
    check_arrays,
    count_present,
    find_form,
    is_absent,
    sizes_of,
)

# What the parameters are called beside the arrays of a data set.
PARAMETERS = "parameters"
# Data sets that show what a model without parameters simulates.
NUM_SHOWN = 16


@dataclass(frozen=True)
class DataLayout:
    """The shape of data sets, and how many observations they may have.

    Fields are as in `deepbf.training.TrainedEnsemble`; `sized_part` is the array, by name, whose observations count.
    """

    structure: Structure
    data_shape: tuple[int, ...]
    sizes: Mapping[str, Sizes]
    num_obs: tuple[int, int] | None = None
    num_obs_asked: bool = False
    form: MixedForm | None = None
    sized_part: str = WHOLE
    hyperparameters: Ranges = field(default_factory=dict)

    @classmethod
    def of_trained(cls, structure: Structure, trained: TrainedEnsemble) -> DataLayout:
        """Return the layout of data that training saw packed with their parameters."""
        if trained.form is None:
            raise ValueError("data that come with parameters have a form")
        form = without_parameters(trained.form)
        sizes = {name: sizes for name, sizes in trained.sizes.items() if name != PARAMETERS}
        if isinstance(structure, str):
            shape, sizes = form.parts[0].shape, {WHOLE: sizes[DATA]}
            return cls(structure, shape, sizes, trained.num_obs, trained.num_obs_asked)
        part = trained.form.names[trained.preparation.size_part or 0]
        return cls(structure, (form.width,), sizes, trained.num_obs, trained.num_obs_asked, form, part)

    @classmethod
    def of_simulated(
        cls, structure: Structure, model_set: ModelSet, num_obs: NumObsRange | None, seed: int
    ) -> DataLayout:
        """Return the layout of data of a model that nothing was trained on, from a few simulations."""
        form = find_form(model_set, structure, num_obs, seed)
        data = simulate_chunks(model_set.models, seed, [(0, NUM_SHOWN)], num_obs=num_obs, form=form)
        arrays = arrays_of(structure, form, data)
        check_arrays(arrays, "auto")
        sizes = {array.name: sizes_of(array) for array in arrays}
        if num_obs is not None:
            # A few data sets need not have met both ends of the range.
            grown = [array.name for array in arrays if sizes[array.name][:1] and sizes[array.name][0][1] == num_obs[1]]
            sizes |= {name: ((num_obs.low, num_obs.high),) for name in grown}
        varying = [name for name, found in sizes.items() if found and found[0][0] < found[0][1]]
        part = varying[0] if varying else arrays[0].name
        found_num_obs = sizes[part][0] if varying else None
        return cls(structure, data[0].shape[1:], sizes, found_num_obs, num_obs is not None, form, part)

    def check(self, argument: str, data: Data, *, extrapolate: bool = False) -> NDArray[np.generic]:
        """Return data sets along a leading axis, packed if mixed, nan for absent observations."""
        return check_data(argument, data, self.structure, self, extrapolate=extrapolate)

    def check_one(self, argument: str, observed: Data, *, extrapolate: bool = False) -> NDArray[np.generic]:
        """Return a single data set, with a leading axis."""
        data = self.check(argument, observed, extrapolate=extrapolate)
        if len(data) != 1:
            raise ValueError(f"{argument} must be one data set; received {len(data)}. Pass one, or use sample_many.")
        return data

    def count(self, data: NDArray[np.generic]) -> int:
        """Return how many observations the first of checked data sets has."""
        sized = data if self.form is None else self.form.unpack(data)[self.sized_part]
        return int(count_present(sized[:1])[0])


def all_but_one(layout: DataLayout, observed: Data) -> NDArray[np.generic]:
    """Return the data sets that lack one observation each, after checking that there can be a posterior given them."""
    if layout.structure != "exchangeable":
        raise ValueError(
            f"leave_one_out needs exchangeable observations, structure='exchangeable'; this sampler has structure="
            f"{layout.structure!r}. Fit it for data laid out as observations along one axis."
        )
    values = _checks.check_numeric_array("observed", observed)
    if values.ndim != len(layout.data_shape):
        raise ValueError(
            f"observed must be one data set, with {len(layout.data_shape)} axes, the first over observations; received "
            f"an array of shape {values.shape}."
        )
    check_observations("observed", values, layout.data_shape)
    num_rest = len(values) - 1
    low, high = layout.num_obs or (layout.data_shape[0],) * 2
    if num_rest < 1 or (layout.num_obs is None and num_rest != high):
        fitted = f"{high}" if low == high else f"{low} to {high}"
        raise ValueError(
            f"leave_one_out needs the posterior given one observation fewer than the {len(values)} observed; this "
            f"sampler is for {fitted}. Fit it with num_obs=({max(num_rest, 1)}, {max(num_rest, 1) + 1})."
        )
    others = np.arange(num_rest)[None, :] + (np.arange(num_rest)[None, :] >= np.arange(len(values))[:, None])
    return values[others]


def first_present(data: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the first observation of each data set that is there."""
    present = ~is_absent(data).reshape(*data.shape[:2], -1).any(axis=2)
    return data[np.arange(len(data)), present.argmax(axis=1)]


def check_same_arrays(model: Model, structure: Structure, data: Any) -> None:
    """Raise unless simulated data are the one array, or the arrays by name, that the structure is for."""
    found = ", ".join(map(repr, sorted(data))) if isinstance(data, Mapping) else "one array"
    wanted = "one array" if isinstance(structure, str) else ", ".join(map(repr, sorted(structure)))
    if found != wanted:
        raise ValueError(
            f"structure={structure!r} is for data sets of {wanted}; the simulator of model {model.name!r} returns "
            f"{found}. Pass a name for one array, or a dict with a structure for each of several."
        )


def data_standardiser(joined: Standardiser, params: slice, layout: DataLayout) -> Standardiser:
    """Return the standardiser of the data alone."""
    location, scale = (np.delete(column, np.r_[params]) for column in (joined.location, joined.scale))
    if not isinstance(layout.structure, str):
        return Standardiser(location, scale)
    # Observations share one location and scale, however many there are.
    first = (0,) * OBSERVATION_AXES[layout.structure]
    return Standardiser(location.reshape(layout.data_shape)[first], scale.reshape(layout.data_shape)[first])


@dataclass(frozen=True)
class CheckedPrior:
    """A prior that says which parameter is not where the model's transform has it."""

    prior: Callable[..., Any]
    unconstrained: Unconstrained
    name: str

    def __call__(self, rng: np.random.Generator, size: int) -> Any:
        """Return the prior's draws."""
        params = self.prior(rng, size)
        check_continuous(self.name, params)
        if any(np.shape(array)[:1] != (size,) for array in _named(params).values()):
            # The model has a message for this.
            return params
        flat = self.unconstrained.flatten(params)
        wrong = ~np.isfinite(flat) | (flat < self.unconstrained.low) | (flat > self.unconstrained.high)
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            low, high = self.unconstrained.low[column], self.unconstrained.high[column]
            raise ValueError(
                f"it drew {flat[row, column]} for {coordinate_name(self.unconstrained, column)}, which the model's "
                f"transform keeps between {low:g} and {high:g}; correct the prior or the transform"
            )
        return params


@dataclass(frozen=True)
class JointSimulator:
    """A simulator that returns, beside the data, the parameters that it was given, flat and unconstrained."""

    simulator: Callable[..., Any]
    unconstrained: Unconstrained

    def __call__(self, rng: np.random.Generator, params: Any, *num_obs: int) -> dict[str, Any]:
        """Return the arrays of the data sets by name, with the parameters among them."""
        # Before the simulator, which may change its arguments.
        real = to_real(self.unconstrained, params)
        drawn = self.simulator(rng, params, *num_obs)
        arrays = dict(drawn) if isinstance(drawn, Mapping) else {DATA: drawn}
        return {**arrays, PARAMETERS: real}


def with_parameters(model: Model, unconstrained: Unconstrained) -> Model:
    """Return the model with its parameters among its data; the same seed draws the same as the model itself."""
    return replace(
        model,
        prior=CheckedPrior(model.prior, unconstrained, model.name) if model.prior is not None else None,
        simulator=JointSimulator(model.simulator, unconstrained),
    )


def beside_its_parameters(structure: Structure) -> dict[str, str]:
    """Return the structure of data that come with their parameters."""
    arrays = {DATA: structure} if isinstance(structure, str) else structure
    if PARAMETERS in arrays:
        raise ValueError(
            f"structure may not name an array {PARAMETERS!r}: the model's parameters have that name. Rename the array."
        )
    return dict(sorted({**arrays, PARAMETERS: "vector"}.items()))


def check_continuous(name: str, params: Params) -> None:
    """Raise if parameters are not real numbers: neither a flow nor a GAN draws from a list of values."""
    for parameter, array in _named(params).items():
        kind = np.asarray(array).dtype.kind
        if kind != "f":
            which = "the parameters" if parameter is None else f"parameter {parameter!r}"
            raise TypeError(
                f"posterior samplers need parameters that are real numbers; the prior of model {name!r} draws {which} "
                f"of dtype {np.asarray(array).dtype}. Make it continuous, or sum it out inside the simulator: draw it "
                "there, so that it is part of the data's noise."
            )


def to_real(unconstrained: Unconstrained, params: Params) -> NDArray[np.float64]:
    """Return parameters as flat unconstrained vectors, finite throughout; a draw on a bound is moved just off it."""
    return unconstrained.to_real(inside(unconstrained, unconstrained.flatten(params)))


def inside(unconstrained: Unconstrained, flat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return flat parameters within their open intervals, at most the last digit from a bound."""
    low, high = unconstrained.low, unconstrained.high
    return np.clip(flat, np.nextafter(low, high), np.nextafter(high, low))


def coordinate_name(unconstrained: Unconstrained, column: int) -> str:
    """Return what messages call a flat coordinate."""
    if unconstrained.names is None:
        return "its parameter" if unconstrained.num_coordinates == 1 else f"column {column} of its parameters"
    ends = np.cumsum([int(np.prod(shape)) for shape in unconstrained.shapes])
    return f"parameter {unconstrained.names[int(np.searchsorted(ends, column, side='right'))]!r}"


def _named(params: Params) -> dict[Any, Any]:
    return dict(params) if isinstance(params, Mapping) else {None: params}


class BesideParameters(AbstractPreparation):
    """Prepared data followed by the parameters that made them; takes packed rows of both."""

    data: AbstractPreparation
    scale: ParameterScale
    form: MixedForm = eqx.field(static=True)
    # The shape of data that are one array; None if they are several.
    data_shape: tuple[int, ...] | None = eqx.field(static=True)

    def __call__(self, rows: jax.Array) -> jax.Array:
        """Return prepared data with the parameters on the networks' scale behind them, shape (batch, width)."""
        data = self._data_of(rows)
        return jnp.concatenate([self.data(data), self.scale(rows[:, self.form.columns[PARAMETERS]])], axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        """Return the data's layout, with the parameters where observations would stand."""
        columns = self.form.columns[PARAMETERS]
        num_params = columns.stop - columns.start
        inner = self.data.layout((data_shape[0] - num_params,) if self.data_shape is None else self.data_shape)
        if inner.num_obs:
            raise ValueError("posterior samplers read summaries, and this preparation leaves observations as they are")
        return InputLayout(inner.num_linear, inner.num_summary, 1, num_params, knows_size=inner.knows_size)

    @property
    def size_part(self) -> int | None:
        """The array whose observations count, by its place among all, the parameters included."""
        inner = self.data.size_part
        if self.data_shape is not None or inner is None:
            return self.form.names.index(next(name for name in self.form.names if name != PARAMETERS))
        return self.form.names.index(without_parameters(self.form).names[inner])

    def _data_of(self, rows: jax.Array) -> jax.Array:
        columns = self.form.columns[PARAMETERS]
        data = jnp.concatenate([rows[:, : columns.start], rows[:, columns.stop :]], axis=1)
        return data if self.data_shape is None else data.reshape(len(rows), *self.data_shape)


def prepare_beside(structure: Structure, form: MixedForm) -> FitPreparation:
    """Return how to fit the preparation of data of this structure, packed together with their parameters."""
    data_form = without_parameters(form)
    data_shape = data_form.parts[0].shape if isinstance(structure, str) else None
    inner = network_kind(structure, check_network("auto", structure), data_form if data_shape is None else None)

    def fit(pilot: Sequence[NDArray[np.float32]]) -> BesideParameters:
        columns = form.columns[PARAMETERS]
        data = [np.delete(rows, np.r_[columns], axis=1) for rows in pilot]
        if data_shape is not None:
            data = [rows.reshape(len(rows), *data_shape) for rows in data]
        scale = ParameterScale.fit(np.concatenate([rows[:, columns] for rows in pilot]))
        return BesideParameters(inner.fit_preparation(data), scale, form, data_shape)

    return fit


def without_parameters(form: MixedForm) -> MixedForm:
    """Return the form of the data alone."""
    return MixedForm(tuple(part for part in form.parts if part.name != PARAMETERS))
