"""Observed data from a file, in the shape that an estimator expects."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def read_observed(path: Path, data_shape: tuple[int, ...], *, any_num_obs: bool = False) -> NDArray[np.generic]:
    """Return one data set of shape `data_shape` from a CSV or .npy file.

    A CSV holds one observation a row, with an optional header; a single row or column may also hold a vector. With
    `any_num_obs`, there may be any number of observations.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}. Pass the observed data as CSV or .npy.")
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
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{path} is empty. Pass a file with one observation a row.")
    delimiter = next((mark for mark in ",;\t" if mark in lines[0]), " ")
    rows = [[cell for cell in row if cell.strip()] for row in csv.reader(lines, delimiter=delimiter)]
    if not all(_is_number(cell) for cell in rows[0]):
        rows = rows[1:]
    if not rows:
        raise ValueError(f"{path} has a header and no numbers. Pass a file with one observation a row.")
    for number, row in enumerate(rows, start=1):
        for cell in row:
            if not _is_number(cell):
                raise ValueError(f"{path}, data row {number}: {cell!r} is not a number. Remove or replace it.")
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{path}, data row {number} has {len(row)} values, the first {len(rows[0])}. Make rows equally long."
            )
    return np.array([[float(cell) for cell in row] for row in rows])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _wanted(data_shape: tuple[int, ...]) -> str:
    if len(data_shape) == 2:
        return f"{data_shape[0]} rows of {data_shape[1]} columns"
    return f"{int(np.prod(data_shape))} numbers, one a row"
