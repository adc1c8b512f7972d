"""Chunks: the unit of simulation, each with a seed of its own, so that workers never matter to the bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from deepbf.models import Model, SimulationError
from deepbf.models.model import write_seed
from deepbf.simulation.num_obs import NumObsRange

# Data sets a model in a chunk. Small enough that a simulator of 0.1 s a data set yields a chunk in seconds; large
# enough that seeding (about 20 microseconds) is lost in the time of drawing them.
CHUNK_SIZE = 128

Transform = Callable[[NDArray[np.generic]], NDArray[np.generic]]


def chunk_seed(seed: int, model_index: int, chunk_index: int) -> np.random.SeedSequence:
    """Return the seed of one chunk: what spawning `seed` by model, then by chunk, would give, without the walk."""
    return np.random.SeedSequence(seed, spawn_key=(model_index, chunk_index))


def simulate_chunks(
    models: Sequence[Model],
    seed: int,
    chunk_sizes: Sequence[tuple[int, int]],
    transform: Transform | None = None,
    num_obs: NumObsRange | None = None,
) -> list[NDArray[np.generic]]:
    """Return the data of the given chunks, one array a model, chunks in order along the leading axis.

    `chunk_sizes` lists (chunk index, data sets a model). `transform` runs on each model's data where they were
    simulated, so that a worker sends back only what training needs. With a range of `num_obs`, data sets differ in
    length, and those that are shorter than the longest end in nan.
    """
    drawn = []
    for model_index, model in enumerate(models):
        if num_obs is None:
            parts = [
                model.simulate(size, chunk_seed(seed, model_index, chunk_index)).data
                for chunk_index, size in chunk_sizes
            ]
        else:
            parts = [_padded_chunk(model, seed, model_index, *chunk, num_obs) for chunk in chunk_sizes]
        _check_same_shape(model, seed, model_index, chunk_sizes, parts)
        data = np.concatenate(parts)
        drawn.append(data if transform is None else _transformed(model, data, transform))
    return drawn


def _padded_chunk(
    model: Model, seed: int, model_index: int, chunk_index: int, size: int, num_obs: NumObsRange
) -> NDArray[np.float64]:
    """Return a chunk of data sets of different lengths, filled up with nan to the longest that there may be."""
    padded = np.empty(0)
    start = 0
    for group_index, (group_size, number) in enumerate(num_obs.draw(seed, chunk_index, size)):
        group_seed = np.random.SeedSequence(seed, spawn_key=(model_index, chunk_index, group_index))
        data = model.simulate(group_size, group_seed, number).data
        if group_index == 0:
            padded = np.full((size, num_obs.high, *data.shape[2:]), np.nan)
        if data.shape[2:] != padded.shape[2:]:
            written = write_seed(group_seed)
            raise SimulationError(
                f"Model {model.name!r} failed with seed {written}: its simulator returned observations of shape "
                f"{data.shape[2:]}, and of shape {padded.shape[2:]} before; every call must return the same shape. "
                f"Reproduce it with: model.simulate({group_size}, seed={written}, num_obs={number})"
            )
        padded[start : start + group_size, :number] = data
        start += group_size
    return padded


def _transformed(model: Model, data: NDArray[np.generic], transform: Transform) -> NDArray[np.generic]:
    try:
        return transform(data)
    except ValueError as error:
        raise SimulationError(
            f"Model {model.name!r} failed: its simulator returned data sets of shape {data.shape[1:]}, which do not "
            f"fit those before ({error}); every call must return the same shape."
        ) from error


def _check_same_shape(
    model: Model,
    seed: int,
    model_index: int,
    chunk_sizes: Sequence[tuple[int, int]],
    parts: Sequence[NDArray[np.generic]],
) -> None:
    for (chunk_index, size), part in zip(chunk_sizes, parts, strict=True):
        if part.shape[1:] != parts[0].shape[1:]:
            written_seed = write_seed(chunk_seed(seed, model_index, chunk_index))
            raise SimulationError(
                f"Model {model.name!r} failed with seed {written_seed}: its simulator returned data sets of shape "
                f"{part.shape[1:]}, and of shape {parts[0].shape[1:]} before; every call must return the same shape. "
                f"Reproduce it with: model.simulate({size}, seed={written_seed})"
            )
