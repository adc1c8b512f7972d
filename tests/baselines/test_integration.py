"""Integration against closed forms, on boundaries, by two routes, and what it refuses."""

import re
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln

from deepbf import Model
from deepbf.baselines import integration
from deepbf.baselines.integration import ROUTES, integrate
from deepbf_studies import problems
from deepbf_studies.problems import normal_mean_log_bf

both_routes = pytest.mark.parametrize("route", ROUTES)
TRIALS = 42 * 36


def coin(name: str, a: float, b: float, *, num_trials: int = 100, transform: Any = "unit") -> Model:
    return Model(
        name,
        prior=lambda rng, size: rng.beta(a, b, size),
        simulator=lambda rng, p: rng.binomial(num_trials, p[:, None], (len(p), 1)),
        log_prior=lambda p: stats.beta.logpdf(p, a, b),
        log_likelihood=lambda p, y: stats.binom.logpmf(y[..., 0], num_trials, p),
        transform=transform,
    )


def coin_log_bf(y: np.ndarray, first: tuple[float, float], second: tuple[float, float], n: int) -> np.ndarray:
    return (betaln(first[0] + y, first[1] + n - y) - betaln(*first)) - (
        betaln(second[0] + y, second[1] + n - y) - betaln(*second)
    )


@both_routes
@pytest.mark.parametrize("num_trials", [1, 100, 100_000])
def test_beta_binomial(route: str, num_trials: int) -> None:
    # 0 and all successes put the mode on a bound.
    y = np.array([0, 1, num_trials // 2, num_trials])
    models = [coin("flat", 1, 1, num_trials=num_trials), coin("fair", 5, 5, num_trials=num_trials)]
    result = integrate(models, y[:, None], route=route, relative_error=1e-9)
    exact = coin_log_bf(y, (1, 1), (5, 5), num_trials)
    assert result.diagnostics["converged"].all()
    assert result.warnings == ()
    assert (np.abs(result.log_bf - exact) <= result.log_bf_error + 1e-9).all()
    assert (result.log_bf_error < 2.1e-9).all()
    # The evidence of a flat prior is 1 over the number of outcomes.
    np.testing.assert_allclose(result.log_evidence[:, 0], -np.log(num_trials + 1), atol=1e-8)


@both_routes
@pytest.mark.parametrize("name", ["data-1-i", "data-1-ii"])
def test_data_1(route: str, name: str) -> None:
    study = problems.load(name, num_obs=8)
    data = np.concatenate([model.simulate(10, seed=1).data for model in study.models])
    result = integrate(study.models, data, route=route, relative_error=1e-9)
    np.testing.assert_allclose(result.log_bf, study.exact_log_bf(data), rtol=1e-10, atol=1e-8)
    assert result.log_bf_error.max() < 1e-8


def test_likelihoods_that_pair_parameters_and_data_one_by_one() -> None:
    def one_by_one(p: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.array([stats.binom.logpmf(row[0], 100, one) for one, row in zip(p, y, strict=True)])

    paired = Model(
        "paired",
        prior=lambda rng, size: rng.random(size),
        simulator=lambda rng, p: rng.binomial(100, p[:, None], (len(p), 1)),
        log_prior=lambda p: np.zeros(len(p)),
        log_likelihood=one_by_one,
        transform="unit",
    )
    result = integrate([paired, coin("broadcast", 1, 1)], [[30]])
    np.testing.assert_allclose(result.log_evidence, -np.log(101), atol=1e-7)


def test_bounds_may_be_wider_than_the_support() -> None:
    study = problems.load("data-1-i", num_obs=8)
    data = study.models[0].simulate(5, seed=2).data
    result = integrate(study.models, data, bounds=[(-np.inf, np.inf), (-1, np.inf)])
    np.testing.assert_allclose(result.log_bf, study.exact_log_bf(data), atol=1e-5)


def normal_models(scale: float, transform: Any = None) -> list[Model]:
    return [
        Model(
            "unknown mean",
            prior=lambda rng, size: {"mean": rng.normal(0, scale, size)},
            simulator=lambda rng, p: rng.normal(p["mean"][:, None], 1, (len(p["mean"]), 4)),
            log_prior=lambda p: stats.norm.logpdf(p["mean"], 0, scale),
            log_likelihood=lambda p, y: stats.norm.logpdf(y, p["mean"][:, None], 1).sum(axis=-1),
            transform=transform,
        ),
        Model(
            "mean 0",
            simulator=lambda rng, size: rng.normal(0, 1, (size, 4)),
            log_likelihood=lambda params, y: stats.norm.logpdf(y).sum(axis=-1),
        ),
    ]


@both_routes
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e4])
@pytest.mark.parametrize("transform", [None, "real", {"mean": "real"}])
def test_normal_mean(route: str, scale: float, transform: Any) -> None:
    data = np.array([[0.1, 0.2, -0.3, 0.0], [3.0, 2.0, 4.0, 3.5], [-80.0, -81.0, -80.0, -82.0]])
    result = integrate(normal_models(scale, transform), data, route=route)
    exact = normal_mean_log_bf(data, prior_scale=scale)
    assert (np.abs(result.log_bf - exact) <= result.log_bf_error + 1e-9).all()
    assert result.log_bf_error.max() < 1e-6


@both_routes
def test_two_separate_modes_in_two_dimensions(route: str) -> None:
    # A mixture of two narrow normals far apart; the second model has the same evidence, 1, by construction.
    centres = np.array([[-3.0, 2.0], [4.0, -1.0]])

    def log_likelihood(theta: np.ndarray, y: np.ndarray) -> np.ndarray:
        parts = stats.norm.logpdf(theta[:, None, :], centres, 0.05).sum(axis=-1)
        return np.logaddexp(np.log(0.2) + parts[:, 0], np.log(0.8) + parts[:, 1]) - 2 * np.log(1 / 20)

    two = Model(
        "two modes",
        prior=lambda rng, size: rng.uniform(-10, 10, (size, 2)),
        simulator=lambda rng, theta: theta[:, :1],
        log_prior=lambda theta: np.where((np.abs(theta) < 10).all(axis=-1), -2 * np.log(20), -np.inf),
        log_likelihood=log_likelihood,
    )
    certain = Model("certain", simulator=lambda rng, size: np.zeros((size, 1)), log_likelihood=lambda params, y: 0.0)
    result = integrate([two, certain], [0.0], bounds=[(-10, 10), None], route=route)
    assert abs(result.log_bf[0]) <= result.log_bf_error[0] + 1e-7
    assert result.log_bf_error[0] < 1e-5


def tree_data() -> np.ndarray:
    """Data sets that lean on bounds: all correct, all wrong in one cell, all wrong, empty cells, and one inside."""
    correct = np.array(
        [
            [TRIALS] * 6,
            [0, *[TRIALS] * 5],
            [TRIALS, 0, TRIALS, TRIALS, 700, 800],
            [0] * 6,
            [TRIALS - 1, TRIALS, TRIALS - 2, TRIALS, TRIALS, TRIALS - 1],
            [1510, 1505, 3, 1500, 1490, 2],
            [1211, 1050, 1042, 1200, 1130, 1145],
        ]
    )
    return np.concatenate([correct, TRIALS - correct], axis=1)


def test_trees_on_boundaries_by_two_routes() -> None:
    models = problems.load("weapon-sum").models
    grid = integrate(models, tree_data(), route="grid")
    adaptive = integrate(models, tree_data(), route="adaptive")
    assert grid.diagnostics["converged"].all()
    assert adaptive.diagnostics["converged"].all()
    assert (np.abs(grid.log_evidence - adaptive.log_evidence) < 1e-5).all()
    assert (adaptive.log_bf_error < 1e-5).all()


def test_all_correct_has_a_closed_form() -> None:
    # All answers to the neutral tool correct and nothing else known: E[(C + (1-C)B)^n], with 1 - (1-C)(1-B) = 1 - u and
    # u of density -log u; its integral is (1 + 1/2 + ... + 1/(n+1)) / (n+1).
    models = problems.load("weapon-sum").models
    n = 36
    data = np.zeros((1, 12))
    data[0, 4] = n
    for route in ROUTES:
        result = integrate(models, data, route=route)
        exact = np.log(np.sum(1 / np.arange(1.0, n + 2)) / (n + 1))
        np.testing.assert_allclose(result.log_evidence, exact, atol=1e-5)


def test_swapping_models_flips_the_sign() -> None:
    models = problems.load("weapon-sum").models
    data = models[0].simulate(2, seed=3).data
    forward = integrate(models, data, route="grid")
    backward = integrate(models[::-1], data, route="grid")
    np.testing.assert_array_equal(forward.log_bf, -backward.log_bf)
    np.testing.assert_array_equal(forward.log_bf_error, backward.log_bf_error)


def test_data_that_a_model_excludes_are_counted_not_hidden() -> None:
    impossible = Model(
        "never",
        prior=lambda rng, size: rng.random(size),
        simulator=lambda rng, p: np.zeros((len(p), 1)),
        log_prior=lambda p: np.zeros(len(p)),
        log_likelihood=lambda p, y: np.full(len(p), -np.inf),
        transform="unit",
    )
    result = integrate([coin("coin", 1, 1), impossible], [[3]])
    assert np.isnan(result.log_evidence[0, 1])
    assert not result.diagnostics["converged"][0, 1]
    assert "never: no density above 0 found for 1 of 1 data sets" in result.warnings[0]


def test_an_integral_that_is_not_reached_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integration, "_MOST_EVALUATIONS", 1e6)
    rough = Model(
        "rough",
        prior=lambda rng, size: rng.random((size, 3)),
        simulator=lambda rng, p: np.zeros((len(p), 1)),
        log_prior=lambda p: np.zeros(len(p)),
        # Noise in every digit: no rule agrees with any other.
        log_likelihood=lambda p, y: np.sin(1e9 * p.sum(axis=-1)),
        transform="unit",
    )
    certain = Model("certain", simulator=lambda rng, size: np.zeros((size, 1)), log_likelihood=lambda params, y: 0.0)
    result = integrate([rough, certain], [[0.0]], relative_error=1e-8)
    assert not result.diagnostics["converged"][0, 0]
    assert result.log_bf_error[0] > 1e-8
    assert "rough: the integral missed its relative error of 1e-08 for 1 of 1 data sets" in result.warnings[0]


