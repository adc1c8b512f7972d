"""Linear regressions with one covariate or two: the closed form against multivariate t densities, and designs."""

import re
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from deepbf_studies import problems
from deepbf_studies.problems.linear_regression import (
    COEFFICIENT_SCALE,
    DRAWN_CORRELATION,
    correlated_covariates_log_bf,
    design,
    g_prior_covariance,
    log_linear_evidence,
    regression_rows_log_bf,
)


def log_t_density(response: np.ndarray, X: np.ndarray, covariance: np.ndarray) -> float:
    """Return the log density of a response: inverse gamma(3, 2) makes it a t of 6 degrees of freedom."""
    shape: Any = 2.0 / 3.0 * (np.eye(len(X)) + X @ covariance @ X.T)
    return float(stats.multivariate_t.logpdf(response, np.zeros(len(X)), shape, df=6))


@pytest.mark.parametrize("num_obs", [4, 40])
def test_the_fixed_design_agrees_with_multivariate_t_densities(num_obs: int) -> None:
    columns = design(num_obs)
    X = np.stack([np.ones(num_obs), columns["x"], columns["z"]], axis=1)
    for model in problems.load("correlated-covariates", num_obs=num_obs).models:
        data = model.simulate(5, seed=1).data
        expected = []
        for y in data:
            both, first = (log_t_density(y, X[:, :k], g_prior_covariance(X[:, :k])) for k in (3, 2))
            expected.append(both - first)
        assert_allclose(correlated_covariates_log_bf(data), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("num_obs", [1, 40])
def test_rows_agree_with_multivariate_t_densities(num_obs: int) -> None:
    variances = np.array([1.0, COEFFICIENT_SCALE**2, COEFFICIENT_SCALE**2])
    for model in problems.load("regression-rows", num_obs=num_obs).models:
        data = model.simulate(5, seed=1).data
        expected = []
        for rows in data:
            X = np.column_stack([np.ones(num_obs), rows[:, 1:]])
            both, first = (log_t_density(rows[:, 0], X[:, :k], np.diag(variances[:k])) for k in (3, 2))
            expected.append(both - first)
        assert_allclose(regression_rows_log_bf(data), expected, rtol=0, atol=1e-9)


def test_evidences_agree_with_the_mean_likelihood_of_the_prior() -> None:
    """Draws of the simulators' own priors, so that prior and formula cannot disagree unnoticed."""
    study = problems.load("correlated-covariates", num_obs=3)
    response = np.array([0.5, -0.4, 1.0])
    columns = design(3)
    X = np.stack([np.ones(3), columns["x"], columns["z"]], axis=1)
    log_evidences = []
    for model, k in zip(study.models, (3, 2), strict=True):
        assert model.prior is not None
        params = model.prior(np.random.default_rng(2), 400_000)
        likelihoods = np.exp(
            stats.norm.logpdf(response, params["coefficients"] @ X.T, params["sigma"][:, None]).sum(axis=1)
        )
        error = likelihoods.std() / np.sqrt(len(likelihoods)) / likelihoods.mean()
        assert error < 0.01
        expected = log_t_density(response, X[:, :k], g_prior_covariance(X[:, :k]))
        assert abs(np.log(likelihoods.mean()) - expected) < 5 * error
        log_evidences.append(log_linear_evidence(response[None], X[:, :k], g_prior_covariance(X[:, :k]))[0] - expected)
    # The constant is the same for both.
    assert log_evidences[0] == pytest.approx(log_evidences[1], abs=1e-10)


def test_the_design_is_fixed_and_its_covariates_are_correlated() -> None:
    columns = problems.load("correlated-covariates").covariates
    assert columns is not None
    assert sorted(columns) == ["x", "z"]
    for column in columns.values():
        assert abs(column.mean()) < 0.1
        assert column.std() == pytest.approx(1, abs=0.1)
    assert np.corrcoef(columns["x"], columns["z"])[0, 1] == pytest.approx(0.8, abs=0.05)
    for name in columns:
        np.testing.assert_array_equal(columns[name], design(40)[name])


@pytest.mark.parametrize("model", [0, 1])
def test_covariates_of_rows_are_the_same_under_both_models(model: int) -> None:
    rows = problems.load("regression-rows").models[model].simulate(2_000, seed=3).data
    x, z = rows[:, :, 1], rows[:, :, 2]
    assert stats.kstest(x.ravel(), "norm").pvalue > 1e-6
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-6
    assert (x * z).mean() == pytest.approx(DRAWN_CORRELATION, abs=5 * 1.2 / np.sqrt(x.size))


def test_a_covariate_of_zeros_tells_nothing() -> None:
    rows = problems.load("regression-rows").models[0].simulate(20, seed=4).data
    rows[:, :, 2] = 0.0
    assert_allclose(regression_rows_log_bf(rows), 0.0, atol=1e-10)


def test_what_has_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("shape (data sets, observations, 3); received shape (2, 40)")):
        regression_rows_log_bf(np.zeros((2, 40)))
    with pytest.raises(ValueError, match=re.escape("shape (num_datasets, num_obs)")):
        correlated_covariates_log_bf(np.zeros(40))
