"""Nested data at the public edge: every way to write groups gives the same answer, and what is wrong is named."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

import deepbf
from deepbf.layout import Nested
from deepbf.layout.structure import check_fixed
from tests.untrained import untrained

SHAPE = (3, 4)
RAGGED = [[1.0, 2.0, 3.0], [4.0], [5.0, 6.0]]


def padded(data: Any, data_shape: tuple[int, ...] = SHAPE, sizes: Any = (), *, extrapolate: bool = False) -> NDArray:
    return Nested().check_observed("data", data, data_shape, sizes, varies=True, extrapolate=extrapolate)


def as_array(groups: list[list[float]]) -> NDArray[np.float64]:
    array = np.full(SHAPE, np.nan)
    for row, group in zip(array, groups, strict=False):
        row[: len(group)] = group
    return array


# What is accepted


@pytest.mark.parametrize(
    "data",
    [
        RAGGED,
        tuple(RAGGED),
        [np.array(group) for group in RAGGED],
        np.array([np.array(group) for group in RAGGED], dtype=object),
        as_array(RAGGED),
        as_array(RAGGED)[None],
        [as_array(RAGGED)],
        as_array(RAGGED)[:, :3],
        np.ma.MaskedArray(np.nan_to_num(as_array(RAGGED)), mask=np.isnan(as_array(RAGGED))),
        [RAGGED],
        [[[1, 2, 3], [4], [5, 6]]],
    ],
    ids=str,
)
def test_every_way_to_write_groups_is_one_array(data: Any) -> None:
    assert_array_equal(padded(data), as_array(RAGGED)[None])


def test_groups_of_one_length_need_no_padding() -> None:
    whole = np.arange(12.0).reshape(SHAPE)
    assert_array_equal(padded(whole), whole[None])
    assert_array_equal(padded(whole.tolist()), whole[None])
    assert_array_equal(padded(whole.astype(int)), whole[None])


def test_data_sets_of_different_sizes_come_in_one_list() -> None:
    found = padded([RAGGED, [[7.0]], np.ones((2, 2))])
    assert_array_equal(found[0], as_array(RAGGED))
    assert_array_equal(found[1], as_array([[7.0]]))
    assert_array_equal(found[2], as_array([[1.0, 1.0], [1.0, 1.0]]))


def test_absent_groups_may_stand_anywhere() -> None:
    data = as_array([[1.0], [], [2.0, 3.0]])
    assert_array_equal(padded(data), data[None])


def test_observations_may_have_columns() -> None:
    ragged = [[[1, 2], [3, 4]], [[5, 6]]]
    found = padded(ragged, (3, 4, 2))
    assert found.shape == (1, 3, 4, 2)
    assert_array_equal(found[0, 0, :2], ragged[0])
    assert_array_equal(found[0, 1, 0], ragged[1][0])
    assert np.isnan(found).sum() == 24 - 6
    assert_array_equal(padded([ragged, ragged], (3, 4, 2))[1], found[0])


def test_no_data_sets_are_no_answers() -> None:
    assert padded([]).shape == padded(np.zeros((0, 3, 4))).shape == (0, 3, 4)


# What is refused


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([[1.0, 2.0], []], r"data\[1\] is an empty group. Leave it out"),
        ([[[1.0]], []], r"data\[1\] has no groups"),
        ([[1.0, np.nan]], r"data\[0\] has 1 of 2 values not finite.*Leave missing observations out"),
        ([RAGGED, [[1.0, np.inf]]], r"data\[1\]\[0\] has 1 of 2 values not finite, the first, inf"),
        (np.full(SHAPE, np.inf), "data has 12 of 12 values not finite"),
        (np.ma.MaskedArray([[1.0, np.nan]], mask=[[True, False]]), "data has 1 of 2 values not finite"),
        (np.full((2, *SHAPE), np.nan), "data has a data set without any observation, at index 0"),
        (np.zeros((2, 0)), "groups without observations"),
        ([[1.0] * 5], "1 groups of up to 5 observations; this estimator was trained on at most 3 groups of 4"),
        ([[1.0]] * 4, "data has 4 groups of up to 1 .* at most 3 groups of 4 observations. Fit again"),
        (np.zeros((7, 4, 4)), "data has 4 groups of up to 4 .* at most 3 groups of 4"),
        (np.zeros(4), r"data has shape \(4,\); this estimator is for data sets of shape \(groups, observations\)"),
        (np.zeros((3, 4, 2, 2)), r"data has shape \(3, 4, 2, 2\)"),
        ([1.0, 2.0], "data is a list nested 1 deep; .* is 2 deep, and many are 3"),
        ([[1.0, 2.0], 3.0], r"data\[1\] has shape \(\); a group's observations"),
        ([[1.0, [2.0]]], r"data\[0\]\[0\] has shape \(\); a group's observations"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(data: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        padded(data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (3.0, "data must be groups of observations; received float"),
        ("groups", "received str"),
        ([["a", "b"]], r"data\[0\] must hold real numbers"),
        (np.array([["a"]]), "data must hold real numbers"),
    ],
)
def test_what_are_no_numbers_is_refused(data: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        padded(data)


def test_columns_are_all_there_or_none() -> None:
    data = np.zeros((3, 4, 2))
    data[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match=re.escape("some columns of the observation at index (0, 1, 2)")):
        padded(data, (3, 4, 2))
    with pytest.raises(ValueError, match=r"data\[0\] has shape \(1, 3\).* must be of shape \(2,\)"):
        padded([[[1, 2, 3]]], (3, 4, 2))


@pytest.mark.parametrize(
    ("structure", "data"), [("exchangeable", [[1.0, 2.0], [3.0]]), ("vector", [[[1.0], [2.0]], [[3.0], [4.0, 5.0]]])]
)
def test_ragged_data_need_a_structure_that_has_them(structure: str, data: Any) -> None:
    with pytest.raises(ValueError, match=f"different lengths; .*structure='{structure}'.*structure='nested'"):
        check_fixed("data", data, structure, (2,))
    assert check_fixed("data", [[1.0, 2.0], [3.0, 4.0]], structure, (2,)).shape == (2, 2)


def test_an_estimator_of_one_shape_refuses_ragged_and_masked_data() -> None:
    estimator = untrained("vector", "fnn")
    with pytest.raises(ValueError, match=r"data holds lists of different lengths; .*shape \(13,\)"):
        estimator.log_bf([[1.0] * 13, [1.0] * 12])
    with pytest.raises(ValueError, match="data masks 2 of its values"):
        estimator.log_bf(np.ma.MaskedArray(np.zeros(13), mask=np.arange(13) > 10))


# The estimator


@pytest.mark.slow
def test_an_estimator_answers_alike_however_groups_are_written(tmp_path: Path) -> None:
    estimator = untrained("nested", "deepset")
    groups = [[0.5, -1.0], [2.0], [0.1, 0.2, 0.3]]
    array = np.full((5, 13), np.nan)
    for row, group in zip(array, groups, strict=False):
        row[: len(group)] = group
    expected = estimator.log_bf(array)
    assert expected.shape == (1,)
    assert_array_equal(estimator.log_bf(groups), expected)
    assert_array_equal(estimator.log_bf([groups, groups[::-1]])[:1], expected)
    answer = estimator.compare(groups)
    assert answer.log_bf == expected[0]
    path = tmp_path / "nested.deepbf"
    estimator.save(path)
    assert_array_equal(deepbf.load(path).log_bf_members(groups), estimator.log_bf_members(groups))


def test_an_estimator_names_the_argument_and_its_largest_data_set() -> None:
    estimator = untrained("nested", "deepset")
    with pytest.raises(ValueError, match=r"observed has 6 groups of up to 1 .* at most 5 groups of 13 observations"):
        estimator.compare([[1.0]] * 6)
    with pytest.raises(ValueError, match=r"observed must be one data set of shape \(5, 13\); received 2"):
        estimator.compare([[[1.0]], [[2.0]]])


# Sizes that training did not have

SIZES = ((2, 3), (2, 4))


def test_fewer_groups_or_observations_than_in_training_are_refused() -> None:
    assert_array_equal(padded([[1.0, 2.0], [3.0, 4.0]], SHAPE, SIZES).shape, (1, *SHAPE))
    with pytest.raises(ValueError, match="fewer groups than in training, 2 to 3: the first has 1"):
        padded([[1.0, 2.0]], SHAPE, SIZES)
    with pytest.raises(ValueError, match="fewer observations in a group than in training, 2 to 4: the first has 1"):
        padded([[[1.0, 2.0], [3.0, 4.0]], RAGGED], SHAPE, SIZES)


def test_fewer_are_answered_if_asked_and_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="fewer groups than in training.*extrapolated: nothing vouches"):
        found = padded([[1.0, 2.0]], SHAPE, SIZES, extrapolate=True)
    assert_array_equal(found, as_array([[1.0, 2.0]])[None])


@pytest.mark.slow
def test_the_range_of_training_is_kept_with_the_estimator(tmp_path: Path) -> None:
    def groups(rng: np.random.Generator, size: int) -> Any:
        sizes = np.where(np.arange(3) < rng.integers(2, 3, (size, 1), endpoint=True), rng.integers(2, 5, (size, 3)), 0)
        return np.ma.MaskedArray(rng.normal(size=(size, 3, 4)), mask=np.arange(4) >= sizes[:, :, None])

    models = [deepbf.Model(name, simulator=groups) for name in ("first", "second")]
    bf = deepbf.fit(models, structure="nested", steps=2, ensemble=2, seed=1, progress=False)
    bf.save(tmp_path / "nested.deepbf")
    for estimator in (bf, deepbf.load(tmp_path / "nested.deepbf")):
        assert estimator.layout.arrays[0].sizes == SIZES
        assert np.isfinite(estimator.log_bf([[1.0, 2.0], [3.0, 4.0]])).all()
        with pytest.raises(ValueError, match="fewer groups than in training"):
            estimator.compare([[1.0, 2.0]])
        with pytest.warns(UserWarning, match="extrapolated"):
            estimator.compare([[1.0, 2.0]], extrapolate=True)
