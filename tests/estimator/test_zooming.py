"""compare: the answer at one data set, against closed forms, with an error that is no wild guess."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepbf
from deepbf.estimator import PartialCompareError
from deepbf.estimator.regions import Box, RankScale, Region, Zoom
from deepbf.estimator.zooming import balanced
from deepbf_studies import problems
from deepbf_studies.problems import normal_mean_log_bf
from tests import simulators
from tests.simulators import FREE_MEAN, NORMAL_MEAN, NUM_OBS, ZERO_MEAN, Floats

STEPS = 400


def with_mean(value: float) -> Floats:
    """A data set of the given mean; its other values are of no account to the exact Bayes factor."""
    noise = np.random.default_rng(8).normal(size=NUM_OBS)
    return noise - noise.mean() + value


def exact(data: Floats) -> float:
    return float(normal_mean_log_bf(data[None], prior_scale=1.0)[0])


def zoomed(bf: deepbf.BayesFactor, observed: Any, **options: Any) -> deepbf.ZoomedAnswer:
    answer = bf.compare(observed, **({"steps": STEPS, "seed": 1, "progress": False} | options))
    assert isinstance(answer, deepbf.ZoomedAnswer)
    return answer


@pytest.fixture(scope="module")
def answer(normal_mean: deepbf.BayesFactor) -> deepbf.ZoomedAnswer:
    return zoomed(normal_mean, with_mean(0.9))


@pytest.mark.parametrize("value", [0.0, 0.9, -0.8])
def test_agrees_with_the_closed_form(normal_mean: deepbf.BayesFactor, value: float) -> None:
    observed = with_mean(value)
    found = zoomed(normal_mean, observed)
    assert found.zoomed
    assert found.error is not None
    assert found.interval is not None
    assert abs(found.log_bf - exact(observed)) < 4 * found.error
    assert found.error < 0.3
    assert found.interval[0] < found.log_bf < found.interval[1]
    assert math.hypot(*(found.errors[part] for part in found.errors if "outside" not in part)) == pytest.approx(
        found.error
    )


def test_says_what_it_looked_at(normal_mean: deepbf.BayesFactor, answer: deepbf.ZoomedAnswer) -> None:
    free, zero = answer.regions
    # Its posterior takes up a small part of the prior; the other model has no parameters.
    assert free.region is not None
    assert 0.02 < math.exp(free.log_share) < 0.5
    assert zero.region is None
    assert "no parameters" in zero.why
    assert answer.num_simulations > 0
    assert answer.global_log_bf == normal_mean.compare(with_mean(0.9)).log_bf
    assert answer.support == normal_mean.compare(with_mean(0.9)).support
    printed = str(answer)
    assert "zoomed in" in printed
    assert "zero mean all of it" in printed
    told = json.loads(json.dumps(answer.to_dict()))
    assert told["regions"][0]["found"] is True
    assert told["zoomed"] is True


def test_the_other_direction_and_prior_odds(normal_mean: deepbf.BayesFactor, answer: deepbf.ZoomedAnswer) -> None:
    other = zoomed(normal_mean, with_mean(0.9), model="zero mean", over="free mean", prior_probs=[0.8, 0.2])
    assert other.log_bf == pytest.approx(-answer.log_bf, abs=1e-6)
    odds = np.log(other.posterior_probs[0]) - np.log(other.posterior_probs[1])
    assert odds == pytest.approx(answer.log_bf + np.log(4), abs=1e-6)


def test_the_same_seed_gives_the_same_answer(normal_mean: deepbf.BayesFactor, answer: deepbf.ZoomedAnswer) -> None:
    again = zoomed(normal_mean, with_mean(0.9))
    assert again.log_bf == answer.log_bf
    assert again.interval == answer.interval
    assert zoomed(normal_mean, with_mean(0.9), seed=2).log_bf != answer.log_bf


def test_the_whole_job_in_one_call() -> None:
    observed = with_mean(0.7)
    found = deepbf.compare(NORMAL_MEAN, observed, structure="exchangeable", steps=900, seed=3, progress=False)
    assert found.zoomed
    assert found.error is not None
    assert abs(found.log_bf - exact(observed)) < 4 * found.error
    assert found.error < 0.4
    assert found.global_log_bf != found.log_bf


def test_simulators_that_are_told_how_many_observations_to_draw(any_number: deepbf.BayesFactor) -> None:
    observed = with_mean(0.8)
    found = zoomed(any_number, observed)
    assert found.zoomed
    assert found.error is not None
    assert abs(found.log_bf - exact(observed)) < 4 * found.error


@pytest.mark.slow
def test_simulators_that_are_told_without_an_estimator() -> None:
    observed = with_mean(0.7)
    found = deepbf.compare(simulators.ANY_NUMBER, observed, structure="exchangeable", steps=600, progress=False)
    assert found.error is not None
    assert abs(found.log_bf - exact(observed)) < 4 * found.error


@pytest.mark.slow
def test_three_models(three_means: deepbf.BayesFactor) -> None:
    models = [replace(FREE_MEAN, name="minus"), ZERO_MEAN, replace(FREE_MEAN, name="plus")]
    observed = with_mean(0.5)
    found = deepbf.compare(models, observed, structure="exchangeable", model=2, over=1, steps=900, progress=False)
    assert found.error is not None
    assert abs(found.log_bf - exact(observed)) < 4 * found.error
    # The first and the last are the same model.
    first, _, last = found.log_evidence
    assert abs(first - last) < 4 * found.error
    assert found.error < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("correlated-covariates", 300),
        ("five-counts", 300),
        ("random-effects", 300),
        ("logistic-fixed", 300),
        ("image-blob", 300),
        # Mixed data are learned later: after 300 steps, members agree on too little.
        ("covariate", 2000),
    ],
)
def test_data_of_every_structure(name: str, steps: int) -> None:
    study = problems.load(name)
    data = study.models[0].simulate(1, seed=11).data
    observed = {key: array[0] for key, array in data.items()} if isinstance(data, dict) else data[0]
    found = deepbf.compare(
        study.models, observed, structure=study.structure, covariates=study.covariates, steps=steps, seed=1, model=0,
        over=1, progress=False,
    )  # fmt: skip
    if study.exact_log_evidence is None:
        true = float(study.exact_log_bf(data)[0])
    else:
        evidence = study.exact_log_evidence(data)[0]
        true = float(evidence[0] - evidence[1])
    assert found.interval is not None
    assert found.error is not None
    # Few steps: intervals are wide, and where evidence is strong, bounds.
    margin = 2 * found.error
    assert found.interval[0] - margin < true < found.interval[1] + margin


def test_models_without_parameters_leave_nothing_to_zoom_in_on() -> None:
    models, steps = simulators.WALK_OR_NOISE, np.array([0.3, -0.2, 0.9, 0.4, -0.8, 0.1])
    found = deepbf.compare(models, steps.cumsum(), structure="vector", steps=900, seed=1, progress=False)
    assert not found.zoomed
    assert found.log_bf != found.global_log_bf
    true = float(simulators.walk_or_noise_log_bf(steps.cumsum()[None])[0])
    assert found.error is not None
    assert abs(found.log_bf - true) < 4 * found.error
    assert found.error < 0.5
    assert "all of it" in str(found)


def test_a_model_is_not_narrowed_so_far_that_its_rival_hardly_counts() -> None:
    stages = (Zoom("free"), Zoom("free", SOME_REGION, -2.0), Zoom("free", SOME_REGION, -4.0))
    narrow = Zoom("free", SOME_REGION, -6.0, wider=stages)
    zooms = [narrow, Zoom("zero")]
    seed = np.random.SeedSequence(1)

    def narrowed_for(log_bf: float) -> Zoom:
        said = replace(SAID, log_bf=log_bf)
        return balanced(zooms, [FREE_MEAN, ZERO_MEAN], said, seed)[0]

    # The log odds of the narrowed models are the log Bayes factor plus 6: fine within 4.
    assert narrowed_for(-5.0) is narrow
    # At a log Bayes factor of 1 nothing should be narrowed, at -1 a little.
    assert narrowed_for(1.0).region is None
    little = narrowed_for(-1.0)
    assert little.region is SOME_REGION
    # Counted anew, among draws of the prior: half of them are positive.
    assert little.log_share == pytest.approx(math.log(0.5), abs=0.05)


SOME_REGION = Region(
    RankScale.fit(np.random.default_rng(1).normal(size=20_000)), (Box(np.eye(1), np.zeros(1), np.full(1, 9.0)),)
)
SAID = deepbf.Answer(
    log_bf=0.0, model="free", against="zero", error=0.1, interval=(-0.2, 0.2), names=("free", "zero"),
    prior_probs=(0.5, 0.5), posterior_probs=(0.5, 0.5),
)  # fmt: skip


def test_evidence_beyond_what_simulations_show_is_a_bound(normal_mean: deepbf.BayesFactor) -> None:
    # So far from 0 that no simulation of the model without a mean comes near.
    observed = with_mean(2.5)
    found = zoomed(normal_mean, observed)
    assert found.bounded
    assert found.interval is not None
    assert found.interval[1] == math.inf
    assert 1.0 < found.interval[0] < exact(observed)
    assert "more than" in str(found)
    assert found.warnings
    # JSON knows no infinity.
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["interval"] == [found.interval[0], None]


def test_a_budget_too_small_for_a_second_fit(normal_mean: deepbf.BayesFactor) -> None:
    found = zoomed(normal_mean, with_mean(0.5), steps=10)
    assert not found.zoomed
    assert found.log_bf == normal_mean.compare(with_mean(0.5)).log_bf


class Counting:
    """A simulator that counts how often it was asked, and fails from a call on."""

    def __init__(self, simulator: Callable[..., Any], fails_at: float = math.inf) -> None:
        self.simulator, self.calls, self.fails_at = simulator, 0, fails_at

    def __call__(self, rng: np.random.Generator, params: Any) -> Any:
        self.calls += 1
        if self.calls > self.fails_at:
            raise RuntimeError("out of luck")
        return self.simulator(rng, params)


@pytest.mark.parametrize(
    ("observed", "options", "rule"),
    [
        ([1.0, 2.0], {}, "shape"),
        (np.full(NUM_OBS, np.nan), {}, "finite"),
        (np.zeros(NUM_OBS), {"seconds": 3, "steps": 3}, "exactly one budget"),
        (np.zeros(NUM_OBS), {"structure": "exchangable"}, "Did you mean"),
        (np.zeros(NUM_OBS), {"seed": -1}, "seed"),
    ],
)
def test_bad_input_is_refused_before_training(observed: Any, options: dict[str, Any], rule: str) -> None:
    counting = Counting(FREE_MEAN.simulator)
    models = [replace(FREE_MEAN, simulator=counting), ZERO_MEAN]
    with pytest.raises((ValueError, TypeError), match=rule):
        deepbf.compare(models, observed, **({"structure": "exchangeable", "progress": False} | options))
    assert counting.calls < 5


def test_models_with_open_hyperparameters_are_refused() -> None:
    model = deepbf.Model(
        "scaled", prior=lambda rng, size, scale: rng.normal(0, scale, size), simulator=FREE_MEAN.simulator,
        hyperparameters={"scale": (0.1, 10)},
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"model\.at"):
        deepbf.compare([model, ZERO_MEAN], np.zeros(NUM_OBS), structure="exchangeable", progress=False)


def test_a_failure_keeps_the_best_answer_until_then(normal_mean: deepbf.BayesFactor) -> None:
    counting = Counting(FREE_MEAN.simulator, fails_at=100)
    models = [replace(FREE_MEAN, simulator=counting), ZERO_MEAN]
    with pytest.raises(PartialCompareError, match="out of luck") as caught:
        normal_mean.compare(with_mean(0.9), models=models, steps=5000, seed=1, progress=False)
    assert caught.value.partial is not None
    assert caught.value.partial.log_bf == pytest.approx(exact(with_mean(0.9)), abs=1.0)


def test_from_a_file(normal_mean: deepbf.BayesFactor, answer: deepbf.ZoomedAnswer, tmp_path: Path) -> None:
    path = tmp_path / "normal.deepbf"
    normal_mean.save(path)
    found = deepbf.compare(NORMAL_MEAN, with_mean(0.9), estimator=path, steps=STEPS, seed=1, progress=False)
    assert found.log_bf == answer.log_bf
    with pytest.raises(ValueError, match="file does not hold them"):
        deepbf.load(path).compare(with_mean(0.9), steps=STEPS, progress=False)
