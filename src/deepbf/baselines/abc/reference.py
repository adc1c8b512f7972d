"""The reference draws that observed data are compared with: simulated or given, one stratum at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.baselines.abc.layout import Layout
from deepbf.baselines.abc.summaries import Summary, summarise
from deepbf.models import ModelSet
from deepbf.simulation import chunk_seed

Product = TypeVar("Product")

# Strata simulated ahead of the one being compared: one in the making, one waiting.
NUM_AHEAD = 2


class Stratum(NamedTuple):
    """Draws with finite summaries: their numbers in the whole reference, models, summaries; how many had none."""

    draws: NDArray[np.int64]
    labels: NDArray[np.int16]
    values: NDArray[np.float64]
    num_undefined: int


@dataclass(frozen=True)
class Reference:
    """A source of strata. With `arrays`, one a model, rows come from there; without, every stratum is simulated.

    A simulated stratum has a seed of its own for each model, so that the same seed gives the same draws.
    """

    model_set: ModelSet
    layout: Layout
    summary: Summary | None
    seed: int
    arrays: Sequence[NDArray[np.generic]] | None = None

    def stratum(self, index: int) -> Stratum:
        """Return one stratum, summarised; draws whose summary is nan or inf are left out and counted."""
        labels = self.layout.labels(index)
        values: NDArray[np.float64] | None = None
        for k, name in enumerate(self.model_set.names):
            data = self._data(index, k)
            if data is None:
                continue
            summaries = summarise(self.summary, data, f"model {name!r}")
            if values is None:
                values = np.empty((len(labels), summaries.shape[1]))
            _check_num_features(name, summaries, values)
            values[labels == k] = summaries
        assert values is not None
        draws = self.layout.first_draw(index) + np.arange(len(labels))
        defined = np.isfinite(values).all(axis=1)
        if defined.all():
            return Stratum(draws, labels, values, 0)
        return Stratum(draws[defined], labels[defined], values[defined], int((~defined).sum()))

    def _data(self, index: int, model: int) -> NDArray[np.generic] | None:
        rows = self.layout.rows(index, model)
        if rows.start == rows.stop:
            return None
        if self.arrays is not None:
            return self.arrays[model][rows]
        seed = chunk_seed(self.seed, model, index)
        return self.model_set.models[model].simulate(rows.stop - rows.start, seed).data


def run_ahead(produce: Callable[[int], Product], count: int) -> Iterator[Product]:
    """Yield produce(0), produce(1), ..., each made by a background thread while the one before is used."""
    with ThreadPoolExecutor(1, "deepbf-reference") as executor:
        tasks: deque[Future[Product]] = deque()
        try:
            for index in range(count):
                tasks.append(executor.submit(produce, index))
                if len(tasks) >= NUM_AHEAD:
                    yield tasks.popleft().result()
            while tasks:
                yield tasks.popleft().result()
        finally:
            for task in tasks:
                task.cancel()


def check_reference(
    model_set: ModelSet, reference: Sequence[ArrayLike], shape: tuple[int, ...]
) -> list[NDArray[np.generic]]:
    """Return the given reference as one array a model, refusing any that does not fit the models or the data."""
    if not isinstance(reference, Sequence) or len(reference) != len(model_set):
        received = f"{len(reference)} entries" if isinstance(reference, Sequence) else type(reference).__name__
        raise ValueError(
            f"reference must be a list of one array a model, {len(model_set)} in all; received {received}. "
            "Pass [model.simulate(size, seed).data for model in models]."
        )
    arrays = []
    for k, name in enumerate(model_set.names):
        array = _checks.check_numeric_array(f"reference[{k}]", reference[k])
        if array.ndim == 0 or array.shape[1:] != shape or len(array) == 0:
            raise ValueError(
                f"reference[{k}] (model {name!r}) has shape {array.shape}; it must hold one or more data sets of "
                f"shape {shape} along its leading axis, as observed does."
            )
        nonfinite = _checks.describe_nonfinite(array)
        if nonfinite is not None:
            raise ValueError(f"reference[{k}] (model {name!r}) has {nonfinite}. Remove those data sets.")
        arrays.append(array)
    return arrays


def _check_num_features(name: str, summaries: NDArray[np.float64], values: NDArray[np.float64]) -> None:
    if summaries.shape[1] != values.shape[1]:
        raise ValueError(
            f"summary returned {summaries.shape[1]} numbers a data set for model {name!r} and {values.shape[1]} for "
            "another; it must return equally many for all data."
        )
