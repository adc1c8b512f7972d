"""DataLayout: the one description of a data set, from what a user says about it to the saved file.

It knows the arrays that a data set consists of, each with its structure, shape and sizes; the range of the number of
observations that simulators are asked for; and the hyperparameters whose values come with the data. It answers every
question about data: what simulators must return and how that is packed, what an observed data set must look like,
how many observations it has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.layout.structure import STRUCTURES, Shape, Sizes, Structure, absent_observations, count_present
from deepbf.models.covariates import Covariates
from deepbf.models.hyperparameters import Ranges, as_columns, draw_values
from deepbf.models.hyperparameters import describe as describe_ranges
from deepbf.models.model import Call, Model, ModelSet, SimulationError, fresh_seed

# What an array is called that is the whole of a data set.
WHOLE = ""
# Where values of hyperparameters come with the data: the names of data that are one array, and of the values.
DATA = "data"
HYPERPARAMETERS = "hyperparameters"

# The shape of one array, or of several by name.
DataShape = Shape | dict[str, Shape]
# One data set, or many along a leading axis; a list of data sets of different lengths; dicts of such for mixed data.
Data = ArrayLike | Sequence[ArrayLike] | Mapping[str, Any] | Sequence[Mapping[str, Any]]


class NumObsRange(NamedTuple):
    """The smallest and the largest number of observations per data set, both included."""

    low: int
    high: int

    @classmethod
    def of(cls, num_obs: object) -> NumObsRange:
        """Return the range that a user passed, after checking it."""
        if isinstance(num_obs, str) or not hasattr(num_obs, "__len__") or len(num_obs) != 2:  # pyright: ignore[reportArgumentType]
            raise TypeError(
                f"num_obs must be the smallest and the largest number of observations, such as (2, 256); received "
                f"{num_obs!r}. For a single number, let the simulators draw that many, and leave num_obs out."
            )
        low, high = (_checks.check_count("num_obs", number) for number in num_obs)  # pyright: ignore[reportGeneralTypeIssues]
        if low >= high:
            raise ValueError(f"num_obs must run from a smaller to a larger number; received ({low}, {high}).")
        return cls(low, high)


@dataclass(frozen=True)
class ArrayLayout:
    """One array of a data set.

    Parameters
    ----------
    name
        What simulators call it; empty for an array that is the whole of a data set.
    structure
        Its rules.
    shape
        Its shape in one data set, with the most observations where their number varies. Empty until data were seen.
    grows
        Whether its first axis runs over the number of observations that simulators are asked for.
    sizes
        The fewest and the most observations along its axes. Empty until data were seen.
    covariates
        What is fixed by design along its first axis; None where nothing is.
    """

    name: str
    structure: Structure
    shape: Shape = ()
    grows: bool = False
    sizes: Sizes = ()
    covariates: Covariates | None = None

    @property
    def width(self) -> int:
        """How many numbers it has in one data set."""
        return math.prod(self.shape)

    @property
    def varies(self) -> bool:
        """Whether data sets differ in the number of its observations, along its one axis of them."""
        return len(self.sizes) == 1 and self.sizes[0][0] < self.sizes[0][1]

    @property
    def called(self) -> str:
        """How messages call its structure."""
        where = "structure" if self.name == WHOLE else f"structure[{self.name!r}]"
        return f"{where}={self.structure.name!r}"

    def check_observed(self, argument: str, data: Any, *, extrapolate: bool) -> NDArray[np.generic]:
        """Return observed data sets of this array along a leading axis, as networks read them."""
        if self.covariates is not None:
            data = self.covariates.responses_in(argument, data)
        return self.structure.check_observed(
            argument, data, self.shape, self.sizes, varies=self.grows or self.varies, extrapolate=extrapolate
        )


@dataclass(frozen=True)
class DataLayout:
    """The arrays of a data set, and what travels with them.

    Data that are one array travel as they are. Mixed data, a dict of arrays, and data that come with the values of
    hyperparameters travel packed: one row of numbers per data set, in which arrays stand side by side. Absent
    observations are nan everywhere behind the public edge.

    Get one from `DataLayout.of`, before anything is simulated for training, and complete it by `seen`.

    Parameters
    ----------
    arrays
        The arrays of a data set, in order.
    asked
        The range of the number of observations that simulators are asked for; None if they decide themselves.
    hyperparameters
        The ranges of the models' hyperparameters, whose values then come with the data.
    """

    arrays: tuple[ArrayLayout, ...]
    asked: NumObsRange | None = None
    hyperparameters: Ranges = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model_set: ModelSet,
        structure: Structure | Mapping[str, Structure],
        num_obs: NumObsRange | None = None,
        *,
        covariates: Covariates | None = None,
        seed: int = 0,
    ) -> DataLayout:
        """Return the layout of the models' data.

        Of mixed data, the shapes are found from one data set per model (two with a range of `num_obs`, which show
        what grows with it); of data that are one array, from the simulations shown to `seen`.
        """
        known = cls.unseen(structure, model_set, covariates)
        if not known.packed:
            return replace(known, arrays=(replace(known.arrays[0], grows=num_obs is not None),), asked=num_obs)
        named, ranges = {array.name: array.structure for array in known.arrays}, known.hyperparameters
        found = [_shapes_by_model(model, named, ranges, num_obs, seed) for model in model_set.models]
        for name, (most, fewest) in zip(model_set.names, found, strict=True):
            grows = {array: most[array] != fewest[array] for array in most}
            if most != found[0][0] or grows != {array: found[0][0][array] != found[0][1][array] for array in grows}:
                raise SimulationError(
                    f"models must make data sets of one shape to be compared; {model_set.names[0]!r} makes "
                    f"{describe_shapes(found[0][0])}, {name!r} makes {describe_shapes(most)}. Make both simulators "
                    "return the same names and shapes, and let the same arrays grow with num_obs."
                )
        most, fewest = found[0]
        arrays = tuple(
            replace(array, shape=most[array.name], grows=most[array.name] != fewest[array.name])
            for array in known.arrays
        )
        for array in arrays:
            if not array.grows:
                continue
            if num_obs is None or array.structure.num_axes != 1 or array.shape[:1] != (num_obs.high,):
                raise ValueError(
                    f"{array.name!r}, of {array.called}, changes its shape with num_obs, and is {array.shape} at its "
                    "largest. Arrays that grow are 'exchangeable' or 'series', with num_obs observations along axis 1; "
                    "pad or mask others to one shape."
                )
        return cls(arrays, num_obs, ranges)

    @classmethod
    def unseen(
        cls,
        structure: Structure | Mapping[str, Structure],
        model_set: ModelSet,
        covariates: Covariates | None = None,
    ) -> DataLayout:
        """Return the layout as far as it is known before anything is simulated: structures, no shapes."""
        ranges = model_set.hyperparameters
        structures = [structure] if isinstance(structure, Structure) else list(structure.values())
        if covariates is None and any(one.has_covariates for one in structures):
            raise ValueError(
                "structure='responses' needs the covariates that the responses belong to: pass them as covariates, "
                "as in deepbf.fit(models, covariates=table), or pass structure='vector'."
            )
        if isinstance(structure, Structure) and not ranges:
            return cls((ArrayLayout(WHOLE, structure, covariates=covariates),))
        named = {DATA: structure} if isinstance(structure, Structure) else dict(structure)
        if ranges:
            if HYPERPARAMETERS in named:
                raise ValueError(
                    f"structure may not name an array {HYPERPARAMETERS!r}: the values of the models' hyperparameters "
                    "have that name. Rename the array."
                )
            named[HYPERPARAMETERS] = STRUCTURES["vector"]
        arrays = (
            ArrayLayout(name, named[name], covariates=covariates if named[name].has_covariates else None)
            for name in sorted(named)
        )
        return cls(tuple(arrays), None, ranges)

    def seen(self, data: Sequence[NDArray[np.generic]]) -> DataLayout:
        """Return the layout completed by simulated data, one array per model: with shapes and sizes.

        Arrays that grow with the number of observations may have any number that simulators are asked for, whether or
        not these data show all of them.
        """
        arrays = []
        for array, parts in self.split(data):
            if array.covariates is not None and array.covariates.num_rows != parts[0].shape[1]:
                raise ValueError(
                    f"covariates have {array.covariates.num_rows} rows; the simulators return {parts[0].shape[1]} "
                    "responses per data set. Make the simulators return one response per row of the table."
                )
            sizes = array.structure.sizes_of(parts)
            if array.grows and self.asked is not None:
                sizes = (tuple(self.asked), *sizes[1:])
            arrays.append(replace(array, shape=parts[0].shape[1:], sizes=sizes))
        return replace(self, arrays=tuple(arrays))

    @property
    def packed(self) -> bool:
        """Whether data travel as one row of numbers per data set."""
        return self.arrays[0].name != WHOLE

    @property
    def structure(self) -> str | dict[str, str]:
        """The structure by name, or that of each array."""
        if not self.packed:
            return self.arrays[0].structure.name
        return {array.name: array.structure.name for array in self.arrays}

    @property
    def shape(self) -> Shape:
        """The shape of one data set as it travels."""
        return (self.width,) if self.packed else self.arrays[0].shape

    @property
    def user_arrays(self) -> tuple[ArrayLayout, ...]:
        """The arrays that a user brings: all but the values of hyperparameters."""
        return tuple(array for array in self.arrays if not (self.hyperparameters and array.name == HYPERPARAMETERS))

    @property
    def user_shape(self) -> DataShape:
        """The shape of one data set as a user has it; of mixed data, those of its arrays by name."""
        arrays = self.user_arrays
        if not self.packed or (self.hyperparameters and [array.name for array in arrays] == [DATA]):
            return arrays[0].shape
        return {array.name: array.shape for array in arrays}

    @property
    def sized(self) -> ArrayLayout:
        """The array whose number of observations is that of the data set: the first in which it varies."""
        return next((array for array in self.arrays if array.varies), self.arrays[0])

    @property
    def num_obs(self) -> tuple[int, int] | None:
        """The fewest and the most observations of a data set, if their number varies."""
        return self.sized.sizes[0] if self.sized.varies else None

    @property
    def covariates(self) -> Covariates | None:
        """What is fixed by design, row by row of the responses; None where nothing is."""
        return next((array.covariates for array in self.arrays if array.covariates is not None), None)

    @cached_property
    def width(self) -> int:
        """How many columns a packed row has."""
        return sum(array.width for array in self.arrays)

    @cached_property
    def columns(self) -> dict[str, slice]:
        """Which columns of a packed row each array takes."""
        ends = np.cumsum([array.width for array in self.arrays]).tolist()
        return {array.name: slice(end - array.width, end) for array, end in zip(self.arrays, ends, strict=True)}

    def without(self, name: str, *, alone: bool) -> DataLayout:
        """Return the layout of packed data without one of the arrays.

        `alone` says that the one array which is left is the whole of a data set, and then travels as it is.
        """
        rest = tuple(array for array in self.arrays if array.name != name)
        return replace(self, arrays=(replace(rest[0], name=WHOLE),) if alone else rest)

    def pack(self, data: Mapping[str, NDArray[Any]], num_obs: int | None = None) -> NDArray[np.float64]:
        """Return rows of shape (data sets, width); arrays that grow end in nan beyond `num_obs` observations.

        Raises ValueError if the data have other arrays or shapes than the layout.
        """
        wanted = {
            array.name: array.shape if num_obs is None or not array.grows else (num_obs, *array.shape[1:])
            for array in self.arrays
        }
        if shapes_of(data) != wanted:
            raise ValueError(f"{describe_shapes(shapes_of(data))} instead of {describe_shapes(wanted)}")
        size = len(data[self.arrays[0].name])
        packed = np.full((size, self.width), np.nan)
        for name, columns in self.columns.items():
            values = np.asarray(data[name], np.float64).reshape(size, -1)
            packed[:, columns.start : columns.start + values.shape[1]] = values
        return packed

    def unpack(self, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, views of the packed rows; data that are one array under the empty name."""
        if not self.packed:
            return {WHOLE: rows}
        return {
            array.name: rows[:, columns].reshape(len(rows), *array.shape)
            for array, columns in zip(self.arrays, self.columns.values(), strict=True)
        }

    def split(self, data: Sequence[NDArray[np.generic]]) -> list[tuple[ArrayLayout, list[NDArray[np.generic]]]]:
        """Return each array with what every model simulated of it, from the models' data as they travel."""
        unpacked = [self.unpack(model_data) for model_data in data]
        return [(array, [arrays[array.name] for arrays in unpacked]) for array in self.arrays]

    def as_simulated(self, rows: NDArray[np.generic]) -> Any:
        """Return data as simulators return them: one array, or a dict of arrays without hyperparameters."""
        return self.unpack(rows) if self.packed else rows

    def draw(
        self, model: Model, size: int, seed: np.random.SeedSequence, num_obs: int | None = None
    ) -> NDArray[np.generic]:
        """Return simulated data sets of one model as they travel, packed if they are."""
        data = model.simulate(size, seed, num_obs).data
        if self.hyperparameters:
            data = _beside_hyperparameters(model, data, self.hyperparameters, size, seed)
        if not self.packed and not isinstance(data, Mapping):
            return data
        if not self.packed:
            problem = (
                f"returned a dict of arrays ({', '.join(data)}); pass structure as a dict with a structure for each"
            )
        elif not isinstance(data, Mapping):
            names = ", ".join(array.name for array in self.arrays)
            problem = f"returned one array; structure names several: return a dict of {names}"
        else:
            try:
                return self.pack(data, num_obs)
            except ValueError as error:
                problem = f"returned {error}; every call of every model must return the same names and shapes"
        raise model.failure(f"its simulator {problem}", Call(size, seed, num_obs))

    def check(
        self, argument: str, data: Any, *, values: Mapping[str, float] | None = None, extrapolate: bool = False
    ) -> NDArray[np.generic]:
        """Return observed data sets along a leading axis as networks read them, after checking all of them.

        `data` is what a user passed, one data set or many; `values` are those of the models' hyperparameters, if they
        have any. With `extrapolate`, numbers of observations beyond those of training are answered with a warning.
        """
        if not self.packed:
            return self.arrays[0].check_observed(argument, data, extrapolate=extrapolate)
        self.need_values(values)
        only_data = [array.name for array in self.user_arrays] == [DATA]
        if self.hyperparameters and only_data and (self.covariates is not None or not isinstance(data, Mapping)):
            data = {DATA: data}
        return self._check_dicts(argument, data, values=values, extrapolate=extrapolate)

    def check_one(
        self, argument: str, data: Any, *, values: Mapping[str, float] | None = None, extrapolate: bool = False
    ) -> NDArray[np.generic]:
        """Return one observed data set, with a leading axis of length 1; see `check`."""
        checked = self.check(argument, data, values=values, extrapolate=extrapolate)
        if len(checked) != 1:
            raise ValueError(
                f"{argument} must be one data set of shape {self.user_shape}; received {len(checked)}. "
                "Pass one of them."
            )
        return checked

    def need_values(self, values: Mapping[str, float] | None) -> None:
        """Raise if the models have hyperparameters and none of their values was chosen."""
        if self.hyperparameters and values is None:
            raise ValueError(
                f"the answer depends on the models' hyperparameters, {describe_ranges(self.hyperparameters)}. Say "
                "which, bf.at(...), or look at all of them, bf.sensitivity(observed)."
            )

    def count(self, data: NDArray[np.generic]) -> NDArray[np.intp]:
        """Return how many observations each of checked data sets has, absent ones not counted."""
        return count_present(self.unpack(data)[self.sized.name])

    def _check_dicts(
        self, argument: str, data: Any, *, values: Mapping[str, float] | None, extrapolate: bool
    ) -> NDArray[np.float64]:
        """Return data sets of several arrays each, packed: from a dict of arrays, or a list of dicts."""
        if isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(one, Mapping) for one in data):
            packed = [
                self._check_dicts(f"{argument}[{index}]", one, values=values, extrapolate=extrapolate)
                for index, one in enumerate(data)
            ]
            return np.concatenate([np.empty((0, self.width)), *packed])
        parts = self.user_arrays
        if not isinstance(data, Mapping) or sorted(data) != [array.name for array in parts]:
            wanted = describe_shapes({array.name: array.shape for array in parts})
            if isinstance(data, Mapping):
                received = f"a dict of {', '.join(map(str, data)) or 'nothing'}"
            else:
                received = f"an array of shape {np.shape(data)}" if hasattr(data, "shape") else type(data).__name__
            raise ValueError(
                f"{argument} must be a dict with the arrays {wanted}; received {received}. "
                "Pass those of one data set, or of many along leading axes."
            )
        arrays: dict[str, NDArray[np.generic]] = {}
        for array in parts:
            name = f"{argument}[{array.name!r}]"
            arrays[array.name] = array.check_observed(name, data[array.name], extrapolate=extrapolate)
            if arrays[array.name].shape[1:] != array.shape:
                raise ValueError(
                    f"{name} has more observations than any in training, {array.shape[0]}; with several arrays an "
                    "estimator cannot go beyond them. Fit again with a range that includes the number."
                )
        _check_matched(argument, arrays, [array.name for array in parts if array.grows])
        if self.hyperparameters:
            size = len(next(iter(arrays.values())))
            arrays[HYPERPARAMETERS] = as_columns(self.hyperparameters, values or {}, size)
        return self.pack(arrays)


