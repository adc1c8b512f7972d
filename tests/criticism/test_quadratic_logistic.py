"""The batched regressions are those of scikit-learn, exact where a closed form is known, and finite everywhere."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from deepbf.criticism.quadratic_logistic import RIDGE, fit_quadratics, num_features

RNG = np.random.default_rng(0)


def by_sklearn(observed: np.ndarray, training: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Log odds of an unpenalised regression, one problem."""
    both = np.concatenate([observed, training])
    labels = np.repeat([1, 0], [len(observed), len(training)])
    features, scaler = PolynomialFeatures(2, include_bias=False), StandardScaler()
    scaled = scaler.fit_transform(features.fit_transform(both))
    fitted = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12).fit(scaled, labels)
    return fitted.decision_function(scaler.transform(features.transform(fresh)))


@pytest.mark.parametrize("num_columns", [1, 2, 3])
def test_agrees_with_scikit_learn_where_data_overlap(num_columns: int) -> None:
    observed = RNG.normal(0.3, 1.2, (100, num_columns))
    training, fresh = RNG.normal(0, 1, (2, 7, 100, num_columns))
    found = fit_quadratics(observed, training, fresh)
    assert found.converged.all()
    for k in range(7):
        np.testing.assert_allclose(found.values[k], by_sklearn(observed, training[k], fresh[k]), atol=2e-3, rtol=1e-3)


def test_agrees_with_scikit_learns_ridge_where_data_are_told_apart() -> None:
    observed, training = np.full((50, 1), 5.0), RNG.normal(0, 1, (1, 50, 1))
    found = fit_quadratics(observed, training, training)
    both = np.concatenate([observed, training[0]])
    features = np.concatenate([both, both**2], axis=1)
    # The penalty is on the log odds' variance: whitened, on the coefficients' squares.
    whiten = np.linalg.inv(np.linalg.cholesky(np.cov(features.T, bias=True))).T
    whitened = (features - features.mean(axis=0)) @ whiten
    fitted = LogisticRegression(C=1 / (RIDGE * 100), solver="newton-cholesky", tol=1e-12, max_iter=1000)
    fitted.fit(whitened, np.repeat([1, 0], 50))
    np.testing.assert_allclose(found.values[0], fitted.decision_function(whitened[50:]), rtol=1e-5)
    assert found.values.max() < -5


def test_of_two_values_the_log_odds_are_those_of_their_counts() -> None:
    # The square of a 0 or 1 is itself: one feature is left, and the regression has one coefficient per value.
    observed = np.repeat([0.0, 1.0], [30, 70])[:, None]
    training = np.repeat([0.0, 1.0], [60, 40])[None, :, None]
    found = fit_quadratics(observed, training, np.array([[[0.0], [1.0]]]))
    np.testing.assert_allclose(found.values[0], np.log([30 / 60, 70 / 40]), atol=1e-4)


def test_units_make_no_difference() -> None:
    observed = RNG.gamma(2, 1, (60, 2))
    training, fresh = RNG.gamma(2, 1, (2, 5, 60, 2))
    there = fit_quadratics(observed, training, fresh).values
    shift, scale = np.array([-3e6, 1e-3]), np.array([1e5, -1e-6])
    here = fit_quadratics(*(shift + scale * data for data in (observed, training, fresh))).values
    np.testing.assert_allclose(here, there, atol=1e-5)


@pytest.mark.parametrize(
    ("observed", "training"),
    [
        (np.full(20, 3.0), np.full((4, 20), 3.0)),
        (np.full(20, 3.0), np.full((4, 20), -1e150)),
        (RNG.geometric(1e-6, 20).astype(float), RNG.geometric(1e-6, (4, 20)).astype(float)),
        (RNG.geometric(1e-6, 20).astype(float), RNG.poisson(0.1, (4, 20)).astype(float)),
        (RNG.standard_cauchy(20) * 1e140, RNG.standard_cauchy((4, 20))),
        (RNG.standard_cauchy(20) ** 5, RNG.standard_cauchy((4, 20)) ** 5),
        (np.array([0.0] * 19 + [1e12]), np.zeros((4, 20))),
    ],
    ids=["all the same", "both constant", "millions", "millions against few", "huge", "heavy tails", "one far out"],
)
def test_finite_for_any_data(observed: np.ndarray, training: np.ndarray) -> None:
    found = fit_quadratics(observed[:, None], training[..., None], training[::-1, :, None])
    assert np.isfinite(found.values).all()
    assert found.converged.all()
    assert np.abs(found.values).max() < 1e4 or observed.max() > 1e3


def test_the_same_constant_on_both_sides_says_nothing() -> None:
    found = fit_quadratics(np.full((9, 1), 3.0), np.full((2, 9, 1), 3.0), np.full((2, 9, 1), 3.0))
    np.testing.assert_array_equal(found.values, 0.0)


def test_features_are_counted() -> None:
    assert [num_features(columns) for columns in (1, 2, 3)] == [2, 5, 9]
