"""Heat maps: exact values in the right places, the errors of estimators that are known, nothing that is not finite."""

from pathlib import Path

import numpy as np
import pytest

from deepbf_studies.paper import heat_maps, toy_answers
from deepbf_studies.paper.heat_maps import errors_of, has_no_log, odds_in_single_precision
from deepbf_studies.paper.methods import ABC, DEEPSET2, FNN, OURS
from deepbf_studies.paper.step import Cache
from deepbf_studies.paper.toy_answers import BOTH, NARROW, SCALES, STUDIES, WIDE, exact_step
from studies.tests.paper.exact_estimators import OFFSET, TINY, drawn, replace_training

TARGETS = {target.name: target for target in heat_maps.TARGETS}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    replace_training(monkeypatch)
    return Cache(tmp_path)


def test_the_exact_map_of_counts_is_the_closed_form() -> None:
    step = exact_step("data-1-ii", TINY)
    exact = step.compute(**step.settings)[NARROW].sel(part=BOTH)
    # Uniform p and exponential rate: B(3, 1 + S) over S! / (3^(S + 1) y1! y2!), by hand.
    at_nothing = exact.sel(narrow_first=0, narrow_second=0)
    assert float(at_nothing) == pytest.approx(np.log((1 / 3) / (1 / 3)), abs=1e-12)
    at_two_and_one = exact.sel(narrow_first=2, narrow_second=1)
    assert float(at_two_and_one) == pytest.approx(np.log((1 / 60) / (6 / 81 / 2)), abs=1e-12)
    assert exact.dims == ("narrow_second", "narrow_first")


def test_the_exact_map_of_waiting_times_is_the_closed_form() -> None:
    step = exact_step("data-3", TINY)
    exact = step.compute(**step.settings)
    # 4 * 3! / (2 + S)^4 over 9 exp(-3 S), and of one observation 4 * 2! / (2 + y)^3 over 3 exp(-3 y), by hand.
    at = exact[NARROW].sel(narrow_first=1.5, narrow_second=3.0)
    assert float(at.sel(part=BOTH)) == pytest.approx(np.log(24 / 6.5**4 / 9) + 13.5, abs=1e-12)
    assert float(at.sel(part="first")) == pytest.approx(np.log(8 / 3.5**3 / 3) + 4.5, abs=1e-12)
    assert float(at.sel(part="second")) == pytest.approx(np.log(8 / 5**3 / 3) + 9.0, abs=1e-12)
    # Four observations: 4 * 5! / (2 + 9)^6 over 81 exp(-27).
    assert float(at.sel(part="twice")) == pytest.approx(np.log(480 / 11**6 / 81) + 27.0, abs=1e-12)


@pytest.mark.parametrize("scale", SCALES)
def test_steps_are_shared(scale: str) -> None:
    plans = [target.plan(scale) for target in heat_maps.TARGETS]
    keys = {step.key for plan in plans for step in plan.values()}
    # Exact, FNN, ABC, the paper's DeepSet and ours, for three studies.
    assert len(keys) == 15


def test_a_constant_offset_is_what_the_tables_say(cache: Cache) -> None:
    drawing = drawn(TARGETS["figure-1"], cache)
    for study in STUDIES:
        for method in (FNN, OURS):
            for place in (NARROW, WIDE, "shown"):
                found = drawing.numbers[study][method][place]
                assert found["rmse"] == pytest.approx(OFFSET)
                assert found["largest"] == pytest.approx(OFFSET)
                assert found["spearman"] == pytest.approx(1.0)
                assert found["num_not_finite"] == 0
        # The bound of ABC with 40 accepted draws, half a draw added: log(81) from exact values of up to 26 (Data 3).
        assert drawing.numbers[study][ABC][NARROW]["num_not_finite"] == 0
        assert WIDE not in drawing.numbers[study][ABC]
    assert drawing.text.count("DeepBF-FNN") == len(STUDIES)
    assert "negative binomial over Poisson" in drawing.text
    assert list(drawing.figures) == [""]


@pytest.mark.parametrize(("name", "method"), [("figure-s18", FNN), ("figure-s11", DEEPSET2)])
def test_the_wide_maps_are_finite_and_say_what_lies_outside(cache: Cache, name: str, method: str) -> None:
    drawing = drawn(TARGETS[name], cache)
    for study in STUDIES:
        found = drawing.numbers["wide plane"][study]
        assert found["num_not_finite"] == {method: 0, OURS: 0}
        assert found["largest_error"][method] == pytest.approx(OFFSET)
        by_model = list(found["share_outside_by_model"].values())
        assert found["share_outside"] == pytest.approx(np.mean(by_model))
    # Log Bayes factors of up to 155, which no ratio of float32 probabilities can hold.
    assert drawing.numbers["wide plane"]["data-3"]["share_white_if_probabilities"][method] > 0.5
    assert "4.42%" in drawing.text


def test_shares_outside_are_those_of_the_models() -> None:
    step = exact_step("data-3", SCALES["standard"])
    outside = ~heat_maps.shown_in(step.compute(**step.settings), WIDE)
    # Both times at most 30 3/16, half a cell beyond: 1 - 2 / (1 + c / 2)^2 + 1 / (1 + c)^2 and (1 - exp(-3 c))^2.
    end = 30 + 0.5 * 30 / 80
    expected = 1 - (1 - 2 / (1 + end / 2) ** 2 + 1 / (1 + end) ** 2)
    half = len(outside) // 2
    error = np.sqrt(expected / half)
    assert abs(outside[:half].mean() - expected) < 4 * error
    assert error < 1e-3
    assert outside[half:].sum() == 0


def test_figures_write_their_files(cache: Cache, tmp_path: Path) -> None:
    files = drawn(TARGETS["figure-s10"], cache).write(tmp_path / "out", "figure-s10")
    assert [file.suffix for file in files] == [".txt", ".json", ".png"]
    assert all(file.stat().st_size for file in files)


def test_probabilities_overflow_where_log_odds_do_not() -> None:
    log_odds = np.array([-120.0, -5.0, 0.0, 5.0, 16.0, 18.0])
    assert has_no_log(odds_in_single_precision(log_odds)).tolist() == [True, False, False, False, False, True]
    np.testing.assert_allclose(odds_in_single_precision(log_odds[1:4]), np.exp(log_odds[1:4]), rtol=1e-4)


def test_errors_count_what_is_not_finite() -> None:
    found = errors_of(np.array([1.0, 2.0, np.inf, np.nan]), np.array([0.0, 4.0, 0.0, 0.0]))
    assert (found.rmse, found.largest, found.num_not_finite) == (pytest.approx(np.sqrt(2.5)), 2.0, 2)
    assert np.isnan(errors_of(np.zeros(3), np.arange(3.0)).spearman)


@pytest.mark.slow
@pytest.mark.parametrize("method", [FNN, DEEPSET2, OURS])
def test_trained_networks_are_finite_on_the_wide_plane(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "tiny", TINY)
    step = toy_answers.network_step("data-1-ii", TINY, method)
    answers = step.compute(**step.settings)
    for place in (NARROW, WIDE, "samples"):
        assert np.isfinite(np.asarray(answers[place])).all()
    assert answers.attrs["training_seconds"] > 0
