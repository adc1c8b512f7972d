"""The simulations that observed data are compared with: simulated or given, one stratum at a time.

`compare` checks what the user passed and returns a `Comparison`: the observed summaries, the reference, and the
distance learned from its first stratum. All four methods of ABC start from one. The reference is cut into strata, each
of which mixes the models alike, so that a million simulations never stand in memory at once.

Nothing depends on the order in which the models are passed: wherever one of them has to come first, it is the first by
name. Two models swapped therefore give the same draws and the opposite Bayes factor, to the last bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.baselines.abc.distance import (
    DISTANCES,
    Distance,
    LearnedDistance,
    PointDistance,
    Summary,
    Values,
    learn_distance,
    summarise,
    summarise_observed,
)
from deepbf.baselines.baseline_result import BaselineResult, check_observed
from deepbf.models.model import Model, ModelSet
from deepbf.simulation import chunk_seed

Product = TypeVar("Product")

# Draws compared at once where the method itself has no strata; the paper's M / m.
_DRAWS_AT_ONCE = 1000
# Strata simulated ahead of the one being compared: one in the making, one waiting.
_NUM_AHEAD = 2


class DrawOrder:
    """Which draw of a reference comes from which model, in strata that all mix the models alike.

    Model k's i-th draw stands at (i + 1/2) / counts[k], so that every stratum holds the models in proportion, give or
    take one draw. Inside a stratum the draws are shuffled. Ties in distance go to the draw that comes first in this
    order, and so to each model in proportion to its draws.

    Everything here depends on the models' names and not on their positions.
    """

    def __init__(self, counts: NDArray[np.int64], names: Sequence[str], num_strata: int, seed: int) -> None:
        by_name = np.argsort(name_ranks(names))
        places = np.concatenate([(np.arange(int(counts[k])) + 0.5) / counts[k] for k in by_name])
        labels = np.repeat(by_name, counts[by_name]).astype(np.int16)
        self._labels = labels[np.argsort(places, kind="stable")]
        self._bounds = np.arange(num_strata + 1) * len(labels) // num_strata
        self._seed = seed
        # Row s: how many draws of each model come before stratum s.
        slices = zip(self._bounds[:-1], self._bounds[1:], strict=True)
        per_stratum = [np.bincount(self._labels[a:b], minlength=len(counts)) for a, b in slices]
        self._before = np.concatenate([np.zeros((1, len(counts)), np.int64), np.cumsum(per_stratum, axis=0)])
        self.counts = counts
        self.num_strata = num_strata

    def draws(self, stratum: int) -> NDArray[np.int64]:
        """Return the numbers of the stratum's draws in the whole order."""
        return np.arange(self._bounds[stratum], self._bounds[stratum + 1])

    def labels(self, stratum: int) -> NDArray[np.int16]:
        """Return the model of each draw of the stratum, shuffled."""
        labels = self._labels[self._bounds[stratum] : self._bounds[stratum + 1]]
        # Beyond the models' own spawn keys, so that no simulator shares these random numbers.
        key = (len(self.counts), stratum)
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key)).permutation(labels)

    def rows(self, stratum: int, model: int) -> slice:
        """Return which of the model's own draws belong to the stratum."""
        return slice(int(self._before[stratum, model]), int(self._before[stratum + 1, model]))


class Stratum(NamedTuple):
    """Draws with finite summaries: their numbers in the whole reference, models, summaries; how many had none."""

    draws: NDArray[np.int64]
    labels: NDArray[np.int16]
    values: Values
    num_undefined: int


