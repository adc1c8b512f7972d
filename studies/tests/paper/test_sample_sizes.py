"""The simulation study: the same questions for everyone, answers put together rightly, verdicts that follow."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from deepbf_studies.paper import Cache, sample_sizes, size_figures
from deepbf_studies.paper.methods import ABC, BNN, BRIDGE, FNN, OURS, WARP, Answers, Questions, answered
from deepbf_studies.paper.running import run
from deepbf_studies.paper.sample_sizes import SCALES, Comparison, Settings

TINY = replace(SCALES["quick"], num_datasets=20, num_steps={FNN: 2}, num_simulations=480)


def test_whoever_is_asked_less_is_asked_the_same() -> None:
    everything = Questions("data-1-i", 4, num_datasets=30).data()
    some = Questions("data-1-i", 4, num_datasets=30, num_asked=10, num_repeats=3).data()
    assert some.shape == (23, 4)
    assert np.array_equal(some[:10], everything[:10])
    assert np.array_equal(some[10:20], everything[30:40])
    assert (some[20:] == everything[-1]).all()


def test_the_observed_data_come_from_the_second_model() -> None:
    asked = Questions("data-3", 64, num_datasets=2)
    # Waiting times of rate 3 have mean 1/3; the first model's means vary widely.
    assert asked.data()[-1].mean() == pytest.approx(1 / 3, abs=0.15)


def test_answers_are_put_together_from_parts() -> None:
    asked = Questions("data-3", 2, num_datasets=6, num_asked=2, num_repeats=3)
    parts = [answered(values, asked, seconds=2.0) for values in np.split(np.arange(7.0), [3])]
    found = Answers.of(parts, num_datasets=6)
    assert found.by_model[0].tolist()[:2] == [0.0, 1.0]
    assert found.by_model[1].tolist()[:2] == [2.0, 3.0]
    assert np.isnan(found.by_model[0][2:]).all()
    assert len(found.by_model[1]) == 6
    assert found.observed.tolist() == [4.0, 5.0, 6.0]
    assert found.seconds == 4.0


def test_repetitions_differ_in_their_seeds_alone() -> None:
    steps = Comparison("data-1-i", 128, SCALES["standard"]).steps(OURS)
    assert len(steps) == 20
    assert len({step.key for (step,) in steps}) == 20
    assert {step.settings["num_steps"] for (step,) in steps} == {SCALES["standard"].num_steps[OURS]}


def test_the_paper_scale_has_the_papers_settings() -> None:
    paper = SCALES["paper"]
    assert set(paper.num_steps.values()) == {400_000}
    assert (paper.num_simulations, paper.num_strata, paper.num_kept) == (1_200_000, 1200, 120)
    assert paper.num_datasets == 1500
    assert set(paper.num_repeats.values()) == {20}
    assert paper.sizes == (2, 4, 8, 16, 32, 64, 128)
    # Its parts are kept one by one: 3,020 data sets by bridge sampling would take hours in one go.
    [parts] = Comparison("data-1-ii", 2, paper).steps(BRIDGE)
    assert len(parts) == 31


def test_bridge_and_warp_bridge_answer_as_many_as_one_program_takes() -> None:
    one = Comparison("data-3", 2, SCALES["standard"])
    for method in (BRIDGE, WARP):
        assert len(one.steps(method)[0]) == 1


@pytest.mark.parametrize("method", [FNN, ABC])
def test_an_estimator_answers_every_question(method: str, tmp_path: Path) -> None:
    [(step,)] = Comparison("data-3", 2, TINY).steps(method)
    cache = Cache(tmp_path)
    run(step, cache)
    found = Answers.of(cache.read(step), num_datasets=20)
    assert np.isfinite(np.concatenate([*found.by_model, found.observed])).all()
    assert found.seconds > 0


@pytest.fixture(scope="module")
def measured() -> xr.Dataset:
    """What measuring makes of estimators that are off by a factor."""
    asked = Questions("data-3", 2, num_datasets=20)
    exact = asked.load().exact_log_bf(asked.data())
    factors = {FNN: 0.5, BNN: 2.0, OURS: 1.0}
    answers = [answered(factor * exact, asked, seconds=factor) for factor in factors.values()]
    names = [model.name for model in asked.load().models]
    return sample_sizes.measured(
        answered(exact, asked, seconds=0.0),
        *answers,
        parts=dict.fromkeys(factors, 1),
        models=names,
        num_datasets=20,
        num_replicates=5,
    )


def test_everyone_is_measured_against_the_exact_value(measured: xr.Dataset) -> None:
    assert measured["estimator"].values.tolist() == [FNN, BNN, OURS, "exact"]
    exact = measured["log_bf"].sel(estimator="exact")
    assert np.allclose(measured["mse"].sel(estimator=BNN, group="weighted"), (exact**2).mean())
    assert float(measured["mse"].sel(estimator=OURS, group="weighted")) == 0.0
    assert measured["answer_seconds"].values.tolist() == [0.5, 2.0, 1.0, 0.0]


@pytest.mark.parametrize("draw", [
    size_figures.draw_priors,
    size_figures.draw_roc,
    size_figures.draw_scatters,
    size_figures.draw_scatters_and_densities,
    size_figures.draw_metrics(("spearman", "kl"), "title"),
])  # fmt: skip
def test_every_figure_is_drawn(draw, measured: xr.Dataset, tmp_path: Path) -> None:
    drawing = draw({("data-3", 2): measured, ("data-3", 4): measured})
    written = drawing.write(tmp_path, "figure")
    assert all(path.stat().st_size > 0 for path in written)
    assert "Data 3" in drawing.text
    [figure] = drawing.figures.values()
    assert not [ax for ax in figure.axes if ax.get_legend() is not None]


def test_the_scorecard_compares_at_the_same_data_sets(measured: xr.Dataset) -> None:
    asked = Questions("data-3", 2, num_datasets=20)
    exact = asked.load().exact_log_bf(asked.data())
    # The default nearer to the truth than the FNN, and the same as the BNN.
    answers = [answered(factor * exact, asked, seconds=1.0) for factor in (0.9, 0.5, 0.9)]
    paired = size_figures.differences(
        answered(exact, asked, seconds=0.0), *answers, rivals=[FNN, BNN], num_datasets=20, num_replicates=50
    )
    assert size_figures.verdict(paired, "clipped_mse", FNN) == "better"
    assert size_figures.verdict(paired, "clipped_mse", BNN) == "tie"
    assert size_figures.verdict(paired, "spearman", FNN) == "tie"
    drawing = size_figures.draw_scorecard({("data-3", 2): measured, (size_figures.PAIRED, "data-3", 2): paired})
    assert "14 comparisons: " in drawing.text
    assert drawing.numbers["verdicts"]["data-3"]["clipped_mse"] == {FNN: {"2": "better"}, BNN: {"2": "tie"}}


def test_the_scorecard_plans_a_pair_wherever_it_measures() -> None:
    plan = size_figures.plan_scorecard("quick")
    sizes = [label for label in plan if label[0] != size_figures.PAIRED]
    assert len(plan) == 2 * len(sizes) > 0
    assert all((size_figures.PAIRED, *label) in plan for label in sizes)


def test_settings_name_every_method_they_train() -> None:
    for settings in SCALES.values():
        assert isinstance(settings, Settings)
        assert set(settings.num_steps) == set(SCALES["paper"].num_steps)
