"""Simulating and screening: what lies near the observed data is kept as a few numbers, the rest is counted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from deepbf import _checks
from deepbf.estimator.bayes_factor import BayesFactor
from deepbf.layout.data_layout import NumObsRange
from deepbf.models.model import Model, masked_where_absent
from deepbf.simulation import CHUNK_SIZE, SimulationStream, Source
from deepbf.standardise import Standardiser
from deepbf.training.intake import PREPARE_ROWS, prepared_at_once
from deepbf.training.schedule import Budget

Summary = Callable[[Any], Any]

# Of the budget for simulating, what the pilot gets.
PILOT_SHARE = 0.1
# More would not place the region better.
MOST_PILOT = 50_000
# Of the seconds left for screening, what is planned: the rest is for what the pilot's timing did not see.
PLANNED_SHARE = 0.9
# No model gets less of the screening than this, for the pilot's rates are themselves estimates.
LEAST_SHARE = 0.02
# Of the way from the observed data to the middle of the model that lies furthest off: beyond it nothing is near.
LARGEST_REACH = 0.5


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
        # The user's function is given what simulators return: masked where observations are absent, by name if they
        # are several arrays.
        return summarise(self.summary, masked_where_absent(self.estimator.layout.as_simulated(data)))

    def features(self, data: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return the features of data sets as the ensemble reads them, one row each."""
        read = self.estimator.summaries(data)
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
        return self.estimator.ensemble.preparation.layout(self.estimator.layout.shape).num_summary


def summarise(summary: Summary, data: Any) -> NDArray[np.float64]:
    """Return a user's summaries of data sets, shape (data sets, columns), after checking their shape.

    `data` is what simulators return: an array with data sets along its leading axis, or a dict of such arrays. One
    number for each data set may come back as shape (data sets,). Entries may be nan or inf: such data sets count as
    not near. Raises a ValueError if the function raises or returns another shape.
    """
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


class Pilot(NamedTuple):
    """The first simulations of each model, drawn apart from all that is screened later.

    Parameters
    ----------
    summaries
        For each model, those of its data sets, shape (data sets, columns).
    costs
        What one data set of each model costs, shape (models,), in seconds, or 1 where simulations are counted.
    budget
        What all data sets that are screened may cost together.
    """

    summaries: list[NDArray[np.float64]]
    costs: NDArray[np.float64]
    budget: float

    @property
    def num_datasets(self) -> int:
        """The number of data sets of all models."""
        return sum(len(of_model) for of_model in self.summaries)


