"""Random effects against a fixed effect: the quadrature against dense normal densities, and its own convergence."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy import integrate, stats

from deepbf_studies import problems
from deepbf_studies.problems import random_effects_log_bf


def simulated(num_each: int, seed: int = 1) -> NDArray[np.float64]:
    models = problems.load("random-effects").models
    return np.concatenate([model.simulate(num_each, seed=seed).data for model in models]).astype(np.float64)


def dense_log_density(data_set: NDArray[np.float64], tau: float, scales: tuple[float, float]) -> float:
    """Return the log density of all observations given tau, by their full covariance matrix."""
    mean_scale, noise_scale = scales
    groups = np.nonzero(~np.isnan(data_set))[0]
    covariance = mean_scale**2 + tau**2 * (groups[:, None] == groups) + noise_scale**2 * np.eye(len(groups))
    return float(stats.multivariate_normal.logpdf(data_set[~np.isnan(data_set)], np.zeros(len(groups)), covariance))


def dense_log_bf(data_set: NDArray[np.float64], mean_scale: float, effect_scale: float, noise_scale: float) -> float:
    scales = (mean_scale, noise_scale)

    def log_integrand(tau: float) -> float:
        return dense_log_density(data_set, tau, scales) + float(stats.halfnorm.logpdf(tau, scale=effect_scale))

    taus = np.linspace(0, 12 * effect_scale, 100).tolist()
    heights = [log_integrand(tau) for tau in taus]
    top, peak = max(heights), taus[int(np.argmax(heights))]
    area, _ = integrate.quad(
        lambda tau: float(np.exp(log_integrand(tau) - top)),
        0,
        taus[-1],
        points=[peak],
        epsabs=1e-11,
        epsrel=1e-10,
        limit=300,
    )
    return top + float(np.log(area)) - dense_log_density(data_set, 0.0, scales)


@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (0.5, 2.0, 0.7)], ids=str)
def test_quadrature_agrees_with_dense_normal_densities(scales: tuple[float, float, float]) -> None:
    data = simulated(3)[:, :6, :9]
    data[0, 2:] = np.nan
    data[1, 0, 1:] = np.nan
    mean_scale, effect_scale, noise_scale = scales
    found = random_effects_log_bf(data, mean_scale=mean_scale, effect_scale=effect_scale, noise_scale=noise_scale)
    assert_allclose(found, [dense_log_bf(data_set, *scales) for data_set in data], rtol=0, atol=1e-8)


def test_twice_the_nodes_change_nothing() -> None:
    data = simulated(300)
    # Spreads from none at all to a hundred times what the prior expects.
    far = data[:40] * np.geomspace(1e-3, 300, 40)[:, None, None]
    for values in (data, far, np.zeros((1, 20, 15)), far[-1:, :2], 30 + data[:5]):
        once = random_effects_log_bf(values)
        assert np.isfinite(once).all()
        twice = random_effects_log_bf(values, num_nodes=256)
        assert_allclose(once, twice, rtol=1e-11, atol=1e-8)


def test_absent_observations_and_groups_change_nothing() -> None:
    data = simulated(5)
    wider = np.full((10, 24, 18), np.nan)
    wider[:, 2:22, 3:] = data
    assert_allclose(random_effects_log_bf(wider), random_effects_log_bf(data), rtol=0, atol=1e-9)
    masked = np.ma.MaskedArray(np.nan_to_num(data, nan=7.0), mask=np.isnan(data))
    assert_array_equal(random_effects_log_bf(masked), random_effects_log_bf(data))


def test_one_group_tells_nothing_beyond_the_spread_of_its_mean() -> None:
    # With one observation, N(0, 2 + tau^2) against N(0, 2).
    def integrand(tau: float) -> float:
        return float(2 * stats.norm.pdf(tau) * stats.norm.pdf(3, 0, np.sqrt(2 + tau**2)))

    expected = np.log(integrate.quad(integrand, 0, 20)[0]) - stats.norm.logpdf(3, 0, np.sqrt(2))
    assert_allclose(random_effects_log_bf([[[3.0]]]), expected, atol=1e-9)


def test_inverse_bayes_factors_average_to_one_under_random_effects() -> None:
    data = problems.load("random-effects").models[0].simulate(5_000, seed=6).data
    inverse = np.exp(-random_effects_log_bf(data))
    error = inverse.std() / np.sqrt(len(data))
    assert error < 0.05
    assert abs(inverse.mean() - 1) < 5 * error


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([[1.0, 2.0]], r"shape \(num_datasets, num_groups, num_obs\); received shape \(1, 2\).*data\[None\]"),
        ([[[1.0, np.inf]]], "finite, or nan where there is no observation; received inf"),
        ([[[1.0]], [[np.nan]]], r"every data set needs an observation; data\[1\] has none"),
    ],
)
def test_data_without_an_answer_are_refused(data: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        random_effects_log_bf(data)  # pyright: ignore[reportArgumentType]
