"""Simulated data against the structure that they were said to have: checks, scales and sizes, array by array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepbf._mixed import DATA, HYPERPARAMETERS, MixedForm, describe
from deepbf.models import ModelSet, SimulationError
from deepbf.models.model import fresh_seed
from deepbf.networks import NETWORKS, OBSERVATION_AXES, SORTED, Structure
from deepbf.simulation import NumObsRange
from deepbf.simulation.chunks import beside_hyperparameters
from deepbf.standardise import Standardiser

# The fewest and the most there are along each axis of observations.
Sizes = tuple[tuple[int, int], ...]
# What data that are one array are called where others go by name.
WHOLE = ""


class Array(NamedTuple):
    """One array of the data: its name, its structure, and what each model simulated."""

    name: str
    structure: str
    data: list[NDArray[np.generic]]

    @property
    def called(self) -> str:
        """How messages call the structure."""
        return f"structure={self.structure!r}" if self.name == WHOLE else f"structure[{self.name!r}]={self.structure!r}"


def arrays_of(structure: Structure, form: MixedForm | None, data: Sequence[NDArray[np.generic]]) -> list[Array]:
    """Return the arrays that the data of all models consist of."""
    if isinstance(structure, str):
        return [Array(WHOLE, structure, list(data))]
    if form is None:
        raise ValueError("mixed data need a form")
    unpacked = [form.unpack(model_data) for model_data in data]
    return [Array(name, structure[name], [arrays[name] for arrays in unpacked]) for name in form.names]


def beside_its_hyperparameters(structure: Structure, model_set: ModelSet) -> Structure:
    """Return the structure of data that come with the values of their models' hyperparameters, if there are any."""
    if not model_set.hyperparameters:
        return structure
    arrays = {DATA: structure} if isinstance(structure, str) else structure
    if HYPERPARAMETERS in arrays:
        raise ValueError(
            f"structure may not name an array {HYPERPARAMETERS!r}: the values of the models' hyperparameters have that "
            "name. Rename the array."
        )
    return dict(sorted({**arrays, HYPERPARAMETERS: "vector"}.items()))


def find_form(model_set: ModelSet, structure: Structure, num_obs: NumObsRange | None, seed: int) -> MixedForm | None:
    """Return how to pack the models' data, after one data set of each; None for data that are one array."""
    if isinstance(structure, str):
        return None
    forms = [_form_of(model_set, k, structure, num_obs, seed) for k in range(len(model_set))]
    for name, form in zip(model_set.names, forms, strict=True):
        if form != forms[0]:
            raise SimulationError(
                f"models must make data sets of one shape to be compared; {model_set.names[0]!r} makes "
                f"{describe(forms[0].shapes)}, {name!r} makes {describe(form.shapes)}. Make both simulators return the "
                "same names and shapes, and let the same arrays grow with num_obs."
            )
    _check_growth(forms[0], structure, num_obs)
    return forms[0]


def _form_of(
    model_set: ModelSet, index: int, structure: dict[str, str], num_obs: NumObsRange | None, seed: int
) -> MixedForm:
    model = model_set.models[index]
    drawn = [model.simulate(1, seed, number).data for number in (num_obs or (None,))]
    ranges = model_set.hyperparameters
    if ranges:
        drawn = [beside_hyperparameters(model, data, ranges, 1, fresh_seed(seed)) for data in drawn]
    for data in drawn:
        found = f"returns {', '.join(sorted(data))}" if isinstance(data, dict) else "returns one array"
        if not isinstance(data, dict) or sorted(data) != sorted(structure):
            raise ValueError(
                f"structure names the arrays {', '.join(structure)}; the simulator of model {model.name!r} {found}. "
                "Give every array that the simulators return a structure, and no other."
            )
    return MixedForm.of(drawn[-1], drawn[0])


