"""Surprise: small means surprising, uniform under the model itself, with an interval that covers."""

import numpy as np
import pytest
from scipy.stats import binomtest, kstest, norm

from deepbf.evaluation import surprise
from deepbf.evaluation.tail_areas import binomial_interval
from tests.evaluation.problems import SHIFT, shifted_normals, stretched


def test_by_hand_with_ties() -> None:
    found = surprise([0.0, -9.0, 9.0], ([-1.0, 0.0, 0.0, 2.0], [-3.0, 0.0]))
    np.testing.assert_allclose(found.tail_area, [[0.75, 0.5], [0.0, 1.0], [1.0, 0.0]])


def test_ties_split_by_the_last_digits_are_ties() -> None:
    # 0.1 + 0.2 is above 0.3, though only by rounding.
    found = surprise([0.3, 0.1 + 0.2], ([0.1 + 0.2, 0.3], [0.1 + 0.2, 0.3]))
    np.testing.assert_array_equal(found.tail_area, np.ones((2, 2)))
    # What differs by more than that differs, unless the rounding of networks is asked for.
    apart = 0.3 + 1e-7
    assert surprise(0.3, ([0.3, apart], [0.3, apart])).tail_area.tolist() == [[0.5, 1.0]]
    assert surprise(0.3, ([0.3, apart], [0.3, apart]), rounding=True).tail_area.tolist() == [[1.0, 1.0]]


def test_small_means_surprising() -> None:
    reference = shifted_normals(2000, seed=1, shift=3.0)
    speaks_against_first, speaks_against_second = surprise([-4.0, 4.0], reference).tail_area
    assert speaks_against_first[0] < 0.02 < 0.3 < speaks_against_first[1]
    assert speaks_against_second[1] < 0.02 < 0.3 < speaks_against_second[0]


def test_tail_areas_are_the_closed_form_within_their_intervals() -> None:
    # log BF ~ N(+-d^2 / 2, d^2).
    points = np.linspace(-1.5, 1.5, 7)
    found = surprise(points, shifted_normals(4000, seed=2))
    expected = np.stack([norm.cdf(points, SHIFT**2 / 2, SHIFT), norm.sf(points, -(SHIFT**2) / 2, SHIFT)], axis=-1)
    np.testing.assert_array_less(np.abs(found.tail_area - expected), 4 * np.sqrt(expected * (1 - expected) / 4000))
    assert np.mean((found.low <= expected) & (expected <= found.high)) > 0.7
    assert np.all(found.high - found.low < 0.04)


def test_uniform_under_the_model_itself_for_any_increasing_function_of_the_bayes_factor() -> None:
    for transform in (list, stretched):
        reference = transform(shifted_normals(20_000, seed=3))
        at_first, at_second = transform(shifted_normals(2000, seed=4))
        assert kstest(surprise(at_first, reference).tail_area[:, 0], "uniform").pvalue > 0.01
        assert kstest(surprise(at_second, reference).tail_area[:, 1], "uniform").pvalue > 0.01


def test_a_reference_of_the_wrong_model_is_not_uniform() -> None:
    reference = shifted_normals(20_000, seed=3)
    at_first, _ = shifted_normals(2000, seed=4)
    assert kstest(surprise(at_first, reference).tail_area[:, 1], "uniform").pvalue < 1e-6


def test_infinite_and_missing_values() -> None:
    found = surprise([np.inf, -np.inf, np.nan], ([-np.inf, 1.0], [2.0, np.inf]))
    np.testing.assert_array_equal(found.tail_area[:2], [[1.0, 0.5], [0.5, 1.0]])
    assert all(np.isnan(part[2]).all() for part in found)


@pytest.mark.parametrize(("successes", "trials"), [(0, 20), (20, 20), (3, 20), (700, 1500)])
def test_intervals_are_those_of_scipy(successes: int, trials: int) -> None:
    low, high = binomial_interval(np.array([successes]), np.array([trials]))
    expected = binomtest(successes, trials).proportion_ci(method="exact")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-9)
    low, high = binomial_interval(np.array([successes]), np.array([trials]), level=0.9)
    narrower = binomtest(successes, trials).proportion_ci(0.9, method="exact")
    assert (low[0], high[0]) == pytest.approx((narrower.low, narrower.high), abs=1e-9)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"two one-dimensional arrays.*received 3"):
        surprise(1.0, ([1.0, 2.0], [1.0, 2.0], [1.0, 2.0]))
    with pytest.raises(ValueError, match="0 data sets of the second model"):
        surprise(1.0, ([1.0, 2.0], []))
    with pytest.raises(ValueError, match="reference at data of the first model has 1 nan of 2"):
        surprise(1.0, ([1.0, np.nan], [1.0, 2.0]))
    with pytest.raises(TypeError, match="log_bf must hold real numbers"):
        surprise("large", ([1.0, 2.0], [1.0, 2.0]))
