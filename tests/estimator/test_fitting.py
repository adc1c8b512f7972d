"""fit refuses what it cannot use before it trains, and says what to pass instead."""

import itertools
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

import deepbf
from deepbf.estimator import fitting
from deepbf.estimator.fitting import _check_budget
from deepbf.training import Budget
from tests.simulators import FREE_MEAN, NORMAL_MEAN, WITH_DICT, ZERO_MEAN

WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "seconds and steps": ({"seconds": 5, "steps": 5}, ValueError, "exactly one budget.*seconds=5 and steps=5"),
    "steps and simulations": ({"steps": 5, "num_simulations": 5000}, ValueError, "exactly one budget"),
    "all three": ({"seconds": 1, "steps": 5, "num_simulations": 5000}, ValueError, "exactly one budget"),
    "zero seconds": ({"seconds": 0}, ValueError, "seconds must be finite and above 0; received 0"),
    "negative seconds": ({"seconds": -1.0}, ValueError, "seconds must be finite and above 0; received -1"),
    "nan seconds": ({"seconds": float("nan")}, ValueError, "seconds must be finite and above 0; received nan"),
    "endless seconds": ({"seconds": float("inf")}, ValueError, "seconds must be finite"),
    "seconds in words": ({"seconds": "60"}, TypeError, "seconds must be a number above 0; received '60'"),
    "zero steps": ({"steps": 0}, ValueError, "steps must be at least 1; received 0"),
    "negative steps": ({"steps": -5}, ValueError, "steps must be at least 1; received -5"),
    "steps by halves": ({"steps": 10.5}, TypeError, "steps must be a whole number"),
    "nan steps": ({"steps": float("nan")}, TypeError, "steps must be a whole number"),
    "steps in words": ({"steps": "many"}, TypeError, "steps must be a whole number"),
    "zero simulations": ({"num_simulations": 0}, ValueError, "num_simulations must be at least"),
    "negative simulations": ({"num_simulations": -1}, ValueError, "num_simulations must be at least"),
    "too few simulations": ({"num_simulations": 100}, ValueError, "num_simulations must be at least"),
    "nan simulations": ({"num_simulations": float("nan")}, TypeError, "num_simulations must be a whole number"),
    "simulations in words": ({"num_simulations": "all"}, TypeError, "num_simulations must be a whole number"),
    "structure": ({"structure": "exchangable"}, ValueError, "structure.*Did you mean 'exchangeable'"),
    "no structure": ({"structure": None}, ValueError, "structure must be one of"),
    "network": ({"network": "deepsets"}, ValueError, "network.*'deepset'.*Did you mean 'deepset"),
    "network of another structure": ({"network": "mlp"}, ValueError, "network for structure='exchangeable'"),
    "loss": ({"loss": "cross-entropy"}, ValueError, "loss.*Did you mean 'cross_entropy'"),
    "loss of Evidence Networks": ({"loss": "leaky-pop"}, ValueError, "loss.*Did you mean 'leaky_pop'"),
    "thorough": (
        {"schedule": "thorough", "num_simulations": 10_000},
        ValueError,
        "simulates more than it trains on.*num_simulations=10000.*Pass seconds or steps",
    ),
    "schedule": ({"schedule": "papre"}, ValueError, "schedule.*Did you mean 'paper'"),
    "no members": ({"ensemble": 0}, ValueError, "ensemble must be at least 1; received 0"),
    "negative members": ({"ensemble": -4}, ValueError, "ensemble must be at least 1"),
    "half members": ({"ensemble": 2.5}, TypeError, "ensemble must be a whole number"),
    "negative seed": ({"seed": -1}, ValueError, "seed must be a non-negative int; received -1"),
    "float seed": ({"seed": 1.0}, TypeError, "seed must be a non-negative int; received 1.0"),
    "no seed": ({"seed": None}, TypeError, "seed must be a non-negative int; received None"),
    "executor": ({"executor": 4}, TypeError, "executor must have a submit method.*received 4"),
    "prior of the wrong length": ({"prior_probs": [1.0]}, ValueError, "prior_probs has shape"),
    "prior that is none": ({"prior_probs": [0.9, 0.3]}, ValueError, "prior_probs must sum to 1"),
    "mixture of the wrong length": ({"training_probs": [1.0]}, ValueError, "training_probs has shape"),
    "mixture that is none": ({"training_probs": [0.9, 0.3]}, ValueError, "training_probs must sum to 1"),
    "mixture without a model": ({"training_probs": [1.0, 0.0]}, ValueError, "training_probs must be.*above 0"),
    "mixture in words": ({"training_probs": "equal"}, TypeError, "training_probs must be a sequence of numbers"),
    "one model": ({"models": [FREE_MEAN]}, ValueError, "at least two models"),
    "a model, not a list": ({"models": FREE_MEAN}, TypeError, "list of two or more models"),
    "a function, not a model": ({"models": [FREE_MEAN, print]}, TypeError, r"models\[1\] must be a deepbf.Model"),
    "twins": ({"models": [FREE_MEAN, FREE_MEAN]}, ValueError, "distinct names"),
    "no models": ({"models": None}, TypeError, "models must be"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_refused_before_anything_is_simulated(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*_: Any, **__: Any) -> None:
        pytest.fail("training began")

    monkeypatch.setattr(fitting, "train", train)
    arguments, error, says = WRONG[case]
    options = {"structure": "exchangeable", "progress": False} | arguments
    with pytest.raises(error, match=says):
        deepbf.fit(options.pop("models", NORMAL_MEAN), **options)


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="epochs"):
        deepbf.fit(NORMAL_MEAN, epochs=3)  # pyright: ignore[reportCallIssue]


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def trainer(*_: Any, **__: Any) -> None:
        pytest.fail("training began")

    monkeypatch.setattr("deepbf.training.trainer.Trainer", trainer)


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize("structure", ["vector", "exchangeable"])
def test_models_whose_data_differ_in_shape_are_refused(structure: str) -> None:
    with pytest.raises(deepbf.SimulationError, match=r"'free mean' makes \(10,\), 'with dict' makes \(2,\)"):
        deepbf.fit([FREE_MEAN, WITH_DICT], structure=structure, steps=10, progress=False)


