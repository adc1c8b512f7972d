"""The weapon targets at a tiny scale: every step runs, every drawing says what it is, surprise is counted right."""

import dataclasses
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf_studies.paper import weapon, weapon_data, weapon_drawings
from deepbf_studies.paper.running import results_of
from deepbf_studies.paper.step import Cache
from deepbf_studies.problems import load

NUM_PEOPLE = 3
TINY = weapon.Settings(
    num_datasets=12,
    paper_steps_sum=20,
    paper_steps_full=20,
    paper_steps_person=20,
    our_steps_sum=20,
    our_steps_thorough=5,
    our_steps_full=20,
    our_steps_variants=20,
    importance_draws=200,
    abc_simulations=2_000,
    abc_strata=20,
    abc_kept=60,
    num_repeats=2,
    num_slow_repeats=1,
)


def computed(observed: dict[str, Any], folder: Path) -> dict[Any, xr.Dataset]:
    return dict(results_of(weapon.plan("tiny", observed), Cache(folder)))


class Answering:
    """Stands in for a trained estimator: any function of the data will do."""

    def log_bf_members(self, data: Any) -> Any:
        sums = np.asarray(data, dtype=float).reshape(len(data), -1)
        return np.stack([sums[:, 0] - sums[:, 1], sums[:, 0] - sums[:, 1] + 0.5]) / sums[0].size

    def log_bf(self, data: Any) -> Any:
        return self.log_bf_members(data).mean(axis=0)

    def geometric(self, data: Any, num_training: int) -> Any:
        assert num_training == 1
        return SimpleNamespace(log_bf=self.log_bf(data))

    arithmetic = geometric


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, xr.Dataset]:
    """Of simulated people, and of few of them, without the time that training takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(weapon.SCALES, "tiny", TINY)
        patch.setattr(weapon, "train", lambda *settings, **options: Answering())
        patch.setattr(weapon, "fit_variants", lambda *settings, **options: Answering())
        return computed(weapon_data.simulated_observed(NUM_PEOPLE), tmp_path_factory.mktemp("cache"))


@pytest.mark.slow
def test_every_method_trains_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(weapon.SCALES, "tiny", dataclasses.replace(TINY, num_repeats=1))
    results = computed(weapon_data.simulated_observed(NUM_PEOPLE), tmp_path / "cache")
    assert without_answers(results) == []
    for target in weapon_drawings.TARGETS:
        written = target.draw(results).write(tmp_path, target.name)
        assert all(path.stat().st_size > 0 for path in written)


def test_every_method_answers_about_all_data_sets(results: dict[Any, xr.Dataset]) -> None:
    assert without_answers(results) == []


def without_answers(results: dict[Any, xr.Dataset]) -> list[str]:
    """The methods that lack a finite answer about any data set, or about the observed one."""

    def is_whole(answers: xr.Dataset) -> bool:
        finite = np.isfinite(answers["log_bf"]).all() and np.isfinite(answers["observed"])
        return answers["log_bf"].shape == (2, TINY.num_datasets) and bool(finite)

    return [method for method in (*weapon.METHODS, EXACT) if not is_whole(results[(method, 0)])]


def test_importance_sampling_and_integration_agree(results: dict[Any, xr.Dataset]) -> None:
    sampled, exact = results[(weapon.IMPORTANCE, 0)], results[(EXACT, 0)]
    assert abs(sampled["observed"] - exact["observed"]) < 5 * sampled["observed_error"]
    assert sampled["observed_error"] < 0.2


def test_both_views_are_of_the_same_people(results: dict[Any, xr.Dataset]) -> None:
    people = weapon.reference("full", NUM_PEOPLE, TINY.num_datasets, TINY.reference_seed)
    study = load("weapon-full", num_obs=NUM_PEOPLE)
    for data, exact in zip(people, results[(EXACT, 0)]["log_bf"].values, strict=True):
        np.testing.assert_allclose(study.exact_log_bf(data), exact, rtol=1e-9)


def test_exact_intrinsic_bayes_factors_follow_their_definition(results: dict[Any, xr.Dataset]) -> None:
    people = np.array(weapon_data.simulated_observed(NUM_PEOPLE)["people"])
    whole = load("weapon-full", num_obs=NUM_PEOPLE).exact_log_bf(people[None])[0]
    alone = [load("weapon-full", num_obs=1).exact_log_bf(person[None, None])[0] for person in people]
    exact = results[(EXACT, 0)]
    assert float(exact["observed_geometric"]) == pytest.approx(np.mean([whole - one for one in alone]), abs=1e-6)
    arithmetic = math.log(np.mean([math.exp(whole - one) for one in alone]))
    assert float(exact["observed_arithmetic"]) == pytest.approx(arithmetic, abs=1e-6)


@pytest.mark.parametrize("target", weapon_drawings.TARGETS, ids=lambda target: target.name)
def test_drawings_say_that_the_data_are_simulated(target: Any, results: dict[Any, xr.Dataset], tmp_path: Path) -> None:
    drawing = target.draw(results)
    files = drawing.write(tmp_path, target.name)
    assert "SIMULATED from process dissociation" in drawing.text
    assert "SIMULATED" in json.loads((tmp_path / f"{target.name}.json").read_text())["observed"]
    if target.name == "table-1":
        assert not drawing.figures
    else:
        [figure] = drawing.figures.values()
        assert "SIMULATED" in figure.get_suptitle()
        assert files[-1].stat().st_size > 10_000


def test_figure_8_has_eight_panels_with_titles(results: dict[Any, xr.Dataset]) -> None:
    [figure] = weapon_drawings.draw_figure_8(results).figures.values()
    titles = [axes.get_title() for axes in figure.axes]
    assert [title[:3] for title in titles] == [f"({letter})" for letter in "abcdefgh"]


def test_the_table_counts_tails_as_defined(results: dict[Any, xr.Dataset]) -> None:
    """A hand-made example: four answers under each tree, the observed log Bayes factor 1."""
    made = dict(results)
    exact = made[(EXACT, 0)].isel(dataset=slice(4)).copy(deep=True)
    exact["log_bf"][:] = [[-1.0, 0.5, 2.5, 3.0], [-4.0, -3.0, 1.0, 2.0]]
    exact["observed"] = 1.0
    made[(EXACT, 0)] = exact
    row = weapon_drawings.row_of(made, EXACT)
    # Under process dissociation -1 and 0.5 are at most 1; under Stroop 1 and 2 are at least 1.
    assert (row["p1"]["p"], row["p2"]["p"]) == (0.5, 0.5)
    assert row["bf"] == pytest.approx(math.e)
    # The log of 8.10 is 2.09: two are below it under process dissociation, none above it under Stroop.
    at_paper = weapon_drawings.tails_at(made, EXACT, math.log(weapon.PAPER_BF))
    assert (at_paper["p1"]["p"], at_paper["p2"]["p"]) == (0.5, 0.0)


def test_twelve_counts_alone_leave_methods_that_need_people_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(weapon.SCALES, "tiny", dataclasses.replace(TINY, num_repeats=1))
    monkeypatch.setattr(weapon, "train", lambda *settings, **options: Answering())
    monkeypatch.setattr(weapon, "fit_variants", lambda *settings, **options: Answering())
    observed = {**weapon_data.simulated_observed(NUM_PEOPLE), "people": None, "source": "sums.csv"}
    results = computed(observed, tmp_path / "cache")
    drawing = weapon_drawings.draw_table(results)
    for method in weapon.NEED_PEOPLE:
        assert drawing.numbers["methods"][method]["bf"] is None
        assert f"  {method:<24}needs one row per person" in drawing.text
    assert drawing.numbers["methods"][weapon.OUR_SUM]["bf"] > 0
    assert "sums.csv" in drawing.text
    assert "SIMULATED" not in drawing.text
    for target in weapon_drawings.TARGETS[1:]:
        target.draw(results).write(tmp_path, target.name)


def test_the_quick_scale_asks_less_of_everything_than_the_others() -> None:
    quick, standard, paper = (dataclasses.asdict(weapon.SCALES[scale]) for scale in ("quick", "standard", "paper"))
    for name in (
        "num_datasets",
        "our_steps_sum",
        "our_steps_thorough",
        "paper_steps_full",
        "abc_simulations",
        "num_repeats",
    ):
        assert quick[name] <= standard[name] <= paper[name]