@dataclass(frozen=True)
class Reference:
    """A source of strata. With `arrays`, one for each model, rows come from there; without, strata are simulated.

    A simulated stratum has a seed of its own for each model, so that the same seed gives the same draws. It is derived
    from the model's place in the order of names.
    """

    model_set: ModelSet
    order: DrawOrder
    summary: Summary | None
    seed: int
    arrays: Sequence[NDArray[np.generic]] | None = None

    def stratum(self, index: int) -> Stratum:
        """Return one stratum, summarised; draws whose summary is nan or inf are left out and counted."""
        labels = self.order.labels(index)
        values: Values | None = None
        for k, name in enumerate(self.model_set.names):
            rows = self.order.rows(index, k)
            if rows.start == rows.stop:
                continue
            data = self._simulate(index, k, rows) if self.arrays is None else self.arrays[k][rows]
            summaries = summarise(self.summary, data, f"model {name!r}")
            if values is None:
                values = np.empty((len(labels), summaries.shape[1]))
            if summaries.shape[1] != values.shape[1]:
                raise ValueError(
                    f"summary returned {summaries.shape[1]} numbers per data set for model {name!r} and "
                    f"{values.shape[1]} for another; it must return equally many for all data."
                )
            values[labels == k] = summaries
        assert values is not None
        draws = self.order.draws(index)
        defined = np.isfinite(values).all(axis=1)
        if defined.all():
            return Stratum(draws, labels, values, 0)
        return Stratum(draws[defined], labels[defined], values[defined], int((~defined).sum()))

    def _simulate(self, index: int, model: int, rows: slice) -> NDArray[np.generic]:
        """Return the model's draws of one stratum; the only place where ABC simulates."""
        seed = chunk_seed(self.seed, int(name_ranks(self.model_set.names)[model]), index)
        return self.model_set.models[model].simulate(rows.stop - rows.start, seed).data


@dataclass(frozen=True)
class Comparison:
    """Observed summaries, the reference that they are compared with, and the distance between the two."""

    model_set: ModelSet
    observed: Values
    reference: Reference
    first: Stratum
    distance: LearnedDistance

    @property
    def num_draws(self) -> NDArray[np.int64]:
        """Reference draws of each model, those without a summary among them."""
        return self.reference.order.counts

    @property
    def total(self) -> int:
        """Reference draws of all models together."""
        return int(self.num_draws.sum())

    def walk(self, prepare: Callable[[Stratum], Product]) -> Iterator[Product]:
        """Yield what `prepare` makes of each stratum, in order, made in the background while the last one is used."""

        def produce(index: int) -> Product:
            # The first stratum was drawn to learn the distance.
            return prepare(self.first if index == 0 else self.reference.stratum(index))

        with ThreadPoolExecutor(1, "deepbf-reference") as executor:
            tasks: deque[Future[Product]] = deque()
            try:
                for index in range(self.reference.order.num_strata):
                    tasks.append(executor.submit(produce, index))
                    if len(tasks) >= _NUM_AHEAD:
                        yield tasks.popleft().result()
                while tasks:
                    yield tasks.popleft().result()
            finally:
                for task in tasks:
                    task.cancel()

    def result(
        self,
        method: str,
        log_evidence: Values,
        log_bf_error: NDArray[np.float64],
        *,
        num_undefined: int,
        diagnostics: Mapping[str, NDArray[np.generic]],
        warnings: Sequence[str],
    ) -> BaselineResult:
        """Return a method's result, with the counts of draws and of undefined summaries that all methods report."""
        undefined = (
            f"summary is nan or inf for {num_undefined} of {self.total} reference draws; they count as draws that "
            "were not accepted. Choose a summary that is defined for all data.",
        )
        return BaselineResult(
            method=method,
            names=self.model_set.names,
            log_evidence=log_evidence,
            log_bf_error=log_bf_error,
            diagnostics={
                **diagnostics,
                "num_draws": np.tile(self.num_draws, (len(self.observed), 1)),
                "num_undefined": np.full(len(self.observed), num_undefined),
            },
            warnings=(*warnings, *(undefined if num_undefined else ())),
        )


