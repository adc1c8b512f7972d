"""Panels of model criticism: exact posteriors cover and exclude 1/2 where they should, and what was kept is drawn."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepbf.criticism import ZValues
from deepbf_studies import problems
from deepbf_studies.paper import criticism
from deepbf_studies.paper.running import results_of
from deepbf_studies.paper.step import Cache
from deepbf_studies.paper.target import Drawing, Target

BY_NAME = {target.name: target for target in criticism.TARGETS}


def reproduced(target: Target, folder: Path) -> Drawing:
    return target.draw(results_of(target.plan("quick"), Cache(folder)))


def draws(low: float, high: float) -> ZValues:
    return ZValues(np.linspace(low, high, 101), "any", num_obs=128, classifier="any", refit=True)


@pytest.mark.parametrize("study", criticism.OUTLIERS)
@pytest.mark.parametrize("model", [0, 1])
def test_exact_posteriors_cover_half_at_their_own_data_and_exclude_it_at_outliers(study: str, model: int) -> None:
    found = criticism.criticise_model(
        study=study, num_obs=128, model=model, sampler="exact", num_steps=None, num_replicates=300, seed=1
    )
    by_source = criticism.z_values_of(found)
    assert len(by_source) == 3
    for source, values in by_source.items():
        assert values.num_unconverged == 0
        if source == values.model:
            assert values.covers_half
            assert values.high - values.low < 0.05
        elif source.startswith("outliers"):
            assert 0.5 - values.high > values.high - values.low


def test_a_wrong_fixed_rate_is_excluded() -> None:
    found = criticism.criticise_model(
        study="data-3", num_obs=128, model=1, sampler="exact", num_steps=None, num_replicates=300, seed=1
    )
    assert criticism.z_values_of(found)["exponential, unknown rate"].high < 0.45


def test_outliers_are_the_paper_s() -> None:
    values = {
        name: criticism.observed_data(problems.load(name, num_obs=4)) for name in ("data-1-ii", "data-2", "data-3")
    }
    assert [list(data)[-1] for data in values.values()] == [f"outliers, all {value}" for value in ("18", "10", "2.5")]
    assert np.array_equal(values["data-3"]["outliers, all 2.5"], [2.5] * 4)


def test_a_model_without_parameters_is_not_trained() -> None:
    plan = BY_NAME["figure-s23"].plan("standard")
    assert list(plan) == [*(("data-3", 0, sampler) for sampler in criticism.SAMPLERS), ("data-3", 1, "exact")]


def test_samplers_stand_side_by_side_on_one_scale(tmp_path: Path, monkeypatch: Any) -> None:
    def exact(study: Any, model: int, sampler: str, **options: Any) -> Any:
        assert options == ({} if sampler == "exact" else {"steps": 1, "seed": 1})
        return study.exact_posteriors[model]

    monkeypatch.setattr(criticism, "posterior_of", exact)
    monkeypatch.setitem(criticism.SCALES, "quick", criticism.Settings(50, {"flow": 1, "gan": 1}, ("data-3",)))
    drawing = reproduced(BY_NAME["figure-s23"], tmp_path)
    # Three samplers of the model with parameters, and the one without.
    grid = np.array(drawing.figures[""].axes).reshape(4, 3)
    for same in grid[:3].T:
        assert len({axes.get_xlim() for axes in same}) == 1
    assert len(drawing.numbers["data-3"]) == 4 * 3
    assert drawing.text.count("1/2 lies inside for 2 of 2 models at their own data and 0 of 2 at outliers,") == 3
    assert all(path.stat().st_size > 0 for path in drawing.write(tmp_path / "drawn", "figure-s23"))


def test_data_1_has_a_figure_for_either_choice_of_priors(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(criticism.SCALES, "quick", criticism.Settings(50, {}))
    drawing = reproduced(BY_NAME["figure-s13"], tmp_path)
    assert list(drawing.figures) == ["", "data-1-i"]
    assert list(drawing.numbers) == ["data-1-ii", "data-1-i"]


def test_what_disagrees_with_the_paper_is_said() -> None:
    def found(own: ZValues, other: ZValues, outliers: ZValues) -> str:
        rows = {"exact": {"a": own, "b": other, "outliers, all 1": outliers}}
        return criticism.finding(
            {"a": rows, "b": {"exact": {"b": own, "a": other, "outliers, all 1": outliers}}}, "exact"
        )

    at_half, far = draws(0.48, 0.52), draws(0.1, 0.2)
    assert "2 of 2 models at their own data and 0 of 2 at outliers, as in the paper" in found(at_half, at_half, far)
    assert "for 0 of 2 at the other model's data" in found(at_half, far, far)
    assert "unlike the paper" in found(far, at_half, far)
    assert "unlike the paper" in found(at_half, at_half, at_half)


@pytest.mark.slow
def test_a_trained_flow_criticises_as_the_exact_posterior_does(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(criticism.SCALES, "quick", criticism.Settings(500, {"flow": 2000}))
    rows = reproduced(BY_NAME["figure-s23"], tmp_path).numbers["data-3"]
    exact, flow = (
        [
            row["covers_half"]
            for row in rows
            if row["sampler"] == sampler and row["model"] == "exponential, unknown rate"
        ]
        for sampler in ("exact", "flow")
    )
    assert exact == flow == [True, True, False]
