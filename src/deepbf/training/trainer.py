"""The trainer: simulation ahead in the background, blocks of steps in front, a held-out judge, a budget."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from deepbf._compilation import compiled, in_batches
from deepbf._numerics import log_evidence
from deepbf.layout.data_layout import DataLayout
from deepbf.models.model import ModelSet, SimulationError
from deepbf.networks.ensemble import (
    Committee,
    init_ensemble,
    mean_log_odds,
    settle_ensemble,
    spread_weights,
    stacking_weights,
)
from deepbf.networks.registry import check_simulated
from deepbf.simulation import CHUNK_SIZE, SimulationStream, Source
from deepbf.standardise import Standardiser
from deepbf.support import simulated_in_any_order
from deepbf.training.console import ProgressBar, StopOnInterrupt
from deepbf.training.few import FEWEST_FOLDS, MOST_SIMULATIONS, FewTrainer
from deepbf.training.intake import (
    POLL_SECONDS,
    PREPARE_ROWS,
    Intake,
    Pilot,
    Thinning,
    num_obs_of,
    prepared_at_once,
    run_pilot,
)
from deepbf.training.optimise import Goal, flat_networks, init_state, make_block, make_judge, muon_of
from deepbf.training.pool import FRESH_BYTES, POOL_BYTES, Pool
from deepbf.training.schedule import MOST_PASSES, WARM_RATE, Budget, Clock, Schedule, fitting_batch_size
from deepbf.training.trained import BudgetTooSmallError, PartialTrainingError, TrainedEnsemble, TrainingRecord

# Long enough to drown the cost of handing a task over, short enough to fill the pool smoothly.
TASK_SECONDS = 0.05
# Simulations waiting to be read. Where steps wait for fresh ones, enough to go on simulating through compilation.
AHEAD_BYTES = 64_000_000
AHEAD_BYTES_ALL_FRESH = 256_000_000
MOST_TASKS_AHEAD = 128
PATIENCE_SECONDS = 1.0
# Time for taking in simulations, as a share of all since the first step: where preparing them is dear, steps that use
# them again teach more than more of them would. Data 1 (i), n = 128, 40 s, one run each: with as much time for each,
# 8,300 steps and an excess of 1.0e-4; with this share, 14,900 steps and 0.7e-4 from a fifth of the simulations.
FEED_SHARE = 0.25
# Draws for each simulation, by a member that owns half of them, from which on new ones go before steps. Excess after
# 20 s with two draws, as a share of that with one, one run each: AR(1) or MA(1) 0.98, pairs 0.54, random effects 0.77,
# Data 1 (i) 0.64, t-test 0.76, hidden states 0.77, weapon-sum 0.81; correlated covariates 1.32, series-event 1.27.
# With three it was 0.6 to 1.3 of one, with six mostly more.
WORN_PASSES = 2.0
# Of the most passes over simulations, those that are allowed at the start.
FEWEST_PASSES = 6
# Held-out losses taken before the network is trusted to choose among simulations.
CHECKS_BEFORE_THINNING = 2


def train(
    model_set: ModelSet,
    layout: DataLayout,
    *,
    network: str,
    goal: Goal,
    schedule: Schedule,
    budget: Budget,
    num_members: int,
    executor: Executor | None,
    seed: int,
    progress: bool,
    started: float,
    start: TrainedEnsemble | None = None,
) -> TrainedEnsemble:
    """Return an ensemble trained on simulations of the models, within the budget counted from `started`.

    `layout` is what the user said about the data; the pilot completes it. `network` is a name or "auto", for the
    checks of simulated data; `goal` says what is trained. Training goes on from the scales, the preparation and the
    weights of `start`, if there is one. A simulator that fails in the middle raises `PartialTrainingError` with what
    was trained until then.
    """
    # Going on from a fit with the same seed must not bring the simulations of that fit once more.
    entropy = seed if start is None else (seed, start.record.num_steps, start.record.num_earlier_simulations)
    seeds = TrainingSeeds(
        *(int(child.generate_state(1, np.uint64)[0]) for child in np.random.SeedSequence(entropy).spawn(3))
    )
    source = Source(model_set.models, layout, seeds.simulation)
    num_each = None if budget.num_simulations is None else budget.num_simulations // len(model_set)
    with StopOnInterrupt() as stop, ProgressBar(progress) as bar:
        pilot = run_pilot(source, executor=executor, num_datasets=num_each, seconds=budget.seconds, stop=stop)
        check_simulated(layout, network, pilot.data)
        source = replace(source, layout=layout.seen(pilot.data))
        if start is not None and source.layout.shape != start.layout.shape:
            raise ValueError(
                f"start was trained on data sets of shape {start.layout.shape}; the simulators return data sets of "
                f"shape {source.layout.shape}. Leave start out."
            )
        standardiser = fit_standardiser(source.layout, pilot.data) if start is None else start.standardiser
        with SimulationStream(
            source,
            first_chunk=pilot.num_chunks,
            num_datasets=num_each,
            transform=standardiser,
            executor=executor,
        ) as stream:
            seconds_a_chunk = pilot.seconds / pilot.num_chunks
            most = max(1, prepared_at_once(source.layout.shape) // (CHUNK_SIZE * len(model_set)))
            stream.chunks_per_task = int(np.clip(TASK_SECONDS / seconds_a_chunk, 1, most))
            task_bytes = stream.chunks_per_task * CHUNK_SIZE * sum(data[:1].size * 4 for data in pilot.data)
            ahead_bytes = AHEAD_BYTES_ALL_FRESH if budget.all_fresh else AHEAD_BYTES
            stream.num_ahead = max(stream.num_ahead, min(ahead_bytes // task_bytes, MOST_TASKS_AHEAD))
            stream.run_ahead()
            num_expected = len(model_set) * budget.expected_datasets(len(model_set), pilot.num_datasets / pilot.seconds)
            if goal.stacks and num_expected <= MOST_SIMULATIONS:
                return FewTrainer(
                    source.layout, pilot, standardiser, goal, stream, schedule, seconds=budget.seconds,
                    started=started, num_members=max(num_members, FEWEST_FOLDS), seed=seeds.init, start=start,
                ).run(bar, stop)  # fmt: skip
            trainer = Trainer(
                source.layout, pilot, standardiser, goal, stream, schedule, budget, started, num_members=num_members,
                init_key=jax.random.key(seeds.init % 2**31), draw_rng=np.random.default_rng(seeds.draws), start=start,
            )  # fmt: skip
            return trainer.run(bar, stop)


class TrainingSeeds(NamedTuple):
    """One seed for each use, so that no use depends on how much another draws."""

    simulation: int
    init: int
    draws: int


def fit_standardiser(layout: DataLayout, data: Sequence[NDArray[np.generic]]) -> Standardiser:
    """Return the standardiser of simulated data, one array per model: each array of a data set has scales of its own.

    Observations of an array share one location and scale.
    """
    parts = [Standardiser.fit(own, num_axes=array.structure.num_axes) for array, own in layout.split(data)]
    return Standardiser.joined(parts, [array.shape for array in layout.arrays]) if layout.packed else parts[0]


class Trainer:
    """One run of training: feeds the pool, runs blocks, judges by held-out simulations, keeps the best."""

    def __init__(
        self,
        layout: DataLayout,
        pilot: Pilot,
        standardiser: Standardiser,
        goal: Goal,
        stream: SimulationStream,
        schedule: Schedule,
        budget: Budget,
        started: float,
        *,
        num_members: int,
        init_key: jax.Array,
        draw_rng: np.random.Generator,
        start: TrainedEnsemble | None = None,
    ) -> None:
        num_models = len(pilot.data)
        standardised = [standardiser(data) for data in pilot.data]
        self._layout = layout
        self._num_pilot = pilot.num_datasets
        self._standardiser = standardiser
        self._stream = stream
        kind = goal.kind_of(layout)
        self._schedule = schedule.for_network(kind.peak_rate if start is None else WARM_RATE * kind.peak_rate)
        self._preparation = kind.fit_preparation(standardised) if start is None else start.preparation
        self._num_earlier = 0 if start is None else start.num_simulations
        inputs = self._inputs = self._preparation.layout(layout.shape)
        self._any_order = simulated_in_any_order(layout, pilot.data)
        batch_size = fitting_batch_size(
            schedule.batch_size, budget.expected_datasets(num_models, pilot.num_datasets / pilot.seconds)
        )
        # Where every step takes fresh simulations, none is kept for long: memory never touched is time saved.
        capacity = FRESH_BYTES if budget.all_fresh else POOL_BYTES
        thinning = Thinning(num_models, int(draw_rng.integers(2**31))) if schedule.thin else None
        # Thinned rows carry their weights.
        width = inputs.width + (0 if thinning is None else 1)
        self._pool = Pool(
            num_models, width, batch_size, num_members, draw_rng, capacity_bytes=capacity,
            most_added=max(len(pilot.data[0]), PREPARE_ROWS // num_models),
        )  # fmt: skip
        self._form, weights = flat_networks(
            init_ensemble(kind, inputs, num_models, num_members, init_key) if start is None else start.networks
        )
        member = self._form.blank
        orthogonal = schedule.orthogonal and not isinstance(member, Committee)
        # The objective is the sum over parts.
        self._num_parts = len(member.networks) if isinstance(member, Committee) else 1
        optimiser = muon_of(self._form.arrays) if orthogonal else goal.optimiser_of(self._form)
        self._state = init_state(weights, optimiser)
        self._block = make_block(self._form, goal.objective, optimiser)
        self._judge = make_judge(self._form)
        self._compile_ahead(num_models, num_members, width)
        self._goal = goal
        planned = budget.planned_steps(num_models, batch_size)
        self._clock = Clock(seconds=budget.seconds, planned_steps=planned, started=started)
        self._intake = Intake(
            self._preparation, layout.shape, num_models, self._pool, thinning=thinning,
            num_steps_unthinned=self._clock.steps_until_check(CHECKS_BEFORE_THINNING + 1),
        )  # fmt: skip
        # How far each part of a committee is believed.
        self._believed: NDArray[np.float64] = np.ones(1)
        self._reference: jax.Array | None = None
        self._best: jax.Array | None = None
        self._held_out_loss: float | None = None
        self._last_loss = 0.0
        self._feeding_seconds = 0.0
        self._history: list[dict[str, float]] = []
        self._intake.feed(standardised)

    def _compile_ahead(self, num_models: int, num_members: int, width: int) -> None:
        """Have steps and judge compiled in the background, while the first simulations are prepared."""
        most, batch_size = self._pool.most_steps_a_block, self._pool.batch_size
        rows = partial(jax.ShapeDtypeStruct, dtype=jnp.float32)
        self._block.ask(
            self._state,
            rows((most, num_members, num_models, batch_size, width)),
            rows((most,)),
            jax.ShapeDtypeStruct((), jnp.int32),
        )
        self._judge.ask(
            self._state.weights,
            rows((num_models * batch_size, self._inputs.width)),
            rows((PREPARE_ROWS, self._inputs.width)),
        )

    def run(self, bar: ProgressBar, stop: StopOnInterrupt) -> TrainedEnsemble:
        """Train until the budget is spent or Ctrl-C, and return the ensemble that did best on held-out simulations."""
        try:
            self._run_blocks(bar, stop)
        except SimulationError as error:
            failure = PartialTrainingError(str(error))
            failure.partial = self._finish("simulator failed") if self._clock.num_done else None
            raise failure from error
        if self._clock.num_done == 0:
            if stop.requested:
                raise KeyboardInterrupt
            raise BudgetTooSmallError(
                f"no training step fitted into the budget: {self._pool.num_rows} data sets per model were simulated in "
                f"{self._clock.elapsed():.1f} s. Pass more seconds, or an executor with more workers."
            )
        return self._finish("interrupted" if stop.requested else "budget")

    def _run_blocks(self, bar: ProgressBar, stop: StopOnInterrupt) -> None:
        # JAX runs what one thread asks for one after another: blocks need a thread of their own to run beside the rest.
        with ThreadPoolExecutor(1, thread_name_prefix="steps") as thread:
            drawn = self._next_block(stop)
            last_end = time.monotonic()
            while drawn is not None:
                begin = time.monotonic()
                running = thread.submit(self._take_steps, drawn)
                # While the block runs, take in what has been simulated and draw the data of the next one.
                following = self._next_block(stop)
                loss = self._last_loss = running.result()
                end = time.monotonic()
                self._clock.done(drawn.num_steps, end - max(begin, last_end))
                last_end = end
                if self._clock.check_due():
                    self._check(loss)
                    last_end = time.monotonic()
                self._show(bar, loss)
                drawn = following

    def _take_steps(self, drawn: DrawnBlock) -> float:
        """Run a block, and return its mean loss per part."""
        self._state, losses = self._block(self._state, *drawn.arrays())
        return float(np.mean(losses)) / self._num_parts

    def _next_block(self, stop: StopOnInterrupt) -> DrawnBlock | None:
        """Return data for the next block, waiting for simulations if need be; None when training is over."""
        if self._clock.by_time:
            self._feed_what_is_ready()
        patience_ends = time.monotonic() + PATIENCE_SECONDS
        while not stop.requested:
            wanted = self._clock.next_steps(self._pool.most_steps_a_block)
            if wanted == 0:
                return None
            num_steps = self._drawable(wanted)
            # A short block costs as much to hand over as a full one: worth it only for slow simulators.
            if num_steps == wanted or (num_steps and time.monotonic() > patience_ends):
                share, steps = self._clock.book(num_steps, self._pool.most_steps_a_block)
                return DrawnBlock(num_steps, self._pool.draw(num_steps), self._schedule.rates(share, steps))
            if self._stream.exhausted:
                self._pool.complete_last_segment()
            else:
                self._wait_for_simulations()
        return None

    def _feed_what_is_ready(self) -> None:
        """Take in finished simulations, for a share of the time, and no more than the next blocks can use."""
        while self._stream.ready() and self._pool.num_new_steps() < 2 * self._pool.most_steps_a_block:
            spent = self._feeding_seconds > FEED_SHARE * self._clock.since_first_step()
            if spent and self._pool.num_passes() < WORN_PASSES:
                return
            begin = time.monotonic()
            self._intake.feed(self._stream.take())
            self._feeding_seconds += time.monotonic() - begin

    def _drawable(self, num_steps: int) -> int:
        """Return how many of these steps can be drawn now: from new simulations, or from old ones where allowed."""
        if not self._pool.ready() or self._intake.held_out.num_rows == 0:
            return 0
        if self._all_simulated() or (self._clock.by_time and self._pool.num_passes() < self._allowed_passes()):
            return num_steps
        return min(num_steps, self._pool.num_new_steps())

    def _allowed_passes(self) -> float:
        """Return how often simulations may be used by now: rarely while they are few, for they are learned by heart."""
        if not self._schedule.reuse:
            return 0.0
        return FEWEST_PASSES + (MOST_PASSES - FEWEST_PASSES) * self._clock.share()

    def _all_simulated(self) -> bool:
        return self._stream.exhausted and not self._pool.has_started_segment

    def _wait_for_simulations(self) -> None:
        try:
            self._intake.feed(self._stream.take(timeout=POLL_SECONDS))
        except TimeoutError:
            # Back to the loop, which looks at the clock and at Ctrl-C.
            return

    def _start_thinning(self) -> None:
        """Choose among simulations from now on, by one member as it is."""
        # A copy: the next block takes the state's memory over.
        judge = partial(self._judge, jnp.copy(self._weights()[:1]), self._settling_batch())

        def score(rows: NDArray[np.float32]) -> NDArray[np.floating]:
            return log_softmax(log_evidence(in_batches(judge, rows, PREPARE_ROWS, axis=1).mean(axis=0)), axis=-1)

        self._intake.choose_by(score)

    def _weights(self) -> jax.Array:
        return self._state.averaged if self._schedule.average else self._state.weights

    def _check(self, loss: float) -> None:
        """Take the held-out loss of the current weights, and keep them if they beat the best so far."""
        begin = time.monotonic()
        current, believed = self._judged(self._weights())
        # Where every step brings fresh simulations, later is better; old weights are worth keeping only against
        # simulations learned by heart.
        keep_best = self._clock.by_time or self._all_simulated()
        best, believed_best = (math.inf, believed) if self._best is None or not keep_best else self._judged(self._best)
        if current <= best:
            self._best = jnp.copy(self._weights())
        self._believed = believed if current <= best else believed_best
        self._held_out_loss = min(current, best)
        self._clock.check_seconds = time.monotonic() - begin
        self._history.append(
            {"seconds": self._clock.elapsed(), "steps": self._clock.num_done, "loss": loss, "held_out_loss": current}
        )
        if self._intake.wants_score and len(self._history) >= CHECKS_BEFORE_THINNING:
            self._start_thinning()

    def _judged(self, weights: jax.Array) -> tuple[float, NDArray[np.float64]]:
        """Return the held-out loss, and how far each part is then believed."""
        parts = self._held_out_parts(weights)
        believed = stacking_weights(parts, preferred=0) if len(parts[0]) > 1 else np.ones(1)
        return self._goal.judge(np.stack([np.tensordot(believed, odds, axes=1) for odds in parts])), believed

    def _held_out_parts(self, weights: jax.Array) -> list[NDArray[np.float32]]:
        """Return the parts' mean log odds at the simulations set aside, for each model (parts, data sets, K - 1)."""
        judge = partial(self._judge, weights, self._settling_batch())
        return [in_batches(judge, rows, PREPARE_ROWS, axis=1) for rows in self._held_out_rows()]

    def _held_out_rows(self) -> list[NDArray[np.float32]]:
        """Return the simulations to judge by, one array per model.

        Where steps are planned, those that must have come with what the steps so far were trained on: what was
        simulated ahead is a matter of the clock, and the same seed must give the same weights of the parts.
        """
        rows = self._intake.held_out.rows()
        if self._clock.by_time:
            return rows
        num_needed = self._pool.num_rows_for(self._clock.num_done)
        num_rows = self._intake.held_out.num_among(max(self._num_pilot, num_needed))
        return [own[:num_rows] for own in rows]

    def _settling_batch(self) -> jax.Array:
        if self._reference is None:
            rows = [model_rows[: self._pool.batch_size] for model_rows in self._intake.held_out.rows()]
            self._reference = jnp.asarray(np.concatenate(rows))
        return self._reference

    def _finish(self, stopped: str) -> TrainedEnsemble:
        if not self._history or self._history[-1]["steps"] != self._clock.num_done:
            self._check(self._last_loss)
        best = self._weights() if self._best is None else self._best
        networks = settle_ensemble(self._form.networks(np.asarray(best)), self._settling_batch())
        if isinstance(networks, Committee):
            networks = networks.believing(spread_weights(self._believed, len(best)))
        answer = compiled(mean_log_odds, networks)
        reference = np.stack([in_batches(answer, rows, PREPARE_ROWS) for rows in self._held_out_rows()])
        typicality = self._intake.typicality(self._inputs)
        record = TrainingRecord(
            num_steps=self._clock.num_done,
            num_simulations=self._intake.num_simulations,
            seconds=self._clock.elapsed(),
            held_out_loss=self._held_out_loss if self._held_out_loss is not None else math.nan,
            stopped=stopped,
            num_earlier_simulations=self._num_earlier,
            history=self._history,
        )
        return TrainedEnsemble(
            self._layout,
            self._standardiser,
            self._preparation,
            networks,
            record,
            reference,
            num_obs_of(self._held_out_rows(), self._inputs, self._layout),
            typicality=typicality,
            any_order=self._any_order,
        )

    def _show(self, bar: ProgressBar, loss: float) -> None:
        bar.show(
            self._clock.share(),
            loss=loss,
            held_out=self._held_out_loss,
            num_simulations=self._intake.num_simulations,
            seconds_left=self._clock.seconds_left(),
        )


@dataclass(frozen=True)
class DrawnBlock:
    """Data and learning rates for the next block; only the first `num_steps` of them count."""

    num_steps: int
    batches: NDArray[np.float32]
    rates: NDArray[np.float32]

    def arrays(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return what the compiled block takes besides the state."""
        return jnp.asarray(self.batches), jnp.asarray(self.rates), jnp.asarray(self.num_steps, jnp.int32)
