"""The two exact routes for Data 2 against each other, against brute force, and against one observation by hand."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from deepbf_studies.problems import (
    mixture_quadrature,
    normal_mixture_log_bf,
    normal_mixture_log_bf_by_enumeration,
    normal_mixture_log_bf_by_quadrature,
)
from studies.tests.problems import joint_normal

ROUTES = {
    "automatic": normal_mixture_log_bf,
    "enumeration": normal_mixture_log_bf_by_enumeration,
    "quadrature": normal_mixture_log_bf_by_quadrature,
}


def awkward(num_obs: int) -> NDArray[np.float64]:
    """Data sets, ordinary and not: equal values, a far outlier, two clusters, far from both models."""
    rng = np.random.default_rng(num_obs)
    half = np.arange(num_obs) < num_obs / 2
    outlier = np.where(np.arange(num_obs) == 0, 30.0, rng.normal(0, 2.5, num_obs))
    rows = [
        *rng.normal(0, 3, (20, num_obs)),
        np.zeros(num_obs),
        np.full(num_obs, 5.0),
        np.full(num_obs, -40.0),
        outlier,
        -outlier,
        np.where(half, 8.0, -6.0) + 0.1 * rng.standard_normal(num_obs),
        np.where(half, 0.0, 15.0),
        100 * rng.standard_normal(num_obs),
    ]
    return np.array(rows)


def log_normal_evidence(data: NDArray[np.float64]) -> float:
    """Log joint density under the second model: variances 7.25, covariances 1."""
    cov = 2.5**2 * np.eye(len(data)) + 1.0
    return float(joint_normal.log_density(data, 0.0, cov)[0])


def brute_force(
    data: NDArray[np.float64], low: float, high: float, num_points: int
) -> tuple[float, NDArray[np.float64]]:
    """Log Bayes factor by the plainest sum over a square of means, and the log integrand there."""
    means = np.linspace(low, high, num_points)
    log_pdf = stats.norm.logpdf(data[:, None], means, 2.0)
    log_joint = stats.norm.logpdf(means, 2.0, 1.5)[:, None] + stats.norm.logpdf(means, -2.0, 1.5)[None, :]
    for row in log_pdf:
        log_joint += np.logaddexp(row[:, None], row[None, :]) - np.log(2)
    log_evidence = float(np.logaddexp.reduce(log_joint, axis=None)) + 2 * np.log(means[1] - means[0])
    return log_evidence - log_normal_evidence(data), log_joint


@pytest.mark.parametrize("route", ROUTES)
def test_one_observation_by_hand(route: str) -> None:
    y = np.linspace(-30, 30, 61)
    log_first = np.logaddexp(stats.norm.logpdf(y, 2, 2.5), stats.norm.logpdf(y, -2, 2.5)) - np.log(2)
    log_second = stats.norm.logpdf(y, 0, np.sqrt(7.25))
    np.testing.assert_allclose(ROUTES[route](y[:, None]), log_first - log_second, rtol=0, atol=1e-9)


@pytest.mark.parametrize("route", ROUTES)
def test_two_observations_by_hand(route: str) -> None:
    data = np.array([[0.0, 0.0], [4.0, -4.0], [3.0, 3.5], [-1.0, 12.0]])
    together, apart = np.array([[6.25, 2.25], [2.25, 6.25]]), 6.25 * np.eye(2)
    log_first = np.logaddexp.reduce(
        [
            joint_normal.log_density(data, [2, 2], together),
            joint_normal.log_density(data, [-2, -2], together),
            joint_normal.log_density(data, [2, -2], apart),
            joint_normal.log_density(data, [-2, 2], apart),
        ]
    )
    expected = log_first - np.log(4) - [log_normal_evidence(row) for row in data]
    np.testing.assert_allclose(ROUTES[route](data), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("num_obs", range(1, 11))
def test_both_routes_agree(num_obs: int) -> None:
    data = awkward(num_obs)
    by_enumeration = normal_mixture_log_bf_by_enumeration(data)
    np.testing.assert_allclose(normal_mixture_log_bf_by_quadrature(data), by_enumeration, rtol=0, atol=1e-8)
    np.testing.assert_allclose(normal_mixture_log_bf(data), by_enumeration, rtol=0, atol=1e-8)


@pytest.mark.parametrize("data", awkward(5)[[0, 20, 23, 25]], ids=str)
def test_five_observations_by_brute_force(data: NDArray[np.float64]) -> None:
    expected, _ = brute_force(data, -30, 30, 301)
    for route in ROUTES.values():
        [log_bf] = route(data[None])
        assert log_bf == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("row", [0, 1, 2, 20, 21, 23, 25])
def test_many_observations_by_brute_force(row: int) -> None:
    data = awkward(128)[row]
    expected, log_joint = brute_force(data, -12, 18, 301)
    # The square must hold the mass, or agreement would mean nothing.
    edge = max(log_joint[0].max(), log_joint[-1].max(), log_joint[:, 0].max(), log_joint[:, -1].max())
    assert edge < log_joint.max() - 30
    [log_bf] = normal_mixture_log_bf(data[None])
    assert log_bf == pytest.approx(expected, abs=1e-8)


def test_two_distant_modes_are_both_found() -> None:
    # 126 observations around 0 and two near 24: as likely two of the far component as two freaks of a near one.
    data = np.append(stats.norm.ppf((np.arange(126) + 0.5) / 126), [24.2, 24.5])
    expected, log_joint = brute_force(data, -6, 24, 301)
    posterior = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=None))
    below = 100  # grid points with a mean below 4
    near, far = posterior[:below, :below].sum(), posterior[below:, :below].sum()
    assert min(near, far) > 0.05
    assert near + far == pytest.approx(1, abs=1e-6)
    [log_bf] = normal_mixture_log_bf_by_quadrature(data[None])
    assert log_bf == pytest.approx(expected, abs=1e-8)


def test_the_search_discards_nothing_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    # Outliers on one side or both put mass in several places, between the points of the coarse grids.
    rng = np.random.default_rng(11)
    data = rng.uniform(0.3, 3, (200, 1)) * rng.standard_normal((200, 64))
    data[:, :2] = rng.uniform(8, 35, (200, 1))
    data[:60, 2:4] = -rng.uniform(8, 30, (60, 1))
    searched = normal_mixture_log_bf_by_quadrature(data)
    monkeypatch.setattr(mixture_quadrature, "_search_spacings", lambda box, unit: [])
    np.testing.assert_allclose(searched, normal_mixture_log_bf_by_quadrature(data), rtol=0, atol=1e-9)


@pytest.mark.parametrize("num_obs", [3, 128])
def test_symmetries(num_obs: int) -> None:
    data = awkward(num_obs)
    log_bf = normal_mixture_log_bf(data)
    # Both models are symmetric about 0, and blind to order.
    np.testing.assert_allclose(normal_mixture_log_bf(-data), log_bf, rtol=0, atol=1e-8)
    np.testing.assert_allclose(normal_mixture_log_bf(data[:, ::-1]), log_bf, rtol=0, atol=1e-8)


@pytest.mark.parametrize("num_obs", [4, 40])
def test_a_data_set_does_not_depend_on_its_company(num_obs: int) -> None:
    rng = np.random.default_rng(2)
    data = np.concatenate([rng.normal(0, 3, (300, num_obs)), awkward(num_obs)])
    together = normal_mixture_log_bf_by_quadrature(data)
    some = [0, 1, 150, 299, *range(320, 328)]
    alone = np.concatenate([normal_mixture_log_bf_by_quadrature(data[[i]]) for i in some])
    np.testing.assert_allclose(together[some], alone, rtol=0, atol=1e-8)


def test_more_factors_than_a_float_can_multiply() -> None:
    # 1,100 observations within both components: a plain product of 1 + exp(...) would reach 2^1100.
    data = 0.01 * np.sin(np.arange(1100.0))
    expected, _ = brute_force(data, -1, 1, 81)
    [log_bf] = normal_mixture_log_bf(data[None])
    assert log_bf == pytest.approx(expected, abs=1e-8)


def test_bayes_factors_average_to_one_under_the_second_model() -> None:
    def weighted(y: float) -> float:
        return float(np.exp(stats.norm.logpdf(y, 0, np.sqrt(7.25)) + normal_mixture_log_bf_by_quadrature([[y]])[0]))

    assert integrate.quad(weighted, -25, 25)[0] == pytest.approx(1, abs=1e-8)
    # For two observations a plain sum over a square of unit cells; densities this smooth need no finer grid.
    grid = np.arange(-20.0, 21.0)
    pairs = np.array([(a, b) for a in grid for b in grid])
    log_second = joint_normal.log_density(pairs, 0.0, 2.5**2 * np.eye(2) + 1.0)
    assert np.exp(log_second + normal_mixture_log_bf(pairs)).sum() == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("num_obs", [1, 8, 128])
def test_absurd_outliers_stay_finite(num_obs: int) -> None:
    data = np.random.default_rng(3).normal(0, 2.5, (3, num_obs))
    data[:, 0] = [1e3, -1e5, 1e7]
    log_bf = normal_mixture_log_bf_by_quadrature(data)
    assert np.isfinite(log_bf).all()
    if num_obs <= 8:
        np.testing.assert_allclose(log_bf, normal_mixture_log_bf_by_enumeration(data), rtol=1e-12)


@pytest.mark.parametrize("route", ROUTES)
def test_shapes_at_the_edge(route: str) -> None:
    log_bf_fn = ROUTES[route]
    assert log_bf_fn(np.empty((0, 12))).shape == (0,)
    np.testing.assert_allclose(log_bf_fn(np.empty((2, 0))), 0, atol=1e-9)
    integers = np.array([[3, -4, 0]])
    np.testing.assert_array_equal(log_bf_fn(integers), log_bf_fn(integers.astype(np.float64)))
    with pytest.raises(ValueError, match=r"data must have shape"):
        log_bf_fn([1.0, 2.0])


def test_what_a_route_cannot_do_it_refuses() -> None:
    with pytest.raises(ValueError, match=r"21 observations .* Use normal_mixture_log_bf_by_quadrature"):
        normal_mixture_log_bf_by_enumeration(np.zeros((1, 21)))
    with pytest.raises(ValueError, match=r"within 1e\+07 of 0; received 2e\+07"):
        normal_mixture_log_bf_by_quadrature([[2e7]])
