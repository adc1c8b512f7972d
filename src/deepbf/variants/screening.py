"""Simulating and screening: what lies near the observed data is kept as a few numbers, the rest is counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.estimator import BayesFactor
from deepbf.estimator.bayes_factor import MANY_DATASETS
from deepbf.models import Model
from deepbf.models.model import masked_where_absent
from deepbf.networks.ensemble import compile_evaluation, in_batches
from deepbf.simulation import CHUNK_SIZE, NumObsRange, SimulationStream
from deepbf.training.intake import prepared_at_once
from deepbf.variants.region import Region

Summary = Callable[[Any], Any]
# Told how many data sets have been drawn since it was last told.
Tell = Callable[[int], None]


@dataclass(frozen=True)
class View:
    """What is looked at of a data set: a summary, which says how near it is, and features, which tell models apart.

    The summary is the user's, or the estimator's log odds. Of the features, the first `num_leading` are the log odds of
    every member of the ensemble, and the user's summary: where members differ the estimator is unsure, and a few
    simulations nearby can decide between them. The others are what the networks read, for what all members miss.
    """

    estimator: BayesFactor
    summary: Summary | None

    def summaries(self, data: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return the summaries of data sets as the ensemble reads them, one row each."""
        if self.summary is None:
            return np.mean(self.estimator.log_odds_members(data), axis=0).astype(np.float64)
        return summarise(self.summary, self.as_simulated(data))

    def features(self, data: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return the features of data sets as the ensemble reads them, one row each."""
        read = in_batches(self._prepare, data, MANY_DATASETS, before=self.estimator.ensemble.standardiser)
        return np.concatenate([self._leading(data), read[:, : self._num_read].astype(np.float64)], axis=1)

    def num_leading(self, data: NDArray[np.generic]) -> int:
        """Return how many features come before those that the networks read."""
        return self._leading(data).shape[1]

    def _leading(self, data: NDArray[np.generic]) -> NDArray[np.float64]:
        log_odds = self.estimator.log_odds_members(data).astype(np.float64)
        by_member = np.moveaxis(log_odds, 0, 1).reshape(len(data), -1)
        if self.summary is None:
            return by_member
        return np.concatenate([by_member, self.summaries(data)], axis=1)

    @cached_property
    def _num_read(self) -> int:
        ensemble = self.estimator.ensemble
        return ensemble.preparation.layout(ensemble.data_shape).num_summary

    @cached_property
    def _prepare(self) -> Callable[[jax.Array], jax.Array]:
        return compile_evaluation(self.estimator.ensemble.preparation)

    def as_simulated(self, data: NDArray[np.generic]) -> Any:
        """Return data as simulators do: masked where observations are absent, by name if they are several arrays."""
        form = self.estimator.ensemble.form
        return masked_where_absent(data if form is None else form.unpack(data))


def summarise(summary: Summary, data: Any) -> NDArray[np.float64]:
    """Return a user's summaries, shape (data sets, columns), after checking their shape."""
    size = len(next(iter(data.values())) if isinstance(data, dict) else data)
    try:
        returned = summary(data)
    except Exception as error:
        raise ValueError(
            f"summary raised {type(error).__name__}: {error}, given {size} data sets along the leading axis, as "
            "simulators return them. It must take many at once."
        ) from error
    values = np.asarray(_checks.check_numeric_array("summary's result", np.ma.filled(returned, np.nan)), np.float64)
    if values.ndim == 1 and len(values) == size:
        values = values[:, None]
    if values.ndim != 2 or len(values) != size or values.shape[1] == 0:
        raise ValueError(
            f"summary must return shape (data sets, columns), here ({size}, columns); received shape "
            f"{values.shape}. Reduce over the axes after the first, as in data.mean(axis=1)."
        )
    return values


class Near(NamedTuple):
    """The simulations of one model that came near: their features, and of how many in all they are."""

    features: NDArray[np.float64]
    num_screened: int
    num_undefined: int


@dataclass(frozen=True)
class Simulator:
    """Draws data sets of single models as an estimator reads them, a bounded number at a time."""

    models: Sequence[Model]
    view: View
    num_obs: int | None
    executor: Executor | None

    def batches(self, index: int, seed: int, num_datasets: int) -> Iterator[NDArray[np.generic]]:
        """Yield data sets of one model; the same seed gives the same ones on every executor."""
        number = None if self.num_obs is None else NumObsRange(self.num_obs, self.num_obs)
        with SimulationStream(
            [self.models[index]],
            seed,
            num_datasets=num_datasets,
            num_obs=number,
            form=self.view.estimator.ensemble.form,
            executor=self.executor,
        ) as stream:
            stream.chunks_per_task = self._chunks_per_task
            while not stream.exhausted:
                yield self._as_read(stream.take()[0])

    def pilot(
        self, index: int, seed: int, num_datasets: int, seconds: float | None, tell: Tell
    ) -> tuple[NDArray[np.float64], float]:
        """Return the summaries of one model's first data sets, and the seconds that one of them takes.

        No more than `num_datasets` are drawn, and no more once `seconds` are over.
        """
        begin = time.monotonic()
        parts = []
        for data in self.batches(index, seed, num_datasets):
            parts.append(self.view.summaries(data))
            tell(len(data))
            if seconds is not None and time.monotonic() - begin > seconds:
                break
        summaries = np.concatenate(parts)
        return summaries, (time.monotonic() - begin) / len(summaries)

    def screen(self, index: int, seed: int, num_datasets: int, region: Region, tell: Tell) -> Near:
        """Return what of one model's data sets is in the region; only its features are kept."""
        found, kept, num_undefined = [], [], 0
        for data in self.batches(index, seed, num_datasets):
            summaries = self.view.summaries(data)
            kept.append(data[region.accepts(summaries)])
            num_undefined += int((~np.isfinite(summaries).all(axis=1)).sum())
            # Data sets give way to their features now and then, which bounds the memory for large ones.
            if sum(map(len, kept)) >= MANY_DATASETS:
                found.append(self.view.features(np.concatenate(kept)))
                kept = []
            tell(len(data))
        if kept and any(map(len, kept)):
            found.append(self.view.features(np.concatenate(kept)))
        features = np.concatenate(found) if found else np.zeros((0, 0))
        return Near(features, num_datasets, num_undefined)

    @cached_property
    def _chunks_per_task(self) -> int:
        # As many data sets as the network evaluates at once, so that none of its rows are filled up.
        return max(1, prepared_at_once(self.view.estimator.ensemble.data_shape) // CHUNK_SIZE)

    def _as_read(self, data: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return data sets that are shorter than the longest filled up with nan, as they were in training."""
        ensemble = self.view.estimator.ensemble
        if self.num_obs is None or ensemble.form is not None:
            return data
        padded = np.full((len(data), *ensemble.data_shape), np.nan)
        padded[:, : data.shape[1]] = data
        return padded
