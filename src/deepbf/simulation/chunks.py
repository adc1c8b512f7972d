"""Chunks: the unit of simulation, each with a seed of its own, so that workers never matter to the bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf._mixed import DATA, HYPERPARAMETERS, MixedForm
from deepbf.models import Model, SimulationError
from deepbf.models.hyperparameters import Ranges, as_columns, draw_values
from deepbf.models.model import Call
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
    form: MixedForm | None = None,
    hyperparameters: Ranges | None = None,
) -> list[NDArray[np.generic]]:
    """Return the data of the given chunks, one array a model, chunks in order along the leading axis.

    `chunk_sizes` lists (chunk index, data sets a model). `transform` runs on each model's data where they were
    simulated, so that a worker sends back only what training needs. With a range of `num_obs`, data sets differ in
    length, and those that are shorter than the longest end in nan. With a `form`, simulators return dicts, and their
    arrays come packed, with the values of the models' `hyperparameters` if they have any.
    """
    drawn = []
    for model_index, model in enumerate(models):
        if num_obs is None:
            parts = [
                draw(model, size, chunk_seed(seed, model_index, chunk_index), None, form, hyperparameters)
                for chunk_index, size in chunk_sizes
            ]
        else:
            parts = [
                _padded_chunk(model, seed, model_index, *chunk, num_obs, form, hyperparameters) for chunk in chunk_sizes
            ]
        _check_same_shape(model, seed, model_index, chunk_sizes, parts)
        data = np.concatenate(parts)
        drawn.append(data if transform is None else _transformed(model, data, transform))
    return drawn


def draw(
    model: Model,
    size: int,
    seed: np.random.SeedSequence,
    num_obs: int | None,
    form: MixedForm | None,
    hyperparameters: Ranges | None = None,
) -> NDArray[np.generic]:
    """Return data sets of one model as one array, packed if they have a form."""
    data = model.simulate(size, seed, num_obs).data
    if hyperparameters:
        data = beside_hyperparameters(model, data, hyperparameters, size, seed)
    if form is None and not isinstance(data, Mapping):
        return data
    if form is None:
        problem = f"returned a dict of arrays ({', '.join(data)}); pass structure as a dict with a structure for each"
    elif not isinstance(data, Mapping):
        problem = f"returned one array; structure names several: return a dict of {', '.join(form.names)}"
    else:
        try:
            return form.pack(data, num_obs)
        except ValueError as error:
            problem = f"returned {error}; every call of every model must return the same names and shapes"
    raise model.failure(f"its simulator {problem}", Call(size, seed, num_obs))


def beside_hyperparameters(
    model: Model, data: Any, hyperparameters: Ranges, size: int, seed: np.random.SeedSequence
) -> dict[str, NDArray[Any]]:
    """Return simulated data as a dict, with the hyperparameters that they were drawn with.

    A model that lacks some of them is given values all the same: what it would have been compared at.
    """
    arrays = dict(data) if isinstance(data, Mapping) else {DATA: data}
    if HYPERPARAMETERS in arrays:
        raise ValueError(
            f"the simulator of model {model.name!r} returns an array {HYPERPARAMETERS!r}, which is what the values of "
            "the priors' hyperparameters are called. Give it another name."
        )
    return {**arrays, HYPERPARAMETERS: as_columns(hyperparameters, draw_values(hyperparameters, size, seed), size)}


def _padded_chunk(
    model: Model,
    seed: int,
    model_index: int,
    chunk_index: int,
    size: int,
    num_obs: NumObsRange,
    form: MixedForm | None,
    hyperparameters: Ranges | None,
) -> NDArray[np.float64]:
    """Return a chunk of data sets of different lengths, filled up with nan to the longest that there may be."""
    padded = np.empty(0)
    start = 0
    for group_index, (group_size, number) in enumerate(num_obs.draw(seed, chunk_index, size)):
        group_seed = np.random.SeedSequence(seed, spawn_key=(model_index, chunk_index, group_index))
        data = draw(model, group_size, group_seed, number, form, hyperparameters)
        # Packed data are as long as the longest already.
        length, longest = (number, num_obs.high) if form is None else (form.width, form.width)
        if group_index == 0:
            padded = np.full((size, longest, *data.shape[2:]), np.nan)
        if data.shape[2:] != padded.shape[2:]:
            problem = (
                f"returned observations of shape {data.shape[2:]}, and of shape {padded.shape[2:]} before; every call "
                "must return the same shape"
            )
            raise model.failure(f"its simulator {problem}", Call(group_size, group_seed, number))
        padded[start : start + group_size, :length] = data
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
            problem = (
                f"returned data sets of shape {part.shape[1:]}, and of shape {parts[0].shape[1:]} before; every call "
                "must return the same shape"
            )
            call = Call(size, chunk_seed(seed, model_index, chunk_index), None)
            raise model.failure(f"its simulator {problem}", call)
