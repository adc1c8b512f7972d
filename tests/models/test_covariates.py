"""A table of covariates is checked once, says what it is, and reaches the functions that ask for it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from deepbf import Model, SimulationError
from deepbf.models.covariates import Covariates

COLUMNS: dict[str, Any] = {"dose": [0.0, 1.5, 2.0, 4.0], "sex": ["f", "m", "f", "m"]}


@pytest.mark.parametrize("table", [COLUMNS, pd.DataFrame(COLUMNS), {k: np.array(v) for k, v in COLUMNS.items()}])
def test_dicts_and_data_frames_are_the_same_table(table: Any) -> None:
    covariates = Covariates.of(table)
    assert covariates.num_rows == 4
    assert_array_equal(covariates.numbers["dose"], COLUMNS["dose"])
    assert_array_equal(covariates.groups["sex"], [0, 1, 0, 1])


def test_the_columns_of_an_array_get_names() -> None:
    assert list(Covariates.of(np.zeros((3, 2))).columns) == ["x1", "x2"]
    assert list(Covariates.of([1, 2, 3]).columns) == ["x1"]


def test_whole_numbers_that_repeat_are_groups_too() -> None:
    table = Covariates.of({"school": [3, 3, 7, 7, 9, 9], "age": [1.5, 1.5, 2, 2, 3, 3], "treated": [0, 1, 0, 1, 0, 1]})
    # Two values are a contrast, which the number itself already is.
    assert list(table.groups) == ["school"]
    assert_array_equal(table.groups["school"], [0, 0, 1, 1, 2, 2])
    assert sorted(table.numbers) == ["age", "school", "treated"]


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ({}, "at least one column"),
        ({"x": [1.0]}, "at least two rows"),
        ({"x": [1.0, 2.0], "z": [1.0, 2.0, 3.0]}, "2 of 'x', 3 of 'z'"),
        ({"x": [1.0, np.nan]}, r"covariates\['x'\] has"),
        ({"x": ["a", None]}, "received None among them"),
        ({"x": [[1.0], [2.0]]}, "one column"),
        ({"x": np.array([1j, 2j])}, "dtype complex128"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
    ],
)
def test_what_is_no_table_is_explained(table: Any, rule: str) -> None:
    with pytest.raises((ValueError, TypeError), match=rule):
        Covariates.of(table)


def test_responses_are_found_beside_the_covariates() -> None:
    table = Covariates.of(COLUMNS)
    responses = [1.0, 2.0, 3.0, 4.0]
    for observed in (responses, {**COLUMNS, "y": responses}, pd.DataFrame({"y": responses, **COLUMNS})):
        assert_array_equal(table.responses_in("observed", observed), responses)


@pytest.mark.parametrize(
    ("observed", "rule"),
    [
        ({"y": [1.0, 2.0, 3.0, 4.0]}, "must have the covariates of the fit, dose, sex"),
        ({**COLUMNS}, "one column of responses"),
        ({**COLUMNS, "y": [1, 2, 3, 4], "z": [1, 2, 3, 4]}, "one column of responses"),
        ({**COLUMNS, "dose": [0.0, 1.5, 2.5, 4.0], "y": [1, 2, 3, 4]}, "'dose' differs, first in row 3"),
        ({**COLUMNS, "sex": ["f", "m", "m", "m"], "y": [1, 2, 3, 4]}, "'sex' differs, first in row 3"),
        ({"dose": [0.0, 1.5], "sex": ["f", "m"], "y": [1, 2]}, "'dose' differs, first in row 3"),
    ],
)
def test_other_covariates_are_refused(observed: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        Covariates.of(COLUMNS).responses_in("observed", observed)


def test_functions_that_ask_for_the_table_get_it() -> None:
    def prior(rng: np.random.Generator, size: int, covariates: Any) -> Any:
        return rng.standard_normal((size, len(covariates)))

    def simulator(rng: np.random.Generator, slopes: Any, covariates: Any) -> Any:
        return slopes[:, :1] * covariates["dose"]

    asks = Model("asks", prior=prior, simulator=simulator).with_covariates(COLUMNS)
    drawn = asks.simulate(5, seed=1)
    assert_array_equal(drawn.data, np.asarray(drawn.params)[:, :1] * np.array(COLUMNS["dose"]))
    assert_array_equal(asks.with_covariates(COLUMNS).simulate(5, seed=1).data, drawn.data)
    closes_over = Model("closes over", simulator=lambda rng, size: rng.standard_normal((size, 4)))
    assert closes_over.with_covariates(COLUMNS) == closes_over


def test_a_failure_says_how_to_see_it_again_with_the_table() -> None:
    def simulator(rng: np.random.Generator, size: int, covariates: Any) -> Any:
        raise RuntimeError("no dose")

    with pytest.raises(SimulationError, match=r"model\.with_covariates\(covariates\)\.simulate\(2, seed=1\)"):
        Model("fails", simulator=simulator).with_covariates(COLUMNS).simulate(2, seed=1)
