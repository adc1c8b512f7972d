"""Rates of consistency: slopes against hand-made power laws, exact decisions against closed forms."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from deepbf.plots.results import EXACT
from deepbf_studies import problems
from deepbf_studies.paper import consistency_decisions as decisions
from deepbf_studies.paper import consistency_simulations as simulations
from deepbf_studies.paper.consistency_simulations import fit_line
from deepbf_studies.paper.methods import FNN, OURS
from deepbf_studies.paper.running import results_of
from deepbf_studies.paper.step import Cache
from deepbf_studies.paper.target import Drawing, Target


class Exact:
    """An estimator that answers with the exact log Bayes factor, off by so much."""

    class Record:
        num_steps = 1

    record = Record()

    def __init__(self, study: str, num_obs: int, off: float = 0.0, seed: int = 0) -> None:
        self.exact_log_bf = problems.load(study, num_obs=num_obs).exact_log_bf
        self.off = off
        self.rng = np.random.default_rng(seed)

    def log_bf(self, data: Any) -> Any:
        exact = self.exact_log_bf(data)
        return exact + self.off * self.rng.normal(size=len(exact))


def reproduced(target: Target, folder: Path) -> Drawing:
    return target.draw(results_of(target.plan("quick"), Cache(folder)))


def test_a_power_law_has_its_slope() -> None:
    x = 2.0 ** np.arange(10, 20)
    line = fit_line(np.log(x), np.log(3 * x**-0.5))
    assert line.slope == pytest.approx(-0.5)
    assert math.exp(line.intercept) == pytest.approx(3)
    assert line.error == pytest.approx(0, abs=1e-6)
    assert line.misfit == pytest.approx(0, abs=1e-9)


def test_a_line_through_noise_is_that_of_scipy() -> None:
    rng = np.random.default_rng(1)
    x = np.repeat([1.0, 2.0, 4.0], 3)
    y = 1 - 2 * x + rng.normal(size=9)
    line = fit_line(x, y)
    reference: Any = stats.linregress(x, y)
    assert line.slope == pytest.approx(reference.slope)
    assert line.intercept == pytest.approx(reference.intercept)
    assert line.error == pytest.approx(reference.stderr)


def test_known_variances_weigh_the_points_and_bound_the_error() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.1, 2.9, 4.0])
    variances = np.array([0.5, 0.1, 0.1, 2.0])
    line = fit_line(x, y, variances)
    coefficients, covariance = np.polyfit(x, y, 1, w=variances**-0.5, cov="unscaled")
    assert line.slope == pytest.approx(coefficients[0])
    # The points lie closer to the line than their variances say.
    assert line.error == pytest.approx(math.sqrt(covariance[0, 0]))
    assert fit_line(x, 10 * y**2, variances).error > line.error


def test_two_points_give_a_slope_without_an_error_and_one_place_gives_none() -> None:
    assert math.isnan(fit_line([1, 2], [3, 5]).error)
    assert str(fit_line([1, 2], [3, 5])) == "2.00"
    with pytest.raises(ValueError, match="two places or more"):
        fit_line([1, 1], [3, 5])


def test_measures_are_zero_for_the_exact_and_known_for_a_shift() -> None:
    exact = np.array([[-20.0, -2.0, 0.0, 3.0], [50.0, 1.0, -1.0, 6.0]])
    assert all(value == 0 for value in simulations.measures_of(exact, exact).values())
    found = simulations.measures_of(exact + 0.1, exact)
    assert found["error"] == pytest.approx(0.1)
    # Of eight data sets, two lie beyond the clip on both sides.
    assert found["clipped_error"] == pytest.approx(0.1 * 6 / 8)
    right, estimated = (1 / (1 + np.exp(-values[np.abs(exact) < 30])) for values in (exact, exact + 0.1))
    divergence = right * np.log(right / estimated) + (1 - right) * np.log((1 - right) / (1 - estimated))
    # At a log Bayes factor of 50 the divergence is 0 to any precision.
    assert found["excess_loss"] == pytest.approx(divergence.sum() / 8, rel=1e-6)


def test_one_absurd_tail_does_not_rule_and_excess_loss_is_never_negative() -> None:
    exact = np.array([[0.0, 1.0, 40.0], [0.0, -1.0, -2.0]])
    estimated = exact.copy()
    estimated[0, 2] = 1e6
    found = simulations.measures_of(estimated, exact)
    assert found == {"error": 0, "clipped_error": 0, "excess_loss": pytest.approx(0, abs=1e-12)}
    rng = np.random.default_rng(0)
    assert simulations.measures_of(rng.normal(size=(2, 50)), rng.normal(size=(2, 50)))["excess_loss"] > 0


def test_errors_that_fall_with_the_root_of_simulations_have_slope_one_half(tmp_path: Path, monkeypatch: Any) -> None:
    def train(models: Any, structure: str, method: str, num_steps: None, seed: int, *, num_simulations: int) -> Exact:
        assert structure == "exchangeable"
        worse = 3.0 if method == FNN else 1.0
        return Exact("data-3", simulations.NUM_OBS, worse * num_simulations**-0.5, seed)

    monkeypatch.setattr(simulations, "train", train)
    monkeypatch.setitem(simulations.SCALES, "quick", simulations.Settings(("data-3",), (10, 12, 14), 3))
    drawing = reproduced(simulations.TARGETS[0], tmp_path)
    for method in (OURS, FNN):
        error = drawing.numbers["data-3"]["error"][method]
        assert abs(error["slope"] + 0.5) < 4 * error["slope_error"]
        assert error["slope_error"] < 0.02
        # The mean of |normal| is sqrt(2 / pi).
        expected = (3 if method == FNN else 1) * 2**-5 * math.sqrt(2 / math.pi)
        assert np.mean(error["by_seed"][0]) == pytest.approx(expected, rel=0.1)
        excess = drawing.numbers["data-3"]["excess_loss"][method]
        assert abs(excess["slope"] + 1) < 0.05
    assert "slope" in drawing.text
    assert len(drawing.figures[""].axes) == 2
    assert all(path.stat().st_size > 0 for path in drawing.write(tmp_path / "drawn", "consistency-simulations"))


def wrong_by_closed_form(num_obs: int) -> tuple[float, float]:
    """Return the probabilities of wrong decisions of Data 3: the sum of waiting times decides, between two bounds.

    The sum is Gamma(n, rate 3) if the rate is 3, and twice a beta prime (n, 2) if it is unknown.
    """
    exact_log_bf = problems.load("data-3", num_obs=num_obs).exact_log_bf

    def log_bf(total: float) -> float:
        return float(exact_log_bf(np.full((1, num_obs), total / num_obs))[0])

    lowest = float(optimize.minimize_scalar(log_bf, bounds=(1e-3, num_obs), method="bounded").x)  # pyright: ignore[reportAttributeAccessIssue]
    # Of few observations, none are short enough to speak for the unknown rate.
    low = optimize.brentq(log_bf, 1e-9, lowest) if log_bf(1e-9) > 0 else 0.0
    high = optimize.brentq(log_bf, lowest, 50.0 * num_obs)
    unknown = stats.betaprime(num_obs, 2, scale=2)
    known = stats.gamma(num_obs, scale=1 / 3)
    return float(unknown.cdf(high) - unknown.cdf(low)), float(1 - known.cdf(high) + known.cdf(low))


def test_exact_decisions_are_wrong_as_often_as_the_closed_form_says(monkeypatch: Any) -> None:
    monkeypatch.setattr(decisions, "train", lambda *args, **options: Exact("data-3", 64))
    numbers = [2, 16, 64]
    found = decisions.decide(study="data-3", numbers=numbers, num_steps=1, num_datasets=20_000, seed=1, test_seed=5)
    for number in numbers:
        expected = np.array(wrong_by_closed_form(number))
        share = found["wrong"].sel(num_obs=number, estimator=EXACT).values / 20_000
        error = np.sqrt(expected * (1 - expected) / 20_000)
        assert np.all(np.abs(share - expected) < 4 * error)
        assert np.all(error < 0.005)
    # The estimator is the exact Bayes factor here.
    assert not found["differing"].any()
    assert np.array_equal(found["wrong"].sel(estimator=OURS), found["wrong"].sel(estimator=EXACT))


def test_slopes_of_exact_decisions_go_to_one_half_from_either_side() -> None:
    def slopes(first: int, second: int) -> Any:
        shares = np.log([wrong_by_closed_form(first), wrong_by_closed_form(second)])
        return np.diff(shares, axis=0)[0] / math.log(second / first)

    assert slopes(32, 64) == pytest.approx([-0.47, -0.78], abs=0.005)
    assert slopes(512, 1024) == pytest.approx([-0.45, -0.58], abs=0.005)
    assert slopes(8192, 16384) == pytest.approx([-0.46, -0.54], abs=0.005)


def test_decisions_are_drawn_end_to_end(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(decisions, "train", lambda *args, **options: Exact("data-3", 32, 0.5))
    monkeypatch.setitem(decisions.SCALES, "quick", decisions.Settings(("data-3",), (1, 2, 3, 4, 5), 1, 2000))
    drawing = reproduced(decisions.TARGETS[0], tmp_path)
    assert set(drawing.figures) == {"", "wrong"}
    assert set(drawing.numbers["data-3"]) == {"exponential, unknown rate", "exponential, rate 3", "both"}
    both = drawing.numbers["data-3"]["both"]
    assert both[OURS]["num_datasets"] == 4000
    # Noise cannot help: the exact Bayes factor makes the fewest wrong decisions.
    assert sum(both[EXACT]["num_wrong"]) < sum(both[OURS]["num_wrong"])
    assert both[EXACT]["slope"] < 0
    assert "decisions that differ from the exact ones" in drawing.text
    assert max(map(len, drawing.text.split("\n"))) < 150
    assert all(path.stat().st_size > 0 for path in drawing.write(tmp_path / "drawn", "consistency-decisions"))


def test_no_wrong_decision_is_a_bound_and_no_slope() -> None:
    shares = decisions.WrongShares(np.array([8.0, 16.0, 32.0, 64.0]), np.array([40, 20, 0, 0]), 1000)
    assert shares.power_law is None
    assert decisions.slope_in_words(shares) == "too few"
    drawn = shares.drawn()
    assert drawn.fitted is None
    assert drawn.high[-1] == pytest.approx(1 - 0.025 ** (1 / 1000))


@pytest.mark.parametrize("power_law", [True, False])
def test_misfit_tells_power_laws_from_exponentials(power_law: bool) -> None:
    num_obs = np.array([8.0, 16.0, 32.0, 64.0, 128.0])
    share = num_obs**-0.5 if power_law else np.exp(-0.02 * num_obs)
    shares = decisions.WrongShares(num_obs, np.round(1e6 * share).astype(int), 1_000_000)
    assert shares.power_law is not None
    assert shares.exponential is not None
    assert (shares.power_law.misfit < shares.exponential.misfit) == power_law


@pytest.mark.parametrize("target", [*simulations.TARGETS, *decisions.TARGETS], ids=lambda target: target.name)
def test_every_scale_has_a_plan(target: Target) -> None:
    sizes = [len(target.plan(scale)) for scale in ("quick", "standard", "paper")]
    assert sizes == sorted(sizes)
    assert target.paper == ""


@pytest.mark.slow
def test_more_simulations_help_and_decisions_come_close_to_exact_ones(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(simulations.SCALES, "quick", simulations.Settings(("data-3",), (10, 14), 1, 1000))
    monkeypatch.setitem(decisions.SCALES, "quick", decisions.Settings(("data-3",), (1, 3, 5), 400, 2000))
    found = reproduced(simulations.TARGETS[0], tmp_path).numbers["data-3"]["excess_loss"]
    assert all(of_method["slope"] < -0.3 for of_method in found.values())
    both = reproduced(decisions.TARGETS[0], tmp_path).numbers["data-3"]["both"]
    wrong = {name: sum(of_name["num_wrong"]) for name, of_name in both.items()}
    assert wrong[OURS] < 1.1 * wrong[EXACT]
