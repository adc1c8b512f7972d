"""Nested data, exchangeable groups of exchangeable observations: groups of different sizes in one array.

Absent observations, of smaller groups and of data sets with fewer groups, are nan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.layout.structure import Shape, Sizes, Structure, count_present, warn_or_raise
from deepbf.models.model import with_nan_for_absent

_ADVICE = "Leave missing observations out of their group, if that they are missing tells nothing."


class Nested(Structure):
    """Exchangeable groups along axis 1 of what simulators return, and their exchangeable observations along axis 2.

    Simulators mask (`numpy.ma`) the observations that smaller groups lack, and whole groups that smaller data sets
    lack. Observed data may also be lists of groups of different lengths.
    """

    name = "nested"
    num_axes = 2
    simulated_shape = "(size, num_groups, num_obs)"

    def default_network(self, shape: Shape) -> str:
        """Return "deepset", which reads summaries within and between groups, for every shape."""
        del shape
        return "deepset"

    def sizes_of(self, data: Sequence[NDArray[np.generic]]) -> Sizes:
        groups = [count_present(model_data.reshape(-1, *model_data.shape[2:])) for model_data in data]
        # Groups without observations are absent groups.
        fewest = min(int(count[count > 0].min()) for count in groups)
        return (*super().sizes_of(data), (fewest, data[0].shape[2]))

    def check_observed(
        self, argument: str, data: Any, shape: Shape, sizes: Sizes, *, varies: bool, extrapolate: bool
    ) -> NDArray[np.generic]:
        del varies
        padded = pad_groups(argument, data, shape)
        if not sizes or len(padded) == 0:
            return padded
        # More groups or observations than in training were refused above; fewer may be extrapolated to.
        per_group = count_present(padded.reshape(-1, *padded.shape[2:])).reshape(padded.shape[:2])
        num_groups = (per_group > 0).sum(axis=1)
        smallest = np.where(per_group > 0, per_group, padded.shape[2]).min(axis=1)
        for found, (fewest, most), what in (
            (num_groups, sizes[0], "groups"),
            (smallest, sizes[1], "observations in a group"),
        ):
            outside = np.flatnonzero(found < fewest)
            if len(outside):
                said = (
                    f"{argument} has {len(outside)} of {len(padded)} data sets with fewer {what} than in training, "
                    f"{fewest} to {most}: the first has {found[outside[0]]}"
                )
                warn_or_raise(said, "simulators that draw as few", extrapolate=extrapolate)
        return padded


def pad_groups(argument: str, data: Any, data_shape: Shape) -> NDArray[np.float64]:
    """Return data sets along a leading axis, filled up with nan to the most groups and observations of the fit.

    `data` is one data set or many. A data set is a list of groups of any lengths, or an array of the fitted number of
    axes, in which absent observations are masked or nan in all their columns and absent groups have no observation.
    """
    if np.ma.isMaskedArray(data):
        _check_nothing_missing(argument, np.where(np.ma.getmaskarray(data), 0, np.ma.getdata(data)))
        return _pad_array(argument, with_nan_for_absent(data), data_shape)
    if _is_array(data):
        return _pad_array(argument, _checks.check_numeric_array(argument, data), data_shape)
    if not _is_list(data):
        raise TypeError(
            f"{argument} must be groups of observations; received {type(data).__name__}. "
            "Pass an array, a masked array, or a list of groups, each a list of observations."
        )
    if len(data) == 0:
        return np.full((0, *data_shape), np.nan)
    num_axes = _depth(data)
    if num_axes == len(data_shape):
        return _pad_one(argument, data, data_shape)[None]
    if num_axes != len(data_shape) + 1:
        raise ValueError(
            f"{argument} is a list nested {num_axes} deep; a data set of this estimator, {_written(data_shape)}, is "
            f"{len(data_shape)} deep, and many are {len(data_shape) + 1}. Pass a list of groups, or a list of those."
        )
    return np.stack([_pad_one(f"{argument}[{index}]", one, data_shape) for index, one in enumerate(data)])


def _pad_array(argument: str, array: NDArray[np.generic], data_shape: Shape) -> NDArray[np.float64]:
    """Return data sets of one shape, filled up with nan."""
    if array.ndim == len(data_shape):
        array = array[None]
    if array.ndim != len(data_shape) + 1 or array.shape[3:] != data_shape[2:]:
        raise ValueError(
            f"{argument} has shape {array.shape}; this estimator is for data sets of shape {_written(data_shape)}, up "
            f"to {_largest(data_shape)}. Pass one, many along a leading axis, or a list of groups."
        )
    if len(array) == 0:
        return np.full((0, *data_shape), np.nan)
    if array.size == 0:
        raise ValueError(
            f"{argument} has shape {array.shape}: groups without observations. Leave such groups out; a data set "
            "needs at least one observation."
        )
    values = array.astype(np.float64)
    absent = np.isnan(values).reshape(*values.shape[:3], -1)
    torn = absent.any(axis=3) & ~absent.all(axis=3)
    if torn.any():
        where = tuple(np.argwhere(torn)[0].tolist())
        raise ValueError(
            f"{argument} has nan in some columns of the observation at index {where}, and numbers in others. An absent "
            "observation is nan, or masked, in all its columns; impute a single value that is missing."
        )
    _check_nothing_missing(argument, np.where(np.isnan(values), 0.0, values))
    without = np.flatnonzero(absent.all(axis=(1, 2, 3)))
    if len(without):
        raise ValueError(
            f"{argument} has a data set without any observation, at index {without[0]}. Leave it out: there is nothing "
            "to compare the models by."
        )
    _check_fits(argument, values.shape[1], values.shape[2], data_shape)
    padded = np.full((len(values), *data_shape), np.nan)
    padded[:, : values.shape[1], : values.shape[2]] = values
    return padded


def _pad_one(name: str, groups: Any, data_shape: Shape) -> NDArray[np.float64]:
    """Return one data set, given as groups, filled up with nan."""
    if np.ma.isMaskedArray(groups) or _is_array(groups):
        return pad_groups(name, groups, data_shape)[0]
    if not hasattr(groups, "__len__") or len(groups) == 0:
        raise ValueError(f"{name} has no groups. A data set needs at least one group with one observation.")
    arrays = [_check_group(f"{name}[{index}]", group, data_shape) for index, group in enumerate(groups)]
    _check_fits(name, len(arrays), max(len(array) for array in arrays), data_shape)
    padded = np.full(data_shape, np.nan)
    for row, array in zip(padded, arrays, strict=False):
        row[: len(array)] = array
    return padded


def _check_group(name: str, group: Any, data_shape: Shape) -> NDArray[np.generic]:
    """Return one group as an array of its observations."""
    if np.ma.isMaskedArray(group):
        raise ValueError(f"{name} is a masked array inside a list. Mask the whole data set, or drop what is masked.")
    if hasattr(group, "__len__") and len(group) == 0:
        raise ValueError(f"{name} is an empty group. Leave it out: a group without observations tells nothing.")
    array = _checks.check_numeric_array(name, group)
    if array.ndim == 0 or array.shape[1:] != data_shape[2:]:
        wanted = "numbers" if len(data_shape) == 2 else f"of shape {data_shape[2:]}"
        raise ValueError(
            f"{name} has shape {array.shape}; a group's observations, along its axis 0, must be {wanted}. "
            "Pass a list of groups for each data set."
        )
    _check_nothing_missing(name, array)
    return array


def _check_nothing_missing(name: str, array: NDArray[np.generic]) -> None:
    nonfinite = _checks.describe_nonfinite(array)
    if nonfinite is not None:
        raise ValueError(f"{name} has {nonfinite}. {_ADVICE}")


def _check_fits(name: str, num_groups: int, num_obs: int, data_shape: Shape) -> None:
    """Raise if there are more groups, or more observations in a group, than in any data set of the fit."""
    if num_groups > data_shape[0] or num_obs > data_shape[1]:
        raise ValueError(
            f"{name} has {num_groups} groups of up to {num_obs} observations; this estimator was trained on at most "
            f"{_largest(data_shape)}. Fit again with simulators that return larger data sets, masked where smaller."
        )


def _depth(data: Any) -> int:
    """Return how deep the first entries are nested: 1 for a list of numbers."""
    depth = 0
    while True:
        if _is_array(data):
            return depth + np.ndim(data)
        if not _is_list(data):
            return depth
        depth += 1
        # The longest, since an empty group says nothing about its observations.
        data = max(data, key=lambda entry: len(entry) if hasattr(entry, "__len__") else 0, default=None)


def _is_array(data: Any) -> bool:
    """Return whether this is an array of any library, and not one of lists."""
    return hasattr(data, "__array__") and np.asarray(data).dtype.kind != "O"


def _is_list(data: Any) -> bool:
    return isinstance(data, Sequence | np.ndarray) and not isinstance(data, str)


def _written(shape: Shape) -> str:
    return f"({', '.join(['groups', 'observations', *(str(size) for size in shape[2:])])})"


def _largest(data_shape: Shape) -> str:
    return f"{data_shape[0]} groups of {data_shape[1]} observations"
