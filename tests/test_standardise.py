"""Standardised data are moderate float32 numbers with a middle of unit size, whatever the data were."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from deepbf.standardise import LARGEST, Standardiser

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


def interquartile_range(values: NDArray[np.generic]) -> float:
    low, high = np.quantile(np.asarray(values, np.float64), [0.25, 0.75])
    return float(high - low)


def middle_of(standardised: NDArray[np.float32]) -> tuple[float, float]:
    assert standardised.dtype == np.float32
    assert np.isfinite(standardised).all()
    return float(np.median(standardised)), interquartile_range(standardised)


def normals(rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.normal(size=(400, 5))


DATA = {
    "plain": lambda rng: normals(rng),
    "shifted": lambda rng: 1e6 + normals(rng),
    "tiny scale": lambda rng: 1e-300 * normals(rng),
    "large": lambda rng: 1e300 * normals(rng),
    "huge, both signs": lambda rng: 1.7e308 * rng.uniform(-1, 1, (400, 5)),
    "huge, one sign": lambda rng: rng.uniform(1.2e308, 1.7e308, (400, 5)),
    "heavy tails": lambda rng: rng.standard_cauchy((400, 5)),
    "whole numbers beyond float32": lambda rng: 2**50 + rng.integers(0, 1000, (400, 5)),
    "unsigned, to the largest": lambda rng: rng.integers(0, 2**64, (400, 5), dtype=np.uint64),
    "float32": lambda rng: normals(rng).astype(np.float32),
    "float16": lambda rng: normals(rng).astype(np.float16),
}


@pytest.mark.parametrize("exchangeable", [True, False])
@pytest.mark.parametrize("case", DATA)
def test_the_middle_has_unit_scale(case: str, exchangeable: bool) -> None:
    data = DATA[case](np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        standardised = Standardiser.fit([data[:200], data[200:]], num_axes=int(exchangeable))(data)
    columns = [standardised] if exchangeable else list(standardised.T)
    for column in columns:
        median, width = middle_of(column)
        assert abs(median) < 0.01
        assert width == pytest.approx(1, abs=0.01)


def test_counts_in_the_millions_leave_the_small_counts_apart() -> None:
    rng = np.random.default_rng(2)
    # Data 1 (ii): geometric counts with a uniform success probability reach the millions.
    success = np.append(rng.beta(1, 1, 5000), 1e-7)
    counts = rng.geometric(success[:, None], (5001, 20)) - 1
    assert counts.max() > 1e7
    standardised = Standardiser.fit([counts], num_axes=1)(counts)
    median, width = middle_of(standardised)
    assert median == 0
    assert width == pytest.approx(1)
    small = [np.unique(standardised[counts == value]) for value in range(10)]
    assert all(len(values) == 1 for values in small)
    assert np.diff(np.concatenate(small)).min() > 0.05


def test_neighbouring_whole_numbers_beyond_float32_stay_apart() -> None:
    data = 2**50 + np.arange(100)[:, None]
    standardised = Standardiser.fit([data], num_axes=0)(data)
    assert len(np.unique(data.astype(np.float32))) == 1
    assert (np.diff(standardised[:, 0]) > 0).all()


@pytest.mark.parametrize("value", [0.0, 7.0, -1e-310, 1e300, 1e18])
def test_a_constant_column_becomes_zero(value: float) -> None:
    data = np.full((50, 2), value)
    data[:, 1] = np.random.default_rng(3).normal(size=50)
    standardised = Standardiser.fit([data], num_axes=0)(data)
    assert_array_equal(standardised[:, 0], 0)
    assert interquartile_range(standardised[:, 1]) == pytest.approx(1, abs=1e-6)


def test_a_rare_event_still_shows() -> None:
    data = np.zeros((1000, 1))
    data[:30] = 5.0
    standardised = Standardiser.fit([data], num_axes=0)(data)
    assert_array_equal(standardised[30:], 0)
    assert (standardised[:30] > 1).all()


def test_true_and_false_are_numbers() -> None:
    data = np.random.default_rng(4).random((200, 3)) < 0.5
    standardised = Standardiser.fit([data], num_axes=1)(data)
    assert standardised.dtype == np.float32
    assert len(np.unique(standardised)) == 2


def test_exchangeable_observations_share_one_scale_and_columns_have_their_own() -> None:
    rng = np.random.default_rng(5)
    data = rng.normal([0.0, 100.0], [1.0, 50.0], (300, 7, 2))
    standardiser = Standardiser.fit([data], num_axes=1)
    assert standardiser.location.shape == (2,)
    assert_allclose(standardiser.location, np.median(data.reshape(-1, 2), axis=0))
    by_position = Standardiser.fit([data], num_axes=0)
    assert by_position.location.shape == (7, 2)
    scalars = Standardiser.fit([data[..., 0]], num_axes=1)
    assert scalars.location.shape == ()


def test_models_are_pooled_with_equal_weight_a_data_set() -> None:
    low, high = np.zeros((10, 3)), np.ones((30, 3))
    assert_array_equal(Standardiser.fit([low, high], num_axes=0).location, np.ones(3))


def test_it_is_the_plain_formula_where_nothing_overflows() -> None:
    rng = np.random.default_rng(6)
    pilot, fresh = rng.normal(3, 2, (2, 100, 4))
    standardiser = Standardiser.fit([pilot], num_axes=0)
    low, high = np.quantile(pilot, [0.25, 0.75], axis=0)
    assert_allclose(standardiser(fresh), (fresh - np.median(pilot, axis=0)) / (high - low), rtol=1e-6)


def test_far_values_are_held_at_the_edge() -> None:
    standardiser = Standardiser.fit([np.random.default_rng(7).normal(size=(100, 1))], num_axes=0)
    far = np.array([[1e308], [-1e308], [1e30], [np.finfo(np.float64).max], [np.finfo(np.float64).min]])
    assert_array_equal(standardiser(far)[:, 0], np.array([LARGEST, -LARGEST, LARGEST, LARGEST, -LARGEST], np.float32))


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    pilot=arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=FINITE),
    data=arrays(np.float64, (4, 2), elements=FINITE),
    exchangeable=st.booleans(),
)
def test_any_finite_data_become_moderate_float32(
    pilot: NDArray[np.float64], data: NDArray[np.float64], exchangeable: bool
) -> None:
    standardised = Standardiser.fit([pilot], num_axes=int(exchangeable))(data)
    assert standardised.shape == data.shape
    assert standardised.dtype == np.float32
    assert np.isfinite(standardised).all()
    assert np.abs(standardised).max() <= np.float32(LARGEST)
