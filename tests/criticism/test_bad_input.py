"""Every wrong argument is named before anything is drawn, with the rule, what was received, and what to do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from deepbf.criticism import leave_one_out, predictive_check, z_values
from tests.criticism.sources import Fixed, data_of, exact

SAMPLER = exact("data-1-i", 1)
OBSERVED = data_of("data-1-i", 0, seed=11)
CHECKS: dict[str, Callable[..., Any]] = {
    "z_values": z_values,
    "leave_one_out": leave_one_out,
    "predictive_check": predictive_check,
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize(
    ("observed", "error", "words"),
    [
        (
            np.where(np.arange(128) == 5, np.nan, OBSERVED),
            ValueError,
            r"has 1 of 128 values not finite.*\(5,\)",
        ),
        (np.where(np.arange(128) == 5, np.inf, OBSERVED), ValueError, r"the first, inf, at index \(5,\)"),
        (["a", "b"], TypeError, "observed must hold real numbers"),
        (3.0, ValueError, r"observed must be one data set.*received shape \(\)"),
        ([], ValueError, r"observed must be one data set.*received shape \(0,\)"),
        (np.full(128, 1e200), ValueError, "within 1e.150 of 0.*Change the unit"),
        (np.ones((128, 3)), ValueError, r"shape \(128, 3\).*sampler is for model 'Poisson'.*shape \(128,\)"),
    ],
    ids=["nan", "inf", "text", "a number", "empty", "huge", "another shape"],
)
def test_observed(check: Callable[..., Any], observed: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        check(SAMPLER, observed)


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_samplers(check: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"sampler must be a posterior sampler.*received Model\. Pass what"):
        check(SAMPLER.model, OBSERVED)
    pairs = Fixed("pairs", lambda rng, size: rng.normal(size=(size, 10, 2)))
    with pytest.raises(ValueError, match=r"observed has shape \(128,\).*model 'pairs'.*shape \(10, 2\)"):
        check(pairs, OBSERVED)


class Other(Fixed):
    """Predicts something else than its model."""

    def __init__(self, value: float, num_obs: int) -> None:
        super().__init__("other", lambda rng, size: np.zeros((size, 4)))
        self.drawn = np.full(num_obs, value)

    def predictive(self, observed: Any, num_draws: int, *, seed: int = 0) -> Any:
        return np.tile(self.drawn, (num_draws, 1))


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_predictions_are_checked(check: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"predictive draws of model 'other' have shape \(\d+, 3\).*need \(\d+, 4\)"):
        check(Other(0.0, 3), np.zeros(4))
    with pytest.raises(ValueError, match=r"predictive draws of model 'other' have \d+ of \d+ values not finite"):
        check(Other(np.nan, 4), np.zeros(4))


def test_numbers() -> None:
    for check in (CHECKS["z_values"], CHECKS["leave_one_out"]):
        with pytest.raises(ValueError, match="num_replicates must be at least 1; received 0"):
            check(SAMPLER, OBSERVED, num_replicates=0)
        with pytest.raises(TypeError, match="num_replicates must be a whole number"):
            check(SAMPLER, OBSERVED, num_replicates=10.0)
        with pytest.raises(ValueError, match="seed must be a non-negative int"):
            check(SAMPLER, OBSERVED, seed=-1)
    with pytest.raises(ValueError, match="num_draws must be at least 2; received 1"):
        leave_one_out(SAMPLER, OBSERVED, num_draws=1)
    with pytest.raises(ValueError, match="num_draws must be at least 1; received 0"):
        predictive_check(SAMPLER, OBSERVED, num_draws=0)
    with pytest.raises(ValueError, match=r"draws must be one of 'independent', 'joint'; received 'joined'.*'joint'"):
        z_values(SAMPLER, OBSERVED, draws="joined")


def test_one_observation() -> None:
    sampler = exact("data-1-i", 1, num_obs=1)
    with pytest.raises(ValueError, match=r"observed holds 1 observations.*at least 2 to learn from; use pred"):
        z_values(sampler, [3])
    with pytest.raises(ValueError, match=r"there are no others to predict it from; use predictive_check"):
        leave_one_out(sampler, [3])


def test_classifiers() -> None:
    with pytest.raises(TypeError, match=r"a scikit-learn classifier with predict_proba; received LinearSVC\(\)"):
        z_values(SAMPLER, OBSERVED, classifier=LinearSVC())
    with pytest.raises(TypeError, match="received the class LinearSVC"):
        z_values(SAMPLER, OBSERVED, classifier=LinearSVC)
    with pytest.raises(TypeError, match="received 'forest'"):
        z_values(SAMPLER, OBSERVED, classifier="forest")
    wide = Fixed("wide", lambda rng, size: rng.normal(size=(size, 20, 30)))
    with pytest.raises(ValueError, match=r"30 numbers per observation, which have 495.*up to 90\. Pass classifier="):
        z_values(wide, np.zeros((20, 30)))


def fails(data: np.ndarray) -> np.ndarray:
    raise RuntimeError("no such column")


@pytest.mark.parametrize(
    ("statistics", "error", "words"),
    [
        ({"mine": fails}, ValueError, "'mine' failed on the data of shape .1, 128.: RuntimeError: no such column"),
        ({"mine": lambda data: data.var()}, ValueError, r"'mine' returned shape \(\) for 1 data sets.*var\(axis=1\)"),
        ({"mine": lambda data: data.mean(axis=0)}, ValueError, r"'mine' returned shape \(128,\) for 1 data sets"),
        ({"mine": lambda data: data.mean(axis=1) * np.nan}, ValueError, "'mine' of the data has 1 of 1 values"),
        ({"mine": lambda data: ["a"]}, ValueError, "'mine' failed.*must hold real numbers"),
        (
            {"mine": lambda data: np.where(data.max(axis=1) < 9, np.nan, 1.0)},
            ValueError,
            r"'mine' of predictions has \d+ of \d+ values not finite",
        ),
        ("varianse", ValueError, r"statistics\[0\] must be one of 'mean', 'sd'"),
        ({"a": "men"}, ValueError, r"statistics\['a'\] must be one of.*Did you mean 'mean'"),
        ([], ValueError, "statistics must hold at least one; received none. Built in are mean, sd"),
        (["mean", "mean"], ValueError, "different names; received mean twice"),
        ({1: "mean"}, TypeError, r"named by strings; received the names \[1\]"),
        (3.0, TypeError, "statistics must be names, functions, or functions by name; received float"),
    ],
)  # fmt: skip
def test_statistics(statistics: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        predictive_check(SAMPLER, OBSERVED, statistics)