def compare(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    num_simulations: int,
    num_strata: int | None = None,
    summary: Summary | None,
    distance: Distance = "euclidean",
    prior_probs: ArrayLike | None,
    reference: Sequence[ArrayLike] | None,
    seed: int,
) -> Comparison:
    """Return the comparison that every method of ABC starts from, after checking all that the methods share.

    The arguments are those of `deepbf.baselines.abc_ranked`. A `num_strata` of None cuts the reference into strata of
    about 1,000 draws. The first stratum is drawn here: the distance is learned from it.
    """
    model_set = ModelSet.of(models, prior_probs)
    num_simulations = _checks.check_count("num_simulations", num_simulations, least=len(model_set))
    seed = _checks.check_seed("seed", seed)
    if isinstance(distance, str):
        distance = DISTANCES[_checks.check_choice("distance", distance, DISTANCES)]
    if isinstance(distance, type) or not (isinstance(distance, PointDistance) or callable(distance)):
        raise TypeError(
            f"distance must be one of {', '.join(map(repr, DISTANCES))}, a function of observed and simulated "
            f"summaries, or an instance of a PointDistance; received {distance!r}. See deepbf.baselines.abc.distance."
        )
    data = check_observed(model_set, observed, seed=seed)
    values = summarise_observed(summary, data)
    arrays = None
    counts = share_out(num_simulations, model_set.prior_probs, model_set.names)
    if reference is not None:
        if prior_probs is not None:
            raise ValueError(
                f"prior_probs={prior_probs!r} was passed with a reference, which has the proportions of its own "
                "arrays. Leave prior_probs out; Bayes factors do not depend on it."
            )
        arrays = _check_reference(model_set, reference, data.shape[1:])
        counts = np.array([len(array) for array in arrays], np.int64)
    num_draws = int(counts.sum())
    strata = -(-num_draws // _DRAWS_AT_ONCE) if num_strata is None else _checks.check_count("num_strata", num_strata)
    if num_strata is not None and num_draws % strata:
        what = f"num_simulations={num_draws}" if arrays is None else f"the reference's {num_draws} draws"
        divisor = next(n for n in range(min(strata, num_draws), 0, -1) if num_draws % n == 0)
        raise ValueError(
            f"num_strata must divide {what} into equal strata; received {strata}. Pass, for example, "
            f"num_strata={divisor}."
        )
    source = Reference(model_set, DrawOrder(counts, model_set.names, strata, seed), summary, seed, arrays)
    first = source.stratum(0)
    if len(first.values) == 0:
        raise ValueError(
            f"summary is nan or inf for all {first.num_undefined} draws of the first stratum. "
            "Choose a summary that is defined for the models' data."
        )
    if first.values.shape[1] != values.shape[1]:
        raise ValueError(
            f"summary returned {values.shape[1]} numbers for an observed data set and {first.values.shape[1]} for a "
            "simulated one; it must return equally many for all data."
        )
    return Comparison(model_set, values, source, first, learn_distance(distance, values, first.values))


def name_ranks(names: Sequence[str]) -> NDArray[np.intp]:
    """Return the place of each model in the alphabetical order of their names, counted from 0.

    >>> name_ranks(["wide", "null", "middle"]).tolist()
    [2, 1, 0]
    """
    return np.argsort(np.argsort(np.asarray(names), kind="stable"))


def share_out(num_draws: int, probs: NDArray[np.float64], names: Sequence[str]) -> NDArray[np.int64]:
    """Return how many of `num_draws` each model gives: in proportion to `probs`, rounded by largest remainder.

    Equal remainders go to the first model by name. Every model gives at least one draw where there are enough, since a
    model without any could not be judged.

    >>> share_out(5, np.array([0.5, 0.5]), ["wide", "null"]).tolist()
    [2, 3]
    """
    ranks = name_ranks(names)
    exact = num_draws * probs[np.argsort(ranks)]
    counts = np.floor(exact).astype(np.int64)
    remainders = np.argsort(counts - exact, kind="stable")
    counts[remainders[: num_draws - counts.sum()]] += 1
    while (counts == 0).any() and num_draws >= len(probs):
        counts[np.argmax(counts)] -= 1
        counts[np.argmin(counts)] += 1
    return counts[ranks]


def _check_reference(
    model_set: ModelSet, reference: Sequence[ArrayLike], shape: tuple[int, ...]
) -> list[NDArray[np.generic]]:
    """Return the given reference as one array per model, refusing any that does not fit the models or the data."""
    if not isinstance(reference, Sequence) or len(reference) != len(model_set):
        received = f"{len(reference)} entries" if isinstance(reference, Sequence) else type(reference).__name__
        raise ValueError(
            f"reference must be a list of one array per model, {len(model_set)} in all; received {received}. "
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
