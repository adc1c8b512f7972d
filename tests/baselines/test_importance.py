"""Importance sampling with Betas: against closed forms and integration, its error, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln

from deepbf import Model
from deepbf.baselines.importance_sampling import importance
from deepbf.baselines.integration import integrate
from deepbf_studies import problems

TRIALS = 42 * 36


def coin(name: str, a: float, b: float, *, num_trials: int = 100, **changes: Any) -> Model:
    parts: dict[str, Any] = {
        "prior": lambda rng, size: rng.beta(a, b, size),
        "simulator": lambda rng, p: rng.binomial(num_trials, p[:, None], (len(p), 1)),
        "log_prior": lambda p: stats.beta.logpdf(p, a, b),
        "log_likelihood": lambda p, y: stats.binom.logpmf(y[..., 0], num_trials, p),
        "transform": "unit",
    }
    return Model(name, **(parts | changes))


@pytest.mark.parametrize("num_trials", [1, 100, 100_000])
def test_beta_binomial(num_trials: int) -> None:
    y = np.array([0, 1, num_trials // 2, num_trials])
    models = [coin("flat", 1, 1, num_trials=num_trials), coin("fair", 5, 5, num_trials=num_trials)]
    result = importance(models, y[:, None])
    exact = betaln(1 + y, 1 + num_trials - y) - betaln(5 + y, 5 + num_trials - y) + betaln(5, 5)
    assert (np.abs(result.log_bf - exact) < 5 * result.log_bf_error).all()
    # The posterior is a Beta: only the prior's share of the draws is lost.
    assert (result.log_bf_error < 0.01).all()
    assert float(np.min(result.diagnostics["effective_sample_size"])) > 5000
    assert result.warnings == ()


def test_errors_are_honest() -> None:
    # The same data set many times: each row has its own random numbers, and the spread is the error.
    models = problems.load("weapon-sum").models
    data = np.repeat(models[0].simulate(1, seed=1).data, 50, axis=0)
    exact = integrate(models, data[:1], route="grid").log_bf[0]
    result = importance(models, data, num_draws=2000)
    z_values = (result.log_bf - exact) / result.log_bf_error
    assert 0.7 < np.sqrt(np.mean(z_values**2)) < 1.4
    assert abs(z_values.mean()) < 5 / np.sqrt(50)
    assert result.log_bf_error.max() < 0.1


@pytest.mark.parametrize("model", [0, 1])
def test_trees_agree_with_integration(model: int) -> None:
    models = problems.load("weapon-sum").models
    data = models[model].simulate(12, seed=2).data
    result = importance(models, data)
    difference = np.abs(result.log_bf - integrate(models, data, route="grid").log_bf)
    assert (difference < 5 * result.log_bf_error).all()
    assert np.median(result.log_bf_error) < 0.03
    assert (result.log_bf_error < 0.15).all()


def test_trees_on_boundaries() -> None:
    correct = np.array([[TRIALS] * 6, [0, *[TRIALS] * 5], [0] * 6, [TRIALS, 0, TRIALS, TRIALS, 700, 800]])
    data = np.concatenate([correct, TRIALS - correct], axis=1)
    models = problems.load("weapon-sum").models
    result = importance(models, data)
    difference = np.abs(result.log_bf - integrate(models, data, route="grid").log_bf)
    assert (difference < 5 * result.log_bf_error).all()
    assert (result.log_bf_error < 0.15).all()


def test_the_error_falls_with_the_square_root_of_the_draws() -> None:
    models = problems.load("weapon-sum").models
    data = models[0].simulate(4, seed=3).data
    few, many = (importance(models, data, num_draws=n).log_bf_error for n in (4000, 64_000))
    assert np.exp(np.log(few / many).mean()) == pytest.approx(4, rel=0.3)


def test_the_same_seed_gives_the_same_bits_and_swapping_flips_the_sign() -> None:
    models = problems.load("weapon-sum").models
    data = models[1].simulate(3, seed=4).data
    first = importance(models, data, num_draws=500, seed=7)
    np.testing.assert_array_equal(importance(models, data, num_draws=500, seed=7).log_bf, first.log_bf)
    np.testing.assert_array_equal(importance(models[::-1], data, num_draws=500, seed=7).log_bf, -first.log_bf)
    assert (importance(models, data, num_draws=500, seed=8).log_bf != first.log_bf).all()
    # One data set alone is the same as the first of many.
    np.testing.assert_array_equal(importance(models, data[0], num_draws=500, seed=7).log_bf, first.log_bf[:1])


def test_a_model_without_parameters_and_one_with_a_dict() -> None:
    fixed = Model(
        "fair",
        simulator=lambda rng, size: rng.binomial(100, 0.5, (size, 1)),
        log_likelihood=lambda params, y: stats.binom.logpmf(y[..., 0], 100, 0.5),
    )
    named = coin(
        "named",
        1,
        1,
        prior=lambda rng, size: {"p": rng.random(size)},
        simulator=lambda rng, params: rng.binomial(100, params["p"][:, None], (len(params["p"]), 1)),
        log_prior=lambda params: np.zeros(len(params["p"])),
        log_likelihood=lambda params, y: stats.binom.logpmf(y[..., 0], 100, params["p"]),
    )
    result = importance([named, fixed], [[50], [70]])
    exact = -np.log(101) - stats.binom.logpmf([50, 70], 100, 0.5)
    assert (np.abs(result.log_bf - exact) < 5 * result.log_bf_error).all()
    assert result.log_bf_error.max() < 0.01
    np.testing.assert_array_equal(result.diagnostics["log_evidence_error"][:, 1], 0)


def test_a_strong_correlation_is_caught_by_the_effective_sample_size() -> None:
    # A ridge p1 = p2 of width 1e-4: independent Betas hit it about once in ten thousand draws.
    ridge = coin(
        "ridge",
        1,
        1,
        prior=lambda rng, size: rng.random((size, 2)),
        simulator=lambda rng, p: np.zeros((len(p), 1)),
        log_prior=lambda p: np.zeros(len(p)),
        log_likelihood=lambda p, y: stats.norm.logpdf(p[:, 0] - p[:, 1], 0, 1e-4),
    )
    certain = Model("certain", simulator=lambda rng, size: np.zeros((size, 1)), log_likelihood=lambda params, y: 0.0)
    result = importance([ridge, certain], [[0.0]])
    assert result.diagnostics["effective_sample_size"][0, 0] < 100
    assert "ridge: effective sample size below 100 for 1 of 1 data sets" in result.warnings[0]


def test_draws_outside_the_support_are_counted() -> None:
    # Half the prior's range is impossible.
    half = coin(
        "half", 1, 1, log_likelihood=lambda p, y: np.where(p < 0.5, stats.binom.logpmf(y[..., 0], 100, p), -np.inf)
    )
    result = importance([coin("flat", 1, 1), half], [[50]], num_draws=10_000)
    assert result.diagnostics["outside"][0, 0] == 0
    assert 300 < result.diagnostics["outside"][0, 1] < 7000
    exact = np.log(stats.beta.cdf(0.5, 51, 51))
    assert abs(-result.log_bf[0] - exact) < 5 * result.log_bf_error[0]


def test_impossible_data_have_no_evidence_and_a_warning() -> None:
    never = coin("never", 1, 1, log_likelihood=lambda p, y: np.full(len(p), -np.inf))
    result = importance([coin("flat", 1, 1), never], [[50]], num_draws=200)
    assert result.log_evidence[0, 1] == -np.inf
    assert result.diagnostics["outside"][0, 1] == 200
    assert result.log_bf_error[0] == np.inf
    assert "never: effective sample size below 100" in result.warnings[0]


# What is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"log_prior": None}, "model 'broken' has no log_prior.*Pass log_prior="),
        ({"log_likelihood": None}, "model 'broken' has no log_likelihood"),
        ({"log_likelihood": lambda p, y: np.full(len(p), np.nan)}, r"'broken' returned nan at parameters \[0\.\d+\]"),
        ({"log_likelihood": lambda p, y: np.where(p > 0.5, np.inf, 0)}, "'broken' returned inf at parameters"),
        ({"log_prior": lambda p: np.zeros((len(p), 1))}, r"log_prior of model 'broken' returned shape \(\d+, 1\)"),
        ({"prior": lambda rng, size: rng.normal(size=size), "simulator": lambda rng, p: np.zeros((len(p), 1))},
         r"takes parameters in \[0, 1\]; the prior of model 'broken' draws -?\d"),
    ],
)  # fmt: skip
def test_bad_models_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        importance([coin("coin", 1, 1), coin("broken", 1, 1, **changes)], [[3]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_draws": 99}, "num_draws must be at least 100; received 99"),
        ({"prior_share": 0.0}, "prior_share must be finite and above 0"),
        ({"prior_share": 1.0}, "prior_share must lie between 0 and 1, both excluded; received 1.0"),
        ({"seed": -1}, "seed must be a non-negative int"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        importance([coin("a", 1, 1), coin("b", 2, 2)], [[3]], **arguments)


def test_an_order_constraint_leaves_few_draws_in_the_support() -> None:
    # Of three uniform probabilities one draw in six is in order; the density there is 6.
    num_probs, num_trials = 3, 200
    heads = np.array([60, 100, 150])

    def draw_ordered(rng: np.random.Generator, size: int) -> np.ndarray:
        return np.sort(rng.uniform(size=(size, num_probs)), axis=1)

    def log_prior(probs: np.ndarray) -> np.ndarray:
        ordered = (np.diff(probs, axis=1) > 0).all(axis=1) & (probs > 0).all(axis=1) & (probs < 1).all(axis=1)
        return np.where(ordered, np.log(6.0), -np.inf)

    def log_likelihood(probs: np.ndarray, data: np.ndarray) -> np.ndarray:
        return (data * np.log(probs) + (num_trials - data) * np.log1p(-probs)).sum(axis=1)

    ordered = Model(
        "ordered",
        prior=draw_ordered,
        simulator=lambda rng, probs: rng.binomial(num_trials, probs),
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        transform="unit",
    )
    fair = Model(
        "fair",
        simulator=lambda rng, size: rng.binomial(num_trials, 0.5, (size, num_probs)),
        log_likelihood=lambda params, data: np.zeros(len(data)),
    )
    result = importance([ordered, fair], heads, seed=1)
    # The posteriors of the three hardly overlap, so that almost all of their product is in order.
    exact = np.log(6.0) + betaln(heads + 1, num_trials - heads + 1).sum()
    assert abs(result.log_bf[0] - exact) < 4 * result.log_bf_error[0] + 1e-3
    assert result.log_bf_error[0] < 0.05
