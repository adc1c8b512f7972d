"""Correlated or independent pairs: quadrature over Fisher's z against dense normal densities."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from deepbf_studies import problems
from deepbf_studies.problems.pairs import pairs_log_bf


def log_density(pairs: np.ndarray, correlation: float) -> float:
    """Return the log density of all values of one data set, by their full covariance matrix."""
    one = np.array([[1.0, correlation], [correlation, 1.0]])
    # Values of the same column share the variance of its mean.
    covariance: Any = np.kron(np.eye(len(pairs)), one) + np.kron(np.ones((len(pairs), len(pairs))), np.eye(2))
    return float(stats.multivariate_normal.logpdf(pairs.ravel(), np.zeros(2 * len(pairs)), covariance))


@pytest.mark.parametrize("num_obs", [1, 6])
@pytest.mark.parametrize("model", [0, 1])
def test_agrees_with_dense_normal_densities(num_obs: int, model: int) -> None:
    for pairs in problems.load("pairs", num_obs=num_obs).models[model].simulate(3, seed=3).data:
        area, _ = integrate.quad(
            lambda r, p=pairs: 0.5 * np.exp(log_density(p, r)), -1, 1, epsabs=0, epsrel=1e-8, limit=400
        )
        found = pairs_log_bf(pairs[None])[0]
        assert found == pytest.approx(np.log(area) - log_density(pairs, 0.0), abs=1e-6)


def test_swapping_columns_or_both_signs_changes_nothing() -> None:
    data = problems.load("pairs").models[0].simulate(50, seed=1).data
    expected = pairs_log_bf(data)
    for other in (data[:, :, ::-1], -data, data * [1, -1]):
        assert_allclose(pairs_log_bf(other), expected, rtol=1e-9, atol=1e-9)


def test_nearly_equal_columns_are_far_from_independent_but_finite() -> None:
    x = np.random.default_rng(1).normal(size=(1, 40))
    found = [pairs_log_bf(np.stack([x, x + 10.0**-k * x**2], axis=2))[0] for k in range(1, 6)]
    assert np.isfinite(found).all()
    # Each digit more is worth log(10) for each of the 39 free differences, but for the prior, which takes 2 log(10).
    assert_allclose(np.diff(found)[-2:], 37 * np.log(10), rtol=1e-2)


def test_inverse_bayes_factors_average_to_one_under_correlation() -> None:
    data = problems.load("pairs", num_obs=6).models[0].simulate(5_000, seed=6).data
    inverse = np.exp(-pairs_log_bf(data))
    error = inverse.std() / np.sqrt(len(data))
    assert error < 0.05
    assert abs(inverse.mean() - 1) < 5 * error


def test_what_are_no_pairs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(data sets, observations, 2\); received shape \(1, 2, 3\)"):
        pairs_log_bf(np.zeros((1, 2, 3)))
    with pytest.raises(ValueError, match="must be finite"):
        pairs_log_bf([[[0.0, np.nan]]])
