"""Source: models, the layout of their data and a seed, which together say what every simulation will be.

Simulations come in chunks, each with a seed of its own, so that workers never matter to the bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
