"""The influenza target, end to end at a tiny scale, and its statistics at courses that one can follow by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from deepbf.answer import Answer, TailArea
from deepbf.evaluation import measure
from deepbf_studies.paper import Cache, Drawing, influenza, influenza_drawing
from deepbf_studies.paper.running import results_of
from deepbf_studies.paper.target import SCALES
from deepbf_studies.problems.influenza import IN_BED, LATENT, NO_LATENT, VARYING, param_names

OUTBREAK = np.array([IN_BED])
TINY = replace(
    influenza.SCALES["quick"],
    num_steps=20,
    num_datasets=100,
    num_posterior_steps=20,
    num_predictions=200,
    num_abc=4_000,
    num_strata=40,
    rounds=((40, 40), (60, 60)),
)


EVIDENCE = {NO_LATENT: -60.0, LATENT: -61.5, VARYING: -57.0}


def fake_answer(log_bf: float, compared: tuple[str, str] = influenza.COMPARED) -> xr.Dataset:
    """What `trained` returns, of an estimator whose log Bayes factors are normal: calibrated by construction."""
    rng = np.random.default_rng(1)
    under_each = (rng.normal(2.0, 2.0, 400), rng.normal(-2.0, 2.0, 400))
    area = TailArea(0.3, 0.25, 0.35)
    answer = Answer(
        log_bf, *compared, 0.2, (log_bf - 0.5, log_bf + 0.5), compared, (0.5, 0.5), (0.5, 0.5),
        surprise=dict.fromkeys(compared, area), support=dict.fromkeys(compared, area),
    )  # fmt: skip
    results = measure(under_each, names=compared, num_replicates=20).results
    return results.assign(
        {
            **influenza.answer_variables(answer),
            "members": ("member", [log_bf] * 4),
            "other_reading": ("other_part", [log_bf, 0.2]),
        }
    )


def fake_predictions(name: str) -> xr.Dataset:
    """What `criticised` returns, and but for the evidence `filtered`: courses that are all the observed one."""
    posterior = {param: np.linspace(0.5, 0.9, 50) for param in param_names(name)}
    return influenza.predictions(posterior, np.repeat(OUTBREAK, 50, axis=0), OUTBREAK[0])


@pytest.fixture(scope="module")
def drawn() -> Drawing:
    results = {"trained 1": fake_answer(1.0), "trained 2": fake_answer(2.0)}
    results["varying"] = fake_answer(-3.0, (NO_LATENT, VARYING))
    results["abc"] = xr.Dataset({"log_bf": 1.2, "error": 0.3})
    for name, log_evidence in EVIDENCE.items():
        results[f"criticised {name}"] = fake_predictions(name)
        results[f"filtered {name}"] = fake_predictions(name).assign(
            log_evidence=log_evidence, error=0.3, num_effective=80.0
        )
    return influenza_drawing.TARGETS[0].draw(results)


def test_the_answer_stands_beside_its_independent_check(drawn: Drawing) -> None:
    numbers = drawn.numbers
    assert numbers["direction"] == f"{NO_LATENT} over {LATENT}, natural log"
    assert numbers["mean_log_bf"] == pytest.approx(1.5)
    assert numbers["spread_over_seeds"] == pytest.approx(np.sqrt(0.5))
    assert numbers["particles"]["log_bf"] == pytest.approx({"log_bf": 1.5, "error": 0.3 * np.sqrt(2)})
    assert numbers["particles"]["constant_over_varying"]["log_bf"] == pytest.approx(-3.0)
    assert f"Verdict: {NO_LATENT} over {LATENT} by 4.5 to 1, substantial" in drawn.text
    assert "contact that varies by day to contact that is constant by 20 to 1" in drawn.text
    assert "The data are typical of both." in drawn.text


def test_what_is_predicted_does_not_speak_against_a_model(drawn: Drawing) -> None:
    for name in EVIDENCE:
        assert f"No statistic here speaks against {name}." in drawn.text
        assert {one["verdict"] for one in drawn.numbers["criticism"][name]} == {"as predicted"}


def test_the_drawing_is_written(drawn: Drawing, tmp_path: Path) -> None:
    files = drawn.write(tmp_path, "influenza")
    assert {file.name for file in files} == {"influenza.txt", "influenza.json", "influenza.png", "influenza-checks.png"}
    assert json.loads((tmp_path / "influenza.json").read_text()) == json.loads(json.dumps(drawn.numbers))


def test_every_scale_is_planned() -> None:
    assert set(influenza.SCALES) == set(SCALES)
    quick, standard = influenza.plan("quick"), influenza.plan("standard")
    assert set(quick) <= set(standard)
    assert {"finer", "varying", f"criticised {VARYING}"} <= set(standard)
    assert len({step.key for step in standard.values()}) == len(standard)


@pytest.mark.slow
@pytest.mark.parametrize("is_thorough", [False, True])
def test_everything_runs(is_thorough: bool, tmp_path: Path) -> None:
    plan = influenza.plan_of(replace(TINY, is_thorough=is_thorough))
    numbers = influenza_drawing.TARGETS[0].draw(results_of(plan, Cache(tmp_path))).numbers
    assert set(numbers["other_choices"]) == ({"finer", "varying"} if is_thorough else set())
    assert ("other_reading" in numbers["particles"]) == is_thorough
    evidence = numbers["particles"]["evidence"]
    assert np.isfinite([one["log_evidence"] for one in evidence.values()]).all()
    # Few particles, but enough to tell an evidence of about -65 from nonsense.
    assert all(abs(one["log_evidence"] + 65) < 10 for one in evidence.values())
    assert np.isfinite(numbers["mean_log_bf"])


# Statistics


def test_statistics_of_the_outbreak() -> None:
    found = {name: float(fn(OUTBREAK)[0]) for name, fn in influenza.STATISTICS.items()}
    assert found["peak height"] == 298
    assert found["day of the peak"] == 6
    assert found["days in bed, of all boys"] == 1559
    assert found["early growth of the log a day"] == pytest.approx(np.log(226 / 4) / 4)
    # A tenth of 298 is 29.8: day 12 is the first with fewer, six days after the peak.
    assert found["days from the peak to a tenth of it"] == 6


def test_a_decline_that_is_not_over_counts_until_the_record_ends() -> None:
    assert influenza.days_of_decline(np.array([[0, 10, 9, 8], [10, 5, 0, 0]])).tolist() == [3, 2]


def test_a_smooth_course_has_no_roughness() -> None:
    smooth, rough = np.arange(14) ** 2, np.tile([0, 100], 7)
    assert influenza.roughness(np.array([smooth, rough])).tolist() == pytest.approx([0.0, 20.0])
