"""Structures: what a user says about the axes of a data set, each an object that knows its own rules.

A structure says how many leading axes of a data set run over observations, which network reads such data unless told
otherwise, what simulated data must look like, and how an observed data set becomes an array that networks read. Nothing
here needs JAX, so that a worker process that only simulates never loads it.

A new structure is a subclass with a `name`; it registers itself, and `deepbf.fit(structure=name)` knows it from then
on. Its networks are registered with `deepbf.networks.register_network`.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks

Shape = tuple[int, ...]
# The fewest and the most there are along each axis of observations.
Sizes = tuple[tuple[int, int], ...]

STRUCTURES: dict[str, Structure] = {}


class Structure(abc.ABC):
    """The rules of one array of a data set.

    Subclasses have no state: two structures of one class are the same structure. Those that are named are registered
    under their name.

    Attributes
    ----------
    name
        What users call it, as in ``deepbf.fit(structure="exchangeable")``.
    num_axes
        How many leading axes of a data set run over observations, which then share one location and scale.
    any_order
        Whether observations are exchangeable, so that their order should mean nothing.
    summary_says_more
        Whether a summary by the structure's rules shows what is hard to learn from the plain values. Of vectors it
        does not: a network that reads the values alone learned more in the same time.
    has_covariates
        Whether every place along the first axis has covariates, known before any data; its networks are fitted with
        them.
    """

    name: ClassVar[str]
    num_axes: ClassVar[int] = 0
    any_order: ClassVar[bool] = False
    summary_says_more: ClassVar[bool] = True
    has_covariates: ClassVar[bool] = False
    # How messages write the shape of what simulators return.
    simulated_shape: ClassVar[str] = "(size, ...)"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            STRUCTURES[cls.name] = cls()

    @abc.abstractmethod
    def default_network(self, shape: Shape) -> str:
        """Return the name of the network with built-in knowledge of data sets of this shape.

        It is part of the committee that reads data by default; alone, where the structure has no plain view.
        """

    def check_observed(
        self, argument: str, data: Any, shape: Shape, sizes: Sizes, *, varies: bool, extrapolate: bool
    ) -> NDArray[np.generic]:
        """Return observed data sets along a leading axis as networks read them; nan marks absent observations.

        `data` is what a user passed: one data set or many. `shape` and `sizes` are those of the simulated data;
        `varies` says whether data sets may differ in the number of their observations, and `extrapolate` whether
        numbers beyond those of training are answered with a warning instead of an error. By default data sets have one
        shape, and every value is there.
        """
        del sizes, varies, extrapolate
        return check_fixed(argument, data, self.name, shape)

    def check_simulated(self, called: str, data: Sequence[NDArray[np.generic]]) -> None:
        """Raise if simulated data, one array per model, lack the axes of observations or mask parts of observations.

        `called` is how messages call the structure.
        """
        shape = data[0].shape[1:]
        if len(shape) < self.num_axes:
            raise ValueError(
                f"{called} needs data sets with an axis of observations; the simulators return data sets of "
                f"shape {shape}. Return shape {self.simulated_shape}, or pass structure='vector'."
            )
        for model_data in data:
            absent = is_absent(model_data)
            if not absent.any():
                continue
            by_observation = absent.reshape(*absent.shape[: 1 + self.num_axes], -1)
            if (by_observation.any(axis=-1) != by_observation.all(axis=-1)).any():
                raise ValueError(
                    "the simulators mask some columns of an observation and not others; mask all of them, or none."
                )
            if absent.reshape(len(absent), -1).all(axis=1).any():
                raise ValueError("the simulators mask whole data sets; leave at least one observation in each.")

    def sizes_of(self, data: Sequence[NDArray[np.generic]]) -> Sizes:
        """Return the fewest and the most observations along each axis of them, over the data of all models.

        Absent observations are not counted among the fewest; the most is what there is room for.
        """
        if self.num_axes == 0:
            return ()
        return ((min(int(count_present(model_data).min()) for model_data in data), data[0].shape[1]),)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return self.name


class Vector(Structure):
    """Data sets of fixed length whose entries have fixed places: order matters, and nothing is ever absent."""

    name = "vector"
    summary_says_more = False

    def default_network(self, shape: Shape) -> str:
        """Return "head", which reads values decorrelated at several scales, for every shape."""
        del shape
        return "head"


def find_structure(structure: object) -> Structure | dict[str, Structure]:
    """Return the structure that a user named, or one for each array by name, in order of the alphabet.

    `structure` is a name, or for simulators that return a dict of arrays a dict from their names to structures.

    Examples
    --------
    >>> find_structure("vector")
    vector
    >>> find_structure({"trials": "exchangeable", "age": "vector"})
    {'age': vector, 'trials': exchangeable}
    """
    if not isinstance(structure, Mapping):
        return STRUCTURES[_checks.check_choice("structure", structure, STRUCTURES)]
    if not structure:
        raise ValueError(
            "structure must name the arrays of a data set, each with its structure; received an empty dict."
        )
    for name in structure:
        if not isinstance(name, str):
            raise TypeError(f"structure must name the arrays of a data set by strings; received {name!r}.")
    return {
        name: STRUCTURES[_checks.check_choice(f"structure[{name!r}]", structure[name], STRUCTURES)]
        for name in sorted(structure)
    }


def check_fixed(argument: str, data: Any, structure: str, shape: Shape) -> NDArray[np.generic]:
    """Return data sets of one shape along a leading axis, after checking that every value is there and finite."""
    if isinstance(data, Mapping):
        raise TypeError(
            f"{argument} is a dict; this estimator was trained on one array per data set, of shape {shape}. "
            "Pass that array."
        )
    ragged = None
    if np.ma.isMaskedArray(data) and np.ma.getmaskarray(data).any():
        ragged = f"masks {int(np.ma.getmaskarray(data).sum())} of its values"
    elif isinstance(data, list | tuple) and _lengths_differ(data):
        ragged = "holds lists of different lengths"
    if ragged is not None:
        raise ValueError(
            f"{argument} {ragged}; this estimator was fitted with structure={structure!r} to data sets of shape "
            f"{shape}, all of it there. Fit with num_obs=(low, high) for sets of different sizes, or with "
            "structure='nested' for groups of observations."
        )
    array = _checks.check_numeric_array(argument, data)
    if array.shape == shape:
        array = array[None]
    if array.ndim == 0 or array.shape[1:] != shape:
        batch = ", ".join(["batch", *(str(size) for size in shape)])
        raise ValueError(
            f"{argument} has shape {array.shape}; this estimator was trained on data sets of shape "
            f"{shape}. Pass one such data set, or many with shape ({batch})."
        )
    nonfinite = _checks.describe_nonfinite(array)
    if nonfinite is not None:
        raise ValueError(
            f"{argument} has {nonfinite} (leading axis: data sets). "
            "Remove or impute missing values the way the simulators would produce them."
        )
    return array


def _lengths_differ(data: Sequence[Any]) -> bool:
    lengths = {len(entry) if hasattr(entry, "__len__") else None for entry in data}
    return len(lengths) > 1 or any(isinstance(entry, list | tuple) and _lengths_differ(entry) for entry in data)


def count_present(data: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return how many observations each data set has along its first axis: those that are not nan throughout.

    `data` has shape (data sets, observations, ...). For data sets without such an axis the count is 0.

    Examples
    --------
    >>> count_present(np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan]]))
    array([2, 1])
    """
    if data.ndim == 1:
        return np.zeros(len(data), dtype=np.intp)
    return data.shape[1] - absent_observations(data).sum(axis=1)


def absent_observations(data: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return which observations along the first axis of each data set are absent, shape (data sets, observations)."""
    return np.asarray(is_absent(data).reshape(*data.shape[:2], -1).all(axis=2))


def is_absent(data: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return which values are nan, the one mark of absence behind the public edge; same shape as `data`."""
    return np.isnan(data) if data.dtype.kind == "f" else np.zeros(data.shape, bool)


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


class Responses(Structure):
    """Responses along axis 1 of what simulators return, each with the covariates of its row in one fixed table."""

    name = "responses"
    num_axes = 1
    has_covariates = True
    simulated_shape = "(size, rows of the covariates)"

    def default_network(self, shape: Shape) -> str:
        """Return "summary", which reads the responses against the covariates, for every shape."""
        del shape
        return "summary"


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