@pytest.mark.usefixtures("no_training")
def test_exchangeable_observations_need_an_axis() -> None:
    single = [
        deepbf.Model("narrow", simulator=lambda rng, size: rng.normal(size=size)),
        deepbf.Model("wide", simulator=lambda rng, size: 2 * rng.normal(size=size)),
    ]
    with pytest.raises(ValueError, match=r"exchangeable.*axis of observations.*structure='vector'"):
        deepbf.fit(single, structure="exchangeable", steps=10, progress=False)


@pytest.mark.usefixtures("no_training")
def test_a_broken_simulator_is_named_before_training() -> None:
    broken = deepbf.Model("broken", simulator=lambda rng, size: np.full((size, 10), np.nan))
    with pytest.raises(deepbf.SimulationError, match=r"Model 'broken'.*values not finite"):
        deepbf.fit([ZERO_MEAN, broken], structure="exchangeable", steps=10, progress=False)


def test_lambdas_are_refused_for_processes_before_anything_is_simulated() -> None:
    calls = []
    inline = deepbf.Model("inline", simulator=lambda rng, size: calls.append(size))
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes,
        pytest.raises(TypeError, match=r"'inline' cannot be sent.*top of a module"),
    ):
        deepbf.fit([ZERO_MEAN, inline], structure="exchangeable", steps=10, executor=processes, progress=False)
    assert calls == []


def test_sixty_seconds_unless_told_otherwise() -> None:
    assert _check_budget("auto", None, None, None, 2) == Budget(seconds=60.0)


def test_the_papers_schedule_brings_the_papers_steps() -> None:
    assert _check_budget("paper", None, None, None, 2) == Budget(steps=400_000)
    assert _check_budget("paper", None, 7, None, 2) == Budget(steps=7)
    assert _check_budget("paper", 5, None, None, 2) == Budget(seconds=5.0)


def test_single_counts_from_a_dict_of_parameters_are_vectors_too() -> None:
    def prior(rng: np.random.Generator, size: int) -> dict[str, Any]:
        return {"rate": rng.gamma(1.0, 1.0, size)}

    def count(rng: np.random.Generator, params: dict[str, Any]) -> Any:
        return rng.poisson(params["rate"])

    exponential = deepbf.Model("exponential rate", prior=prior, simulator=count)
    fixed = deepbf.Model("rate 3", simulator=lambda rng, size: rng.poisson(3.0, size))
    estimator = deepbf.fit([exponential, fixed], steps=300, ensemble=2, seed=1, progress=False)
    assert estimator.data_shape == ()
    assert estimator.structure == "vector"
    counts = np.arange(7)
    # A Poisson count whose rate is exponential is geometric with success probability a half.
    exact = -(counts + 1) * np.log(2) - stats.poisson.logpmf(counts, 3.0)
    assert np.abs(estimator.log_bf(counts) - exact).max() < 0.5
    assert estimator.compare(0).favours == "exponential rate"
    assert estimator.compare(3).favours == "rate 3"


def test_the_progress_bar_is_drawn_only_when_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"structure": "exchangeable", "steps": 20, "ensemble": 2, "seed": 1}
    quiet = deepbf.fit(NORMAL_MEAN, **options, progress=False)
    assert capsys.readouterr().out == ""
    shown = deepbf.fit(NORMAL_MEAN, **options, progress=True)
    assert "training" in capsys.readouterr().out
    assert_array_equal(shown.log_bf(np.zeros(10)), quiet.log_bf(np.zeros(10)))


@pytest.mark.slow
def test_processes_give_the_same_bits_as_the_background_thread() -> None:
    options: dict[str, Any] = {"structure": "exchangeable", "steps": 300, "ensemble": 2, "seed": 1, "progress": False}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        by_processes = deepbf.fit(NORMAL_MEAN, executor=processes, **options)
    by_thread = deepbf.fit(NORMAL_MEAN, **options)
    data = FREE_MEAN.simulate(100, 3).data
    assert_array_equal(by_processes.log_bf_members(data), by_thread.log_bf_members(data))


@pytest.mark.slow
@pytest.mark.parametrize("simulator_seconds", [0.0, 0.05])
def test_a_simulator_that_dies_by_the_clock_never_hangs_the_fit(simulator_seconds: float) -> None:
    import time

    count = itertools.count()

    def dies_late(rng: np.random.Generator, size: int) -> Any:
        time.sleep(simulator_seconds)
        if next(count) > 200:
            raise ArithmeticError("the solver diverged")
        return rng.normal(size=(size, 10))

    models = [ZERO_MEAN, deepbf.Model("dies late", simulator=dies_late)]
    with pytest.raises(fitting.PartialFitError, match=r"'dies late'.*the solver diverged"):
        deepbf.fit(models, structure="exchangeable", seconds=30, seed=1, progress=False)