def shapes_of(data: Mapping[str, NDArray[Any]]) -> dict[str, Shape]:
    """Return the shape of one data set's arrays by name, in order of the alphabet."""
    return {name: np.shape(data[name])[1:] for name in sorted(data)}


def describe_shapes(shapes: Mapping[str, Shape]) -> str:
    """Return names and shapes for a message."""
    return ", ".join(f"{name!r} of shape {shape}" for name, shape in shapes.items())


def _beside_hyperparameters(
    model: Model, data: Any, ranges: Ranges, size: int, seed: np.random.SeedSequence
) -> dict[str, NDArray[Any]]:
    """Return simulated data as a dict, with the hyperparameters that they were drawn with.

    A model that lacks some of them is given values all the same: what it would have been compared at.
    """
    arrays = dict(data) if isinstance(data, Mapping) else {DATA: data}
    if HYPERPARAMETERS in arrays:
        raise ValueError(
            f"the simulator of model {model.name!r} returns an array {HYPERPARAMETERS!r}, which is what the values of "
            "the priors' hyperparameters are called. Give it another name."
        )
    return {**arrays, HYPERPARAMETERS: as_columns(ranges, draw_values(ranges, size, seed), size)}


def _shapes_by_model(
    model: Model, structure: Mapping[str, Structure], ranges: Ranges, num_obs: NumObsRange | None, seed: int
) -> tuple[dict[str, Shape], dict[str, Shape]]:
    """Return the shapes of a model's arrays at the most and at the fewest observations, from one data set of each."""
    found = []
    for number in num_obs or (None,):
        data = model.simulate(1, seed, number).data
        if ranges:
            data = _beside_hyperparameters(model, data, ranges, 1, fresh_seed(seed))
        if not isinstance(data, dict) or sorted(data) != sorted(structure):
            returned = f"returns {', '.join(sorted(data))}" if isinstance(data, dict) else "returns one array"
            raise ValueError(
                f"structure names the arrays {', '.join(sorted(structure))}; the simulator of model {model.name!r} "
                f"{returned}. Give every array that the simulators return a structure, and no other."
            )
        found.append(shapes_of(data))
    return found[-1], found[0]


def _check_matched(argument: str, arrays: Mapping[str, NDArray[np.generic]], growing: Sequence[str]) -> None:
    """Raise unless all arrays hold the same number of data sets, and those that grow the same observations."""

    def listed(numbers: Mapping[str, int]) -> str:
        return ", ".join(f"{number} of {name!r}" for name, number in numbers.items())

    numbers = {name: len(array) for name, array in arrays.items()}
    if len(set(numbers.values())) > 1:
        raise ValueError(
            f"{argument} holds different numbers of data sets: {listed(numbers)}. Give each one entry per data set."
        )
    for name in growing[1:]:
        first, other = (absent_observations(arrays[k]) for k in (growing[0], name))
        if (first != other).any():
            at = int(np.flatnonzero((first != other).any(axis=1))[0])
            counts = {growing[0]: int((~first[at]).sum()), name: int((~other[at]).sum())}
            raise ValueError(
                f"{argument} has arrays with different numbers of observations in the data set at index {at}: "
                f"{listed(counts)}. In training they had the same."
            )
