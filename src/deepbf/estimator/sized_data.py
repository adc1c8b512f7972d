"""Data sets of different sizes, as users have them, made into one array with nan where a shorter one has ended."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks

# A tail area among data sets of other sizes: not far from this one's, and enough of them.
MOST_SIZE_RATIO = 1.25
FEWEST_OF_SIZE = 100


def of_about_the_size(simulated: NDArray[np.integer], num_obs: Any) -> NDArray[np.bool_]:
    """Return which simulations have about as many observations as this, or as each of these."""
    return np.maximum(simulated / num_obs, num_obs / simulated) <= MOST_SIZE_RATIO


def padded_sets(
    argument: str, data: Any, data_shape: tuple[int, ...], num_obs: tuple[int, int], *, extrapolate: bool
) -> NDArray[np.float64]:
    """Return data sets along a leading axis, each filled up with nan to the most observations of the fit.

    `data` is one data set, or many as an array, a masked array, or a list of data sets of different lengths.
    """
    if np.ma.isMaskedArray(data):
        sets = split_masked(argument, data, data_shape)
    elif differ_in_length(data):
        sets = [_checks.check_numeric_array(f"{argument}[{index}]", one) for index, one in enumerate(data)]
    else:
        return pad_array(argument, data, data_shape, num_obs, extrapolate=extrapolate)
    for index, one in enumerate(sets):
        check_observations(f"{argument}[{index}]", one, data_shape)
    numbers = [len(one) for one in sets]
    check_numbers(argument, numbers, num_obs, extrapolate=extrapolate)
    padded = np.full((len(sets), max(data_shape[0], *numbers), *data_shape[1:]), np.nan)
    for row, one in zip(padded, sets, strict=True):
        row[: len(one)] = one
    return padded


def differ_in_length(data: Any) -> bool:
    """Return whether this is a list of data sets which no array can hold."""
    if not isinstance(data, list | tuple):
        return False
    lengths = {len(one) if hasattr(one, "__len__") else None for one in data}
    return len(lengths) > 1


def pad_array(
    argument: str, data: Any, data_shape: tuple[int, ...], num_obs: tuple[int, int], *, extrapolate: bool
) -> NDArray[np.float64]:
    """Return data sets of one length, filled up with nan."""
    array = _checks.check_numeric_array(argument, data)
    if array.ndim == len(data_shape):
        array = array[None]
    if array.ndim != len(data_shape) + 1:
        shape = ", ".join(["num_obs", *(str(size) for size in data_shape[1:])])
        raise ValueError(
            f"{argument} has shape {array.shape}; this estimator is for data sets of shape ({shape}), any num_obs of "
            f"its range. Pass one, or many of shape (batch, {shape}), or a list of data sets of different lengths."
        )
    if len(array) == 0:
        return np.full((0, *data_shape), np.nan)
    check_observations(argument, array[0], data_shape)
    nonfinite = _checks.describe_nonfinite(array)
    if nonfinite is not None:
        raise ValueError(f"{argument} has {nonfinite} (leading axis: data sets). {ADVICE}")
    check_numbers(argument, [array.shape[1]] * len(array), num_obs, extrapolate=extrapolate)
    padded = np.full((len(array), max(data_shape[0], array.shape[1]), *data_shape[1:]), np.nan)
    padded[:, : array.shape[1]] = array
    return padded


def split_masked(argument: str, data: Any, data_shape: tuple[int, ...]) -> list[NDArray[np.generic]]:
    """Return the observations of each data set that are not masked."""
    values, mask = np.asarray(np.ma.getdata(data)), np.asarray(np.ma.getmaskarray(data))
    if values.ndim == len(data_shape):
        values, mask = values[None], mask[None]
    if values.ndim != len(data_shape) + 1:
        raise ValueError(
            f"{argument} is a masked array of shape {values.shape}; one data set has {len(data_shape)} axes, and many "
            f"have {len(data_shape) + 1}. Reshape it."
        )
    by_observation = mask.reshape(*mask.shape[:2], -1)
    absent = np.asarray(by_observation.all(axis=2))
    if np.any(by_observation.any(axis=2) != absent):
        raise ValueError(
            f"{argument} masks a part of an observation. Mask whole observations, or none of their values."
        )
    return [one[~gone] for one, gone in zip(values, absent, strict=True)]


ADVICE = "Leave missing observations out, if that they are missing tells nothing."


def check_observations(name: str, one: NDArray[np.generic], data_shape: tuple[int, ...]) -> None:
    """Raise unless the observations of a data set have the right shape and are finite."""
    if one.ndim == 0 or one.shape[1:] != data_shape[1:]:
        wanted = "numbers" if len(data_shape) == 1 else f"of shape {data_shape[1:]}"
        raise ValueError(f"{name} has shape {one.shape}; its observations, along axis 0, must be {wanted}.")
    nonfinite = _checks.describe_nonfinite(one)
    if nonfinite is not None:
        raise ValueError(f"{name} has {nonfinite}. {ADVICE}")


def check_numbers(argument: str, numbers: Sequence[int], num_obs: tuple[int, int], *, extrapolate: bool) -> None:
    """Raise, or warn if wanted, where a data set has fewer or more observations than any in training."""
    low, high = num_obs
    outside = [number for number in numbers if not low <= number <= high]
    if not outside:
        return
    found = (
        f"{argument} has {len(outside)} of {len(numbers)} data sets with a number of observations outside the trained "
        f"range, {low} to {high}: the first has {outside[0]}"
    )
    if not extrapolate or min(outside) == 0:
        raise ValueError(f"{found}. Fit again with a range that includes it, or pass extrapolate=True to go beyond it.")
    warnings.warn(f"{found}. The answer is extrapolated: nothing vouches for it.", stacklevel=6)
