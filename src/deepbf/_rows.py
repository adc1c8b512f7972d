"""Tables in text files: cells between commas, semicolons, tabs or spaces, and the names above them if there are any."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# What people and programs write where a value is missing; lower case. Such a cell is never a name above a column.
MISSING = frozenset({"na", "n/a", "#n/a", "null", "none", "missing", ".", "-", "?"})


class Table(NamedTuple):
    """The cells of a file in equally long rows; `header` is None where the first row already is data."""

    header: list[str] | None
    rows: list[list[str]]


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, without the byte-order mark that some programs put first."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not text in UTF-8 ({error.reason} at byte {error.start}). Save it in UTF-8, or pass .npy."
        ) from error


def read_table(path: Path) -> Table:
    """Return the cells of a text file, none of them empty, its header apart.

    The first row is a header if none of its cells looks like a number or stands for a missing value. Lines that are
    blank, separators at the ends of lines, and columns without a single cell are no data and left out; any other cell
    that is empty is an error, as are rows of different lengths.

    Parameters
    ----------
    path
        A text file in UTF-8, with commas, semicolons, tabs or spaces between the cells of a row.
    """
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{path} is empty. Pass a file with one observation per row.")
    separator = _separator(lines[0])
    [first] = _cells(path, lines[:1], separator)
    is_data = not any(first) or any(is_number(cell) or cell.lower() in MISSING for cell in first)
    header = None if is_data else first
    if header is not None:
        del lines[0]
        if not lines:
            raise ValueError(f"{path} has a header and no numbers. Pass a file with one observation per row.")
        if separator not in lines[0]:
            # A name of several words, or with a comma in it, above a single column.
            separator = _separator(lines[0])
    rows = _cells(path, lines, separator)
    names = header or []
    width = len(rows[0])
    for number, line in enumerate(lines, start=1):
        # A column that has a name and ends in nothing but separators is not there by accident.
        if separator != " " and width < len(names) <= line.count(separator) + 1:
            raise _missing(path, number, width + 1, "an empty cell")
    kept = [k for k in range(width) if (k < len(names) and names[k]) or any(row[k] for row in rows)]
    for number, row in enumerate(rows, start=1):
        for k in kept:
            if not any(row[k:]):
                raise ValueError(
                    f"{path}, data row {number} has {k} values, the first {width}; column {k + 1} is empty. Make rows "
                    "equally long; missing values are not supported yet."
                )
            if not row[k]:
                raise _missing(path, number, k + 1, "an empty cell")
    # A header of another length than the rows, such as one name of several words, is left as it stands.
    header = [names[k] for k in kept] if len(names) == width else header
    return Table(header, [[row[k] for k in kept] for row in rows])


def _separator(line: str) -> str:
    return next((mark for mark in ",;\t" if mark in line), " ")


def _cells(path: Path, lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the cells of every line, without the spaces around them; "" for those that a shorter line is without."""
    # Only here: the library is loaded often, and tables are read rarely.
    import pandas as pd

    # A separator at the end of a line begins no further cell; a line of separators alone is one empty cell.
    trimmed = [line.strip() if separator == " " else line.rstrip(f"{separator} \t") or '""' for line in lines]
    try:
        frame = pd.read_csv(
            io.StringIO("\n".join(trimmed)),
            sep=r"\s+" if separator == " " else separator,
            header=None,
            # Cells as they stand: pandas would round the last digit of some numbers, and guess what is missing.
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
        )
    except pd.errors.ParserError as error:
        counts = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        problem = f"the text cannot be split into cells ({error})"
        if counts is not None:
            problem = f"data row {counts[2]} has {counts[3]} values, the rows before {counts[1]}"
        raise ValueError(f"{path}, {problem}. Make rows equally long; no value may be missing.") from error
    return [[str(cell).strip() for cell in row] for row in frame.fillna("").to_numpy().tolist()]


def numbers_in(path: Path, number: int, cells: Sequence[str], *, first_column: int = 1) -> list[float]:
    """Return the cells of data row `number` as numbers; errors name the row and the column.

    Parameters
    ----------
    path
        The file that the cells are from.
    number
        Which row below the header it is, from 1 on.
    cells
        The cells of the row from column `first_column` on.
    first_column
        Which column the first of the cells is in.
    """
    found = []
    for column, cell in enumerate(cells, start=first_column):
        if cell.strip().lower() in MISSING:
            raise _missing(path, number, column, repr(cell))
        if not is_number(cell):
            hint = "Remove or replace it."
            if re.fullmatch(r"[-+]?\d+,\d+|\d+;[-+]?\d+", cell):
                hint = "Write decimals with a point, such as 1.5."
            raise ValueError(f"{path}, data row {number}, column {column}: {cell!r} is not a number. {hint}")
        found.append(float(cell))
    return found


def _missing(path: Path, number: int, column: int, cell: str) -> ValueError:
    return ValueError(
        f"{path}, data row {number}, column {column}: {cell} is a missing value. Missing values are not supported yet: "
        "fill it in, or remove its row."
    )


def is_number(cell: str) -> bool:
    """Return whether a cell can be read as a number; nan and inf can.

    Examples
    --------
    >>> is_number("1e-3"), is_number(" 2 "), is_number("1,5"), is_number("NA")
    (True, True, False, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return True
