"""Log odds, never probabilities: exact where probabilities would be 0 or 1."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deepbf._numerics import cross_entropy, ensemble_error, log_evidence, log_posterior_probs, log_ratio


def test_log_evidence_adds_the_last_model_in_float64() -> None:
    evidence = log_evidence(np.array([[1.5, -2.0], [0.0, 3.0]], np.float32))
    assert evidence.dtype == np.float64
    assert_array_equal(evidence, [[1.5, -2.0, 0.0], [0.0, 3.0, 0.0]])
    assert log_evidence(np.zeros((3, 5, 1))).shape == (3, 5, 2)


def test_posterior_is_bayes_rule() -> None:
    prior = np.array([0.2, 0.3, 0.5])
    likelihood = np.array([[4.0, 1.0, 0.5], [1e-3, 1.0, 2.0]])
    expected = prior * likelihood / (prior * likelihood).sum(axis=1, keepdims=True)
    assert_allclose(np.exp(log_posterior_probs(np.log(likelihood), np.log(prior))), expected, rtol=1e-14)


def test_a_constant_shift_of_the_evidence_changes_nothing() -> None:
    evidence = np.array([[3.0, -700.0, 1.0]])
    log_prior = np.log([0.2, 0.3, 0.5])
    shifted = log_posterior_probs(evidence + 1e3, log_prior)
    assert_allclose(shifted, log_posterior_probs(evidence, log_prior), rtol=1e-12)


def test_log_ratio_is_the_difference_of_log_evidences() -> None:
    odds = np.array([[[1.5, -2.0], [0.25, 3.0]]], np.float32)
    evidence = log_evidence(odds)
    for first, second in itertools.product(range(3), repeat=2):
        ratio = log_ratio(odds, first, second)
        assert ratio.dtype == np.float64
        assert_array_equal(ratio, evidence[..., first] - evidence[..., second])


@pytest.mark.parametrize("log_odds", [40.0, 1e3, 1e6, -1e6])
def test_log_posterior_odds_are_log_bf_plus_log_prior_odds_even_far_out(log_odds: float) -> None:
    log_prior = np.log([0.9, 0.1])
    posterior = log_posterior_probs(np.array([[log_odds, 0.0]]), log_prior)[0]
    assert posterior[0] - posterior[1] == pytest.approx(log_odds + np.log(9), rel=1e-12)


def test_cross_entropy_is_minus_the_log_probability_of_the_label() -> None:
    evidence = np.log([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    assert_allclose(cross_entropy(evidence, 2), -np.log([0.7, 0.25]), rtol=1e-14)
    assert_allclose(cross_entropy(np.array([[1e5, 0.0]]), 1), [1e5])


def test_an_ensembles_error_is_the_spread_of_its_members() -> None:
    members = np.random.default_rng(3).normal(size=(5, 7, 2))
    error = ensemble_error(members)
    assert error is not None
    assert_allclose(error, np.sqrt(((members - members.mean(axis=0)) ** 2).sum(axis=0) / 4), rtol=1e-12)
    one_number_each = ensemble_error(np.array([1.0, 3.0]))
    assert one_number_each is not None
    assert one_number_each.shape == ()
    assert float(one_number_each) == pytest.approx(np.sqrt(2.0))


def test_an_ensemble_of_one_has_no_error() -> None:
    assert ensemble_error(np.ones((1, 7))) is None
    assert ensemble_error(np.ones((0, 7))) is None
