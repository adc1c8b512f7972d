"""Few simulations: in folds, every one of them is trained on and judged by, and simple classifiers join the networks.

Each member of the ensemble is trained without one fold. At that fold it is judged, part by part: how long each network
trains and how far each part is believed (`stacking_weights`) are decided by simulations that it has not seen, and none
is set aside for good. The spread among members that each lack one fold gives the error, as in the jackknife.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf._compilation import compiled, in_batches
from deepbf.layout.data_layout import DataLayout
from deepbf.models.model import SimulationError
from deepbf.networks.base import AbstractNetwork, prepare
from deepbf.networks.boosted_trees import BoostedTrees
from deepbf.networks.ensemble import (
    Committee,
    cautious_scale,
    init_ensemble,
    spread_weights,
    stacking_weights,
)
from deepbf.networks.log_linear import LogLinear
from deepbf.simulation import SimulationStream
from deepbf.standardise import Standardiser
from deepbf.support import Typicality, simulated_in_any_order
from deepbf.training.console import ProgressBar, StopOnInterrupt
from deepbf.training.intake import POLL_SECONDS, Pilot, num_obs_of, prepared_at_once
from deepbf.training.optimise import Goal, flat_networks, held_out_cross_entropy, init_state, make_block
from deepbf.training.schedule import MOST_PASSES, WARM_RATE, Schedule, fitting_batch_size
from deepbf.training.trained import BudgetTooSmallError, PartialTrainingError, TrainedEnsemble, TrainingRecord

Floats = NDArray[np.float32]

# Simulations in all, up to which folds and simple classifiers pay: beyond, networks on their own are as good.
MOST_SIMULATIONS = 50_000
# Held-out losses that decide how long a network trains.
NUM_CHECKS = 20
# At least as many folds: each member then is trained on four fifths of the simulations or more.
FEWEST_FOLDS = 5
# Data sets per model that the preparation is fitted to, half of a full pilot: here most of the pilot is judged by, and
# what was fitted to it looks better there than it is. Of 20,000 images of 16 x 16 pixels (field, seed 1) with scatters
# of the pilot's 4,096 per model, all the weight went to simple classifiers: an excess of 3.1e-2,
# where the informed network alone had 5.6e-3; fitted to half of them, without scatters, 3.7e-3.
MOST_PREPARED_BY = 2048
# Rows per model below which folds say nothing.
FEWEST_ROWS = 25
# How many simulations say that all parts are equally good, before any is looked at: weights of a few hundred follow
# chance. Of nine problems with 512 simulations (seed 1) a fifth of even belief made eight better, by up to a tenth;
# with 2,000 it did not matter.
EVEN_BELIEF = 100.0
# The share of the belief that is spread evenly where the error is concerned: simple classifiers have errors in common
# with members of their own kind, which only parts of other kinds show. With the usual quarter, the 95% intervals of
# series-season held 84% with 2,000 simulations (seed 1), with half of it 87%.
DOUBT = 0.5
# Of a budget in seconds, what goes into simulation, and what each simple classifier may take of the rest.
SIMULATION_SHARE = 0.7
SIMPLE_SHARE = 0.3


class Folds:
    """The prepared rows of all models, and which of them each member is trained on and judged by.

    Parameters
    ----------
    rows
        One array per model, as many rows of each.
    num_folds
        As many as there are members. Row i belongs to fold i modulo their number.
    """

    def __init__(self, rows: Sequence[Floats], num_folds: int) -> None:
        self.rows = list(rows)
        self.num_folds = num_folds
        self._fold = np.arange(len(rows[0])) % num_folds

    def outside(self, fold: int) -> NDArray[np.intp]:
        """Return the places of the rows that this member is trained on, the same for every model."""
        return np.flatnonzero(self._fold != fold)

    def labelled(self, fold: int) -> tuple[Floats, NDArray[np.int64]]:
        """Return the rows that this member is trained on, and the models that they came from."""
        places = self.outside(fold)
        labels = np.repeat(np.arange(len(self.rows)), len(places))
        return np.concatenate([own[places] for own in self.rows]), labels

    def by_fold(self) -> Floats:
        """Return the rows that each member is judged by, shape (folds, models, rows, width), filled up with repeats."""
        most = -(-len(self._fold) // self.num_folds)
        places = [np.resize(np.flatnonzero(self._fold == fold), most) for fold in range(self.num_folds)]
        return np.stack([np.stack([own[place] for own in self.rows]) for place in places])

    def in_order(self, judged: NDArray[np.floating]) -> list[NDArray[np.floating]]:
        """Return what was found by fold, shape (folds, parts, models, rows, columns), in the order of the rows.

        One array per model, shape (parts, rows, columns).
        """
        num_rows = len(self._fold)
        found = np.moveaxis(judged, 0, 3)
        # Row i stands at place i // folds of fold i modulo folds.
        flat = found.reshape(*found.shape[:2], -1, found.shape[-1])[:, :, :num_rows]
        return [flat[:, model] for model in range(flat.shape[1])]


class FoldBatches:
    """Mini-batches for each member, from the rows outside its fold, every row as often as every other."""

    def __init__(self, folds: Folds, batch_size: int, rng: np.random.Generator) -> None:
        self._folds = folds
        self._batch_size = batch_size
        self._rng = rng
        num_models = len(folds.rows)
        self._waiting = [[np.zeros(0, np.intp)] * num_models for _ in range(folds.num_folds)]

    def draw(self, num_steps: int) -> Floats:
        """Return mini-batches, shape (steps, members, models, batch, width)."""
        wanted = num_steps * self._batch_size
        drawn = []
        for fold, waiting in enumerate(self._waiting):
            places = self._folds.outside(fold)
            for model in range(len(waiting)):
                while len(waiting[model]) < wanted:
                    waiting[model] = np.concatenate([waiting[model], self._rng.permutation(places)])
            taken = [self._folds.rows[model][queue[:wanted]] for model, queue in enumerate(waiting)]
            self._waiting[fold] = [queue[wanted:] for queue in waiting]
            drawn.append(np.stack([rows.reshape(num_steps, self._batch_size, -1) for rows in taken], axis=1))
        return np.stack(drawn, axis=1)


def shared_belief(believed: NDArray[np.float64], num_simulations: int) -> NDArray[np.float64]:
    """Return the parts' weights when `EVEN_BELIEF` simulations found all parts equally good, and the others these."""
    even = np.full_like(believed, 1.0 / len(believed))
    return (num_simulations * believed + EVEN_BELIEF * even) / (num_simulations + EVEN_BELIEF)


