"""A stream of simulations that runs ahead of whoever reads it, in order, bounded in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.reduction import ForkingPickler
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from deepbf.models.model import Model, SimulationError
from deepbf.simulation.source import CHUNK_SIZE, Source, Transform


class SimulationStream:
    """Chunks of simulations from all models, drawn in the background and read in order.

    Tasks go to `executor`, or to one background thread when it is None. How many chunks a task holds, how many
    workers there are and in which order they finish never changes the bits that come out.

    Parameters
    ----------
    source
        The models, the layout of their data and the seed: what is simulated.
    first_chunk
        Where to start, to go on after chunks that another stream of the same source drew.
    num_datasets
        The number of data sets per model after which the stream ends, counted from chunk 0; None for an endless stream.
    transform
        Runs on each model's data where they were simulated.
    executor
        Any `concurrent.futures.Executor`. The stream never shuts it down.
    num_ahead
        Tasks in flight or waiting to be read: the bound on memory.
    """

    def __init__(
        self,
        source: Source,
        *,
        first_chunk: int = 0,
        num_datasets: int | None = None,
        transform: Transform | None = None,
        executor: Executor | None = None,
        num_ahead: int | None = None,
    ) -> None:
        check_executor(executor, source.models)
        self._source = source
        self._num_datasets = num_datasets
        self._own_executor = None if executor is not None else ThreadPoolExecutor(1, "deepbf-simulation")
        self._executor: Executor = executor if executor is not None else self._own_executor  # pyright: ignore[reportAttributeAccessIssue]
        # As many tasks as the executor runs at once, as far as it says, and two more.
        num_workers = 1 if executor is None else int(getattr(executor, "_max_workers", 4))
        self.num_ahead = num_ahead if num_ahead is not None else 2 + num_workers
        self._tasks: deque[Future[list[NDArray[np.generic]]]] = deque()
        self._next_chunk = first_chunk
        # Where the layout does not know the shape of a data set yet, the first data tell, and all others must agree.
        shape = source.layout.shape
        self._shapes: list[tuple[int, ...]] | None = [shape] * len(source.models) if shape else None
        self._transform = transform
        self.chunks_per_task = 1

    def __enter__(self) -> SimulationStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def exhausted(self) -> bool:
        """Whether every data set has been read."""
        return not self._tasks and self._num_left() == 0

    def run_ahead(self) -> None:
        """Submit tasks until `num_ahead` are in flight or nothing is left to draw."""
        while len(self._tasks) < self.num_ahead and self._num_left() != 0:
            sizes = self._next_sizes()
            with _naming_dead_workers():
                task = self._executor.submit(self._source.simulate, sizes, self._transform)
            self._tasks.append(task)

    def ready(self) -> bool:
        """Whether `take` would return at once."""
        self.run_ahead()
        return bool(self._tasks) and self._tasks[0].done()

    def take(self, timeout: float | None = None) -> list[NDArray[np.generic]]:
        """Return the next data in order, one array per model, waiting for them if need be.

        Raises `TimeoutError` after `timeout` seconds; the data stay in the stream.
        """
        self.run_ahead()
        with _naming_dead_workers():
            data = self._tasks[0].result(timeout)
        self._check_shape(data)
        self._tasks.popleft()
        self.run_ahead()
        return data

    def close(self) -> None:
        """Drop what has not started; a task that is running ends by itself and its result is discarded."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        if self._own_executor is not None:
            self._own_executor.shutdown(wait=False, cancel_futures=True)

    def _check_shape(self, data: list[NDArray[np.generic]]) -> None:
        shapes = [model_data.shape[1:] for model_data in data]
        self._shapes = self._shapes or shapes
        for model, shape, before in zip(self._source.models, shapes, self._shapes, strict=True):
            if shape != before:
                raise SimulationError(
                    f"Model {model.name!r} failed: its simulator returned data sets of shape {shape}, and of shape "
                    f"{before} before; every call must return the same shape."
                )

    def _num_left(self) -> int | None:
        return None if self._num_datasets is None else max(0, self._num_datasets - self._next_chunk * CHUNK_SIZE)

    def _next_sizes(self) -> list[tuple[int, int]]:
        sizes = []
        for _ in range(self.chunks_per_task):
            left = self._num_left()
            if left == 0:
                break
            sizes.append((self._next_chunk, CHUNK_SIZE if left is None else min(CHUNK_SIZE, left)))
            self._next_chunk += 1
        return sizes


@contextmanager
def _naming_dead_workers() -> Iterator[None]:
    """Turn the loss of a worker into a failure of simulation, which keeps what was trained until then."""
    try:
        yield
    except BrokenExecutor as error:
        raise SimulationError(
            f"A worker of the executor died ({error}). A simulator may have crashed Python, or the system may have run "
            "out of memory and ended it. Try fewer workers, and each model alone: model.simulate(100, seed=1)."
        ) from error


def check_executor(executor: object, models: Sequence[Model]) -> None:
    """Raise if `executor` cannot run these models."""
    if executor is None:
        return
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"executor must have a submit method, as every concurrent.futures.Executor has; received {executor!r}. "
            "Pass, for example, concurrent.futures.ProcessPoolExecutor(4), or leave it out."
        )
    if isinstance(executor, ProcessPoolExecutor):
        for model in models:
            try:
                ForkingPickler.dumps(model)
            except Exception as error:
                raise TypeError(
                    f"executor runs other processes, but model {model.name!r} cannot be sent to them ({error}). "
                    "Define its prior and simulator as functions at the top of a module, not as lambdas, "
                    "or pass a ThreadPoolExecutor."
                ) from error
