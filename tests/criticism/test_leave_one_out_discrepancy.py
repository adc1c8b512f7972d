"""The leave-one-out discrepancy agrees with its closed form, and its tail area is uniform where the model is right."""

import json

import numpy as np
import pytest

from deepbf.criticism import Verdict, leave_one_out
from tests.criticism.sources import Fixed, data_of, exact


def closed_form(observed: np.ndarray, expectations: np.ndarray | float) -> float:
    return float(((observed - expectations) ** 2).mean())


def test_agrees_with_the_closed_form() -> None:
    # Data 2's normal: the others' total, shrunk towards 0.
    observed = data_of("data-2", 1, seed=1, num_obs=10)
    precision = 1 + 9 / 2.5**2
    expected = closed_form(observed, (observed.sum() - observed) / 2.5**2 / precision)
    found = leave_one_out(exact("data-2", 1, num_obs=10), observed, num_draws=40_000, num_replicates=2)
    # An expectation has the standard error 2.6 / 200; a square of a distance up to 6 moves by up to 12 times that.
    assert found.discrepancy == pytest.approx(expected, abs=4 * 12 * 2.6 / 200 / np.sqrt(10))
    # Data 1's negative binomial: expectation (b + total of the others) / (a + n - 2).
    counts = data_of("data-1-i", 0, seed=1, num_obs=20)
    expected = closed_form(counts, (2 + counts.sum() - counts) / (2 + 19 - 1))
    found = leave_one_out(exact("data-1-i", 0, num_obs=20), counts, num_draws=40_000, num_replicates=2)
    assert found.discrepancy == pytest.approx(expected, rel=0.03)


def test_few_draws_add_noise_but_no_bias() -> None:
    observed = data_of("data-3", 1, seed=2, num_obs=30)
    sampler = exact("data-3", 1, num_obs=30)
    found = np.array(
        [leave_one_out(sampler, observed, num_draws=2, num_replicates=1, seed=seed).discrepancy for seed in range(300)]
    )
    expected = closed_form(observed, 1 / 3)
    error = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - expected) < 4 * error
    # Uncorrected, the noise of two draws would add half a variance, 1 / 18.
    assert error < 1 / 18 / 8


def test_the_tail_area_is_uniform_without_parameters() -> None:
    sampler = exact("data-3", 1, num_obs=12)
    data = sampler.model.simulate(100, seed=3, num_obs=12).data
    areas = [
        leave_one_out(sampler, observed, num_draws=20, num_replicates=39, seed=k).tail_area.prob
        for k, observed in enumerate(data)
    ]
    # Means of 100 uniforms have the standard error 0.029; their squared distances from 1/2, 0.0075.
    assert np.mean(areas) == pytest.approx(0.5, abs=4 * 0.029)
    assert np.mean((np.array(areas) - 0.5) ** 2) == pytest.approx(1 / 12, abs=4 * 0.0075)


def test_says_which_way_a_model_is_wrong() -> None:
    # Geometric counts vary more than a Poisson with their mean, a constant less.
    wide = leave_one_out(exact("data-1-i", 1), data_of("data-1-i", 0, seed=11))
    assert wide.tails.verdict is Verdict.TOO_LARGE
    assert wide.tail_area.prob == 0
    assert wide.tail_area.high < 0.025
    assert "farther from what the others predict than Poisson says: it does not fit them" in wide.verdict
    assert "as large    < 0.019" in str(wide)
    constant = leave_one_out(exact("data-1-i", 1), np.full(128, 18))
    assert constant.tails.verdict is Verdict.TOO_SMALL
    assert constant.discrepancy < 1
    assert "closer to what the others predict" in constant.verdict
    right = leave_one_out(exact("data-1-i", 0), data_of("data-1-i", 0, seed=11))
    assert "no sign against it here" in str(right)


def test_the_mixture_too() -> None:
    found = leave_one_out(exact("data-2", 0), data_of("data-2", 0, seed=1), num_draws=50, num_replicates=4)
    assert found.discrepancy == pytest.approx(data_of("data-2", 0, seed=1).var(), rel=0.2)


def test_vectors_sum_their_columns() -> None:
    zeros = Fixed("zeros", lambda rng, size: np.zeros((size, 3, 2)))
    found = leave_one_out(zeros, np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]]), num_draws=2, num_replicates=5)
    assert found.discrepancy == pytest.approx(14 / 3)
    np.testing.assert_array_equal(found.replicates, 0.0)


def test_plain_data_and_seeds() -> None:
    sampler, observed = exact("data-3", 0, num_obs=8), data_of("data-3", 0, seed=1, num_obs=8)
    one, other = (leave_one_out(sampler, observed, num_draws=10, num_replicates=5, seed=4) for _ in range(2))
    assert one.to_dict() == other.to_dict()
    said = json.loads(json.dumps(one.to_dict()))
    assert said["num_replicates"] == 5
    # Expectations of the observed data do not hang on how many predictions follow.
    more = leave_one_out(sampler, observed, num_draws=10, num_replicates=6, seed=4)
    assert more.discrepancy == one.discrepancy
