"""AR(1) against MA(1): likelihoods against dense linear algebra, quadrature against another rule, and identities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy import integrate, linalg

from deepbf_studies import problems
from deepbf_studies.problems import ar_ma_log_bf, linear_series
from studies.tests.problems import joint_normal

COEFFICIENTS = np.array([-0.99, -0.3, 0.0, 0.7, 0.999])


def ar_covariance(phi: float, length: int) -> NDArray[np.float64]:
    return linalg.toeplitz(phi ** np.arange(length)) / (1 - phi**2)


def ma_covariance(theta: float, length: int) -> NDArray[np.float64]:
    return linalg.toeplitz(np.concatenate([[1 + theta**2, theta], np.zeros(length)])[:length])


CASES = {
    "AR(1)": (linear_series.ar_log_likelihood, ar_covariance),
    "MA(1)": (linear_series.ma_log_likelihood, ma_covariance),
}


def some_series(length: int, num_datasets: int = 4) -> NDArray[np.float64]:
    return 2 * np.random.default_rng(length).standard_normal((num_datasets, length))


@pytest.mark.parametrize("model", CASES)
@pytest.mark.parametrize("length", [1, 2, 7, 100])
def test_likelihoods_are_those_of_dense_covariance_matrices(model: str, length: int) -> None:
    log_likelihood, covariance = CASES[model]
    data = some_series(length)
    expected = [joint_normal.log_density(data, np.zeros(length), covariance(c, length)) for c in COEFFICIENTS]
    assert_allclose(log_likelihood(COEFFICIENTS, data).T, expected, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("model", [0, 1])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_the_studys_densities_are_the_same(model: int, length: int) -> None:
    chosen = problems.load("ar-ma", num_obs=length).models[model]
    assert chosen.log_likelihood is not None
    data = some_series(length, num_datasets=len(COEFFICIENTS))
    log_likelihood, _ = CASES[chosen.name]
    together = log_likelihood(COEFFICIENTS, data)
    assert_allclose(chosen.log_likelihood(COEFFICIENTS, data), np.diag(together), rtol=1e-12)
    assert_allclose(chosen.log_likelihood(COEFFICIENTS, data[0]), together[0], rtol=1e-12)
    assert (chosen.log_likelihood(np.array([-1.0, 1.0, 3.0]), data[0]) == -np.inf).all()


@pytest.mark.parametrize("length", [1, 2, 30])
def test_the_log_bf_is_the_ratio_of_two_integrals(length: int) -> None:
    data = some_series(length)[:2]

    def evidence(model: str, row: NDArray[np.float64]) -> float:
        log_likelihood, _ = CASES[model]
        # An integral of its own kind: adaptive, in the coefficient itself.
        value, _ = integrate.quad(
            lambda c: np.exp(log_likelihood(np.array([c]), row[None])[0, 0]), -1, 1, epsabs=0, epsrel=1e-11, limit=400
        )
        return value / 2

    expected = [np.log(evidence("AR(1)", row) / evidence("MA(1)", row)) for row in data]
    assert_allclose(ar_ma_log_bf(data), expected, atol=1e-8)


def test_more_nodes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.concatenate([model.simulate(100, seed=1).data for model in problems.load("ar-ma").models])
    log_bf = ar_ma_log_bf(data)
    monkeypatch.setattr(linear_series, "FEWEST_NODES", 1024)
    assert_allclose(ar_ma_log_bf(data), log_bf, rtol=1e-9, atol=1e-8)


def test_time_and_sign_have_no_direction() -> None:
    data = some_series(20)
    log_bf = ar_ma_log_bf(data)
    assert_allclose(ar_ma_log_bf(data[:, ::-1]), log_bf, atol=1e-9)
    assert_allclose(ar_ma_log_bf(-data), log_bf, atol=1e-9)
    # Flipping every other sign turns each coefficient into its negative.
    assert_allclose(ar_ma_log_bf(data * (-1.0) ** np.arange(20)), log_bf, atol=1e-9)


def test_bayes_factors_average_to_one_under_the_other_model() -> None:
    study = problems.load("ar-ma", num_obs=3)
    inverse = np.exp(-study.exact_log_bf(study.models[0].simulate(20_000, seed=2).data))
    error = inverse.std() / np.sqrt(len(inverse))
    assert error < 0.02
    assert abs(inverse.mean() - 1) < 5 * error


def test_simulators_have_the_covariances_of_their_models() -> None:
    rng = np.random.default_rng(3)
    for model in problems.load("ar-ma", num_obs=4).models:
        for coefficient in (-0.8, 0.5):
            data = model.simulator(rng, np.full(40_000, coefficient))
            expected = CASES[model.name][1](coefficient, 4)
            # Var of a product of two normals is at most twice the product of their variances.
            assert_allclose(np.cov(data.T), expected, atol=5 * np.sqrt(2 / len(data)) * expected[0, 0])


def test_series_far_beyond_the_noise_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"too narrow to integrate with .* nodes; its largest value is 1e\+12"):
        ar_ma_log_bf([[1e12, -1e11, 3e11]])
