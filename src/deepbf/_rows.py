"""Rows of a text file: cells between commas, semicolons, tabs or spaces, and the header above them if there is one."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple


class Table(NamedTuple):
    """The cells of a file in equally long rows; `header` is None where the first row already is data."""

    header: list[str] | None
    rows: list[list[str]]


def read_table(path: Path) -> Table:
    """Return the cells of a text file, its header apart."""
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{path} is empty. Pass a file with one observation a row.")
    delimiter = next((mark for mark in ",;\t" if mark in lines[0]), " ")
    rows = [[cell for cell in row if cell.strip()] for row in csv.reader(lines, delimiter=delimiter)]
    header = None
    # The last cell, since a first one may name a group.
    if not is_number(rows[0][-1]):
        header, rows = rows[0], rows[1:]
    if not rows:
        raise ValueError(f"{path} has a header and no numbers. Pass a file with one observation a row.")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{path}, data row {number} has {len(row)} values, the first {len(rows[0])}. Make rows equally long."
            )
    return Table(header, rows)


def read_rows(path: Path) -> list[list[str]]:
    """Return the cells of a text file below its header, if it has one, in equally long rows."""
    return read_table(path).rows


def numbers_in(path: Path, number: int, cells: list[str]) -> list[float]:
    """Return the cells of a row as numbers."""
    for cell in cells:
        if not is_number(cell):
            raise ValueError(f"{path}, data row {number}: {cell!r} is not a number. Remove or replace it.")
    return [float(cell) for cell in cells]


def is_number(cell: str) -> bool:
    """Return whether a cell can be read as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
