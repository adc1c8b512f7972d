"""The stream gives the bits that its seed says, whoever draws them and however they are packed."""

import multiprocessing
import os
import pickle
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from deepbf import Model, SimulationError
from deepbf.simulation import CHUNK_SIZE, SimulationStream, Source
from deepbf.standardise import Standardiser
from tests.simulators import (
    NORMAL_MEAN,
    WITH_DICT,
    ZERO_MEAN,
    ChangesShapeFromChunk,
    FailsFromChunk,
    has_loaded_jax,
)

SEED = 11
# Six whole chunks and a remainder.
NUM_DATASETS = 6 * CHUNK_SIZE + 17


def nested_spawn_data(models: Sequence[Model], num_datasets: int) -> list[NDArray[Any]]:
    """Return the data by the rule itself: spawn by model, then by chunk."""
    drawn = []
    for model, of_model in zip(models, np.random.SeedSequence(SEED).spawn(len(models)), strict=True):
        sizes = [min(CHUNK_SIZE, num_datasets - start) for start in range(0, num_datasets, CHUNK_SIZE)]
        seeds = of_model.spawn(len(sizes))
        drawn.append(np.concatenate([model.simulate(size, s).data for size, s in zip(sizes, seeds, strict=True)]))
    return drawn


def read_all(stream: SimulationStream) -> list[NDArray[Any]]:
    parts = []
    while not stream.exhausted:
        parts.append(stream.take(timeout=60))
    return [np.concatenate(model_parts) for model_parts in zip(*parts, strict=True)]


class InlineExecutor(Executor):
    """Runs each task as it is submitted, and keeps count."""

    def __init__(self) -> None:
        self.num_submitted = 0
        self.was_shut_down = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.num_submitted += 1
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.was_shut_down = True


