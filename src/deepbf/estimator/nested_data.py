"""Groups of different sizes, as users have them, made into one array with nan where an observation is absent."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.models.simulated_data import with_nan_for_absent
from deepbf.training.structured import Sizes, count_present

ADVICE = "Leave missing observations out of their group, if that they are missing tells nothing."
Shape = tuple[int, ...]


def padded_groups(
    argument: str, data: Any, data_shape: Shape, sizes: Sizes = (), *, extrapolate: bool = False
) -> NDArray[np.float64]:
    """Return data sets along a leading axis, filled up with nan to the most groups and observations of the fit.

    `sizes` has the fewest and the most groups, and observations of a group, in training; data sets with fewer are
    refused, or answered with a warning if `extrapolate`.
    """
    padded = pad_groups(argument, data, data_shape)
    if sizes and len(padded):
        check_fewest(argument, padded, sizes, extrapolate=extrapolate)
    return padded


def check_fewest(argument: str, padded: NDArray[np.float64], sizes: Sizes, *, extrapolate: bool) -> None:
    """Raise, or warn if wanted, where a data set has fewer groups, or a smaller group, than any in training."""
    per_group = count_present(padded.reshape(-1, *padded.shape[2:])).reshape(padded.shape[:2])
    num_groups = (per_group > 0).sum(axis=1)
    smallest = np.where(per_group > 0, per_group, padded.shape[2]).min(axis=1)
    for found, (fewest, most), what in (
        (num_groups, sizes[0], "groups"),
        (smallest, sizes[1], "observations in a group"),
    ):
        outside = np.flatnonzero(found < fewest)
        if not len(outside):
            continue
        said = (
            f"{argument} has {len(outside)} of {len(padded)} data sets with fewer {what} than in training, {fewest} to "
            f"{most}: the first has {found[outside[0]]}"
        )
        if not extrapolate:
            raise ValueError(
                f"{said}. Fit again with simulators that draw as few, or pass extrapolate=True to go beyond training."
            )
        warnings.warn(f"{said}. The answer is extrapolated: nothing vouches for it.", stacklevel=6)


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
    return _pad_lists(argument, data, data_shape)


def refuse_ragged(argument: str, data: Any, structure: str, data_shape: Shape) -> None:
    """Raise if these are data sets of different sizes, or with absent values, for an estimator of one shape."""
    if np.ma.isMaskedArray(data) and np.ma.getmaskarray(data).any():
        what = f"masks {int(np.ma.getmaskarray(data).sum())} of its values"
    elif isinstance(data, list | tuple) and _lengths_differ(data):
        what = "holds lists of different lengths"
    else:
        return
    raise ValueError(
        f"{argument} {what}; this estimator was fitted with structure={structure!r} to data sets of shape "
        f"{data_shape}, all of it there. Fit with num_obs=(low, high) for sets of different sizes, or with "
        "structure='nested' for groups of observations."
    )


def _lengths_differ(data: Sequence[Any]) -> bool:
    lengths = {len(entry) if hasattr(entry, "__len__") else None for entry in data}
    return len(lengths) > 1 or any(isinstance(entry, list | tuple) and _lengths_differ(entry) for entry in data)


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


def _pad_lists(argument: str, data: Sequence[Any], data_shape: Shape) -> NDArray[np.float64]:
    """Return data sets given as lists of groups, of equal lengths or not, filled up with nan."""
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
        raise ValueError(f"{name} has {nonfinite}. {ADVICE}")


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
