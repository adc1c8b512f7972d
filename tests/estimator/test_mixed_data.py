"""Mixed data, dicts of arrays, from simulators to answers and files."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import deepbf
from deepbf import BayesFactor, baselines
from deepbf.cli import app
from deepbf_studies import problems

STUDY = problems.load("covariate", num_obs=20)
STRUCTURE = STUDY.structure


def person(number: int = 12, seed: int = 1) -> dict[str, Any]:
    """One data set: age, pretests and so many trials."""
    data = STUDY.models[0].simulate(1, seed=seed, num_obs=number).data
    return {name: array[0] for name, array in data.items()}


def returning(data: Callable[[int], Any]) -> list[deepbf.Model]:
    return [deepbf.Model(name, simulator=lambda rng, size: data(size)) for name in ("first", "second")]


# Answers


def test_answers_are_near_the_exact_ones(mixed: BayesFactor) -> None:
    found = mixed.evaluate(1500, num_obs=12, exact=STUDY.exact_log_bf, num_replicates=20, progress=False)
    # Without the age it could not be below 0.049.
    assert found.value("excess_loss") < 0.015
    assert found.value("spearman") > 0.8


def test_every_part_counts(mixed: BayesFactor) -> None:
    one = person()
    answer = mixed.log_bf(one)[0]
    for name, array in one.items():
        assert abs(mixed.log_bf({**one, name: np.asarray(array) + 0.7})[0] - answer) > 1e-3


def test_many_data_sets_are_arrays_or_a_list_of_dicts(mixed: BayesFactor) -> None:
    data = STUDY.models[1].simulate(5, seed=2, num_obs=9).data
    together = mixed.log_bf(data)
    apart = [{name: array[k] for name, array in data.items()} for k in range(5)]
    np.testing.assert_allclose(mixed.log_bf(apart), together, rtol=0, atol=1e-5)
    turned = dict(reversed(data.items()))
    np.testing.assert_array_equal(mixed.log_bf(turned), together)


def test_data_sets_of_different_sizes_in_one_call(mixed: BayesFactor) -> None:
    people = [person(number, seed=number) for number in (2, 20, 7)]
    together = mixed.log_bf(people)
    np.testing.assert_allclose(together, [mixed.log_bf(one)[0] for one in people], rtol=0, atol=1e-5)
    joined = {name: np.stack([one[name] for one in people]) for name in ("age", "pretest")}
    ragged = {**joined, "trials": [one["trials"] for one in people]}
    np.testing.assert_array_equal(mixed.log_bf(ragged), together)


def test_the_order_of_the_trials_does_not_matter(mixed: BayesFactor) -> None:
    one = person()
    turned = {**one, "trials": one["trials"][::-1]}
    np.testing.assert_allclose(mixed.log_bf(turned), mixed.log_bf(one), rtol=1e-4, atol=1e-4)


def test_an_answer_the_path_and_the_surprise(mixed: BayesFactor) -> None:
    one = person(18)
    answer = mixed.compare(one)
    assert answer.log_bf == pytest.approx(mixed.log_bf(one)[0])
    assert answer.surprise is not None
    path = mixed.path(one)
    assert path.num_obs.tolist() == list(range(2, 19))
    assert path.log_bf[-1] == pytest.approx(answer.log_bf, abs=1e-5)
    assert path.log_bf[3] == pytest.approx(mixed.log_bf({**one, "trials": one["trials"][:5]})[0], abs=1e-5)


def test_a_design_over_sample_sizes(mixed: BayesFactor) -> None:
    found = mixed.design(1.5, 0.3, num_obs=[2, 20], num_datasets=50, progress=False)
    assert found.results["num_obs"].values.tolist() == [2, 20]


def test_extreme_values_are_answered(mixed: BayesFactor) -> None:
    for value in (1e300, -1e30, 0.0):
        data = {name: np.full(np.shape(array), value) for name, array in person().items()}
        assert np.isfinite(mixed.log_bf_members(data)).all()


def test_it_is_saved_and_loaded(mixed: BayesFactor, tmp_path: Path) -> None:
    mixed.save(tmp_path / "mixed.deepbf")
    loaded = deepbf.load(tmp_path / "mixed.deepbf")
    assert repr(loaded) == repr(mixed)
    assert "mixed data of 'age' of shape (), 'pretest' of shape (2,), 'trials' of shape (20,)" in repr(loaded)
    assert loaded.structure == STRUCTURE
    assert loaded.data_shape == {"age": (), "pretest": (2,), "trials": (20,)}
    people = [person(number) for number in (2, 20)]
    np.testing.assert_array_equal(loaded.log_bf(people), mixed.log_bf(people))
    a, b = (
        bf.evaluate(40, models=STUDY.models, num_obs=4, num_replicates=10, progress=False) for bf in (loaded, mixed)
    )
    assert a.results.identical(b.results)


def test_the_command_line_reads_json_and_npz(mixed: BayesFactor, tmp_path: Path) -> None:
    one = person(7)
    mixed.save(tmp_path / "mixed.deepbf")
    (tmp_path / "one.json").write_text(json.dumps({name: np.asarray(array).tolist() for name, array in one.items()}))
    np.savez(tmp_path / "one.npz", **one)
    for name in ("one.json", "one.npz"):
        result = CliRunner().invoke(app, ["compare", str(tmp_path / "mixed.deepbf"), str(tmp_path / name), "--json"])
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["log_bf"] == pytest.approx(mixed.log_bf(one)[0])
    (tmp_path / "one.csv").write_text("1\n2\n")
    result = CliRunner().invoke(app, ["compare", str(tmp_path / "mixed.deepbf"), str(tmp_path / "one.csv")])
    assert result.exit_code == 2
    assert "trained on several: age, pretest, trials" in result.stderr


# What is refused

BAD: dict[str, tuple[Any, str]] = {
    "an array": (np.zeros(5), r"must be a dict with the arrays 'age' of shape \(\), .*; received an array of shape"),
    "a list of numbers": ([1.0, 2.0], "received list"),
    "a part is missing": ({"age": 1.0, "trials": [1.0, 2.0]}, "received a dict of age, trials"),
    "a part too many": ({**person(), "more": 1.0}, "received a dict of age, pretest, trials, more"),
    "nothing": ({}, "received a dict of nothing"),
    "nan": ({**person(), "age": np.nan}, r"data\['age'\] has 1 of 1 values not finite"),
    "nan among trials": ({**person(), "trials": [1.0, np.nan]}, r"data\['trials'\] has 1 of 2 values not finite"),
    "too long a vector": ({**person(), "pretest": [1.0, 2.0, 3.0]}, r"data\['pretest'\] has shape \(3,\)"),
    "too few trials": ({**person(), "trials": [1.0]}, r"data\['trials'\] .*range, 2 to 20: the first has 1"),
    "different numbers": (
        {"age": [1.0, 2.0], "pretest": np.zeros((2, 2)), "trials": np.zeros((3, 4))},
        "different numbers of data sets: 2 of 'age', 2 of 'pretest', 3 of 'trials'",
    ),
    "a bad one in a list": ([person(), {**person(), "age": np.inf}], r"data\[1\]\['age'\] has 1 of 1 values"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_are_refused(mixed: BayesFactor, case: str) -> None:
    data, says = BAD[case]
    with pytest.raises(ValueError, match=says):
        mixed.log_bf(data)


def test_a_dict_for_an_estimator_of_one_array(normal_mean: BayesFactor) -> None:
    with pytest.raises(TypeError, match="data is a dict; this estimator was trained on one array per data set"):
        normal_mean.log_bf({"trials": np.zeros(10)})


def test_no_more_trials_than_in_training(mixed: BayesFactor) -> None:
    with (
        pytest.raises(ValueError, match=r"data\['trials'\] has more observations than any in training, 20"),
        pytest.warns(UserWarning, match="extrapolated"),
    ):
        mixed.log_bf({**person(), "trials": np.zeros(30)}, extrapolate=True)
    with pytest.warns(UserWarning, match="extrapolated"):
        assert np.isfinite(mixed.log_bf({**person(), "trials": [1.0]}, extrapolate=True)).all()


PAIR: Callable[[int], Any] = lambda size: {"a": np.ones((size, 3)), "b": np.ones(size)}  # noqa: E731


@pytest.mark.parametrize(
    ("models", "structure", "says"),
    [
        (returning(PAIR), "vector", "returned a dict of arrays (a, b); pass structure as a dict"),
        (
            returning(PAIR),
            {"a": "exchangeable"},
            "structure names the arrays a; the simulator of model 'first' returns a, b",
        ),
        (returning(PAIR), {"a": "exchangeable", "b": "set"}, "structure['b'] must be one of"),
        (returning(PAIR), {}, "structure must name the arrays"),
        (
            returning(PAIR),
            {"a": "exchangeable", "b": "exchangeable"},
            "structure['b']='exchangeable' needs data sets with",
        ),
        (
            returning(lambda size: np.ones((size, 3))),
            {"a": "vector"},
            "the simulator of model 'first' returns one array",
        ),
        (
            [returning(PAIR)[0], returning(lambda size: {"a": np.ones((size, 4)), "b": np.ones(size)})[1]],
            {"a": "vector", "b": "vector"},
            "'first' makes 'a' of shape (3,), 'b' of shape (), 'second' makes 'a' of shape (4,)",
        ),
    ],
    ids=["structure of one", "a part without", "unknown", "none", "too few axes", "one array", "other shapes"],
)
def test_structures_that_do_not_fit_are_refused(models: list[deepbf.Model], structure: Any, says: str) -> None:
    with pytest.raises((ValueError, deepbf.SimulationError), match=re.escape(says)):
        deepbf.fit(models, structure=structure, steps=2, progress=False)


def test_a_network_cannot_be_chosen() -> None:
    with pytest.raises(ValueError, match="network for mixed data must be one of 'auto', 'committee', 'mixed'"):
        deepbf.fit(returning(PAIR), structure={"a": "vector", "b": "vector"}, network="fnn", progress=False)


def test_a_shape_that_changes_is_named_with_its_seed() -> None:
    def changing(rng: np.random.Generator, size: int) -> dict[str, Any]:
        return {"a": rng.normal(size=(size, 3 if size == 1 else 4))}

    models = [deepbf.Model(name, simulator=changing) for name in ("first", "second")]
    with pytest.raises(deepbf.SimulationError, match=r"'a' of shape \(4,\) instead of 'a' of shape \(3,\).*Reproduce"):
        deepbf.fit(models, structure={"a": "vector"}, steps=2, progress=False)


def test_baselines_say_that_they_take_one_array() -> None:
    with pytest.raises(TypeError, match="baselines compare data sets of one array"):
        baselines.abc_ranked(STUDY.models, np.zeros(20))


# Other mixtures


@pytest.mark.slow
def test_a_longer_fit_comes_near_the_exact_answer() -> None:
    bf = deepbf.fit(STUDY.models, structure=STRUCTURE, steps=6000, seed=1, progress=False)
    found = bf.evaluate(5000, exact=STUDY.exact_log_bf, num_replicates=20, progress=False)
    assert found.value("excess_loss") < 4e-3
    assert found.value("spearman") > 0.97


@pytest.mark.slow
def test_groups_a_series_and_masked_sets_in_one_data_set() -> None:
    def simulator(shift: float) -> Callable[..., Any]:
        def draw(rng: np.random.Generator, size: int) -> dict[str, Any]:
            sizes = rng.integers(2, 6, (size, 1))
            return {
                "groups": rng.normal(shift, 1, (size, 3, 4)),
                "series": rng.normal(0, 1, (size, 8)).cumsum(axis=1),
                "set": np.ma.MaskedArray(rng.normal(shift, 1, (size, 5)), mask=np.arange(5) >= sizes),
            }

        return draw

    models = [deepbf.Model("zero", simulator=simulator(0.0)), deepbf.Model("one", simulator=simulator(0.4))]
    structure = {"groups": "nested", "series": "series", "set": "exchangeable"}
    bf = deepbf.fit(models, structure=structure, steps=300, seed=1, progress=False)
    data = {"groups": [[0.1, 0.2], [0.3], [0.0, -0.2, 0.4]], "series": np.arange(8.0), "set": [0.1, -0.3, 0.2]}
    with pytest.raises(ValueError, match="fewer observations in a group than in training, 4 to 4"):
        bf.log_bf(data)
    data["groups"] = np.full((3, 4), 0.1).tolist()

    def exact(data: Any) -> Any:
        return sum(
            np.nansum(0.08 - 0.4 * np.asarray(data[k]).reshape(len(data[k]), -1), axis=1) for k in ("groups", "set")
        )

    found = bf.evaluate(1000, exact=exact, observed=None, num_replicates=20, progress=False)
    assert found.value("excess_loss") < 0.02
    assert np.isfinite(bf.log_bf(data)).all()


def test_support_of_mixed_data(mixed: BayesFactor) -> None:
    data: Any = {}
    for k, model in enumerate(mixed.models or ()):
        data = model.simulate(300, seed=79, num_obs=12).data
        found = mixed.support(data)
        assert found is not None
        assert abs((found.tail_area[:, k] <= 0.05).mean() - 0.05) < 0.06
    strange = {name: 50.0 + 0.0 * np.asarray(value)[0] for name, value in data.items()}
    answer = mixed.compare(strange)
    assert answer.verdict is not None
    assert "every model" in answer.verdict
