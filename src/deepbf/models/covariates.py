"""Covariates: what the rows of a data set are known to be before any response is seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks

# How far numbers may be from those of the fit, relative to the largest of their column: what a file's digits lose.
TOLERANCE = 1e-6
# Whole numbers stand for groups, too, where rows come at least in pairs and there are more groups than a contrast has.
FEWEST_ROWS_PER_GROUP = 2
FEWEST_GROUPS = 3


@dataclass(frozen=True, eq=False)
class Covariates:
    """A table of covariates that are fixed by design, one row per response.

    Parameters
    ----------
    columns
        One array per covariate, all of one length: numbers as float64, words as strings.

    Examples
    --------
    >>> table = Covariates.of({"dose": [0, 1, 2, 4], "sex": ["f", "m", "f", "m"]})
    >>> table
    4 rows of dose, sex
    >>> sorted(table.groups)
    ['sex']
    """

    columns: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, table: Any) -> Covariates:
        """Return the table that a user passed as `covariates`, after checking it.

        `table` is a dict from names to columns, a data frame, or an array of shape (rows,) or (rows, columns), whose
        columns are then called x1, x2 and so on.
        """
        named = named_columns(table)
        if named is None:
            array = _checks.check_numeric_array("covariates", table)
            if array.ndim not in (1, 2):
                raise ValueError(
                    f"covariates must be a table, one row per response; received an array of shape {array.shape}. "
                    "Pass a dict from names to columns, a data frame, or an array of shape (rows, columns)."
                )
            columns = array.reshape(len(array), -1).T
            named = {f"x{number}": column for number, column in enumerate(columns, start=1)}
        if not named:
            raise ValueError("covariates must have at least one column; received none. Leave covariates out.")
        checked = {name: _check_column(name, column) for name, column in named.items()}
        lengths = {name: len(column) for name, column in checked.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{length} of {name!r}" for name, length in lengths.items())
            raise ValueError(
                f"covariates must have one row per response; received {listed}. Make columns equally long."
            )
        if min(lengths.values()) < 2:
            raise ValueError("covariates must have at least two rows; received one. Pass one row per response.")
        return cls(checked)

    @property
    def num_rows(self) -> int:
        """The number of rows, and of responses in a data set."""
        return len(next(iter(self.columns.values())))

    @property
    def numbers(self) -> dict[str, NDArray[np.float64]]:
        """The columns of numbers."""
        return {name: column for name, column in self.columns.items() if column.dtype.kind == "f"}

    @property
    def groups(self) -> dict[str, NDArray[np.intp]]:
        """Which group each row is of, from 0 on, by every column that sorts rows into groups.

        Words do, and so do whole numbers that repeat.
        """
        found = {}
        for name, column in self.columns.items():
            levels, codes = np.unique(column, return_inverse=True)
            repeats = len(column) >= FEWEST_ROWS_PER_GROUP * len(levels)
            if column.dtype.kind == "f":
                is_group = repeats and len(levels) >= FEWEST_GROUPS and bool((column == np.round(column)).all())
            else:
                is_group = len(levels) >= 2
            if is_group:
                found[name] = codes
        return found

    def responses_in(self, argument: str, data: Any) -> Any:
        """Return the responses in what a user passed as observed data.

        Data without names are the responses. A table with names must have these covariates, row by row, and one more
        column, the responses.
        """
        table = named_columns(data)
        if table is None:
            return data
        lacking = [name for name in self.columns if name not in table]
        rest = [name for name in table if name not in self.columns]
        if lacking or len(rest) != 1:
            raise ValueError(
                f"{argument} must have the covariates of the fit, {', '.join(self.columns)}, and one column of "
                f"responses; received {', '.join(table) or 'no column'}. Pass those columns, or the responses alone."
            )
        self.check_same(argument, {name: _check_column(name, table[name]) for name in self.columns})
        return table[rest[0]]

    def check_same(self, argument: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Raise unless these are the covariates of the fit, value by value; `argument` is where they were passed."""
        if set(columns) != set(self.columns):
            raise ValueError(
                f"{argument} has the covariates {', '.join(columns)}; those of the fit are {', '.join(self.columns)}."
            )
        for name, column in self.columns.items():
            row = _first_difference(column, columns[name])
            if row is not None:
                raise ValueError(
                    f"{argument} has other covariates than the fit: {name!r} differs, first in row {row + 1}. An "
                    "estimator answers for the covariates that it was fitted with: fit again with these."
                )

    def __repr__(self) -> str:
        return f"{self.num_rows} rows of {', '.join(self.columns)}"


def named_columns(table: Any) -> dict[str, Any] | None:
    """Return the columns of a dict or a data frame by name; None for what has no names."""
    if isinstance(table, Mapping):
        return {str(name): column for name, column in table.items()}
    # A data frame of any library.
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        return {str(name): np.asarray(table[name]) for name in table.columns}
    return None


def _check_column(name: str, column: Any) -> NDArray[Any]:
    """Return a column as numbers or as words."""
    array = np.asarray(column)
    if array.ndim != 1:
        raise ValueError(
            f"covariates[{name!r}] must be one column, one value per response; received shape {array.shape}."
        )
    if array.dtype.kind in "OUS":
        strange = [value for value in array.tolist() if not isinstance(value, str | bytes)]
        if strange:
            raise ValueError(
                f"covariates[{name!r}] must be numbers, or words for groups; received {strange[0]!r} among them. "
                "Fill in missing values, or leave their rows out."
            )
        return array.astype(str)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"covariates[{name!r}] must be numbers or words; received dtype {array.dtype}.")
    nonfinite = _checks.describe_nonfinite(array)
    if nonfinite is not None:
        raise ValueError(f"covariates[{name!r}] has {nonfinite}. Fill in missing values, or leave their rows out.")
    return array.astype(np.float64)


def _first_difference(fitted: NDArray[Any], column: NDArray[Any]) -> int | None:
    """Return the first row in which two columns differ, or None."""
    if len(fitted) != len(column):
        return min(len(fitted), len(column))
    if fitted.dtype.kind != column.dtype.kind:
        return 0
    if fitted.dtype.kind != "f":
        differs = fitted != column
    else:
        differs = np.abs(fitted - column) > TOLERANCE * np.abs(fitted).max()
    return int(np.flatnonzero(differs)[0]) if differs.any() else None
