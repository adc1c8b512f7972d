"""The pilot is the beginning of the training stream, as much of it as there is time for."""

import threading
import time
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deepbf import Model, SimulationError
from deepbf.simulation import CHUNK_SIZE, Source, chunk_seed
from deepbf.training.console import StopOnInterrupt
from deepbf.training.intake import PILOT_DATASETS, run_pilot
from tests.simulators import NORMAL_MEAN, ZERO_MEAN, ChangesShapeFromChunk, FailsFromChunk


def pilot_of(models: list[Model], **options: Any) -> Any:
    defaults: dict[str, Any] = {
        "executor": None,
        "num_datasets": None,
        "seconds": None,
        "stop": StopOnInterrupt(),
    }
    return run_pilot(Source.of(models, 3), **(defaults | options))


def test_it_draws_the_first_chunks_of_the_stream() -> None:
    pilot = pilot_of(NORMAL_MEAN)
    assert pilot.num_datasets == PILOT_DATASETS
    assert pilot.num_chunks == PILOT_DATASETS // CHUNK_SIZE
    assert pilot.data[0].shape[1:] == (10,)
    for k, model in enumerate(NORMAL_MEAN):
        for chunk in (0, 5, pilot.num_chunks - 1):
            expected = model.simulate(CHUNK_SIZE, chunk_seed(3, k, chunk)).data
            assert_array_equal(pilot.data[k][chunk * CHUNK_SIZE : (chunk + 1) * CHUNK_SIZE], expected)


@pytest.mark.parametrize(
    ("num_datasets", "num_chunks"),
    [(1, 1), (CHUNK_SIZE, 1), (CHUNK_SIZE + 1, 2), (10_000, PILOT_DATASETS // CHUNK_SIZE)],
)
def test_it_draws_no_more_than_allowed(num_datasets: int, num_chunks: int) -> None:
    pilot = pilot_of(NORMAL_MEAN, num_datasets=num_datasets)
    assert pilot.num_datasets == min(num_datasets, PILOT_DATASETS)
    assert pilot.num_chunks == num_chunks


def test_a_slow_simulator_ends_it_early_but_not_empty() -> None:
    def slow(rng: np.random.Generator, size: int) -> Any:
        time.sleep(0.02)
        return rng.normal(size=(size, 2))

    pilot = pilot_of([Model("slow", simulator=slow), Model("as slow", simulator=slow)], seconds=1.0)
    # A fifth of the budget holds five chunks of 0.04 s, or one task of eight chunks; all of them over 1 s.
    assert CHUNK_SIZE <= pilot.num_datasets <= 24 * CHUNK_SIZE
    assert pilot.seconds > 0.02


def test_data_of_different_shapes_are_refused_at_once() -> None:
    calls = []

    def other(rng: np.random.Generator, size: int) -> Any:
        calls.append(size)
        return rng.normal(size=(size, 11))

    expected = r"one shape.*'zero mean' makes \(10,\), 'other' makes \(11,\)"
    with pytest.raises(SimulationError, match=expected):
        pilot_of([ZERO_MEAN, Model("other", simulator=other)])
    assert len(calls) < 10


def test_a_shape_that_changes_later_in_the_pilot_is_refused_by_name() -> None:
    with pytest.raises(SimulationError, match=r"'growing'.*shape"):
        pilot_of([ZERO_MEAN, Model("growing", simulator=ChangesShapeFromChunk(3))])


def test_a_failure_names_the_chunk() -> None:
    with pytest.raises(SimulationError, match=r"'fragile'.*spawn_key=\(1, 20\)"):
        pilot_of([ZERO_MEAN, Model("fragile", simulator=FailsFromChunk(20))])


def test_an_interrupt_ends_it_even_if_a_simulator_hangs() -> None:
    hanging = threading.Event()
    stop = StopOnInterrupt()

    def hang(rng: np.random.Generator, size: int) -> Any:
        stop.requested = True
        hanging.wait(60)
        return rng.normal(size=(size, 2))

    try:
        with pytest.raises(KeyboardInterrupt):
            pilot_of([Model("hanging", simulator=hang), Model("too", simulator=hang)], stop=stop)
    finally:
        hanging.set()
