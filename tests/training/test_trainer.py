"""Training ends when and how its budget says, and the same seed gives the same estimator."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

import deepbf
from deepbf.estimator.fitting import PartialFitError
from deepbf.simulation import CHUNK_SIZE
from deepbf.training import trainer
from deepbf.training.intake import PILOT_DATASETS
from deepbf.training.schedule import fitting_batch_size
from tests.simulators import (
    FREE_MEAN,
    NORMAL_MEAN,
    WALK_LENGTH,
    WALK_OR_NOISE,
    ZERO_MEAN,
    CallsAtChunk,
    ChangesShapeFromChunk,
    FailsFromChunk,
)

DATA = FREE_MEAN.simulate(50, 99).data
# The pilot takes the first chunks, and the first blocks of steps a few hundred; the last one comes well after.
AFTER_PILOT = PILOT_DATASETS // CHUNK_SIZE
LATE_CHUNK = 4000


def small_fit(models: list[deepbf.Model] = NORMAL_MEAN, **options: Any) -> deepbf.BayesFactor:
    defaults: dict[str, Any] = {"structure": "exchangeable", "ensemble": 2, "seed": 5, "progress": False}
    return deepbf.fit(models, **(defaults | options))


def log_bf_of(estimator: deepbf.BayesFactor) -> NDArray[np.float64]:
    return estimator.log_bf_members(DATA)


@pytest.fixture(scope="module")
def by_steps() -> deepbf.BayesFactor:
    return small_fit(steps=40)


@pytest.fixture(scope="module")
def by_simulations() -> deepbf.BayesFactor:
    return small_fit(num_simulations=1001)


def test_steps_are_taken_and_recorded(by_steps: deepbf.BayesFactor) -> None:
    record = by_steps.record
    assert record.num_steps == 40
    assert record.stopped == "budget"
    # Every step of every member had fresh data, and each mini-batch served half of the members.
    assert record.num_simulations >= 40 * 2 * 128 * 2
    assert 0 < record.held_out_loss < np.log(2)
    steps = [entry["steps"] for entry in record.history]
    assert steps == sorted(steps)
    assert {2, 20, 40} <= set(steps)
    assert by_steps.num_members == 2


def test_the_same_seed_gives_the_same_bits(by_steps: deepbf.BayesFactor) -> None:
    assert_array_equal(log_bf_of(small_fit(steps=40)), log_bf_of(by_steps))


def test_another_seed_gives_another_estimator(by_steps: deepbf.BayesFactor) -> None:
    assert np.abs(log_bf_of(small_fit(steps=40, seed=6)) - log_bf_of(by_steps)).min() > 0


def test_two_threads_give_the_same_bits(by_steps: deepbf.BayesFactor) -> None:
    with ThreadPoolExecutor(2) as threads:
        assert_array_equal(log_bf_of(small_fit(steps=40, executor=threads)), log_bf_of(by_steps))


def test_the_size_of_tasks_gives_the_same_bits(by_steps: deepbf.BayesFactor, monkeypatch: pytest.MonkeyPatch) -> None:
    # As on a machine where one chunk takes longer than a task should.
    monkeypatch.setattr(trainer, "TASK_SECONDS", 0.0)
    assert_array_equal(log_bf_of(small_fit(steps=40)), log_bf_of(by_steps))


def test_the_size_of_tasks_gives_the_same_bits_when_enough_is_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # With less to hold out, it is full after a few steps already: from then on every chunk is trained on.
    monkeypatch.setattr("deepbf.training.intake.MOST_DATASETS", 5 * CHUNK_SIZE)
    outcomes = []
    for task_seconds in (0.0, 1e9):
        monkeypatch.setattr(trainer, "TASK_SECONDS", task_seconds)
        outcomes.append(log_bf_of(small_fit(steps=40)))
    assert_array_equal(*outcomes)


def test_a_number_of_simulations_is_kept_to(by_simulations: deepbf.BayesFactor) -> None:
    record = by_simulations.record
    # Shared equally by two models: the odd one is not drawn.
    assert record.num_simulations == 1000
    assert record.stopped == "budget"
    # Each simulation was used many times.
    assert record.num_steps * fitting_batch_size(128, 1500) > 10 * 1500


def test_a_number_of_simulations_gives_the_same_bits_again(by_simulations: deepbf.BayesFactor) -> None:
    again = small_fit(num_simulations=1001)
    assert again.record.num_simulations == 1000
    assert again.record.num_steps == by_simulations.record.num_steps
    assert_array_equal(log_bf_of(again), log_bf_of(by_simulations))


@pytest.mark.slow
def test_a_number_of_simulations_beyond_the_pilot_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = []
    for task_seconds in (0.0, 1e9):
        monkeypatch.setattr(trainer, "TASK_SECONDS", task_seconds)
        estimator = small_fit(num_simulations=9_000)
        assert estimator.record.num_simulations == 9_000
        outcomes.append(log_bf_of(estimator))
    assert_array_equal(*outcomes)


@pytest.mark.slow
def test_the_smallest_number_of_simulations_works() -> None:
    with pytest.raises(ValueError, match="num_simulations must be at least") as caught:
        small_fit(num_simulations=2)
    least = int(str(caught.value).split("at least ")[1].split(";")[0])
    estimator = small_fit(num_simulations=least)
    assert estimator.record.num_simulations == least
    assert np.isfinite(log_bf_of(estimator)).all()


def test_one_member_trained_outside_the_main_thread() -> None:
    with ThreadPoolExecutor(1) as other_thread:
        estimator = other_thread.submit(small_fit, WALK_OR_NOISE, structure="vector", ensemble=1, steps=20).result()
    assert estimator.num_members == 1
    answer = estimator.compare(np.zeros(WALK_LENGTH))
    assert answer.error is None
    assert answer.interval is None
    assert "the ensemble has one member" in str(answer)


class InterruptedTestError(Exception):
    """What an unhandled Ctrl-C raises here, so that it never ends the whole test run."""


def raise_interrupted(*_: Any) -> None:
    raise InterruptedTestError


@pytest.fixture
def own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, raise_interrupted)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def fit_or_fail(models: list[deepbf.Model], **options: Any) -> deepbf.BayesFactor:
    try:
        return small_fit(models, **options)
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C lost what was trained")


@pytest.mark.usefixtures("own_handler")
def test_ctrl_c_returns_the_estimator_so_far() -> None:
    # Pressed by the thread that simulates, when it comes to a chunk that only training asks for.
    models = [FREE_MEAN, deepbf.Model("zero mean", simulator=CallsAtChunk(LATE_CHUNK, press_ctrl_c))]
    with pytest.warns(UserWarning, match="training was interrupted after"):
        estimator = fit_or_fail(models, steps=100_000)
    assert signal.getsignal(signal.SIGINT) is raise_interrupted
    assert estimator.record.stopped == "interrupted"
    assert 0 < estimator.record.num_steps < 100_000
    assert np.isfinite(log_bf_of(estimator)).all()
    assert any("did not run to its end" in warning for warning in estimator.compare(DATA[0]).warnings)


@pytest.mark.usefixtures("own_handler")
def test_ctrl_c_before_the_first_step_is_a_keyboard_interrupt() -> None:
    models = [FREE_MEAN, deepbf.Model("zero mean", simulator=CallsAtChunk(0, press_ctrl_c))]
    with pytest.raises(KeyboardInterrupt):
        small_fit(models, steps=100_000)
    assert signal.getsignal(signal.SIGINT) is raise_interrupted


def test_a_late_failure_keeps_what_was_trained() -> None:
    models = [FREE_MEAN, deepbf.Model("fragile", simulator=FailsFromChunk(LATE_CHUNK))]
    with pytest.raises(PartialFitError, match=rf"'fragile'.*spawn_key=\(1, {LATE_CHUNK}\).*`partial`") as caught:
        small_fit(models, steps=100_000)
    assert isinstance(caught.value, deepbf.SimulationError)
    partial = caught.value.partial
    assert partial is not None
    assert partial.record.stopped == "simulator failed"
    assert 0 < partial.record.num_steps < 5000
    assert np.isfinite(log_bf_of(partial)).all()
    assert any("simulator failed" in warning for warning in partial.compare(DATA[0]).warnings)


def test_a_failure_right_after_the_pilot_promises_no_estimator_that_is_not_there() -> None:
    models = [FREE_MEAN, deepbf.Model("fragile", simulator=FailsFromChunk(AFTER_PILOT))]
    with pytest.raises(deepbf.SimulationError, match=rf"'fragile'.*spawn_key=\(1, {AFTER_PILOT}\)") as caught:
        small_fit(models, steps=100_000)
    partial = getattr(caught.value, "partial", None)
    assert (partial is not None) == ("`partial`" in str(caught.value))


@pytest.mark.parametrize("first_bad", [2, 20])
def test_a_failure_in_the_pilot_names_its_seed(first_bad: int) -> None:
    models = [deepbf.Model("fragile", simulator=FailsFromChunk(first_bad)), ZERO_MEAN]
    with pytest.raises(deepbf.SimulationError, match=rf"'fragile'.*spawn_key=\(0, {first_bad}\)"):
        small_fit(models, steps=10)


@pytest.mark.parametrize(
    ("structure", "first_longer"), [("vector", 5), ("vector", AFTER_PILOT), ("exchangeable", AFTER_PILOT)]
)
def test_a_shape_that_changes_during_the_run_is_refused(structure: str, first_longer: int) -> None:
    models = [ZERO_MEAN, deepbf.Model("growing", simulator=ChangesShapeFromChunk(first_longer))]
    with pytest.raises(deepbf.SimulationError, match=r"'growing'.*shape"):
        small_fit(models, structure=structure, steps=60)


def test_a_budget_too_short_for_one_step_says_so() -> None:
    with pytest.raises(RuntimeError, match=r"no training step fitted into the budget.*more seconds"):
        small_fit(seconds=0.001)


@pytest.mark.slow
def test_a_thorough_fit_sees_more_than_it_trains_on_and_gives_the_same_bits() -> None:
    options = {"schedule": "thorough", "batch_size": 64, "steps": 80}
    first = small_fit(**options)
    with ThreadPoolExecutor(2) as threads:
        second = small_fit(**options, executor=threads)
    assert_array_equal(log_bf_of(first), log_bf_of(second))
    trained_on = 80 * 2 * 64 * 2
    assert first.record.num_steps == 80
    assert first.record.num_simulations > 2 * trained_on
    assert np.isfinite(log_bf_of(first)).all()


@pytest.mark.slow
def test_a_thorough_fit_by_seconds() -> None:
    # Compiled before the clock starts: how long that takes is the machine's matter.
    small_fit(schedule="thorough", batch_size=64, steps=2)
    estimator = small_fit(schedule="thorough", batch_size=64, seconds=4)
    assert estimator.record.num_steps > 20
    assert np.isfinite(log_bf_of(estimator)).all()


def test_the_papers_schedule_by_steps() -> None:
    estimator = small_fit(WALK_OR_NOISE, structure="vector", network="fnn", schedule="paper", steps=20, ensemble=1)
    assert estimator.record.num_steps == 20
    # 200 data sets a model in a mini-batch, each used once.
    assert estimator.record.num_simulations >= 20 * 200 * 2


@pytest.mark.slow
def test_larger_batches_take_more_simulations_in_as_many_steps() -> None:
    small, large = (small_fit(steps=20, ensemble=1, batch_size=size).record for size in (128, 512))
    assert small.num_steps == large.num_steps == 20
    assert large.num_simulations >= 20 * 512 * 2 > small.num_simulations
