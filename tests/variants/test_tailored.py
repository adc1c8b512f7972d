"""fit_tailored against closed forms: the screening must not show in the answer."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import deepbf
from deepbf.variants.screening import Pilot, Region
from deepbf_studies.problems import normal_mean_log_bf
from tests import simulators
from tests.simulators import NORMAL_MEAN, NUM_OBS, Floats

NUM_SIMULATIONS = 60_000


def mean(data: Floats) -> Floats:
    return data.mean(axis=1, keepdims=True)


def with_mean(value: float) -> Floats:
    """A data set of the given mean; its other values are of no account to the exact Bayes factor."""
    noise = np.random.default_rng(8).normal(size=NUM_OBS)
    return noise - noise.mean() + value


def exact(data: Floats) -> float:
    return float(normal_mean_log_bf(data[None], prior_scale=1.0)[0])


def tailored(observed: Any, estimator: deepbf.BayesFactor | None, **options: Any) -> deepbf.TailoredAnswer:
    settings: dict[str, Any] = {"num_simulations": NUM_SIMULATIONS, "seed": 1, "progress": False} | options
    models = settings.pop("models", NORMAL_MEAN)
    return deepbf.fit_tailored(models, observed, estimator=estimator, **settings)


@pytest.mark.parametrize("value", [0.0, 0.6, -1.2])
@pytest.mark.parametrize("summary", [mean, None])
def test_agrees_with_the_closed_form(normal_mean: deepbf.BayesFactor, summary: Any, value: float) -> None:
    observed = with_mean(value)
    answer = tailored(observed, normal_mean, summary=summary)
    assert answer.tailored
    assert answer.error is not None
    assert answer.error < 0.6
    assert abs(answer.log_bf - exact(observed)) < 4 * answer.error


@pytest.mark.slow
def test_screening_leaves_no_bias(normal_mean: deepbf.BayesFactor) -> None:
    observed = with_mean(0.9)
    answers = [tailored(observed, normal_mean, summary=mean, seed=seed, num_near=300) for seed in range(20)]
    errors = np.array([answer.log_bf for answer in answers]) - exact(observed)
    said = np.array([answer.error for answer in answers])
    assert abs(errors.mean()) < 4 * errors.std(ddof=1) / np.sqrt(len(errors))
    # The error that is stated is no smaller than the one that is seen, and no wild guess.
    assert 0.2 < np.sqrt(np.mean(errors**2)) / said.mean() < 1.5


def test_the_answer_says_what_came_near(normal_mean: deepbf.BayesFactor) -> None:
    answer = tailored(with_mean(0.6), normal_mean, num_near=500)
    assert answer.num_simulations <= NUM_SIMULATIONS
    assert all(count > 250 for count in answer.num_near)
    assert all(0 < rate < 1 for rate in answer.acceptance_rates)
    assert "near the data" in str(answer)
    assert answer.to_dict()["acceptance_rates"] == answer.acceptance_rates
    assert sum(answer.posterior_probs) == pytest.approx(1)


def test_swapping_the_models_asked_for_flips_the_sign(normal_mean: deepbf.BayesFactor) -> None:
    one = tailored(with_mean(0.6), normal_mean)
    other = tailored(with_mean(0.6), normal_mean, model="zero mean", over="free mean")
    assert other.log_bf == pytest.approx(-one.log_bf)
    assert other.global_log_bf == pytest.approx(-one.global_log_bf)


def test_prior_odds_shift_the_posterior_alone(normal_mean: deepbf.BayesFactor) -> None:
    equal = tailored(with_mean(0.6), normal_mean)
    other = tailored(with_mean(0.6), normal_mean, prior_probs=[0.8, 0.2])
    assert other.log_bf == equal.log_bf
    odds = np.log(other.posterior_probs[0]) - np.log(other.posterior_probs[1])
    assert odds == pytest.approx(equal.log_bf + np.log(4))


@pytest.mark.slow
def test_three_models(three_means: deepbf.BayesFactor) -> None:
    observed = np.random.default_rng(3).normal(0.45, 1.0, NUM_OBS)
    answer = tailored(
        observed, three_means, models=simulators.THREE_MEANS, model="plus", over="zero", num_simulations=200_000
    )
    evidence = simulators.three_means_log_evidence(observed[None])[0]
    assert answer.tailored
    assert answer.error is not None
    assert abs(answer.log_bf - (evidence[2] - evidence[1])) < 4 * answer.error
    assert answer.error < 1.0
    assert abs(answer.log_bf - (evidence[2] - evidence[1])) < 0.5
    assert len(answer.num_near) == 3


# Of data at 0.55, "zero" and "plus" come near often, and "minus" too rarely to train on.
@pytest.mark.parametrize(
    "pair",
    [
        (None, None),
        ("plus", "zero"),
        ("minus", "zero"),
        ("minus", "plus"),
        ("plus", None),
        (None, "plus"),
        (None, "zero"),
    ],
)
def test_evidences_of_three_models_agree_with_the_bayes_factor(three_means: deepbf.BayesFactor, pair: Any) -> None:
    answer = tailored(
        with_mean(0.55), three_means, models=simulators.THREE_MEANS, num_simulations=20_000, num_near=500,
        model=pair[0], over=pair[1],
    )  # fmt: skip
    assert answer.model != answer.against
    assert answer.num_near[0] < 30 < min(answer.num_near[1:])
    assert answer.tailored == ("minus" not in (answer.model, answer.against))
    evidence = dict(zip(answer.names, answer.log_evidence, strict=True))
    assert max(evidence.values()) == 0.0
    assert evidence[answer.model] - evidence[answer.against] == pytest.approx(answer.log_bf, abs=1e-9)
    weights = np.exp(answer.log_evidence) * answer.prior_probs
    np.testing.assert_allclose(answer.posterior_probs, weights / weights.sum(), rtol=1e-9)
    assert answer.ranking[0] == answer.names[int(np.argmax(answer.posterior_probs))]
    ranked = [line for line in str(answer).splitlines() if f" {answer.best} over it" in line]
    assert len(ranked) == 2


def test_what_is_not_tailored_comes_from_the_global_answer(normal_mean: deepbf.BayesFactor) -> None:
    observed = with_mean(0.6)
    answer, compared = tailored(observed, normal_mean, num_simulations=20_000), normal_mean.compare(observed)
    own = {"log_bf", "error", "interval", "log_evidence", "posterior_probs", "warnings"}
    for field in fields(deepbf.Answer):
        assert field.name in own or getattr(answer, field.name) == getattr(compared, field.name)
    assert (answer.global_log_bf, answer.global_error) == (compared.log_bf, compared.error)


@dataclass(frozen=True)
class AnswerWithNote(deepbf.Answer):
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class TailoredWithNote(deepbf.TailoredAnswer):
    note: str = ""


COMPARED = deepbf.Answer(
    log_bf=1.0, model="a", against="b", error=0.1, interval=(0.7, 1.3), names=("a", "b"), prior_probs=(0.5, 0.5),
    posterior_probs=(0.73, 0.27), log_evidence=(0.0, -1.0),
)  # fmt: skip
TAILORED: dict[str, Any] = {
    "tailored": True, "global_log_bf": 1.0, "global_error": 0.1, "num_near": (40, 50), "num_screened": (1000, 2000),
    "radius": 0.3, "num_simulations": 5000,
}  # fmt: skip


def test_a_new_field_of_answers_is_carried_along() -> None:
    plain = {field.name: getattr(COMPARED, field.name) for field in fields(COMPARED)}
    told = TailoredWithNote.from_answer(AnswerWithNote(**plain, note="new"), log_bf=2.0, **TAILORED)
    assert (told.note, told.log_bf, told.log_evidence) == ("new", 2.0, (0.0, -1.0))


def test_its_own_rows_stand_between_the_verdict_and_the_warnings() -> None:
    compared = replace(COMPARED, warnings=("first", "second"))
    said = str(deepbf.TailoredAnswer.from_answer(compared, **TAILORED)).splitlines()
    assert said == [
        *str(COMPARED).splitlines(),
        "  near the data     a 40 of 1,000, b 50 of 2,000",
        "  trained globally  1.00 +- 0.1",
        "  careful           first",
        "  careful           second",
    ]


def test_a_models_name_does_not_move_the_rows() -> None:
    odd = "a\n  careful"
    compared = replace(COMPARED, model=odd, names=(odd, "b"))
    assert str(deepbf.TailoredAnswer.from_answer(compared, **TAILORED)).startswith(str(compared))


@pytest.mark.parametrize(
    ("costs", "expected"), [([1.0, 1.0], [75, 225]), ([4.0, 1.0], [30, 180]), ([1.0, 4.0], [42, 64])]
)
def test_the_budget_is_shared_so_that_the_ratio_of_rates_is_known_best(costs: list[float], expected: list[int]) -> None:
    # Of 99 data sets each, 4 of the first model are near and none of the second: rates of 4.5 and 0.5 in 100.
    # Screened are n_k in proportion to 1 / sqrt(p_k c_k), at a cost of 300 in all.
    first = np.concatenate([np.full(4, 0.1), np.full(95, 10.0)])
    pilot = Pilot([first[:, None], np.full((99, 1), 10.0)], np.array(costs), budget=300.0)
    region, num_screened = Region.choose(np.zeros(1), pilot, num_near=1)
    assert region.accepts(pilot.summaries[0]).sum() == 4
    assert not region.accepts(pilot.summaries[1]).any()
    assert num_screened == expected


def test_a_model_that_never_comes_near_is_named_with_a_bound(normal_mean: deepbf.BayesFactor) -> None:
    observed = with_mean(3.0)
    answer = tailored(observed, normal_mean)
    assert not answer.tailored
    assert answer.num_near[1] < 30 < answer.num_near[0]
    assert answer.log_bf == answer.global_log_bf == pytest.approx(normal_mean.log_bf(observed)[0])
    said = " ".join(answer.warnings)
    assert "zero mean came near the observed data in 0 of" in said
    assert "in favour of free mean" in said
    assert "global estimator" in said


def test_data_that_no_model_makes(normal_mean: deepbf.BayesFactor) -> None:
    answer = tailored(with_mean(500.0), normal_mean, summary=mean)
    assert not answer.tailored
    assert np.isfinite(answer.log_bf)
    assert any("none of them may fit" in warning for warning in answer.warnings)


def test_same_seed_same_answer_on_any_executor(normal_mean: deepbf.BayesFactor) -> None:
    observed = with_mean(0.6)
    alone = tailored(observed, normal_mean, num_simulations=20_000)
    with ThreadPoolExecutor(3) as threads:
        assert tailored(observed, normal_mean, num_simulations=20_000, executor=threads) == alone
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        assert tailored(observed, normal_mean, num_simulations=20_000, executor=process) == alone
    assert tailored(observed, normal_mean, num_simulations=20_000, seed=2).log_bf != alone.log_bf


@pytest.mark.slow
def test_an_estimator_for_a_range_of_sizes(any_number: deepbf.BayesFactor) -> None:
    observed = np.random.default_rng(5).normal(0.4, 1.0, 12)
    answer = tailored(observed, any_number, models=simulators.ANY_NUMBER, summary=lambda data: data.mean(axis=1))
    assert answer.tailored
    assert answer.error is not None
    assert abs(answer.log_bf - exact(observed)) < 4 * answer.error


def nowhere(data: Floats) -> Floats:
    return np.full((len(data), 1), np.nan)


def too_short(data: Floats) -> Floats:
    return data[:1]


def only_positive(data: NDArray[np.float64]) -> Floats:
    means = data.mean(axis=1, keepdims=True)
    return np.where(means > 0, means, np.nan)


BAD_INPUT: dict[str, tuple[dict[str, Any], str]] = {
    "wrong shape": ({"observed": np.zeros(NUM_OBS + 1)}, "observed has shape"),
    "several data sets": ({"observed": np.zeros((2, NUM_OBS))}, "observed must be one data set"),
    "nan in the data": ({"observed": np.full(NUM_OBS, np.nan)}, "observed has 10"),
    "summary of nan": ({"summary": nowhere}, "summary of observed has 1"),
    "summary of another length": ({"summary": too_short}, r"summary must return shape \(data sets, columns\)"),
    "summary that raises": ({"summary": lambda data: data.nothing}, "summary raised AttributeError"),
    "summary of no numbers": ({"summary": lambda data: np.zeros((len(data), 0))}, "summary must return shape"),
    "too small a budget": ({"num_simulations": 10_000}, "num_simulations must be at least 20,000, half of which"),
    "two budgets": ({"seconds": 5.0}, "exactly one budget"),
    "too few near": ({"num_near": 3}, "num_near must be at least"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_refused_before_anything_is_trained(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*_: object, **__: object) -> None:
        pytest.fail("training began")

    monkeypatch.setattr("deepbf.variants.tailored.fit", train)
    options, message = BAD_INPUT[case]
    settings = {"observed": np.zeros(NUM_OBS), "structure": "exchangeable"} | options
    with pytest.raises(ValueError, match=message):
        tailored(settings.pop("observed"), None, **settings)


def test_a_summary_must_be_a_function(normal_mean: deepbf.BayesFactor) -> None:
    with pytest.raises(TypeError, match="summary must be a function"):
        tailored(with_mean(0.6), normal_mean, summary="mean")


def test_an_estimator_of_other_models_is_refused(three_means: deepbf.BayesFactor) -> None:
    with pytest.raises(ValueError, match="models must be those of the fit"):
        tailored(with_mean(0.6), three_means)


def test_an_undefined_summary_counts_as_not_near(normal_mean: deepbf.BayesFactor) -> None:
    observed = with_mean(0.6)
    answer = tailored(observed, normal_mean, summary=only_positive)
    assert any("summary is nan or inf for" in warning for warning in answer.warnings)
    assert answer.error is not None
    assert abs(answer.log_bf - exact(observed)) < 4 * answer.error


@pytest.mark.slow
def test_trains_its_own_estimator() -> None:
    observed = with_mean(1.2)
    answer = tailored(observed, None, structure="exchangeable", num_simulations=100_000)
    assert answer.tailored
    assert answer.num_simulations <= 100_000
    assert answer.error is not None
    assert abs(answer.log_bf - exact(observed)) < 4 * answer.error


@pytest.mark.slow
def test_seconds_are_kept() -> None:
    answer = tailored(with_mean(0.6), None, structure="exchangeable", num_simulations=None, seconds=20.0)
    assert answer.tailored
    assert abs(answer.log_bf - exact(with_mean(0.6))) < 0.5


@pytest.mark.slow
def test_strong_evidence_is_measured_by_simulating_the_disfavoured_model_most(normal_mean: deepbf.BayesFactor) -> None:
    # A log Bayes factor of 9: one in ten thousand or fewer simulations of the zero mean come near.
    observed = with_mean(1.52)
    answer = tailored(observed, normal_mean, summary=mean, num_simulations=2_000_000)
    assert answer.num_screened[1] > 5 * answer.num_screened[0]
    assert answer.error is not None
    assert abs(answer.log_bf - exact(observed)) < 4 * answer.error
    assert answer.error < 0.6


def test_open_hyperparameters_are_refused() -> None:
    def scaled(rng: np.random.Generator, size: int, scale: Any) -> Any:
        return rng.normal(0.0, scale, size)

    free = deepbf.Model("free", prior=scaled, simulator=simulators.around_mean, hyperparameters={"scale": (0.5, 2)})
    with pytest.raises(ValueError, match=r"theirs depend on scale from 0.5 to 2. Fix them: \[model.at"):
        deepbf.fit_tailored([free, simulators.ZERO_MEAN], np.zeros(10), structure="exchangeable", progress=False)
