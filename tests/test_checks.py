"""Checks: they pass what is right unchanged, and their errors name the argument, the value and the way out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deepbf import _checks
from deepbf.layout import STRUCTURES, ArrayLayout, DataLayout


@pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(7)])
def test_count_passes_whole_numbers(value: Any) -> None:
    checked = _checks.check_count("steps", value)
    assert checked == value
    assert type(checked) is int


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, ValueError),
        (-3, ValueError),
        (1.0, TypeError),
        (np.float64(2), TypeError),
        ("7", TypeError),
        (True, TypeError),
        (None, TypeError),
        ([7], TypeError),
        (float("nan"), TypeError),
    ],
)
def test_count_refuses_the_rest(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^steps must be") as caught:
        _checks.check_count("steps", value)
    assert str(value) in str(caught.value)


def test_count_has_a_least_value() -> None:
    assert _checks.check_count("model", 0, least=0) == 0
    with pytest.raises(ValueError, match="at least 128; received 127"):
        _checks.check_count("num_simulations", 127, least=128)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(3), 1e-300])
def test_positive_passes_positive_numbers(value: Any) -> None:
    checked = _checks.check_positive("seconds", value)
    assert checked == value
    assert type(checked) is float


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, ValueError),
        (-1.5, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("60", TypeError),
        (True, TypeError),
        (None, TypeError),
        (1j, TypeError),
        ([1.0], TypeError),
    ],
)
def test_positive_refuses_the_rest(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^seconds must be") as caught:
        _checks.check_positive("seconds", value)
    assert str(value) in str(caught.value)


@pytest.mark.parametrize("value", [0, 1, 2**100, np.int64(5)])
def test_seed_passes_non_negative_ints(value: Any) -> None:
    assert _checks.check_seed("seed", value) == value


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-1, ValueError),
        (1.0, TypeError),
        ("1", TypeError),
        (None, TypeError),
        (False, TypeError),
        (np.random.SeedSequence(1), TypeError),
    ],
)
def test_seed_refuses_the_rest(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"(?s)^seed must be a non-negative int.*seed=1"):
        _checks.check_seed("seed", value)


def test_choice_passes_what_is_on_the_list() -> None:
    assert _checks.check_choice("network", "bnn", ["fnn", "bnn"]) == "bnn"


@pytest.mark.parametrize(
    ("value", "nearest"), [("exchangable", "exchangeable"), ("Vector", "vector"), ("vectors", "vector")]
)
def test_choice_suggests_the_nearest_name(value: str, nearest: str) -> None:
    with pytest.raises(ValueError, match=f"received '{value}'. Did you mean '{nearest}'"):
        _checks.check_choice("structure", value, ["vector", "exchangeable"])


@pytest.mark.parametrize("value", [None, 3, "zzz", ["vector"]])
def test_choice_refuses_strangers_without_a_guess_out_of_nowhere(value: Any) -> None:
    with pytest.raises(ValueError, match="structure must be one of 'vector', 'exchangeable'; received") as caught:
        _checks.check_choice("structure", value, ["vector", "exchangeable"])
    if value != ["vector"]:
        assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("value", [[1, 2], [[1.5]], True, np.zeros((0, 3)), np.float16(1)])
def test_numeric_array_passes_real_numbers(value: Any) -> None:
    assert_array_equal(_checks.check_numeric_array("data", value), np.asarray(value))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("12", TypeError),
        (["1", "2"], TypeError),
        ([1, None], TypeError),
        (None, TypeError),
        ([1j], TypeError),
        ({"a": 1}, TypeError),
        ([10**400], TypeError),
        ([[1], [1, 2]], ValueError),
    ],
)
def test_numeric_array_refuses_the_rest(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^data "):
        _checks.check_numeric_array("data", value)


def test_nonfinite_says_how_many_and_where() -> None:
    assert _checks.describe_nonfinite(np.ones((2, 2))) is None
    assert _checks.describe_nonfinite(np.arange(3)) is None
    said = _checks.describe_nonfinite(np.array([[1.0, 2.0], [-np.inf, np.nan]]))
    assert said == "2 of 4 values not finite, the first, -inf, at index (1, 0)"


def test_a_warning_points_to_the_users_own_line() -> None:
    # However many functions of deepbf stand between the user's call and the warning.
    layout = DataLayout((ArrayLayout("", STRUCTURES["exchangeable"], (9,), grows=True, sizes=((2, 9),)),))
    with pytest.warns(UserWarning, match="extrapolated") as caught:
        layout.check("data", np.zeros(12), extrapolate=True)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="extrapolated") as caught:
        layout.arrays[0].check_observed("data", np.zeros(12), extrapolate=True)
    assert caught[0].filename == __file__
    # Nor is a line of deepbf-studies the user's own.
    study: dict[str, Any] = {"__name__": "deepbf_studies.paper.made_up"}
    exec(compile("def ask(layout, data): layout.check('data', data, extrapolate=True)", "made_up.py", "exec"), study)
    with pytest.warns(UserWarning, match="extrapolated") as caught:
        study["ask"](layout, np.zeros(12))
    assert caught[0].filename == __file__


def test_a_folder_whose_name_begins_like_the_package_is_the_users_own() -> None:
    # A user's package may stand beside deepbf, under a longer name.
    name = f"{Path(_checks.__file__).parent}_of_a_user/study.py"
    user: dict[str, Any] = {"__name__": "deepbf_of_a_user.study", "warn_user": _checks.warn_user}
    exec(compile("def ask(): warn_user('careful')", name, "exec"), user)
    with pytest.warns(UserWarning, match="careful") as caught:
        user["ask"]()
    assert caught[0].filename == name