class FewTrainer:
    """One run of training on few simulations: waits for all of them, then fits every member without its fold.

    Parameters
    ----------
    layout, pilot, standardiser, stream
        What data look like, the first simulations, their scales, and where the others come from.
    goal, schedule
        What is trained, and how.
    seconds, started
        The budget of the whole call, if it is one of time, and when that began by the monotonic clock.
    num_members
        How many folds there are.
    seed
        Of initial weights and mini-batches.
    start
        A trained ensemble to go on from.
    """

    def __init__(
        self,
        layout: DataLayout,
        pilot: Pilot,
        standardiser: Standardiser,
        goal: Goal,
        stream: SimulationStream,
        schedule: Schedule,
        *,
        seconds: float | None,
        started: float,
        num_members: int,
        seed: int,
        start: TrainedEnsemble | None = None,
    ) -> None:
        standardised = [standardiser(data) for data in pilot.data]
        self._layout = layout
        self._standardiser = standardiser
        self._goal = goal
        self._stream = stream
        self._started = started
        self._seconds = seconds
        self._num_members = num_members
        self._seed = seed
        self._any_order = simulated_in_any_order(layout, pilot.data)
        self._kind = goal.kind_of(layout)
        peak_rate = self._kind.peak_rate if start is None else WARM_RATE * self._kind.peak_rate
        self._schedule = schedule.for_network(peak_rate)
        self._start = start
        self._preparation = (
            self._kind.fit_preparation([data[:MOST_PREPARED_BY] for data in standardised])
            if start is None
            else start.preparation
        )
        self._prepare = compiled(prepare, self._preparation)
        self._parts: list[list[Floats]] = [[] for _ in pilot.data]
        self._take(standardised)

    def run(self, bar: ProgressBar, stop: StopOnInterrupt) -> TrainedEnsemble:
        """Simulate what the budget brings, or until Ctrl-C, and return the ensemble fitted to it."""
        try:
            self._simulate(bar, stop)
        except SimulationError as error:
            failure = PartialTrainingError(str(error))
            failure.partial = self._fit(bar, "simulator failed") if self._num_rows >= FEWEST_ROWS else None
            raise failure from error
        elapsed = time.monotonic() - self._started
        too_late = self._seconds is not None and elapsed > self._seconds
        if (too_late or self._num_rows < FEWEST_ROWS) and stop.requested:
            raise KeyboardInterrupt
        if too_late or self._num_rows < FEWEST_ROWS:
            raise BudgetTooSmallError(
                f"no training step fitted into the budget: {self._num_rows} data sets per model were simulated in "
                f"{elapsed:.1f} s, and training needs at least {FEWEST_ROWS}. Pass more seconds, or an executor with "
                "more workers."
            )
        return self._fit(bar, "interrupted" if stop.requested else "budget")

    @property
    def _num_rows(self) -> int:
        return sum(map(len, self._parts[0]))

    def _take(self, standardised: Sequence[NDArray[np.generic]]) -> None:
        prepared = in_batches(self._prepare, np.concatenate(standardised), prepared_at_once(self._layout.shape))
        for kept, rows in zip(self._parts, np.split(prepared, len(self._parts)), strict=True):
            kept.append(rows)

    def _simulate(self, bar: ProgressBar, stop: StopOnInterrupt) -> None:
        """Take in simulations until there are no more, or until the rest of the time is needed for training."""
        end = math.inf if self._seconds is None else self._started + SIMULATION_SHARE * self._seconds
        while not (self._stream.exhausted or stop.requested or time.monotonic() > end):
            try:
                self._take(self._stream.take(timeout=POLL_SECONDS))
            except TimeoutError:
                # Back to the loop, which looks at the clock and at Ctrl-C.
                continue
            self._show(bar, 0.0, math.nan)

    def _fit(self, bar: ProgressBar, stopped: str) -> TrainedEnsemble:
        rows = [np.concatenate(own) for own in self._parts]
        inputs = self._preparation.layout(self._layout.shape)
        key = jax.random.key(self._seed % 2**31)
        if self._start is None:
            networks = init_ensemble(self._kind, inputs, len(rows), self._num_members, key)
        else:
            # Where there are more folds than members to go on from, some begin alike.
            chosen = np.arange(self._num_members) % self._start.num_members
            arrays, static = eqx.partition(self._start.networks, eqx.is_array)
            networks = eqx.combine(jax.tree.map(lambda leaf: leaf[chosen], arrays), static)
        folds = Folds(rows, self._num_members)
        deadline = None if self._seconds is None else self._started + self._seconds
        simple = _fit_simple(folds, self._seed, deadline)
        trained, num_steps = self._fit_networks(networks, folds, bar, deadline)
        committee = trained.joined_by(tuple(simple.values()), inputs.width)
        judged = folds.in_order(np.asarray(compiled(_parts_by_member, committee)(jnp.asarray(folds.by_fold()))))
        believed = shared_belief(stacking_weights(judged), sum(map(len, rows)))
        log_odds = [np.tensordot(believed, own, axes=1) for own in judged]
        scale = cautious_scale(log_odds)
        log_odds = [scale * own for own in log_odds]
        record = TrainingRecord(
            num_steps=num_steps,
            num_simulations=len(rows) * len(rows[0]),
            seconds=time.monotonic() - self._started,
            held_out_loss=held_out_cross_entropy(log_odds),
            stopped=stopped,
            num_earlier_simulations=0 if self._start is None else self._start.num_simulations,
        )
        half = len(rows[0]) // 2
        return TrainedEnsemble(
            self._layout,
            self._standardiser,
            self._preparation,
            committee.believing(scale * spread_weights(believed, self._num_members, DOUBT)),
            record,
            np.stack(log_odds).astype(np.float32),
            num_obs_of(rows, inputs, self._layout),
            typicality=Typicality.fit([own[:half] for own in rows], [own[half:] for own in rows], inputs),
            any_order=self._any_order,
            # The delete-a-group jackknife: (K - 1) / K times the sum of squares is the variance of the mean.
            spread=(self._num_members - 1) / math.sqrt(self._num_members),
            simple=tuple(simple),
        )

    def _fit_networks(
        self, networks: AbstractNetwork, folds: Folds, bar: ProgressBar, deadline: float | None
    ) -> tuple[Committee, int]:
        """Return stacked committees, each part as it was when it did best at the folds it has not seen, and steps."""
        form, weights = flat_networks(networks)
        optimiser = self._goal.optimiser_of(form)
        block = make_block(form, self._goal.objective, optimiser)
        state = init_state(weights, optimiser)
        num_rows = len(folds.outside(0))
        batch_size = fitting_batch_size(self._schedule.batch_size, num_rows)
        num_steps = max(1, -(-MOST_PASSES * num_rows // (batch_size * NUM_CHECKS)))
        batches = FoldBatches(folds, batch_size, np.random.default_rng(self._seed))
        outside = jnp.asarray(folds.by_fold())
        kept: list[jax.Array] = []
        losses: list[list[float]] = []

        def judge() -> None:
            judged = folds.in_order(
                np.asarray(compiled(_parts_by_member, form.networks(np.asarray(state.averaged)))(outside))
            )
            kept.append(jnp.copy(state.averaged))
            found = [held_out_cross_entropy([own[part] for own in judged]) for part in range(len(judged[0]))]
            # Weights that ran away must not be chosen.
            losses.append([loss if math.isfinite(loss) else math.inf for loss in found])

        num_done = 0
        if self._start is not None:
            # What was trained before may be the best already.
            judge()
        for check in range(NUM_CHECKS):
            progress = (check + np.arange(num_steps) / num_steps) / NUM_CHECKS
            rates = self._schedule.rates(progress, np.arange(num_steps))
            drawn = jnp.asarray(batches.draw(num_steps))
            state, _ = block(state, drawn, jnp.asarray(rates), jnp.asarray(num_steps, jnp.int32))
            judge()
            num_done += num_steps
            self._show(bar, (check + 1) / NUM_CHECKS, min(losses[-1]))
            if deadline is not None and time.monotonic() > deadline:
                break
        found = [form.networks(np.asarray(kept[moment])) for moment in np.argmin(np.asarray(losses), axis=0)]
        committees = [one for one in found if isinstance(one, Committee)]
        chosen = tuple(committee.networks[part] for part, committee in enumerate(committees))
        first = committees[0]
        return Committee(chosen, first.weights, first.columns, first.rates), num_done

    def _show(self, bar: ProgressBar, share: float, held_out: float) -> None:
        left = 0.0 if self._seconds is None else self._seconds - (time.monotonic() - self._started)
        bar.show(
            share,
            loss=held_out,
            held_out=held_out,
            num_simulations=len(self._parts) * self._num_rows,
            seconds_left=left,
        )


def _fit_simple(folds: Folds, seed: int, deadline: float | None) -> dict[str, AbstractNetwork]:
    """Return the simple classifiers that there is time for, by name, fitted without each fold in turn and stacked.

    What cross-validation chooses of a classifier, it chooses once, without the first fold: it takes most of the time,
    and one or two numbers of it do not give the other folds away.
    """
    kinds: dict[str, Any] = {"log-linear": LogLinear, "boosted trees": BoostedTrees}
    seed %= 2**31
    stacked: dict[str, AbstractNetwork] = {}

    def chosen(kind: Any) -> tuple[Any, float]:
        begin = time.monotonic()
        return kind.choose(*folds.labelled(0), len(folds.rows), seed), time.monotonic() - begin

    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        # One after another where time is short: the second is then chosen with what the first has left.
        choices = map(chosen, kinds.values()) if deadline is not None else threads.map(chosen, kinds.values())
        for (name, kind), (choice, seconds) in zip(kinds.items(), choices, strict=True):

            def fit_without(fold: int, kind: Any = kind, choice: Any = choice) -> AbstractNetwork:
                return kind.fit(*folds.labelled(fold), len(folds.rows), seed + fold, choice)

            begin = time.monotonic()
            first = fit_without(0)
            # What one fold took, the others will take; networks need the rest of the time.
            needed = seconds + folds.num_folds * (time.monotonic() - begin)
            if deadline is not None and needed > SIMPLE_SHARE * (deadline - begin):
                continue
            others = list(threads.map(fit_without, range(1, folds.num_folds)))
            stacked[name] = jax.tree.map(lambda *leaves: jnp.stack(leaves), first, *others)
    return stacked


def _parts_by_member(ensemble: AbstractNetwork, outside: jax.Array) -> jax.Array:
    """Return the log odds of every member at its own fold, shape (folds, parts, models, rows, K - 1)."""
    flat = outside.reshape(outside.shape[0], -1, outside.shape[-1])
    found = eqx.filter_vmap(lambda network, rows: network.parts(rows))(ensemble, flat)
    return found.reshape(*found.shape[:2], *outside.shape[1:3], found.shape[-1])
