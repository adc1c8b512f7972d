"""Tail areas of statistics agree with their closed forms; built-in statistics are what their names say."""

import json

import numpy as np
import pytest
from scipy.stats import binom, gamma

from deepbf.criticism import PredictiveCheck, StatisticCheck, Verdict, predictive_check
from deepbf.criticism.posterior_predictive_check import BUILT_IN, tails_of
from tests.criticism.sources import Fixed, coins, data_of, exact

NUM_DRAWS = 4000


def assert_close(estimated: float, expected: float) -> None:
    assert abs(estimated - expected) < 4 * np.sqrt(expected * (1 - expected) / NUM_DRAWS) + 1e-12


def test_tail_areas_are_those_of_the_closed_forms() -> None:
    # Waiting times of rate 3: their mean is Gamma, their minimum exponential of rate 3 n, their maximum a power.
    n = 30
    sampler, observed = exact("data-3", 1, num_obs=n), data_of("data-3", 1, seed=1, num_obs=n)
    found = predictive_check(sampler, observed, ["mean", "min", "max"], num_draws=NUM_DRAWS)
    assert_close(found["mean"].tails.at_most.prob, float(gamma(n, scale=1 / (3 * n)).cdf(observed.mean())))
    assert_close(found["min"].tails.at_most.prob, float(-np.expm1(-3 * n * observed.min())))
    assert_close(found["max"].tails.at_most.prob, float((-np.expm1(-3 * observed.max())) ** n))
    assert found["min"].tails.share_equal == 0


def test_ties_count_on_both_sides() -> None:
    n = 20
    found = predictive_check(coins(n), [1] * 8 + [0] * 12, "mean", num_draws=NUM_DRAWS)["mean"]
    assert_close(found.tails.at_most.prob, float(binom.cdf(8, n, 0.5)))
    assert_close(found.tails.at_least.prob, float(binom.sf(7, n, 0.5)))
    assert_close(found.tails.share_equal, float(binom.pmf(8, n, 0.5)))
    # A statistic that never varies is as predicted, in whatever order it was summed.
    assert tails_of(0.1 + 0.2, np.full(50, 0.3)).verdict == "as predicted"


@pytest.mark.parametrize(
    ("observed", "num_draws", "verdict"),
    [
        (500.0, 1000, Verdict.AS_PREDICTED),
        (1001.0, 1000, Verdict.TOO_LARGE),
        (-1.0, 1000, Verdict.TOO_SMALL),
        (980.0, 1000, Verdict.BORDERLINE_LARGE),
        # Twenty draws cannot show that a tail is below 2.5%.
        (-1.0, 20, Verdict.BORDERLINE_SMALL),
    ],
)
def test_verdicts_follow_the_interval(observed: float, num_draws: int, verdict: Verdict) -> None:
    draws = np.arange(float(num_draws))
    assert tails_of(observed, draws).verdict is verdict
    check = StatisticCheck("it", observed, draws, "a model")
    assert check.verdict is verdict
    assert check.verdict.fails == (verdict in {Verdict.TOO_LARGE, Verdict.TOO_SMALL})
    # To whoever prints, compares or stores it, a verdict is its text.
    assert f"{verdict}" == verdict == verdict.value
    assert type(check.to_dict()["verdict"]) is str
    assert repr(verdict) == repr(verdict.value)


@pytest.mark.parametrize("name", ["borderline", "too good", "as predicted"])
def test_what_a_model_is_called_changes_no_verdict(name: str) -> None:
    fitting = StatisticCheck("mean", 500.0, np.arange(1000.0), name)
    failing = StatisticCheck("sd", -1.0, np.arange(1000.0), name)
    assert str(PredictiveCheck((fitting,), name, 1000)).startswith(f"{name} predicts the observed mean")
    assert str(PredictiveCheck((fitting, failing), name, 1000)).startswith(f"{name} does not predict the observed sd")
    nearly = StatisticCheck("max", 980.0, np.arange(1000.0), name)
    assert str(PredictiveCheck((fitting, nearly), name, 1000)).startswith(f"Borderline: {name} hardly predicts")


def test_built_in_statistics() -> None:
    data = np.array([[0.0, 2.0, 0.0, 4.0], [3.0, 3.0, 3.0, 3.0]])
    found = {name: statistic(data).tolist() for name, statistic in BUILT_IN.items()}
    assert found["mean"] == [1.5, 3.0]
    assert found["sd"] == pytest.approx([np.std([0, 2, 0, 4], ddof=1), 0.0])
    assert (found["min"], found["max"], found["zeros"]) == ([0.0, 3.0], [4.0, 3.0], [0.5, 0.0])
    # Distances from the mean are -1.5, 0.5, -1.5, 2.5.
    assert found["autocorrelation"] == pytest.approx([(-0.75 - 0.75 - 3.75) / 11, 0.0])
    huge = np.array([[1e150, -1e150, 1e150, -1e150]])
    assert BUILT_IN["autocorrelation"](huge) == pytest.approx([-0.75])


def test_one_observation_is_enough() -> None:
    found = predictive_check(exact("data-3", 1, num_obs=1), [0.2], list(BUILT_IN), num_draws=NUM_DRAWS)
    assert_close(found["max"].tails.at_most.prob, float(-np.expm1(-0.6)))
    assert found["sd"].observed == 0


def test_order_is_seen_by_the_autocorrelation() -> None:
    rng = np.random.default_rng(1)
    steps = Fixed("independent steps", lambda rng, size: rng.normal(size=(size, 100)))
    found = predictive_check(steps, np.sort(rng.normal(size=100)), ["mean", "autocorrelation"])
    assert found["mean"].verdict == "as predicted"
    assert found["autocorrelation"].verdict == "too large"
    assert found.verdict == "independent steps does not predict the observed autocorrelation (too large)"


def test_statistics_by_name_by_function_and_both() -> None:
    sampler, observed = exact("data-1-i", 1), data_of("data-1-i", 0, seed=11)

    def middle(data: np.ndarray) -> np.ndarray:
        return np.median(data, axis=1)

    assert predictive_check(sampler, observed).names == ("mean", "sd", "min", "max")
    assert predictive_check(sampler, observed, "zeros").names == ("zeros",)
    assert predictive_check(sampler, observed, middle).names == ("middle",)
    listed = predictive_check(sampler, observed, [middle, "sd", lambda data: data.var(axis=1)], num_draws=100)
    assert listed.names == ("middle", "sd", "statistic 3")
    named = predictive_check(sampler, observed, {"variance": lambda data: data.var(axis=1), "spread": "sd"})
    assert named["variance"].observed == pytest.approx(observed.var())
    assert named["spread"].observed == pytest.approx(observed.std(ddof=1))
    assert named["variance"].verdict == "too large"
    assert json.loads(json.dumps(named.to_dict()))["statistics"][0]["name"] == "variance"
    assert "does not predict the observed variance (too large)" in str(named)
    with pytest.raises(ValueError, match="Did you mean 'variance'"):
        named["varianc"]


def test_a_statistic_may_spoil_its_argument() -> None:
    def spoil(data: np.ndarray) -> np.ndarray:
        data -= 1e6
        return data.mean(axis=1)

    observed = data_of("data-1-i", 0, seed=11)
    before = observed.copy()
    found = predictive_check(exact("data-1-i", 0), observed, {"spoilt": spoil, "mean": "mean"}, num_draws=200)
    assert found["mean"].observed == before.mean()
    assert found["mean"].draws.mean() == pytest.approx(before.mean(), rel=0.1)
    np.testing.assert_array_equal(observed, before)