class PatientExecutor(InlineExecutor):
    """Runs a task only when told to, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.num_submitted += 1
        future: Future[Any] = Future()
        self.waiting.append((future, partial(fn, *args, **kwargs)))
        return future

    def run(self, position: int) -> None:
        future, task = self.waiting.pop(position)
        future.set_result(task())


@pytest.fixture(scope="module")
def process_pool() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.fixture(params=["background thread", "one thread", "three threads", "two processes"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    if request.param == "background thread":
        yield None
    elif request.param == "two processes":
        yield request.getfixturevalue("process_pool")
    else:
        with ThreadPoolExecutor(1 if request.param == "one thread" else 3) as threads:
            yield threads


@pytest.mark.parametrize("chunks_per_task", [1, 2, 5, 100])
def test_the_bits_depend_on_the_seed_alone(executor: Executor | None, chunks_per_task: int) -> None:
    models = [*NORMAL_MEAN, WITH_DICT]
    with SimulationStream(Source.of(models, SEED), num_datasets=NUM_DATASETS, executor=executor) as stream:
        stream.chunks_per_task = chunks_per_task
        for drawn, expected in zip(read_all(stream), nested_spawn_data(models, NUM_DATASETS), strict=True):
            assert_array_equal(drawn, expected)


def test_the_bits_stay_when_tasks_grow_midway() -> None:
    with SimulationStream(Source.of(NORMAL_MEAN, SEED), num_datasets=NUM_DATASETS) as stream:
        first = stream.take()
        stream.chunks_per_task = 3
        rest = read_all(stream)
    for k, expected in enumerate(nested_spawn_data(NORMAL_MEAN, NUM_DATASETS)):
        assert_array_equal(np.concatenate([first[k], rest[k]]), expected)


@pytest.mark.parametrize("first_chunk", [1, 4, 6])
def test_a_later_start_goes_on_where_another_stream_ended(executor: Executor | None, first_chunk: int) -> None:
    with SimulationStream(
        Source.of(NORMAL_MEAN, SEED), first_chunk=first_chunk, num_datasets=NUM_DATASETS, executor=executor
    ) as stream:
        stream.chunks_per_task = 2
        drawn = read_all(stream)
    for k, expected in enumerate(nested_spawn_data(NORMAL_MEAN, NUM_DATASETS)):
        assert_array_equal(drawn[k], expected[first_chunk * CHUNK_SIZE :])


@pytest.mark.parametrize("num_datasets", [1, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1, 3 * CHUNK_SIZE])
@pytest.mark.parametrize("chunks_per_task", [1, 2])
def test_a_bounded_stream_ends_exactly(num_datasets: int, chunks_per_task: int) -> None:
    with SimulationStream(Source.of(NORMAL_MEAN, SEED), num_datasets=num_datasets) as stream:
        stream.chunks_per_task = chunks_per_task
        assert not stream.exhausted
        assert [len(data) for data in read_all(stream)] == [num_datasets] * 2
        assert stream.exhausted
        assert not stream.ready()


def test_a_stream_that_starts_past_its_end_is_exhausted() -> None:
    with SimulationStream(Source.of(NORMAL_MEAN, SEED), first_chunk=7, num_datasets=NUM_DATASETS) as stream:
        assert stream.exhausted


def test_the_standardiser_travels_to_other_processes(process_pool: Executor) -> None:
    standardiser = Standardiser.fit(nested_spawn_data(NORMAL_MEAN, CHUNK_SIZE), num_axes=1)
    with SimulationStream(
        Source.of(NORMAL_MEAN, SEED), num_datasets=NUM_DATASETS, executor=process_pool, transform=standardiser
    ) as stream:
        drawn = read_all(stream)
    for k, expected in enumerate(nested_spawn_data(NORMAL_MEAN, NUM_DATASETS)):
        assert drawn[k].dtype == np.float32
        assert_array_equal(drawn[k], standardiser(expected))


def test_a_worker_process_never_loads_jax(process_pool: Executor) -> None:
    with SimulationStream(Source.of(NORMAL_MEAN, SEED), num_datasets=CHUNK_SIZE, executor=process_pool) as stream:
        read_all(stream)
    assert not any(process_pool.submit(has_loaded_jax).result() for _ in range(4))


@pytest.mark.parametrize("num_ahead", [1, 3, 7])
def test_never_more_ahead_than_asked(num_ahead: int) -> None:
    executor = InlineExecutor()
    with SimulationStream(Source.of(NORMAL_MEAN, SEED), executor=executor, num_ahead=num_ahead) as stream:
        stream.run_ahead()
        assert executor.num_submitted == num_ahead
        for num_taken in range(1, 6):
            stream.take()
            assert stream.ready()
            assert executor.num_submitted - num_taken == num_ahead


@pytest.mark.parametrize("num_workers", [1, 3])
def test_every_worker_has_work_and_the_queue_stays_short(num_workers: int) -> None:
    in_flight: list[int] = []
    unread = 0

    class Watched(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            nonlocal unread
            unread += 1
            in_flight.append(unread)
            return super().submit(fn, *args, **kwargs)

    with Watched(num_workers) as executor, SimulationStream(Source.of(NORMAL_MEAN, SEED), executor=executor) as stream:
        for _ in range(10):
            stream.take(timeout=60)
            unread -= 1
    assert num_workers < max(in_flight) <= num_workers + 3


def test_data_come_in_order_even_if_finished_out_of_order() -> None:
    executor = PatientExecutor()
    with SimulationStream(Source.of(NORMAL_MEAN, SEED), executor=executor, num_ahead=3) as stream:
        stream.run_ahead()
        executor.run(2)
        assert not stream.ready()
        with pytest.raises(TimeoutError):
            stream.take(timeout=0.01)
        executor.run(0)
        assert stream.ready()
        expected = nested_spawn_data(NORMAL_MEAN, 3 * CHUNK_SIZE)
        assert_array_equal(stream.take()[0], expected[0][:CHUNK_SIZE])
        # The second chunk, which a timeout must not lose.
        with pytest.raises(TimeoutError):
            stream.take(timeout=0.01)
        executor.run(0)
        assert_array_equal(stream.take()[0], expected[0][CHUNK_SIZE : 2 * CHUNK_SIZE])
        assert_array_equal(stream.take()[0], expected[0][2 * CHUNK_SIZE :])


def test_closing_drops_what_has_not_started_and_leaves_the_users_executor_running() -> None:
    executor = PatientExecutor()
    with SimulationStream(Source.of(NORMAL_MEAN, SEED), executor=executor, num_ahead=3) as stream:
        stream.run_ahead()
    assert [future.cancelled() for future, _ in executor.waiting] == [True] * 3
    with pytest.raises(CancelledError):
        executor.waiting[0][0].result()
    assert not executor.was_shut_down


def test_closing_ends_the_background_thread() -> None:
    with SimulationStream(Source.of(NORMAL_MEAN, SEED)) as stream:
        stream.take()
        mine = [thread for thread in threading.enumerate() if thread.name.startswith("deepbf-simulation")]
        assert mine
    end = time.monotonic() + 30
    while any(thread.is_alive() for thread in mine) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(thread.is_alive() for thread in mine)


@pytest.mark.parametrize("chunks_per_task", [1, 3])
def test_a_late_failure_surfaces_with_its_own_seed(executor: Executor | None, chunks_per_task: int) -> None:
    models = [ZERO_MEAN, Model("fragile", simulator=FailsFromChunk(4))]
    with SimulationStream(Source.of(models, SEED), executor=executor) as stream:
        stream.chunks_per_task = chunks_per_task
        num_good = 4 // chunks_per_task
        for _ in range(num_good):
            stream.take(timeout=60)
        expected = "Model 'fragile' failed with seed np.random.SeedSequence(11, spawn_key=(1, 4))"
        with pytest.raises(SimulationError, match=re.escape(expected)) as caught:
            stream.take(timeout=60)
        assert "ArithmeticError: the solver diverged" in str(caught.value)
        assert f"model.simulate({CHUNK_SIZE}, seed=np.random.SeedSequence(11, spawn_key=(1, 4)))" in str(caught.value)


def test_a_shape_that_changes_within_a_task_is_refused(executor: Executor | None) -> None:
    models = [ZERO_MEAN, Model("growing", simulator=ChangesShapeFromChunk(2))]
    with SimulationStream(Source.of(models, SEED), executor=executor) as stream:
        stream.chunks_per_task = 4
        with pytest.raises(SimulationError, match=r"'growing'.*shape"):
            stream.take(timeout=60)


def test_a_shape_that_changes_between_tasks_is_refused() -> None:
    models = [ZERO_MEAN, Model("growing", simulator=ChangesShapeFromChunk(2))]
    with SimulationStream(Source.of(models, SEED)) as stream:
        stream.take(timeout=60)
        stream.take(timeout=60)
        with pytest.raises(SimulationError, match=r"'growing'.*shape"):
            stream.take(timeout=60)


def test_a_lambda_is_refused_for_processes_before_anything_runs(process_pool: Executor) -> None:
    calls = []
    model = Model("inline", simulator=lambda rng, size: calls.append(size))
    with pytest.raises(TypeError, match=r"model 'inline' cannot be sent.*top of a module.*ThreadPoolExecutor"):
        SimulationStream(Source.of([ZERO_MEAN, model], SEED), executor=process_pool)
    assert calls == []


def test_a_lambda_is_fine_for_threads() -> None:
    model = Model("inline", simulator=lambda rng, size: rng.normal(size=(size, 2)))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(model)
    with ThreadPoolExecutor(2) as threads, SimulationStream(Source.of([model], SEED), executor=threads) as stream:
        assert stream.take(timeout=60)[0].shape == (CHUNK_SIZE, 2)


@pytest.mark.parametrize("stranger", [4, "threads", multiprocessing, ThreadPoolExecutor], ids=str)
def test_what_is_no_executor_is_refused(stranger: Any) -> None:
    with pytest.raises(TypeError, match=r"executor.*received.*ProcessPoolExecutor\(4\)"):
        SimulationStream(Source.of(NORMAL_MEAN, SEED), executor=stranger)


def test_an_executor_that_does_not_say_its_size_is_fine() -> None:
    with SimulationStream(Source.of(NORMAL_MEAN, SEED), num_datasets=NUM_DATASETS, executor=InlineExecutor()) as stream:
        assert len(read_all(stream)[0]) == NUM_DATASETS


def dies_in_a_worker(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    if multiprocessing.parent_process() is not None:
        os._exit(1)
    return rng.normal(size=(size, 3))


def test_a_dead_worker_is_a_failure_of_simulation() -> None:
    models = [ZERO_MEAN, Model("deadly", simulator=dies_in_a_worker)]
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor,
        SimulationStream(Source.of(models, SEED), executor=executor, num_ahead=1) as stream,
    ):
        with pytest.raises(SimulationError, match="A worker of the executor died"):
            stream.take(timeout=60)
        # And whoever asks again is told again, though nothing can be submitted any more.
        with pytest.raises(SimulationError, match="A worker of the executor died"):
            stream.take(timeout=60)