@dataclass(frozen=True)
class Region:
    """The acceptance region: all data sets whose summary lies within `radius` of the observed one.

    Each column of the summary is in units of its `scale`. The region is fixed before the simulations that it screens
    are drawn, so that screening does not bias the answer.
    """

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    radius: float

    @classmethod
    def choose(cls, observed: NDArray[np.float64], pilot: Pilot, num_near: int) -> tuple[Region, list[int]]:
        """Return the smallest region that promises `num_near` of every model, and how many of each to screen.

        It lies around the observed summary, shape (columns,), in the robust scale that the models' pilots show. Where
        no radius within reach promises as many, the largest comes back. All that is screened costs the pilot's budget.
        """
        finite = [summaries[np.isfinite(summaries).all(axis=1)] for summaries in pilot.summaries]
        scale = Standardiser.fit(finite, num_axes=0).scale
        distances = [_distance(summaries, observed, scale) for summaries in pilot.summaries]
        reach = LARGEST_REACH * max(float(np.median(of_model)) for of_model in distances)
        candidates = np.unique(np.concatenate([of_model[of_model <= reach] for of_model in distances]))
        candidates = np.append(candidates, reach) if np.isfinite(reach) else candidates
        if len(candidates) == 0:
            candidates = np.zeros(1)
        # Half a data set more, so that a model none of whose pilot came near is drawn often rather than for ever.
        rates = np.stack(
            [
                (np.searchsorted(np.sort(of_model), candidates, side="right") + 0.5) / (len(of_model) + 1)
                for of_model in distances
            ]
        )
        # The variance of the log ratio of two rates is about 1 / (n_1 p_1) + 1 / (n_2 p_2); at a given cost it is least
        # for n_k in proportion to 1 / sqrt(p_k c_k): the model that comes near least often is drawn most.
        spent = np.sqrt(pilot.costs[:, None] / rates)
        shares = np.maximum(spent / spent.sum(axis=0), LEAST_SHARE)
        screened = pilot.budget * shares / shares.sum(axis=0) / pilot.costs[:, None]
        enough = (screened * rates).min(axis=0) >= num_near
        chosen = int(np.argmax(enough)) if enough.any() else len(candidates) - 1
        num_screened = np.maximum(1, screened[:, chosen]).astype(np.int64)
        return cls(observed, scale, float(candidates[chosen])), num_screened.tolist()

    def accepts(self, summaries: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which data sets are near, given their summaries, shape (data sets, columns)."""
        distance = _distance(summaries, self.centre, self.scale)
        return (distance <= self.radius) & np.isfinite(distance)


def _distance(
    summaries: NDArray[np.float64], centre: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how far each summary is from the centre; inf where it is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.sqrt((((summaries - centre) / scale) ** 2).sum(axis=1))
    return np.where(np.isnan(found), np.inf, found)


class Near(NamedTuple):
    """The simulations of one model that came near.

    Parameters
    ----------
    features
        Their features, shape (simulations, features).
    num_screened
        The number of simulations that they were found among.
    num_undefined
        How many of those have no finite summary.
    """

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
        layout = self.view.estimator.layout
        if self.num_obs is not None:
            layout = replace(layout, asked=NumObsRange(self.num_obs, self.num_obs))
        source = Source((self.models[index],), layout, seed)
        with SimulationStream(source, num_datasets=num_datasets, executor=self.executor) as stream:
            # As many data sets as the network evaluates at once, so that none of its rows are filled up.
            stream.chunks_per_task = max(1, prepared_at_once(layout.shape) // CHUNK_SIZE)
            while not stream.exhausted:
                yield stream.take()[0]

    def pilot(self, budget: Budget, seeds: Sequence[int], bar: Progress) -> Pilot:
        """Return some simulations of every model, drawn apart: the region must not depend on what is screened."""
        num_models = len(seeds)
        most, seconds = MOST_PILOT, math.inf
        if budget.num_simulations is not None:
            most = min(most, math.ceil(PILOT_SHARE * budget.num_simulations / num_models))
        if budget.seconds is not None:
            seconds = PILOT_SHARE * budget.seconds / num_models
        task = bar.add_task("looking around", total=num_models * most)
        begin = time.monotonic()
        summaries, costs = [], []
        for index, seed in enumerate(seeds):
            started, parts = time.monotonic(), []
            for data in self.batches(index, seed, most):
                parts.append(self.view.summaries(data))
                bar.advance(task, len(data))
                if time.monotonic() - started > seconds:
                    break
            summaries.append(np.concatenate(parts))
            costs.append((time.monotonic() - started) / len(summaries[-1]))
        bar.update(task, completed=num_models * most)
        elapsed = time.monotonic() - begin
        self._check_defined(summaries)
        if budget.seconds is not None:
            # A pilot that took all the time still leaves one more like it.
            return Pilot(summaries, np.array(costs), max(PLANNED_SHARE * (budget.seconds - elapsed), elapsed))
        num_left = (budget.num_simulations or 0) - sum(len(of_model) for of_model in summaries)
        return Pilot(summaries, np.ones(num_models), float(num_left))

    def screen(self, region: Region, num_screened: Sequence[int], seeds: Sequence[int], bar: Progress) -> list[Near]:
        """Return what of each model's data sets is in the region; only the features of those are kept."""
        task = bar.add_task("simulating nearby", total=sum(num_screened))
        return [
            self._screen_one(index, seed, num_datasets, region, lambda count: bar.advance(task, count))
            for index, (seed, num_datasets) in enumerate(zip(seeds, num_screened, strict=True))
        ]

    def _screen_one(
        self, index: int, seed: int, num_datasets: int, region: Region, advance: Callable[[int], None]
    ) -> Near:
        found, kept, num_undefined = [], [], 0
        for data in self.batches(index, seed, num_datasets):
            summaries = self.view.summaries(data)
            kept.append(data[region.accepts(summaries)])
            num_undefined += int((~np.isfinite(summaries).all(axis=1)).sum())
            # Data sets give way to their features now and then, which bounds the memory for large ones.
            if sum(map(len, kept)) >= PREPARE_ROWS:
                found.append(self.view.features(np.concatenate(kept)))
                kept = []
            advance(len(data))
        if kept and any(map(len, kept)):
            found.append(self.view.features(np.concatenate(kept)))
        features = np.concatenate(found) if found else np.zeros((0, 0))
        return Near(features, num_datasets, num_undefined)

    def _check_defined(self, summaries: Sequence[NDArray[np.float64]]) -> None:
        """Raise if the data of a model never have a summary."""
        for of_model, model in zip(summaries, self.models, strict=True):
            if not np.isfinite(of_model).all(axis=1).any():
                raise ValueError(
                    f"summary is nan or inf for all {len(of_model):,} simulations of model {model.name!r} in the "
                    "pilot; choose one that is defined for the data of every model."
                )
