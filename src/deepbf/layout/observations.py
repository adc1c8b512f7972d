"""Data with one axis of observations, exchangeable or in time, whose number may vary from data set to data set.

Shorter data sets become rows of one array with nan where they have ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.layout.structure import Shape, Sizes, Structure, check_fixed

# Up to how many exchangeable scalars the network that puts them in increasing order is the default. At n = 8 it won
# over the histogram by two to four times in clipped mean squared error, at n = 16 it lost (docs/design.md).
MOST_SORTED = 8

_ADVICE = "Leave missing observations out, if that they are missing tells nothing."


class _OneAxis(Structure):
    """Observations along one axis, scalars or vectors; their number may vary."""

    num_axes = 1
    simulated_shape = "(size, num_obs)"

    def check_observed(
        self, argument: str, data: Any, shape: Shape, sizes: Sizes, *, varies: bool, extrapolate: bool
    ) -> NDArray[np.generic]:
        if not varies:
            return check_fixed(argument, data, self.name, shape)
        sets = _as_sets(argument, data, shape)
        low, high = sizes[0]
        numbers = [len(one) for one in sets]
        outside = [number for number in numbers if not low <= number <= high]
        if outside:
            found = (
                f"{argument} has {len(outside)} of {len(numbers)} data sets with a number of observations outside the "
                f"trained range, {low} to {high}: the first has {outside[0]}"
            )
            warn_or_raise(found, "a range that includes it", extrapolate=extrapolate and min(outside) > 0)
        # Shorter data sets end in nan.
        padded = np.full((len(sets), max([shape[0], *numbers]), *shape[1:]), np.nan)
        if isinstance(sets, np.ndarray):
            padded[:, : sets.shape[1]] = sets
        else:
            for row, one in zip(padded, sets, strict=True):
                row[: len(one)] = one
        return padded


class Exchangeable(_OneAxis):
    """Exchangeable observations along axis 1 of what simulators return, scalars or vectors."""

    name = "exchangeable"
    any_order = True

    def default_network(self, shape: Shape) -> str:
        """Return "sorted-head" for up to eight scalars, taken in increasing order, and "deepset" otherwise."""
        return "sorted-head" if len(shape) == 1 and shape[0] <= MOST_SORTED else "deepset"


class Series(_OneAxis):
    """Points in time along axis 1 of what simulators return: their order matters."""

    name = "series"

    def default_network(self, shape: Shape) -> str:
        """Return "summary", which reads fixed features of the series, for every shape."""
        del shape
        return "summary"


def warn_or_raise(found: str, cure: str, *, extrapolate: bool) -> None:
    """Raise because data go beyond those of training, or warn about it if the user asked to extrapolate.

    `found` says what goes beyond, and `cure` what the models should be fitted again with.
    """
    if not extrapolate:
        raise ValueError(f"{found}. Fit again with {cure}, or pass extrapolate=True to go beyond it.")
    _checks.warn_user(f"{found}. The answer is extrapolated: nothing vouches for it.")


def check_observations(name: str, one: NDArray[np.generic], shape: Shape) -> None:
    """Raise unless the observations of one data set, along its axis 0, have the right shape and are finite."""
    if one.ndim == 0 or one.shape[1:] != shape[1:]:
        wanted = "numbers" if len(shape) == 1 else f"of shape {shape[1:]}"
        raise ValueError(f"{name} has shape {one.shape}; its observations, along axis 0, must be {wanted}.")
    nonfinite = _checks.describe_nonfinite(one)
    if nonfinite is not None:
        raise ValueError(f"{name} has {nonfinite}. {_ADVICE}")


def _as_sets(argument: str, data: Any, shape: Shape) -> list[NDArray[np.generic]] | NDArray[np.generic]:
    """Return the checked data sets, each an array of its own observations; those of one length as one array.

    `data` is one data set, or many as an array, a masked array, or a list of data sets of different lengths. `shape` is
    that of the largest simulated data set.
    """
    # No array can hold data sets of different lengths.
    ragged = isinstance(data, list | tuple) and len({len(one) if hasattr(one, "__len__") else None for one in data}) > 1
    if np.ma.isMaskedArray(data) or ragged:
        sets = (
            [_checks.check_numeric_array(f"{argument}[{index}]", one) for index, one in enumerate(data)]
            if ragged
            else _split_masked(argument, data, shape)
        )
        for index, one in enumerate(sets):
            check_observations(f"{argument}[{index}]", one, shape)
        return sets
    array = _checks.check_numeric_array(argument, data)
    if array.ndim == len(shape):
        array = array[None]
    if array.ndim != len(shape) + 1:
        written = ", ".join(["num_obs", *(str(size) for size in shape[1:])])
        raise ValueError(
            f"{argument} has shape {array.shape}; this estimator is for data sets of shape ({written}), any num_obs of "
            f"its range. Pass one, or many of shape (batch, {written}), or a list of data sets of different lengths."
        )
    if len(array) == 0:
        return array
    check_observations(argument, array[0], shape)
    nonfinite = _checks.describe_nonfinite(array)
    if nonfinite is not None:
        raise ValueError(f"{argument} has {nonfinite} (leading axis: data sets). {_ADVICE}")
    return array


def _split_masked(argument: str, data: Any, shape: Shape) -> list[NDArray[np.generic]]:
    """Return the observations of each data set that are not masked."""
    values, mask = np.asarray(np.ma.getdata(data)), np.asarray(np.ma.getmaskarray(data))
    if values.ndim == len(shape):
        values, mask = values[None], mask[None]
    if values.ndim != len(shape) + 1:
        raise ValueError(
            f"{argument} is a masked array of shape {values.shape}; one data set has {len(shape)} axes, and many "
            f"have {len(shape) + 1}. Reshape it."
        )
    by_observation = mask.reshape(*mask.shape[:2], -1)
    absent = np.asarray(by_observation.all(axis=2))
    if np.any(by_observation.any(axis=2) != absent):
        raise ValueError(
            f"{argument} masks a part of an observation. Mask whole observations, or none of their values."
        )
    return [one[~gone] for one, gone in zip(values, absent, strict=True)]
