"""The pilot: the first simulations, which show the data's shape, scale and cost before anything is built."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepbf.models import ModelSet, SimulationError
from deepbf.networks import NETWORKS, OBSERVATION_AXES
from deepbf.simulation import CHUNK_SIZE, NumObsRange, SimulationStream
from deepbf.training.interrupt import StopOnInterrupt

# Data sets a model: enough to place knots in the tails and to decorrelate a few hundred columns.
PILOT_DATASETS = 4096
# A slow simulator gets no more than this share of a budget in seconds before training starts on what there is.
PILOT_SHARE = 0.2
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Pilot:
    """The first chunks, one array a model, and what they cost."""

    data: list[NDArray[np.generic]]
    seconds: float

    @property
    def num_datasets(self) -> int:
        """Data sets a model."""
        return len(self.data[0])

    @property
    def num_chunks(self) -> int:
        """Chunks of the training stream that the pilot has used up."""
        return -(-self.num_datasets // CHUNK_SIZE)

    @property
    def num_obs(self) -> tuple[int, int]:
        """The fewest and the most observations of a data set along its first axis, absent ones not counted."""
        if not self.data_shape:
            return 0, 0
        counts = [count_present(data) for data in self.data]
        return min(int(count.min()) for count in counts), self.data_shape[0]

    @property
    def data_shape(self) -> tuple[int, ...]:
        """The shape of one data set."""
        return self.data[0].shape[1:]


def run_pilot(
    model_set: ModelSet,
    seed: int,
    *,
    executor: Executor | None,
    num_datasets: int | None,
    num_obs: NumObsRange | None,
    seconds: float | None,
    stop: StopOnInterrupt,
) -> Pilot:
    """Return the first data sets of the training stream, after checking that the models' data fit together.

    `num_datasets` bounds what may be drawn a model, `seconds` how long; at least one chunk is always drawn.
    """
    start = time.monotonic()
    wanted = min(PILOT_DATASETS, num_datasets) if num_datasets is not None else PILOT_DATASETS
    parts: list[list[NDArray[np.generic]]] = []
    with SimulationStream(model_set.models, seed, num_datasets=wanted, num_obs=num_obs, executor=executor) as stream:
        while not stream.exhausted:
            parts.append(take_or_stop(stream, stop))
            if len(parts) == 1:
                check_same_shape(model_set, parts[0])
            elapsed = time.monotonic() - start
            if seconds is not None and elapsed > PILOT_SHARE * seconds:
                break
            # Small tasks first, for an early failure; then large ones, to spend the time on simulation.
            stream.chunks_per_task = 8
    data = [np.concatenate(model_parts) for model_parts in zip(*parts, strict=True)]
    return Pilot(data, time.monotonic() - start)


def count_present(data: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return how many observations each data set has along its first axis: those that are not nan."""
    if data.ndim == 1:
        return np.zeros(len(data), dtype=np.intp)
    absent = np.isnan(data) if data.dtype.kind == "f" else np.zeros(data.shape, bool)
    return data.shape[1] - absent.reshape(*data.shape[:2], -1).all(axis=2).sum(axis=1)


def take_or_stop(stream: SimulationStream, stop: StopOnInterrupt) -> list[NDArray[np.generic]]:
    """Return the next data, raising KeyboardInterrupt if Ctrl-C comes first."""
    while True:
        if stop.requested:
            raise KeyboardInterrupt
        try:
            return stream.take(timeout=POLL_SECONDS)
        except TimeoutError:
            continue


def check_same_shape(model_set: ModelSet, data: list[NDArray[np.generic]]) -> None:
    """Raise unless all models make data sets of one shape."""
    shapes = [model_data.shape[1:] for model_data in data]
    for name, shape in zip(model_set.names, shapes, strict=True):
        if shape != shapes[0]:
            raise SimulationError(
                f"models must make data sets of one shape to be compared; {model_set.names[0]!r} makes {shapes[0]}, "
                f"{name!r} makes {shape}. Make both simulators return the same shape after the leading axis."
            )


def check_absent(structure: str, network: str, data: Sequence[NDArray[np.generic]]) -> None:
    """Raise if observations are absent in part, or from every place, or where the network takes none for absent."""
    num_axes = OBSERVATION_AXES[structure]
    for model_data in data:
        absent = np.isnan(model_data) if model_data.dtype.kind == "f" else np.zeros(model_data.shape, bool)
        if not absent.any():
            continue
        if not NETWORKS[structure][network].any_num_obs:
            raise ValueError(
                f"structure={structure!r} with network={network!r} needs every value; the simulators return masked "
                "arrays, with observations that are not there. Pass structure='exchangeable' or structure='nested' "
                "and their default network, or simulate every value."
            )
        by_observation = absent.reshape(*absent.shape[: 1 + num_axes], -1)
        if (by_observation.any(axis=-1) != by_observation.all(axis=-1)).any():
            raise ValueError(
                "the simulators mask some columns of an observation and not others; mask all of them, or none."
            )
        if absent.reshape(len(absent), -1).all(axis=1).any():
            raise ValueError("the simulators mask whole data sets; leave at least one observation in each.")
