"""Observed data from a file, in the shape that an estimator expects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepbf._rows import numbers_in, read_rows

if TYPE_CHECKING:
    from deepbf.estimator import BayesFactor


class Wanted(NamedTuple):
    """What a data set should look like: its shape, how it is laid out, and a range of observations if they vary."""

    data_shape: Any
    structure: Any
    num_obs: tuple[int, int] | None


def read_for(bf: BayesFactor | Wanted, path: Path) -> Any:
    """Return one data set for this estimator, from a file of a kind that can hold it."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}. Pass the observed data as CSV, JSON, .npy or .npz.")
    if path.suffix == ".json":
        return read_json(path)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    if isinstance(bf.data_shape, dict):
        raise ValueError(
            f"{path} holds one array; the estimator was trained on several: {', '.join(bf.data_shape)}. Pass them by "
            'name, as .npz or JSON, such as {"trials": [1.5, 0.2], "age": 34}.'
        )
    if bf.structure == "nested" and path.suffix != ".npy":
        return read_groups(path)
    return read_observed(path, bf.data_shape, any_num_obs=bf.num_obs is not None)


def read_json(path: Path) -> Any:
    """Return numbers, lists of them of any lengths, or a dict of those."""
    try:
        return json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path} is not JSON ({error}). Pass a list of numbers, of lists, or an object of those."
        ) from error


def read_groups(path: Path) -> list[NDArray[np.float64]]:
    """Return the groups in a text file with one observation a row, whose first column says which group it is of."""
    rows = read_rows(path)
    if len(rows[0]) < 2:
        raise ValueError(
            f"{path} has one column; for groups of observations, write the group in the first column and the "
            "observation in the others, one row an observation. Or pass JSON, a list of groups."
        )
    groups: dict[str, list[list[float]]] = {}
    for number, row in enumerate(rows, start=1):
        groups.setdefault(row[0].strip(), []).append(numbers_in(path, number, row[1:]))
    arrays = [np.array(group) for group in groups.values()]
    return [array[:, 0] if array.shape[1] == 1 else array for array in arrays]


def read_observed(path: Path, data_shape: tuple[int, ...], *, any_num_obs: bool = False) -> NDArray[np.generic]:
    """Return one data set of shape `data_shape` from a CSV or .npy file.

    A CSV holds one observation a row, with an optional header; a single row or column may also hold a vector. With
    `any_num_obs`, there may be any number of observations.
    """
    array = np.load(path, allow_pickle=False) if path.suffix == ".npy" else read_csv(path)
    if any_num_obs:
        if len(data_shape) == 1 and 1 in array.shape:
            array = array.reshape(-1)
        data_shape = (*array.shape[:1], *data_shape[1:])
    if array.shape != data_shape and 1 in array.shape and array.size == int(np.prod(data_shape)):
        array = array.reshape(data_shape)
    if array.shape != data_shape:
        raise ValueError(
            f"{path} holds {' x '.join(str(size) for size in array.shape)} numbers (rows x columns); the estimator was "
            f"trained on data sets of shape {data_shape}. Pass a file with {_wanted(data_shape)}."
        )
    return array


def read_csv(path: Path) -> NDArray[np.float64]:
    """Return the numbers in a text file, shape (rows, columns); commas, semicolons, tabs or spaces between them."""
    return np.array([numbers_in(path, number, row) for number, row in enumerate(read_rows(path), start=1)])


def _wanted(data_shape: tuple[int, ...]) -> str:
    if len(data_shape) == 2:
        return f"{data_shape[0]} rows of {data_shape[1]} columns"
    return f"{int(np.prod(data_shape))} numbers, one a row"
