"""Data as users have them, checked against what an estimator was trained on, and made into one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf._mixed import DATA, HYPERPARAMETERS, MixedForm, describe
from deepbf.estimator.nested_data import padded_groups, refuse_ragged
from deepbf.estimator.sized_data import padded_sets
from deepbf.models.hyperparameters import Ranges, as_columns
from deepbf.models.hyperparameters import describe as describe_ranges
from deepbf.networks import Structure
from deepbf.training.structured import WHOLE, Sizes, is_absent

# Of one array, or of several by name.
DataShape = tuple[int, ...] | dict[str, tuple[int, ...]]
# One data set, or many along a leading axis; a list of data sets of different lengths; dicts of such for mixed data.
Data = ArrayLike | Sequence[ArrayLike] | Mapping[str, Any] | Sequence[Mapping[str, Any]]


class TrainedData(Protocol):
    """What data an estimator was trained on; see `deepbf.training.TrainedEnsemble`."""

    @property
    def data_shape(self) -> tuple[int, ...]:
        """The shape of one data set, packed if mixed."""
        ...

    @property
    def sizes(self) -> Mapping[str, Sizes]:
        """By name of the array, the fewest and the most observations along its axes."""
        ...

    @property
    def num_obs(self) -> tuple[int, int] | None:
        """The range of the number of observations, if it varies."""
        ...

    @property
    def form(self) -> MixedForm | None:
        """How mixed data are packed."""
        ...

    @property
    def hyperparameters(self) -> Ranges:
        """The ranges of hyperparameters whose values come with the data."""
        ...


def check_data(
    argument: str,
    data: Any,
    structure: Structure,
    ensemble: TrainedData,
    *,
    values: Mapping[str, float] | None = None,
    extrapolate: bool,
) -> NDArray[np.generic]:
    """Return data sets along a leading axis, as the ensemble reads them; absent observations are nan.

    `values` are those of the models' hyperparameters, if they have any.
    """
    if isinstance(structure, str):
        sizes = ensemble.sizes.get(WHOLE, ())
        varies = ensemble.num_obs is not None
        return check_array(
            argument, data, structure, ensemble.data_shape, sizes, varies=varies, extrapolate=extrapolate
        )
    need_values(ensemble, values)
    if ensemble.hyperparameters and sorted(structure) == [DATA, HYPERPARAMETERS] and not isinstance(data, Mapping):
        data = {DATA: data}
    return check_dicts(argument, data, structure, ensemble, values=values, extrapolate=extrapolate)


def need_values(ensemble: TrainedData, values: Mapping[str, float] | None) -> None:
    """Raise if the models have hyperparameters and none of their values was chosen."""
    if ensemble.hyperparameters and values is None:
        ranges = describe_ranges(ensemble.hyperparameters)
        raise ValueError(
            f"the answer depends on the models' hyperparameters, {ranges}. Say which, bf.at(...), or look at all of "
            "them, bf.sensitivity(observed)."
        )


def check_array(
    argument: str,
    data: Any,
    structure: str,
    data_shape: tuple[int, ...],
    sizes: Sizes,
    *,
    varies: bool,
    extrapolate: bool,
) -> NDArray[np.generic]:
    """Return data sets of one array each; `varies` if the number of observations does, over the range in `sizes`."""
    if structure == "nested":
        return padded_groups(argument, data, data_shape, sizes, extrapolate=extrapolate)
    if varies:
        return padded_sets(argument, data, data_shape, sizes[0], extrapolate=extrapolate)
    return check_fixed(argument, data, structure, data_shape)


def check_fixed(argument: str, data: Any, structure: str, data_shape: tuple[int, ...]) -> NDArray[np.generic]:
    """Return data sets of one shape, all there."""
    if isinstance(data, Mapping):
        raise TypeError(
            f"{argument} is a dict; this estimator was trained on one array a data set, of shape {data_shape}. "
            "Pass that array."
        )
    refuse_ragged(argument, data, structure, data_shape)
    array = _checks.check_numeric_array(argument, data)
    if array.shape == data_shape:
        array = array[None]
    if array.ndim == 0 or array.shape[1:] != data_shape:
        batch = ", ".join(["batch", *(str(size) for size in data_shape)])
        raise ValueError(
            f"{argument} has shape {array.shape}; this estimator was trained on data sets of shape "
            f"{data_shape}. Pass one such data set, or many with shape ({batch})."
        )
    nonfinite = _checks.describe_nonfinite(array)
    if nonfinite is not None:
        raise ValueError(
            f"{argument} has {nonfinite} (leading axis: data sets). "
            "Remove or impute missing values the way the simulators would produce them."
        )
    return array


def check_dicts(
    argument: str,
    data: Any,
    structure: Mapping[str, str],
    ensemble: TrainedData,
    *,
    values: Mapping[str, float] | None,
    extrapolate: bool,
) -> NDArray[np.float64]:
    """Return data sets of several arrays each, packed: from a dict of arrays, or a list of dicts, one a data set."""
    form = ensemble.form
    if form is None:
        raise ValueError("mixed data need a form")
    if isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(one, Mapping) for one in data):
        packed = [
            check_dicts(f"{argument}[{index}]", one, structure, ensemble, values=values, extrapolate=extrapolate)
            for index, one in enumerate(data)
        ]
        return np.concatenate([np.empty((0, form.width)), *packed])
    parts = [part for part in form.parts if not (ensemble.hyperparameters and part.name == HYPERPARAMETERS)]
    if not isinstance(data, Mapping) or sorted(data) != [part.name for part in parts]:
        wanted = describe({part.name: part.shape for part in parts})
        received = f"a dict of {', '.join(map(str, data)) or 'nothing'}" if isinstance(data, Mapping) else _kind(data)
        raise ValueError(
            f"{argument} must be a dict with the arrays {wanted}; received {received}. "
            "Pass those of one data set, or of many along leading axes."
        )
    arrays = {}
    for part in parts:
        sizes = ensemble.sizes[part.name]
        one_axis = len(sizes) == 1 and sizes[0][0] < part.shape[0]
        arrays[part.name] = check_array(
            f"{argument}[{part.name!r}]", data[part.name], structure[part.name], part.shape, sizes,
            varies=part.grows or one_axis, extrapolate=extrapolate,
        )  # fmt: skip
        if arrays[part.name].shape[1:] != part.shape:
            raise ValueError(
                f"{argument}[{part.name!r}] has more observations than any in training, {part.shape[0]}; with several "
                "arrays an estimator cannot go beyond them. Fit again with a range that includes the number."
            )
    check_matched(argument, arrays, [part.name for part in parts if part.grows])
    if ensemble.hyperparameters:
        size = len(next(iter(arrays.values())))
        arrays[HYPERPARAMETERS] = as_columns(ensemble.hyperparameters, values or {}, size)
    return form.pack(arrays)


def check_matched(argument: str, arrays: Mapping[str, NDArray[np.generic]], growing: Sequence[str]) -> None:
    """Raise unless all arrays hold the same number of data sets, and those that grow the same observations."""
    numbers = {name: len(array) for name, array in arrays.items()}
    if len(set(numbers.values())) > 1:
        raise ValueError(
            f"{argument} holds different numbers of data sets: {_listed(numbers)}. Give each one entry a data set."
        )
    for name in growing[1:]:
        first, other = (absent_observations(arrays[k]) for k in (growing[0], name))
        if (first != other).any():
            at = int(np.flatnonzero((first != other).any(axis=1))[0])
            counts = {k: int((~absent_observations(arrays[k])[at]).sum()) for k in (growing[0], name)}
            raise ValueError(
                f"{argument} has arrays with different numbers of observations in the data set at index {at}: "
                f"{_listed(counts)}. In training they had the same."
            )


def absent_observations(data: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return which observations along the first axis of each data set are absent."""
    return np.asarray(is_absent(data).reshape(*data.shape[:2], -1).all(axis=2))


def _listed(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number} of {name!r}" for name, number in numbers.items())


def _kind(data: Any) -> str:
    return f"an array of shape {np.shape(data)}" if hasattr(data, "shape") else type(data).__name__
