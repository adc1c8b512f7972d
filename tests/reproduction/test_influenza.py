"""The influenza target, end to end at a tiny scale, and its statistics at courses that one can follow by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deepbf.reproduction import Cache, Drawing
from deepbf.reproduction import influenza as target
from deepbf.reproduction import influenza_steps as steps
from deepbf.reproduction.running import run
from deepbf.reproduction.step import in_order
from deepbf.reproduction.target import SCALES
from deepbf.studies.influenza import IN_BED, LATENT, NO_LATENT, VARYING

OUTBREAK = np.array([IN_BED])
TINY = replace(
    target.SCALES["quick"],
    num_steps=20,
    num_datasets=100,
    num_posterior_steps=20,
    num_predictions=200,
    num_abc=4_000,
    num_strata=40,
    rounds=((40, 40), (60, 60)),
)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawing:
    cache = Cache(tmp_path_factory.mktemp("influenza"))
    plan = target.plan_of(TINY)
    for step in in_order(plan.values()):
        run(step, cache)
    return target.TARGETS[0].draw({label: cache.read(step) for label, step in plan.items()})


def test_the_answer_stands_beside_its_independent_check(drawn: Drawing, tmp_path: Path) -> None:
    numbers = drawn.numbers
    assert numbers["direction"] == f"{NO_LATENT} over {LATENT}, natural log"
    evidence = numbers["particles"]["evidence"]
    difference = evidence[NO_LATENT]["log_evidence"] - evidence[LATENT]["log_evidence"]
    assert numbers["particles"]["log_bf"]["log_bf"] == pytest.approx(difference)
    assert np.isfinite([one["log_evidence"] for one in evidence.values()]).all()
    assert numbers["mean_log_bf"] == numbers["trained"][0]["log_bf"]
    for words in ("deepbf, seed 1", "ABC", "particles", "peak height", "Verdict"):
        assert words in drawn.text
    files = drawn.write(tmp_path, "influenza")
    assert {file.name for file in files} == {"influenza.txt", "influenza.json", "influenza.png", "influenza-checks.png"}
    assert json.loads((tmp_path / "influenza.json").read_text()) == json.loads(json.dumps(numbers))


def test_every_scale_is_planned() -> None:
    assert set(target.SCALES) == set(SCALES)
    quick, standard = target.plan("quick"), target.plan("standard")
    assert set(quick) <= set(standard)
    assert {"finer", "varying", f"criticised {VARYING}"} <= set(standard)
    assert len({step.key for step in standard.values()}) == len(standard)


@pytest.mark.slow
def test_a_thorough_plan_is_drawn(tmp_path: Path) -> None:
    cache, plan = Cache(tmp_path), target.plan_of(replace(TINY, is_thorough=True, num_repetitions=2))
    for step in in_order(plan.values()):
        run(step, cache)
    drawing = target.TARGETS[0].draw({label: cache.read(step) for label, step in plan.items()})
    assert set(drawing.numbers["other_choices"]) == {"finer", "varying"}
    assert drawing.numbers["other_choices"]["varying"]["models"] == [NO_LATENT, VARYING]
    assert drawing.numbers["spread_over_seeds"] > 0


# Statistics


def test_statistics_of_the_outbreak() -> None:
    found = {name: float(fn(OUTBREAK)[0]) for name, fn in steps.STATISTICS.items()}
    assert found["peak height"] == 298
    assert found["day of the peak"] == 6
    assert found["days in bed, of all boys"] == 1559
    assert found["early growth of the log a day"] == pytest.approx(np.log(226 / 4) / 4)
    # A tenth of 298 is 29.8: day 12 is the first with fewer, six days after the peak.
    assert found["days from the peak to a tenth of it"] == 6


def test_a_decline_that_is_not_over_counts_until_the_record_ends() -> None:
    assert steps.days_of_decline(np.array([[0, 10, 9, 8], [10, 5, 0, 0]])).tolist() == [3, 2]


def test_a_smooth_course_has_no_roughness() -> None:
    smooth, rough = np.arange(14) ** 2, np.tile([0, 100], 7)
    assert steps.roughness(np.array([smooth, rough])).tolist() == pytest.approx([0.0, 20.0])