# What is refused


def broken(**changes: Any) -> Model:
    parts: dict[str, Any] = {
        "prior": lambda rng, size: rng.random(size),
        "simulator": lambda rng, p: np.zeros((len(p), 1)),
        "log_prior": lambda p: np.zeros(len(p)),
        "log_likelihood": lambda p, y: np.zeros(len(p)),
        "transform": "unit",
    }
    return Model("broken", **(parts | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"log_prior": None}, "model 'broken' has no log_prior.*Pass log_prior= to deepbf.Model"),
        ({"log_likelihood": None}, "model 'broken' has no log_likelihood"),
        ({"log_likelihood": lambda p, y: np.full(len(p), np.nan)}, r"'broken' returned nan at parameters \[0\.\d+\]"),
        ({"log_likelihood": lambda p, y: np.where(p > 0.5, np.inf, 0)}, r"log_likelihood of model .* returned inf at"),
        ({"log_prior": lambda p: p * np.nan}, "log_prior of model 'broken' returned nan at parameters"),
        ({"log_likelihood": lambda p, y: np.zeros((len(p), 2))}, r"returned shape \(3, 2\).*must be \(3,\)"),
        ({"log_likelihood": lambda p, y: 0.0}, r"returned shape \(\) for 3 parameter values"),
        ({"prior": lambda rng, size: rng.random(size) + 0.5}, "must hold all its prior draws.*Widen the bounds"),
        (
            {"prior": lambda rng, size: rng.random((size, 4))},
            "model 'broken' has 4 parameters; integration takes at most 3. Use bridge sampling",
        ),
    ],
)
def test_bad_models_are_named(changes: dict[str, Any], message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message):
            integrate([coin("coin", 1, 1), broken(**changes)], [[3]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"relative_error": 1e-20}, "relative_error must lie between 1e-11"),
        ({"relative_error": 0}, "relative_error must be finite and above 0"),
        ({"route": "adaptve"}, "Did you mean 'adaptive'"),
        ({"bounds": [(0, 1)]}, re.escape("bounds must have one entry per model (a, b)")),
        ({"bounds": [(1, 0), None]}, re.escape("low < high, or one such pair for each of its 1 parameters; received")),
        ({"bounds": ["wide", None]}, "received 'wide'"),
        ({"seed": -1}, "seed must be a non-negative int"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        integrate([coin("a", 1, 1), coin("b", 2, 2)], [[3]], **arguments)


def test_observed_data_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("the models simulate data sets of shape (1,)")):
        integrate([coin("a", 1, 1), coin("b", 2, 2)], [[3, 4]])
