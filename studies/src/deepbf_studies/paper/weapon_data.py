"""The answers that the weapon study is about: read from a user's file, or simulated and said to be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from deepbf._rows import Table, numbers_in, read_table
from deepbf_studies.paper.step import step_function
from deepbf_studies.problems import load
from deepbf_studies.problems import weapon as trees
from deepbf_studies.problems.weapon import NUM_PEOPLE, NUM_TRIALS

# What stands on everything that was computed from no real answers.
SIMULATED = "SIMULATED from process dissociation"
# The first seed from 0 on whose data set has an exact Bayes factor within 2% of the paper's 8.10.
SIMULATED_SEED = 167
# Bayes factors given some people compared with those of the others need at least two.
FEWEST_PEOPLE = 2

PEOPLE_HEADER = trees.CELLS
SUMS_HEADER = tuple(f"{cell} {answer}" for answer in ("correct", "wrong") for cell in trees.CELLS)

Observed = dict[str, Any]


class Counts(NamedTuple):
    """Observed counts: twelve sums, and one row for each person where they are known."""

    sums: NDArray[np.int64]
    people: NDArray[np.int64] | None

    @classmethod
    def of(cls, sums: Sequence[int], people: Sequence[Sequence[int]] | None) -> Counts:
        """Return the counts from what JSON holds."""
        return cls(np.array(sums), None if people is None else np.array(people))

    @property
    def num_people(self) -> int:
        """How many people the sums are over."""
        return int(self.sums[0] + self.sums[trees.NUM_CELLS]) // NUM_TRIALS


def simulated_observed(num_people: int = NUM_PEOPLE) -> Observed:
    """Return a data set simulated from process dissociation, as `read_observed` returns those in files."""
    people = load("weapon-full", num_obs=num_people).models[0].simulate(1, SIMULATED_SEED).data[0]
    return _as_observed(np.asarray(people), SIMULATED)


def _as_observed(people: NDArray[np.integer], source: str) -> Observed:
    """Return counts of people, shape (people, 6), with their sums, as JSON holds them."""
    sums = trees.sum_over_people(people, num_trials=NUM_TRIALS)
    return {"source": source, "sums": sums.tolist(), "people": people.tolist()}


@step_function("weapon_data.observed_data")
def observed_data(*, source: str, sums: Sequence[int], people: Sequence[Sequence[int]] | None) -> xr.Dataset:
    """Return what is observed, for drawings.

    A step of its own, so that a file's name is no setting of the others, whose results count whatever it is called.
    """
    del people
    return xr.Dataset({"sums": ("count", np.array(sums))}, {"count": list(SUMS_HEADER)}, {"source": source})


def read_observed(path: Path) -> Observed:
    """Return the counts in a CSV: one row per person with six correct counts, or twelve counts, six correct first.

    Names of the cells may stand above the counts, and then decide which is which.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}. Pass a CSV with twelve counts, or with one row per person.")
    table = read_table(path)
    counts = np.array([numbers_in(path, number, row) for number, row in enumerate(table.rows, start=1)])
    if counts.shape == (2 * trees.NUM_CELLS, 1):
        counts = counts.T
    if counts.shape[1] == trees.NUM_CELLS:
        return _as_observed(_people(path, _in_order(path, table, counts, PEOPLE_HEADER)), path.name)
    if counts.shape == (1, 2 * trees.NUM_CELLS):
        sums = _sums(path, _in_order(path, table, counts, SUMS_HEADER)[0])
        return {"source": path.name, "sums": sums.tolist(), "people": None}
    raise ValueError(
        f"{path} holds {counts.shape[0]} x {counts.shape[1]} numbers (rows x columns). Pass one row per person with "
        f"the six counts of correct answers ({', '.join(PEOPLE_HEADER)}) and no other column, or one row of twelve "
        "counts, the six of correct answers first, then the six of wrong ones in the same order."
    )


def _in_order(path: Path, table: Table, counts: NDArray[np.float64], expected: Sequence[str]) -> NDArray[np.float64]:
    """Return the columns in the order of `expected`, if a header names them in another."""
    if table.header is None or len(table.rows[0]) == 1:
        return counts
    names = [" ".join(cell.lower().replace("_", " ").replace("-", " ").split()) for cell in table.header]
    if sorted(names) != sorted(expected):
        raise ValueError(
            f"{path} has the header {', '.join(table.header)}; the names must be {', '.join(expected)}, in any order. "
            "Correct them, or leave the header out and put the columns in this order."
        )
    return counts[:, [names.index(name) for name in expected]]


def _people(path: Path, counts: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return one row for each person, after a look at every count."""
    _check_whole(path, counts)
    over = np.argwhere(counts > NUM_TRIALS)
    if len(over):
        row, cell = over[0]
        raise ValueError(
            f"{path}, data row {row + 1} has {counts[row, cell]:g} correct answers in the cell {trees.CELLS[cell]!r}; "
            f"a person has {NUM_TRIALS} trials per cell. Give one row per person, or twelve counts of sums."
        )
    if len(counts) < FEWEST_PEOPLE:
        raise ValueError(
            f"{path} has {len(counts)} person; at least {FEWEST_PEOPLE} are needed. Give one row per person, or the "
            "twelve counts of the sums over people."
        )
    return counts.astype(np.int64)


def _sums(path: Path, counts: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the twelve sums, after a look at whether they belong together."""
    _check_whole(path, counts)
    totals = counts[: trees.NUM_CELLS] + counts[trees.NUM_CELLS :]
    if not (totals == totals[0]).all():
        cell = int(np.argmax(totals != totals[0]))
        raise ValueError(
            f"{path} has {totals[0]:g} answers, correct and wrong together, in the cell {trees.CELLS[0]!r} and "
            f"{totals[cell]:g} in {trees.CELLS[cell]!r}; all cells must have equally many. Put the six correct counts "
            "first, then the six wrong ones in the same order."
        )
    if totals[0] % NUM_TRIALS or totals[0] < FEWEST_PEOPLE * NUM_TRIALS:
        raise ValueError(
            f"{path} has {totals[0]:g} answers per cell; with {NUM_TRIALS} trials per person it must be a multiple of "
            f"{NUM_TRIALS}, for {FEWEST_PEOPLE} people at least. Leave out people who lack trials."
        )
    return counts.astype(np.int64)


def _check_whole(path: Path, counts: NDArray[np.float64]) -> None:
    wrong = ~(np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts)))
    if wrong.any():
        raise ValueError(
            f"{path} holds {counts[wrong][0]:g}; counts must be whole numbers from 0 on. Give counts, no proportions."
        )
