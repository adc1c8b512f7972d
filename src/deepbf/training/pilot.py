"""The pilot: the first simulations, which show the data's shape, scale and cost before anything is built."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepbf.models.model import SimulationError
from deepbf.simulation.source import CHUNK_SIZE, Source
from deepbf.simulation.stream import SimulationStream
from deepbf.training.console import StopOnInterrupt

# Data sets per model: enough to place knots in the tails and to decorrelate a few hundred columns.
PILOT_DATASETS = 4096
# A slow simulator gets no more than this share of a budget in seconds before training starts on what there is.
PILOT_SHARE = 0.2
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Pilot:
    """The first chunks, one array per model, and what they cost."""

    data: list[NDArray[np.generic]]
    seconds: float

    @property
    def num_datasets(self) -> int:
        """The number of data sets per model."""
        return len(self.data[0])

    @property
    def num_chunks(self) -> int:
        """Chunks of the training stream that the pilot has used up."""
        return -(-self.num_datasets // CHUNK_SIZE)


def run_pilot(
    source: Source,
    *,
    executor: Executor | None,
    num_datasets: int | None,
    seconds: float | None,
    stop: StopOnInterrupt,
) -> Pilot:
    """Return the first data sets of the training stream, after checking that the models' data fit together.

    `num_datasets` bounds what may be drawn of each model, `seconds` how long; at least one chunk is always drawn.
    Raises KeyboardInterrupt if Ctrl-C comes first.
    """
    start = time.monotonic()
    wanted = min(PILOT_DATASETS, num_datasets) if num_datasets is not None else PILOT_DATASETS
    parts: list[list[NDArray[np.generic]]] = []
    with SimulationStream(source, num_datasets=wanted, executor=executor) as stream:
        while not stream.exhausted:
            # Short waits, so that Ctrl-C is noticed while a slow simulator is at work.
            if stop.requested:
                raise KeyboardInterrupt
            try:
                part = stream.take(timeout=POLL_SECONDS)
            except TimeoutError:
                continue
            parts.append(part)
            first, shape = source.models[0].name, part[0].shape[1:]
            for model, model_data in zip(source.models, part, strict=True):
                if model_data.shape[1:] != shape:
                    raise SimulationError(
                        f"models must make data sets of one shape to be compared; {first!r} makes {shape}, "
                        f"{model.name!r} makes {model_data.shape[1:]}. Make both simulators return the same shape "
                        "after the leading axis."
                    )
            elapsed = time.monotonic() - start
            if seconds is not None and elapsed > PILOT_SHARE * seconds:
                break
            # Small tasks first, for an early failure; then large ones, to spend the time on simulation.
            stream.chunks_per_task = 8
    data = [np.concatenate(model_parts) for model_parts in zip(*parts, strict=True)]
    return Pilot(data, time.monotonic() - start)
