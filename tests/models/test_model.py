"""A model draws the same bits from the same seed, and says what failed in a way that can be pasted."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deepbf import Model, SimulationError
from deepbf.models.model import Seed
from tests import simulators


def raising(*_: Any) -> Any:
    raise KeyError("no such state")


def model_returning(value: Any) -> Model:
    return Model("broken", prior=lambda rng, size: rng.normal(size=size), simulator=lambda rng, params: value)


def model_with_prior(value: Any) -> Model:
    return Model(
        "broken", prior=lambda rng, size: value, simulator=lambda rng, params: rng.normal(size=(len(params), 2))
    )


# Each model fails at simulate(5, ...); the text is what the message must say about it.
FAILURES: dict[str, tuple[Model, str]] = {
    "prior raises": (
        Model("broken", prior=raising, simulator=lambda rng, params: params),
        r"prior raised KeyError: 'no such state'",
    ),
    "simulator raises": (
        Model("broken", prior=lambda rng, size: rng.normal(size=size), simulator=raising),
        r"simulator raised KeyError: 'no such state'",
    ),
    "simulator without prior raises": (Model("broken", simulator=raising), r"simulator raised KeyError"),
    "error without words": (Model("broken", simulator=lambda rng, size: next(iter(()))), r"raised StopIteration"),
    "None": (model_returning(None), r"simulator returned None"),
    "nan": (
        model_returning([[1.0, 2.0]] * 3 + [[1.0, np.nan]] * 2),
        r"2 of 10 values not finite, the first, nan, at index \(3, 1\)",
    ),
    "inf": (
        model_returning([[1.0, np.inf]] + [[1.0, 2.0]] * 4),
        r"1 of 10 values not finite, the first, inf, at index \(0, 1\)",
    ),
    "object dtype": (model_returning(np.array([[1, None]] * 5, dtype=object)), r"dtype object"),
    "text": (model_returning([["a", "b"]] * 5), r"dtype <U1"),
    "complex": (model_returning(np.ones((5, 2), complex)), r"dtype complex128"),
    "wrong leading axis": (model_returning(np.ones((4, 2))), r"shape \(4, 2\); the leading axis must be 5"),
    "axes swapped": (model_returning(np.ones((2, 5))), r"shape \(2, 5\); the leading axis must be 5"),
    "scalar": (model_returning(3.5), r"single number \(3.5\); return an array with leading axis 5"),
    "ragged list": (model_returning([[1], [1, 2], [1], [1], [1]]), r"returned list, which is not one array"),
    "empty data sets": (model_returning(np.ones((5, 0))), r"empty array of shape \(5, 0\)"),
    "empty list": (model_returning([]), r"shape \(0,\); the leading axis must be 5"),
    "prior of the wrong length": (
        model_with_prior(np.ones(4)),
        r"prior returned parameters of shape \(4,\) for size=5",
    ),
    "scalar prior": (model_with_prior(0.5), r"prior returned parameters of shape \(\) for size=5"),
    "prior returns None": (model_with_prior(None), r"prior returned"),
    "ragged prior": (model_with_prior([[1], [1, 2], [1], [1], [1]]), r"prior returned"),
    "one short parameter in a dict": (
        model_with_prior({"mean": np.ones(5), "scale": np.ones(3)}),
        r"prior returned parameter 'scale' of shape \(3,\) for size=5",
    ),
}

SEEDS: dict[str, tuple[Seed, str]] = {
    "int": (7, "7"),
    "sequence": (np.random.SeedSequence(7), "np.random.SeedSequence(7, spawn_key=())"),
    "spawned": (np.random.SeedSequence(7, spawn_key=(1, 20)), "np.random.SeedSequence(7, spawn_key=(1, 20))"),
}


def failure_of(model: Model, seed: Seed) -> str:
    with pytest.raises(SimulationError) as caught:
        model.simulate(5, seed)
    return str(caught.value)


def reproduction_in(message: str) -> str:
    [reproduction] = re.findall(r"Reproduce it with: (.*)", message)
    return reproduction


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_names_model_and_seed_and_happens_again_when_pasted(case: str, seed: str) -> None:
    model, what = FAILURES[case]
    value, written = SEEDS[seed]
    message = failure_of(model, value)
    assert "Model 'broken'" in message
    assert f"with seed {written}:" in message
    assert re.search(what, message)
    with pytest.raises(SimulationError, match=f"^{re.escape(message)}$"):
        eval(reproduction_in(message), {"model": model, "np": np})


def test_the_original_error_stays_attached() -> None:
    with pytest.raises(SimulationError) as caught:
        Model("broken", simulator=raising).simulate(5, 1)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    "seed",
    [
        np.int64(7),
        np.random.SeedSequence(),
        np.random.SeedSequence([1, 2]),
        np.random.SeedSequence(np.array([1, 2])),
        np.random.SeedSequence(7, pool_size=8),
        np.random.SeedSequence(7).spawn(3)[2].spawn(2)[1],
    ],
    ids=["numpy int", "fresh entropy", "list", "array", "pool size", "spawned"],
)
def test_the_pasted_seed_draws_the_very_same_numbers(seed: Seed) -> None:
    def fail_with_first_draw(rng: np.random.Generator, size: int) -> None:
        raise ArithmeticError(f"first draw {rng.random()!r}")

    model = Model("broken", simulator=fail_with_first_draw)
    message = failure_of(model, seed)
    with pytest.raises(SimulationError, match=re.escape(message)):
        eval(reproduction_in(message), {"model": model, "np": np})


def test_a_rare_failure_is_caught_again_by_its_seed() -> None:
    def negative_now_and_then(rng: np.random.Generator, size: int) -> Any:
        return np.where(rng.random(size) < 0.1, np.nan, 1.0)

    model = Model("rarely", simulator=negative_now_and_then)
    outcomes = []
    for seed in range(20):
        try:
            model.simulate(3, seed)
            outcomes.append(True)
        except SimulationError as error:
            outcomes.append(False)
            with pytest.raises(SimulationError, match=re.escape(str(error))):
                eval(reproduction_in(str(error)), {"model": model, "np": np})
    assert True in outcomes
    assert False in outcomes


@pytest.mark.parametrize(
    "model", [simulators.FREE_MEAN, simulators.ZERO_MEAN, simulators.WITH_DICT], ids=lambda model: model.name
)
def test_the_same_seed_gives_the_same_bits(model: Model) -> None:
    once, again, other = (model.simulate(8, seed) for seed in (3, 3, 4))
    assert_array_equal(once.data, again.data)
    assert not np.array_equal(once.data, other.data)
    if isinstance(once.params, dict) and isinstance(again.params, dict):
        for name, values in once.params.items():
            assert_array_equal(values, again.params[name])
    else:
        assert_array_equal(np.asarray(once.params), np.asarray(again.params))


def test_a_seed_sequence_is_a_seed() -> None:
    by_int = simulators.FREE_MEAN.simulate(8, 3)
    by_sequence = simulators.FREE_MEAN.simulate(8, np.random.SeedSequence(3))
    assert_array_equal(by_int.data, by_sequence.data)
    spawned = np.random.SeedSequence(3).spawn(2)
    first, second = (simulators.FREE_MEAN.simulate(8, child) for child in spawned)
    assert not np.array_equal(first.data, second.data)


def test_a_seed_sequence_serves_twice_even_if_the_simulator_spawns_from_it() -> None:
    def by_spawned_streams(rng: np.random.Generator, size: int) -> Any:
        return np.stack([child.normal(size=3) for child in rng.spawn(size)])

    model = Model("spawning", simulator=by_spawned_streams)
    seed = np.random.SeedSequence(3)
    assert_array_equal(model.simulate(4, seed).data, model.simulate(4, seed).data)


def test_simulating_does_not_touch_the_global_generator() -> None:
    np.random.seed(0)
    before = np.random.get_state()[1]  # pyright: ignore[reportArgumentType, reportIndexIssue]
    simulators.FREE_MEAN.simulate(8, 3)
    assert_array_equal(before, np.random.get_state()[1])  # pyright: ignore[reportArgumentType, reportIndexIssue]


def test_array_parameters_reach_the_simulator_and_come_back() -> None:
    model = Model("echo", prior=lambda rng, size: rng.normal(size=(size, 3)), simulator=lambda rng, params: 2 * params)
    params, data = model.simulate(6, 1)
    assert isinstance(params, np.ndarray)
    assert params.shape == (6, 3)
    assert_array_equal(data, 2 * params.astype(np.float64))


def test_dict_parameters_reach_the_simulator_as_a_dict() -> None:
    model = Model(
        "echo",
        prior=lambda rng, size: {"a": rng.normal(size=size), "b": rng.integers(9, size=(size, 2)).tolist()},
        simulator=lambda rng, params: params["a"][:, None] + params["b"],
    )
    params, data = model.simulate(6, 1)
    assert isinstance(params, dict)
    assert params["a"].shape == (6,)
    assert params["b"].shape == (6, 2)
    assert_array_equal(data, params["a"].astype(np.float64)[:, None] + params["b"].astype(np.float64))


def test_data_are_drawn_at_given_parameters() -> None:
    model = Model(
        "line",
        prior=lambda rng, size: {"a": rng.normal(size=size), "b": rng.normal(size=size)},
        simulator=lambda rng, params: params["a"][:, None] + params["b"][:, None] * np.arange(4),
    )
    params = {"a": np.array([1.0, 2.0]), "b": np.array([0.5, -1.0])}
    np.testing.assert_allclose(model.simulate_given(params, seed=1), [[1.0, 1.5, 2.0, 2.5], [2.0, 1.0, 0.0, -1.0]])


@pytest.mark.parametrize(
    "params", [{"a": np.zeros(2), "b": np.zeros(3)}, {"a": np.zeros(2), "b": 1.0}], ids=["lengths", "a number"]
)
def test_given_parameters_share_a_leading_axis(params: Any) -> None:
    model = Model("line", prior=lambda rng, size: None, simulator=lambda rng, params: np.zeros((2, 3)))
    with pytest.raises(ValueError, match="one leading axis"):
        model.simulate_given(params, seed=1)


def test_given_parameters_need_a_model_that_has_some() -> None:
    with pytest.raises(ValueError, match="has no prior"):
        Model("noise", simulator=lambda rng, size: rng.normal(size=(size, 3))).simulate_given(np.zeros(2), seed=1)


def test_a_failure_at_given_parameters_says_so() -> None:
    model = Model("broken", prior=lambda rng, size: np.zeros(size), simulator=lambda rng, params: params / None)
    with pytest.raises(SimulationError, match=r"model\.simulate_given\(params, seed=7\)"):
        model.simulate_given(np.zeros(2), seed=7)


def test_without_a_prior_the_simulator_receives_the_size() -> None:
    received = []

    def simulator(rng: np.random.Generator, size: int) -> Any:
        received.append(size)
        return np.zeros((size, 2))

    params, data = Model("plain", simulator=simulator).simulate(6, 1)
    assert params is None
    assert data.shape == (6, 2)
    assert received == [6]


def test_lists_and_whole_numbers_are_data_too() -> None:
    data = Model("list", simulator=lambda rng, size: [[1, 0]] * size).simulate(3, 1).data
    assert_array_equal(data, [[1, 0]] * 3)
    assert data.dtype.kind == "i"


@pytest.mark.parametrize(("size", "error"), [(0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)])
def test_size_must_be_a_count(size: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="size"):
        simulators.ZERO_MEAN.simulate(size, 1)


@pytest.mark.parametrize("seed", [None, 1.5, "1", -1])
def test_a_seed_that_cannot_be_written_down_again_is_refused(seed: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="seed"):
        simulators.ZERO_MEAN.simulate(2, seed)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"name": "", "simulator": raising}, "name"),
        ({"name": "  ", "simulator": raising}, "name"),
        ({"name": 3, "simulator": raising}, "name"),
        ({"name": "m", "simulator": None}, "simulator"),
        ({"name": "m", "simulator": np.ones(3)}, "simulator"),
        ({"name": "m", "simulator": raising, "prior": 0.5}, "prior"),
        ({"name": "m", "simulator": raising, "log_prior": "flat"}, "log_prior"),
        ({"name": "m", "simulator": raising, "log_likelihood": 1}, "log_likelihood"),
    ],
)
def test_a_model_is_checked_when_it_is_made(arguments: dict[str, Any], word: str) -> None:
    with pytest.raises(TypeError, match=word):
        Model(arguments.pop("name"), **arguments)


def test_a_model_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        simulators.ZERO_MEAN.name = "other"  # pyright: ignore[reportAttributeAccessIssue]
