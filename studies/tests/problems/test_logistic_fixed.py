"""Logistic regression with a slope or without: quadrature against adaptive quadrature and sums over all outcomes."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats
from scipy.special import expit

from deepbf_studies import problems
from deepbf_studies.problems import logistic_fixed
from deepbf_studies.problems.logistic_fixed import design, logistic_fixed_log_bf


@pytest.mark.parametrize("responses", [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]], ids=str)
def test_agrees_with_adaptive_quadrature(responses: list[int]) -> None:
    x = design(6)["x"]
    signs = 2 * np.array(responses) - 1

    def with_slope(b: float, a: float) -> float:
        return float(expit(signs * (a + b * x)).prod() * stats.norm.pdf([a, b], scale=1.5).prod())

    def without(a: float) -> float:
        return float(expit(signs * a).prod() * stats.norm.pdf(a, scale=1.5))

    first: float = integrate.dblquad(with_slope, -11, 11, -11, 11, epsabs=1e-10, epsrel=1e-6)[0]
    second: float = integrate.quad(without, -11, 11, epsabs=0, epsrel=1e-9)[0]
    assert logistic_fixed_log_bf([responses])[0] == pytest.approx(np.log(first / second), abs=1e-5)


def test_ratios_weighted_by_the_second_model_sum_to_one() -> None:
    """Over all outcomes, the sum of second evidence times Bayes factor is the total probability of the first model."""
    outcomes = np.array(list(itertools.product([0, 1], repeat=8)))
    totals = outcomes.sum(axis=1)
    a = np.linspace(-12, 12, 2_001)
    log_terms = totals[:, None] * a - 8 * np.logaddexp(0, a) + stats.norm.logpdf(a, scale=1.5)
    second = np.exp(log_terms).sum(axis=1) * (a[1] - a[0])
    assert second.sum() == pytest.approx(1.0, abs=1e-9)
    assert (second * np.exp(logistic_fixed_log_bf(outcomes))).sum() == pytest.approx(1.0, abs=1e-6)


def test_finer_nodes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    models = problems.load("logistic-fixed").models
    data = np.concatenate([*(model.simulate(100, seed=1).data for model in models), np.ones((1, 30))])
    usual = logistic_fixed_log_bf(data)
    monkeypatch.setattr(logistic_fixed, "STEP_IN_WIDTHS", 0.6)
    monkeypatch.setattr(logistic_fixed, "LARGEST_IN_SCALES", 8.0)
    assert_allclose(logistic_fixed_log_bf(data), usual, rtol=0, atol=1e-5)


def test_swapping_zeros_and_ones_or_turning_the_design_round_changes_nothing() -> None:
    data = problems.load("logistic-fixed").models[0].simulate(30, seed=2).data
    expected = logistic_fixed_log_bf(data)
    for other in (1 - data, data[:, ::-1]):
        assert_allclose(logistic_fixed_log_bf(other), expected, rtol=0, atol=1e-9)


def test_what_is_not_binary_is_refused() -> None:
    with pytest.raises(ValueError, match="binary responses, 0 or 1; received 3"):
        logistic_fixed_log_bf([[0, 1, 3]])
