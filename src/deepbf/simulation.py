"""Running models: a source whose seeds belong to the work, and a stream that runs ahead of its reader on any executor.

A `Source` is models, the layout of their data and a seed, which together say what every simulation will be. Simulations
come in chunks, each with a seed of its own, so that workers never matter to the bits. A `SimulationStream` draws them
in order, bounded in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf.layout.data_layout import WHOLE, ArrayLayout, DataLayout, NumObsRange, shapes_of
from deepbf.layout.structure import Vector
from deepbf.models.model import Call, Model, SimulationError

# Data sets per model in a chunk. Small enough that a simulator of 0.1 s per data set yields a chunk in seconds; large
# enough that seeding (about 20 microseconds) is lost in the time of drawing them.
CHUNK_SIZE = 128
# Data sets of one call of a simulator, all with the same number of observations: few, so that a mini-batch holds many
# different numbers; not one, for a call of a vectorised simulator costs some tens of microseconds whatever it draws.
GROUP_SIZE = 16
# Set apart from every model's index, for the numbers of observations are the same for all models.
NUM_OBS_KEY = 2**31 - 1

Transform = Callable[[NDArray[np.generic]], NDArray[np.generic]]


@dataclass(frozen=True)
class Source:
    """Everything that simulations depend on: the same source gives the same bits on any number of workers.

    Parameters
    ----------
    models
        The models; each chunk holds the same number of data sets from each.
    layout
        What their data look like, and how they are packed.
    seed
        The seed of all simulations.
    """

    models: tuple[Model, ...]
    layout: DataLayout
    seed: int

    @classmethod
    def of(
        cls, models: Sequence[Model], seed: int, *, num_obs: NumObsRange | None = None, example: Any = None
    ) -> Source:
        """Return a source of the models' data with nothing assumed about their structure, to draw them and no more.

        `example` is one simulated data set with a leading axis, needed where simulators return dicts of arrays, which
        then travel packed.
        """
        vector = Vector()
        arrays = (ArrayLayout(WHOLE, vector),)
        if isinstance(example, Mapping):
            arrays = tuple(ArrayLayout(name, vector, shape) for name, shape in shapes_of(example).items())
        return cls(tuple(models), DataLayout(arrays, num_obs), seed)

    def simulate(
        self, chunk_sizes: Sequence[tuple[int, int]], transform: Transform | None = None
    ) -> list[NDArray[np.generic]]:
        """Return the data of the given chunks as they travel, one array per model, chunks in order.

        `chunk_sizes` lists pairs of a chunk's index and its number of data sets per model. `transform` runs on each
        model's data where they were simulated, so that a worker sends back only what training needs. Where simulators
        are asked for a range of numbers of observations, data sets that are shorter than the longest end in nan.
        """
        drawn = []
        for model_index, model in enumerate(self.models):
            if self.layout.asked is None:
                parts = [
                    self.layout.draw(model, size, chunk_seed(self.seed, model_index, chunk_index))
                    for chunk_index, size in chunk_sizes
                ]
            else:
                parts = [self._padded_chunk(model_index, *chunk, self.layout.asked) for chunk in chunk_sizes]
            for (chunk_index, size), part in zip(chunk_sizes, parts, strict=True):
                if part.shape[1:] != parts[0].shape[1:]:
                    call = Call(size, chunk_seed(self.seed, model_index, chunk_index), None)
                    raise _changed_shape(model, "data sets", part.shape[1:], parts[0].shape[1:], call)
            data = np.concatenate(parts)
            try:
                drawn.append(data if transform is None else transform(data))
            except ValueError as error:
                raise SimulationError(
                    f"Model {model.name!r} failed: its simulator returned data sets of shape {data.shape[1:]}, which "
                    f"do not fit those before ({error}); every call must return the same shape."
                ) from error
        return drawn

    def _padded_chunk(self, model_index: int, chunk_index: int, size: int, asked: NumObsRange) -> NDArray[np.float64]:
        """Return a chunk of data sets of different lengths, filled up with nan to the longest that there may be."""
        model, layout = self.models[model_index], self.layout
        padded = np.empty(0)
        start = 0
        for group_index, (group_size, number) in enumerate(draw_num_obs(asked, self.seed, chunk_index, size)):
            group_seed = np.random.SeedSequence(self.seed, spawn_key=(model_index, chunk_index, group_index))
            data = layout.draw(model, group_size, group_seed, number)
            # Packed data are as long as the longest already.
            length = layout.width if layout.packed else number
            if group_index == 0:
                longest = layout.shape[0] if layout.shape else asked.high
                padded = np.full((size, longest, *data.shape[2:]), np.nan)
            if data.shape[2:] != padded.shape[2:]:
                call = Call(group_size, group_seed, number)
                raise _changed_shape(model, "observations", data.shape[2:], padded.shape[2:], call)
            padded[start : start + group_size, :length] = data
            start += group_size
        return padded


def chunk_seed(seed: int, model_index: int, chunk_index: int) -> np.random.SeedSequence:
    """Return the seed of one chunk: what spawning `seed` by model, then by chunk, would give, without the walk.

    Seeds belong to the work, not to the worker: a chunk has the same bits wherever and whenever it is drawn.
    """
    return np.random.SeedSequence(seed, spawn_key=(model_index, chunk_index))


def draw_num_obs(asked: NumObsRange, seed: int, chunk_index: int, num_datasets: int) -> list[tuple[int, int]]:
    """Return the groups of data sets of a chunk, each as (data sets, observations); the same for all models.

    The number of observations then says nothing about the model. It is drawn evenly on a log scale, so that an
    estimator learns as much between 2 and 4 as between 128 and 256, and evenly within each chunk.

    Examples
    --------
    >>> draw_num_obs(NumObsRange(2, 4), seed=1, chunk_index=0, num_datasets=40)
    [(16, 3), (16, 2), (8, 4)]
    """
    num_groups = -(-num_datasets // GROUP_SIZE)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(NUM_OBS_KEY, chunk_index)))
    shares = (rng.permutation(num_groups) + rng.uniform(size=num_groups)) / num_groups
    # Up to high + 1, rounded down, gives every whole number its own stretch of the scale.
    numbers = np.floor(asked.low * ((asked.high + 1) / asked.low) ** shares).astype(int)
    numbers = np.clip(numbers, asked.low, asked.high)
    sizes = np.full(num_groups, GROUP_SIZE)
    sizes[-1] = num_datasets - GROUP_SIZE * (num_groups - 1)
    return [(int(size), int(number)) for size, number in zip(sizes, numbers, strict=True)]


def _changed_shape(
    model: Model, what: str, shape: tuple[int, ...], before: tuple[int, ...], call: Call
) -> SimulationError:
    problem = f"returned {what} of shape {shape}, and of shape {before} before; every call must return the same shape"
    return model.failure(f"its simulator {problem}", call)


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
