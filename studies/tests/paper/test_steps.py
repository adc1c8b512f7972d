"""A step is its function, its settings and its inputs; its result is kept under exactly that."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from deepbf_studies import paper
from deepbf_studies.paper import Cache, Step
from deepbf_studies.paper.step import in_order, step_function
from studies.tests.paper.recorded import number, number_step, total, total_step

# The SHA-256 digests of all keys of a scale, each once, sorted, one to a line, and how many they are. Results that took
# days are kept under these keys. A digest may change only together with what a figure computes: a target, a setting or
# a `revision` that was meant to change. It must not change because functions or modules were moved or renamed.
KEYS = {
    "quick": (139, "8449e6c997c845ab47fa20ee437702b4538214aa09e165433f3c8d736ccb34f4"),
    "standard": (722, "9b23b302e8ecc11134dad8ed169d21887a79a18a2da1503417a18ea8547bd8c6"),
    "paper": (2556, "ddb09e4d4df7962803a68e4e0a66fd277e0f42ff0b3145cff6b92f2bb6f8ebf9"),
}


@pytest.mark.parametrize("scale", paper.SCALES)
def test_results_kept_before_still_count(scale: str) -> None:
    keys = {step.key for target in paper.targets() for step in in_order(target.plan(scale).values())}
    digest = hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()
    assert (len(keys), digest) == KEYS[scale]


def test_a_name_belongs_to_one_function() -> None:
    def other() -> xr.Dataset:
        return xr.Dataset()

    name = Step(labelled, {}).function
    # The same function, as a module that is loaded again defines it, may have its name again.
    assert step_function(name)(labelled) is labelled
    with pytest.raises(ValueError, match=r"must be its own; .*labelled has .* already. Choose another"):
        step_function(name)(other)


def test_a_function_without_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match=r"no name to keep its results under. Decorate it with step_function"):
        _ = Step(lambda: xr.Dataset(), {}).key


def test_the_same_settings_are_the_same_step_in_any_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    again = Step(number, {"log": str(log), "value": 1.0})
    assert number_step(1.0, log).key == again.key


@pytest.mark.parametrize(
    "other",
    [
        lambda log: number_step(2.0, log),
        lambda log: number_step(1.0, log, revision=2),
        lambda log: Step(total, {"value": 1.0, "log": str(log)}),
        lambda log: Step(number, {"value": 1.0, "log": str(log)}, (number_step(3.0, log),)),
    ],
    ids=["settings", "revision", "function", "inputs"],
)
def test_whatever_changes_the_result_changes_the_key(other, tmp_path: Path) -> None:
    assert other(tmp_path / "log").key != number_step(1.0, tmp_path / "log").key


def test_a_change_of_an_input_reaches_what_is_computed_from_it(tmp_path: Path) -> None:
    assert total_step(tmp_path / "log", 1.0, 2.0).key != total_step(tmp_path / "log", 1.0, 3.0).key


def test_settings_that_json_cannot_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="what JSON can hold"):
        _ = Step(number, {"value": np.float64, "log": ""}).key


def test_inputs_come_first_and_shared_ones_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = in_order([total_step(log, 1.0, 2.0), total_step(log, 2.0, 3.0)])
    assert len(steps) == 5
    keys = [step.key for step in steps]
    for step in steps:
        assert all(keys.index(source.key) < keys.index(step.key) for source in step.inputs)


def test_a_kept_result_is_read_back_with_how_it_came_about(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    step = number_step(4.0, tmp_path / "log")
    assert step not in cache
    cache.compute(step)
    kept = cache.read(step)
    assert step in cache
    assert float(kept["value"]) == 4.0
    assert kept.attrs["step"] == step.identity
    assert kept.attrs["seconds"] >= 0


def test_strings_and_large_arrays_survive_the_disk(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    step = Step(labelled, {"seed": 3})
    cache.compute(step)
    xr.testing.assert_equal(cache.read(step).drop_attrs(), labelled(seed=3))


@step_function(f"{__name__}.labelled")
def labelled(*, seed: int) -> xr.Dataset:
    values = np.random.default_rng(seed).normal(size=(2, 1000))
    return xr.Dataset({"values": (("model", "draw"), values)}, {"model": ["a, b", "\u03b2"]})


def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    step = number_step(1.0, tmp_path / "log")
    cache.path(step).write_bytes(b"half a file")
    with pytest.raises(ValueError, match="Delete it, and its step is computed again"):
        cache.read(step)


def test_a_step_tells_its_settings_in_words(tmp_path: Path) -> None:
    step = Step(number, {"questions": {"num_obs": 8, "study": "data-3"}, "value": 2.0, "log": None})
    assert str(step) == "number (num obs 8, study data-3, value 2)"
