"""Every kind of bad input: which argument, the rule, the value received, the next step."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from deepbf.baselines.abc import abc_epsilon, abc_forest, abc_logistic, abc_ranked
from tests.baselines.abc import problems

MODELS = problems.NORMALS[:2]
OBSERVED = np.zeros((2, 4))
REFERENCE = problems.draw_reference(MODELS, [60, 60], seed=1)

METHODS: list[Callable[..., Any]] = [
    partial(abc_epsilon, epsilon=1.0, num_simulations=200),
    partial(abc_ranked, num_simulations=200, num_strata=10, num_kept=20),
    partial(abc_logistic, num_simulations=200, num_kept=20, num_splits=1),
    partial(abc_forest, num_simulations=200, num_trees=5, num_splits=1),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=["epsilon", "ranked", "logistic", "forest"])


def fails(data: np.ndarray) -> np.ndarray:
    raise KeyError("shape")


@every_method
@pytest.mark.parametrize(
    ("summary", "message"),
    [
        (fails, r"summary raised KeyError: 'shape', given data of shape \(2, 4\) of observed"),
        (lambda data: data.mean(axis=0), r"returned an array of shape \(4,\) for 2 data sets of observed.*must be 2"),
        (lambda data: data.sum(), r"returned an array of shape \(\) for 2 data sets"),
        (lambda data: np.log(data[:, :1]), r"summary of observed has 2 of 2 values not finite.*Choose a summary"),
        (lambda data: ["a"] * len(data), r"summary of observed must hold real numbers"),
        (lambda data: data[:, :0], r"summary returned an empty array"),
        (lambda data: np.zeros((len(data), len(data))), r"summary returned 2 numbers for an observed data set and"),
        (lambda data: np.where(data == 0, data, np.nan), r"nan or inf for all \d+ draws of the first stratum"),
        (lambda data: data + 1e200, r"observed summaries must lie within 1e\+150 of 0.*received 1e\+200.*unit"),
    ],
)
def test_bad_summaries(method: Callable[..., Any], summary: Callable[..., Any], message: str) -> None:
    with np.errstate(divide="ignore", invalid="ignore"), pytest.raises((ValueError, TypeError), match=message):
        method(MODELS, OBSERVED, summary=summary)


@every_method
def test_a_summary_must_be_a_function(method: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="summary must be a function of data sets or None; received 'mean'"):
        method(MODELS, OBSERVED, summary="mean")


@every_method
def test_draws_without_a_summary_are_counted(method: Callable[..., Any]) -> None:
    def sometimes(data: np.ndarray) -> np.ndarray:
        return np.where(data[:, 0] > 1.5, np.nan, data.mean(axis=1))

    result = method(MODELS, OBSERVED, summary=sometimes)
    num_undefined = result.diagnostics["num_undefined"]
    assert (num_undefined == num_undefined[0]).all()
    assert 0 < num_undefined[0] < 100
    assert f"summary is nan or inf for {num_undefined[0]} of 200 reference draws" in result.warnings[-1]
    assert np.isfinite(result.log_bf).all()


@every_method
@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ([REFERENCE[0]], r"reference must be a list of one array per model, 2 in all; received 1 entries"),
        (np.zeros((2, 5, 4)), r"reference must be a list of one array per model, 2 in all; received ndarray"),
        ([REFERENCE[0], np.zeros((60, 3))], r"reference\[1\] \(model 'null'\) has shape \(60, 3\).*shape \(4,\)"),
        ([REFERENCE[0], np.zeros((0, 4))], r"reference\[1\] \(model 'null'\) has shape \(0, 4\)"),
        ([REFERENCE[0], np.full((60, 4), np.nan)], r"reference\[1\] \(model 'null'\) has 240 of 240 values not finite"),
        ([REFERENCE[0], "text"], r"reference\[1\] must hold real numbers"),
    ],
)
def test_bad_references(method: Callable[..., Any], reference: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        method(MODELS, OBSERVED, reference=reference)


@every_method
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior_probs": [0.5, 0.5], "reference": REFERENCE}, "prior_probs=.* was passed with a reference"),
        ({"prior_probs": [0.5, 0.6]}, "prior_probs must sum to 1"),
        ({"seed": -1}, "seed must be a non-negative int; received -1"),
        ({"num_simulations": 1}, "num_simulations must be at least 2; received 1"),
    ],
)
def test_bad_settings(method: Callable[..., Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method(MODELS, OBSERVED, **change)


@every_method
@pytest.mark.parametrize(
    ("observed", "message"),
    [
        (np.zeros(3), r"observed has shape \(3,\); the models simulate data sets of shape \(4,\)"),
        (np.full((1, 4), np.nan), "observed has 4 of 4 values not finite"),
    ],
)
def test_bad_observed(method: Callable[..., Any], observed: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method(MODELS, observed)


@pytest.mark.parametrize("method", METHODS[:3], ids=["epsilon", "ranked", "logistic"])
def test_unknown_distance_names_the_nearest(method: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"distance must be one of 'euclidean', 'scaled'.*Did you mean 'euclidean'"):
        method(MODELS, OBSERVED, distance="euclid")


@pytest.mark.parametrize("epsilon", [0, -1.0, float("inf"), float("nan")])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon must be finite and above 0"):
        abc_epsilon(MODELS, OBSERVED, epsilon=epsilon)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_kept": 201}, "num_kept must not exceed the 200 reference draws; received 201. Keep fewer"),
        ({"num_kept": 51}, r"kept_per_stratum \* num_strata = 50; received num_kept=51. Raise kept_per_stratum"),
        ({"num_strata": 30}, "num_strata must divide num_simulations=200 .* received 30. Pass, .* num_strata=25"),
        ({"num_strata": 7, "reference": REFERENCE}, "num_strata must divide the reference's 120 draws .* received 7"),
        ({"num_strata": 0}, "num_strata must be at least 1"),
        ({"kept_per_stratum": 0}, "kept_per_stratum must be at least 1"),
        ({"num_kept": 0}, "num_kept must be at least 1"),
    ],
)
def test_bad_strata(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        METHODS[1](MODELS, OBSERVED, **change)


def test_logistic_cannot_keep_more_than_there_are() -> None:
    with pytest.raises(ValueError, match="num_kept must not exceed the 200 reference draws; received 300"):
        METHODS[2](MODELS, OBSERVED, num_kept=300)


def test_a_forest_needs_some_draws_of_every_model() -> None:
    with pytest.raises(ValueError, match=r"at least 10 draws of every model.*'null' has 2. Raise num_simulations"):
        METHODS[3](MODELS, OBSERVED, prior_probs=[0.99, 0.01])
