"""An answer says which model it favours over which, how strongly, and what to be careful about."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepbf import Answer
from deepbf._jeffreys import strength_on_jeffreys_scale
from deepbf.answer import TailArea, write_odds, write_prob


def answer(log_bf: float, **changes: Any) -> Answer:
    prob = 1 / (1 + math.exp(-log_bf)) if abs(log_bf) < 700 else float(log_bf > 0)
    plain: dict[str, Any] = {
        "log_bf": log_bf,
        "model": "process dissociation",
        "against": "Stroop",
        "error": 0.04,
        "interval": (log_bf - 0.13, log_bf + 0.13),
        "names": ("process dissociation", "Stroop"),
        "prior_probs": (0.5, 0.5),
        "posterior_probs": (prob, 1 - prob),
    }
    return Answer(**(plain | changes))


def test_a_positive_log_bf_speaks_for_the_first_model() -> None:
    positive = answer(2.09)
    assert (positive.favours, positive.over) == ("process dissociation", "Stroop")
    assert str(positive).splitlines()[0] == "In favour of process dissociation over Stroop"


def test_a_negative_log_bf_speaks_for_the_second_model() -> None:
    negative = answer(-2.09)
    assert (negative.favours, negative.over) == ("Stroop", "process dissociation")
    lines = str(negative).splitlines()
    assert lines[0] == "In favour of Stroop over process dissociation"
    # What is printed goes with the printed direction: the size, and the interval turned around.
    assert "2.09 +- 0.04, natural log; 95% interval 1.96 to 2.22" in lines[1]
    assert "8.1 to 1" in lines[2]


def test_the_interval_is_printed_from_low_to_high_even_across_zero() -> None:
    assert "0.05 +- 0.04, natural log; 95% interval -0.08 to 0.18" in str(answer(0.05))
    assert "0.05 +- 0.04, natural log; 95% interval -0.08 to 0.18" in str(answer(-0.05))


@pytest.mark.parametrize(
    ("log10_bf", "below", "from_here"),
    [
        (0.5, "barely worth mentioning", "substantial"),
        (1.0, "substantial", "strong"),
        (1.5, "strong", "very strong"),
        (2.0, "very strong", "decisive"),
    ],
)
def test_jeffreys_boundaries(log10_bf: float, below: str, from_here: str) -> None:
    boundary = log10_bf * math.log(10)
    for sign in (1, -1):
        assert strength_on_jeffreys_scale(sign * (boundary - 1e-9)) == below
        assert strength_on_jeffreys_scale(sign * (boundary + 1e-9)) == from_here


@pytest.mark.parametrize(("log_bf", "words"), [(0.0, "barely worth mentioning"), (1e6, "decisive"), (-1e6, "decisive")])
def test_jeffreys_ends(log_bf: float, words: str) -> None:
    assert answer(log_bf).strength == words
    assert f"{words} (Jeffreys' scale)" in str(answer(log_bf))


@pytest.mark.parametrize("single", [True, False])
def test_to_dict_survives_json(single: bool) -> None:
    changes = {"error": None, "interval": None} if single else {}
    original = answer(-2.09, warnings=("train longer",), **changes)
    back = json.loads(json.dumps(original.to_dict(), allow_nan=False))
    assert back["log_bf"] == -2.09
    assert back["favours"] == "Stroop"
    assert back["over"] == "process dissociation"
    assert back["strength"] == "substantial"
    assert back["warnings"] == ["train longer"]
    assert back["interval"] is None if single else back["interval"] == list(original.interval or ())
    assert set(back) >= {field.name for field in dataclasses.fields(Answer)}


def test_warnings_are_printed_each_on_its_line() -> None:
    text = str(answer(1.0, warnings=("the members disagree", "training did not run to its end")))
    careful = [line for line in text.splitlines() if line.split()[0] == "careful"]
    assert [line.split(maxsplit=1)[1] for line in careful] == [
        "the members disagree",
        "training did not run to its end",
    ]
    assert "careful" not in str(answer(1.0))


def test_one_member_has_no_error_and_says_so() -> None:
    text = str(answer(1.0, error=None, interval=None))
    assert "1.00, natural log; no error, the ensemble has one member" in text


@pytest.mark.parametrize(
    ("log_bf", "odds", "log_written"),
    [
        (0.0, "1.0 to 1", "0.00"),
        (1e-12, "1.0 to 1", "0.00"),
        (math.log(20), "20.0 to 1", "3.00"),
        (math.log(1234), "1,234 to 1", "7.12"),
        (math.log(1e12), "10^12 to 1", "27.63"),
        (-800.0, "10^347 to 1", "800.00"),
        (1e6, "10^434294 to 1", "1000000.00"),
    ],
)
def test_sizes_are_written_as_said(log_bf: float, odds: str, log_written: str) -> None:
    lines = str(answer(log_bf)).splitlines()
    assert lines[1].split()[3] == log_written
    assert lines[2].split(maxsplit=2)[2] == odds


@settings(deadline=None, derandomize=True)
@given(st.floats(0, 1))
def test_no_probability_is_printed_as_zero_or_one_or_off_by_more_than_rounding(prob: float) -> None:
    written = write_prob(prob)
    number = float(written.strip("<> "))
    assert 0 < number < 1
    assert abs(number - prob) < 0.00101
    assert (written[0] == "<") == (prob < 0.001)
    assert (written[0] == ">") == (prob > 0.999)


def test_prior_probabilities_are_not_printed_as_certainties() -> None:
    text = str(answer(1.0, prior_probs=(0.9999, 0.0001)))
    before = text.split("before the data ")[1].splitlines()[0]
    assert not {"0", "1", "0.000", "1.000"} & set(before.replace(",", " ").split())


@settings(deadline=None, derandomize=True)
@given(st.floats(0, 1e9))
def test_odds_are_at_least_one_to_one_and_finite(log_odds: float) -> None:
    written = write_odds(log_odds)
    assert written.endswith(" to 1")
    size = written.removesuffix(" to 1")
    log10 = float(size.removeprefix("10^")) if size.startswith("10^") else math.log10(float(size.replace(",", "")))
    # One digit after the point below 100, whole numbers and powers above.
    assert log10 == pytest.approx(log_odds / math.log(10), abs=0.5 if size.startswith("10^") else 0.03)


def test_all_models_are_printed_with_their_probabilities() -> None:
    text = str(answer(1.0, prior_probs=(0.4, 0.6), posterior_probs=(0.7, 0.3)))
    assert "process dissociation 0.700, Stroop 0.300; before the data 0.400, 0.600" in text


def test_more_than_two_models_are_ranked() -> None:
    said = answer(
        1.0,
        names=("a", "b", "c"),
        prior_probs=(0.2, 0.3, 0.5),
        posterior_probs=(0.2999, 0.7, 1e-4),
        log_evidence=(0.0, -0.1, -8.0),
    )
    # Evidence decides with the prior: b is ahead, though the data alone speak for a.
    assert said.ranking == ("b", "a", "c")
    assert said.best == "b"
    assert said.to_dict()["ranking"] == ("b", "a", "c")
    text = str(said)
    assert "ranking           1. b 0.700 (before the data 0.300)\n" in text
    assert "2. a 0.300 (before the data 0.200); 1.1 to 1 against b over it\n" in text
    assert "3. c < 0.001 (before the data 0.500); 2,697 to 1 for b over it" in text


def test_ranking_without_evidence_goes_by_probability() -> None:
    assert answer(1.0, prior_probs=(0.5, 0.5), posterior_probs=(0.3, 0.7)).ranking == ("Stroop", "process dissociation")


def test_surprise_is_printed_for_both_models_and_survives_json() -> None:
    surprised = answer(
        2.09, surprise={"process dissociation": TailArea(0.19, 0.17, 0.21), "Stroop": TailArea(0, 0, 0.002)}
    )
    assert "0.190 if process dissociation is true, < 0.002 if Stroop is true; small is surprising" in str(surprised)
    back = json.loads(json.dumps(surprised.to_dict()))
    assert back["surprise"]["process dissociation"] == {"prob": 0.19, "low": 0.17, "high": 0.21}
    assert "surprise" not in str(answer(2.09))
    assert answer(2.09).to_dict()["surprise"] is None


def test_an_answer_is_plain_data() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer(1.0).log_bf = np.inf  # pyright: ignore[reportAttributeAccessIssue]
    assert answer(1.0) == answer(1.0)


def supported(*probs: float, names: tuple[str, ...] = ("process dissociation", "Stroop")) -> dict[str, TailArea]:
    return {name: TailArea(prob, 0.9 * prob, min(1.0, 1.1 * prob)) for name, prob in zip(names, probs, strict=True)}


@pytest.mark.parametrize(
    ("probs", "says"),
    [
        ((0.3, 0.06), "the data are typical of both models"),
        ((0.3, 0.05), "the data are atypical of Stroop, typical of process dissociation"),
        ((0.001, 0.0), "the data are atypical of every model here: read the Bayes factor with care"),
    ],
)
def test_the_verdict_says_whether_any_model_makes_such_data(probs: tuple[float, float], says: str) -> None:
    found = answer(2.0, support=supported(*probs))
    assert found.verdict == says
    assert f"verdict           {says}" in str(found)
    assert found.to_dict()["verdict"] == says


def test_the_verdict_among_three() -> None:
    names = ("a", "b", "c")
    three = {"names": names, "prior_probs": (1 / 3,) * 3, "posterior_probs": (0.2, 0.3, 0.5), "model": "c"}
    usual = answer(1.0, **three, against="b", support=supported(0.5, 0.5, 0.5, names=names))
    assert usual.verdict == "the data are typical of all 3 models"
    strange = answer(1.0, **three, against="b", support=supported(0.01, 0.5, 0.02, names=names))
    assert strange.verdict == "the data are atypical of a and c, typical of b"


def test_an_order_that_is_no_accident_is_told() -> None:
    assert "order" not in str(answer(2.0, support=supported(0.3, 0.3), order=0.4))
    told = str(answer(2.0, support=supported(0.002, 0.002), order=0.001))
    assert "the order of the observations is no accident (0.001)" in told