def _check_growth(form: MixedForm, structure: dict[str, str], num_obs: NumObsRange | None) -> None:
    """Raise if an array grows in another way than by observations along its first axis."""
    for part in form.parts:
        if not part.grows:
            continue
        if num_obs is None or OBSERVATION_AXES[structure[part.name]] != 1 or part.shape[:1] != (num_obs.high,):
            raise ValueError(
                f"{part.name!r}, of structure[{part.name!r}]={structure[part.name]!r}, changes its shape with num_obs, "
                f"and is {part.shape} at its largest. Arrays that grow are 'exchangeable' or 'series', with num_obs "
                "observations along axis 1; pad or mask others to one shape."
            )


def check_arrays(arrays: Sequence[Array], network: str) -> None:
    """Raise if simulated data do not have the structure that they were said to have."""
    for array in arrays:
        check_axes(array)
        check_scalars(array, network)
        check_absent(array, network)


def check_axes(array: Array) -> None:
    """Raise if data sets lack the axes of observations that the structure needs."""
    data_shape = array.data[0].shape[1:]
    if len(data_shape) < OBSERVATION_AXES[array.structure]:
        wanted = "(size, num_groups, num_obs)" if OBSERVATION_AXES[array.structure] == 2 else "(size, num_obs)"
        raise ValueError(
            f"{array.called} needs data sets with an axis of observations; the simulators return data sets of "
            f"shape {data_shape}. Return shape {wanted}, or pass structure='vector'."
        )


def check_scalars(array: Array, network: str) -> None:
    """Raise if observations are vectors and the network puts them in increasing order."""
    data_shape = array.data[0].shape[1:]
    if network == SORTED and len(data_shape) > 1:
        raise ValueError(
            f"network={network!r} puts observations in increasing order, so they must be scalars; the simulators "
            f"return data sets of shape {data_shape}. Pass network='deepset', or leave network out."
        )


def check_absent(array: Array, network: str) -> None:
    """Raise if observations are absent in part, or from every place, or where the network takes none for absent."""
    num_axes = OBSERVATION_AXES[array.structure]
    kind = NETWORKS[array.structure].get(network, next(iter(NETWORKS[array.structure].values())))
    for model_data in array.data:
        absent = is_absent(model_data)
        if not absent.any():
            continue
        if not kind.any_num_obs:
            raise ValueError(
                f"{array.called} with network={network!r} needs every value; the simulators return masked arrays, with "
                "observations that are not there. Pass structure='exchangeable' or structure='nested' and their "
                "default network, or simulate every value."
            )
        by_observation = absent.reshape(*absent.shape[: 1 + num_axes], -1)
        if (by_observation.any(axis=-1) != by_observation.all(axis=-1)).any():
            raise ValueError(
                "the simulators mask some columns of an observation and not others; mask all of them, or none."
            )
        if absent.reshape(len(absent), -1).all(axis=1).any():
            raise ValueError("the simulators mask whole data sets; leave at least one observation in each.")


def fit_standardiser(arrays: Sequence[Array], form: MixedForm | None) -> Standardiser:
    """Return the standardiser of the data, packed if they have a form."""
    parts = [Standardiser.fit(array.data, num_axes=OBSERVATION_AXES[array.structure]) for array in arrays]
    return parts[0] if form is None else Standardiser.joined(parts, [part.shape for part in form.parts])


def sizes_of(array: Array) -> Sizes:
    """Return the fewest and the most observations along each axis of them, absent ones not counted.

    The most is what there is room for.
    """
    num_axes = OBSERVATION_AXES[array.structure]
    shape = array.data[0].shape[1:]
    if num_axes == 0:
        return ()
    counts = [count_present(data) for data in array.data]
    outer = (min(int(count.min()) for count in counts), shape[0])
    if num_axes == 1:
        return (outer,)
    # Groups without observations are absent groups.
    groups = [count_present(data.reshape(-1, *data.shape[2:])) for data in array.data]
    return outer, (min(int(count[count > 0].min()) for count in groups), shape[1])


def count_present(data: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return how many observations each data set has along its first axis: those that are not nan throughout."""
    if data.ndim == 1:
        return np.zeros(len(data), dtype=np.intp)
    return data.shape[1] - is_absent(data).reshape(*data.shape[:2], -1).all(axis=2).sum(axis=1)


def is_absent(data: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return which values are nan, the mark of absence."""
    return np.isnan(data) if data.dtype.kind == "f" else np.zeros(data.shape, bool)
