"""The trainer: simulation ahead in the background, blocks of steps in front, a held-out judge, a budget."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from deepbf._mixed import MixedForm
from deepbf._numerics import log_evidence
from deepbf.models import ModelSet, SimulationError
from deepbf.networks import Structure
from deepbf.networks.ensemble import ensemble_log_odds, in_batches, init_ensemble, settle_ensemble
from deepbf.simulation import CHUNK_SIZE, NumObsRange, SimulationStream
from deepbf.standardise import Standardiser
from deepbf.training.budget import MOST_PASSES, Budget, fitting_batch_size
from deepbf.training.clock import Clock
from deepbf.training.goal import Goal
from deepbf.training.intake import PREPARE_ROWS, Intake, prepared_at_once
from deepbf.training.interrupt import StopOnInterrupt
from deepbf.training.muon import muon_of
from deepbf.training.optimise import FlatNetworks, init_state, make_block
from deepbf.training.order import comes_in_any_order
from deepbf.training.pilot import POLL_SECONDS, Pilot, run_pilot
from deepbf.training.pool import FRESH_BYTES, POOL_BYTES, Pool
from deepbf.training.progress import ProgressBar
from deepbf.training.schedule import Schedule
from deepbf.training.structured import Array, arrays_of, check_arrays, find_form, fit_standardiser, sizes_of
from deepbf.training.thinning import Thinning
from deepbf.training.trained import PartialTrainingError, TrainedEnsemble, TrainingRecord, size_part

# Long enough to drown the cost of handing a task over, short enough to fill the pool smoothly.
TASK_SECONDS = 0.05
# Simulations waiting to be read. Where steps wait for fresh ones, enough to go on simulating through compilation.
AHEAD_BYTES = 64_000_000
AHEAD_BYTES_ALL_FRESH = 256_000_000
MOST_TASKS_AHEAD = 128
PATIENCE_SECONDS = 1.0
# Time for taking in simulations, as a share of a block's: more would leave too few steps to learn from them.
FEED_SHARE = 1.0
# Of the most passes over simulations, those that are allowed at the start.
FEWEST_PASSES = 6
# Held-out losses taken before the network is trusted to choose among simulations.
CHECKS_BEFORE_THINNING = 2


def train(
    model_set: ModelSet,
    *,
    structure: Structure,
    network: str,
    goal: Goal,
    schedule: Schedule,
    budget: Budget,
    num_members: int,
    num_obs: NumObsRange | None,
    executor: Executor | None,
    seed: int,
    progress: bool,
    started: float,
) -> TrainedEnsemble:
    """Return an ensemble trained on simulations of the models, within the budget counted from `started`."""
    simulation_seed, init_seed, draw_seed = (
        int(child.generate_state(1, np.uint64)[0]) for child in np.random.SeedSequence(seed).spawn(3)
    )
    num_each = None if budget.num_simulations is None else budget.num_simulations // len(model_set)
    with StopOnInterrupt() as stop, ProgressBar(progress) as bar:
        form = find_form(model_set, structure, num_obs, simulation_seed)
        pilot = run_pilot(
            model_set, simulation_seed, executor=executor, num_datasets=num_each, num_obs=num_obs, form=form,
            seconds=budget.seconds, stop=stop,
        )  # fmt: skip
        arrays = arrays_of(structure, form, pilot.data)
        check_arrays(arrays, network)
        standardiser = fit_standardiser(arrays, form)
        with SimulationStream(
            model_set.models,
            simulation_seed,
            first_chunk=pilot.num_chunks,
            num_datasets=num_each,
            shapes=[pilot.data_shape] * len(model_set),
            num_obs=num_obs,
            form=form,
            hyperparameters=model_set.hyperparameters,
            transform=standardiser,
            executor=executor,
        ) as stream:
            seconds_a_chunk = pilot.seconds / pilot.num_chunks
            most = max(1, prepared_at_once(pilot.data_shape) // (CHUNK_SIZE * len(model_set)))
            stream.chunks_per_task = int(np.clip(TASK_SECONDS / seconds_a_chunk, 1, most))
            task_bytes = stream.chunks_per_task * CHUNK_SIZE * sum(data[:1].size * 4 for data in pilot.data)
            ahead_bytes = AHEAD_BYTES_ALL_FRESH if budget.all_fresh else AHEAD_BYTES
            stream.num_ahead = max(stream.num_ahead, min(ahead_bytes // task_bytes, MOST_TASKS_AHEAD))
            stream.run_ahead()
            trainer = Trainer(
                pilot, arrays, standardiser, form, goal, stream, schedule, budget, started, num_members=num_members,
                init_key=jax.random.key(init_seed % 2**31), draw_rng=np.random.default_rng(draw_seed),
            )  # fmt: skip
            known = {"form": form, "num_obs_asked": num_obs is not None, "hyperparameters": model_set.hyperparameters}
            try:
                return replace(trainer.run(bar, stop), **known)
            except PartialTrainingError as error:
                if error.partial is not None:
                    error.partial = replace(error.partial, **known)
                raise


class Trainer:
    """One run of training: feeds the pool, runs blocks, judges by held-out simulations, keeps the best."""

    def __init__(
        self,
        pilot: Pilot,
        arrays: Sequence[Array],
        standardiser: Standardiser,
        form: MixedForm | None,
        goal: Goal,
        stream: SimulationStream,
        schedule: Schedule,
        budget: Budget,
        started: float,
        *,
        num_members: int,
        init_key: jax.Array,
        draw_rng: np.random.Generator,
    ) -> None:
        num_models = len(pilot.data)
        standardised = [standardiser(data) for data in pilot.data]
        self._data_shape = pilot.data_shape
        self._standardiser = standardiser
        self._stream = stream
        kind = goal.kind_of(form, pilot.data_shape)
        self._schedule = schedule.for_network(kind.peak_rate)
        self._preparation = kind.fit_preparation(standardised)
        layout = self._layout = self._preparation.layout(pilot.data_shape)
        self._any_order = len(arrays) == 1 and arrays[0].structure == "exchangeable" and comes_in_any_order(pilot.data)
        self._sizes = {array.name: sizes_of(array) for array in arrays}
        # Of mixed data, the number of observations is that of one of the parts.
        sized = arrays[size_part(self._preparation)]
        self._num_obs = self._sizes[sized.name][0] if layout.knows_size else None
        self._size_column = layout.num_summary - 1
        batch_size = fitting_batch_size(
            schedule.batch_size, budget.expected_datasets(num_models, pilot.num_datasets / pilot.seconds)
        )
        # Where every step takes fresh simulations, none is kept for long: memory never touched is time saved.
        capacity = FRESH_BYTES if budget.all_fresh else POOL_BYTES
        thinning = Thinning(num_models, int(draw_rng.integers(2**31))) if schedule.thin else None
        # Thinned rows carry their weights.
        width = layout.width + (0 if thinning is None else 1)
        self._pool = Pool(
            num_models, width, batch_size, num_members, draw_rng, capacity_bytes=capacity,
            most_added=max(len(pilot.data[0]), PREPARE_ROWS // num_models),
        )  # fmt: skip
        self._networks = FlatNetworks(init_ensemble(kind, layout, num_models, num_members, init_key))
        optimiser = muon_of(self._networks) if schedule.orthogonal else goal.optimiser_of(self._networks)
        self._state = init_state(self._networks, optimiser)
        self._block = make_block(self._networks, goal.objective, optimiser)
        self._goal = goal
        planned = budget.planned_steps(num_models, batch_size)
        self._clock = Clock(seconds=budget.seconds, planned_steps=planned, started=started)
        self._intake = Intake(
            self._preparation, pilot.data_shape, num_models, self._pool, thinning=thinning,
            num_steps_unthinned=self._clock.steps_until_check(CHECKS_BEFORE_THINNING + 1),
        )  # fmt: skip
        self._judge = jax.jit(partial(held_out_log_odds, self._networks))
        self._reference: jax.Array | None = None
        self._best: jax.Array | None = None
        self._held_out_loss: float | None = None
        self._last_loss = 0.0
        self._history: list[dict[str, float]] = []
        self._intake.feed(standardised)

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
            raise RuntimeError(
                f"no training step fitted into the budget: {self._pool.num_rows} data sets a model were simulated in "
                f"{self._clock.elapsed():.1f} s. Pass more seconds, or an executor with more workers."
            )
        return self._finish("interrupted" if stop.requested else "budget")

    def _run_blocks(self, bar: ProgressBar, stop: StopOnInterrupt) -> None:
        drawn = self._next_block(stop)
        last_end = time.monotonic()
        while drawn is not None:
            begin = time.monotonic()
            self._state, losses = self._block(self._state, *drawn.arrays())
            # While the block runs, take in what has been simulated and draw the data of the next one.
            following = self._next_block(stop)
            loss = self._last_loss = float(np.mean(losses))
            end = time.monotonic()
            self._clock.done(drawn.num_steps, end - max(begin, last_end))
            last_end = end
            if self._clock.check_due():
                self._check(loss)
                last_end = time.monotonic()
            self._show(bar, loss)
            drawn = following

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
        """Take in finished simulations, for less time than a block runs, and no more than its successors can use."""
        end = time.monotonic() + FEED_SHARE * self._clock.block_seconds
        while self._stream.ready() and self._pool.num_new_steps() < 2 * self._pool.most_steps_a_block:
            self._intake.feed(self._stream.take())
            if time.monotonic() > end:
                return

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
            return log_softmax(log_evidence(in_batches(judge, rows, PREPARE_ROWS)), axis=-1)

        self._intake.choose_by(score)

    def _weights(self) -> jax.Array:
        return self._state.averaged if self._schedule.average else self._state.weights

    def _check(self, loss: float) -> None:
        """Take the held-out loss of the current weights, and keep them if they beat the best so far."""
        begin = time.monotonic()
        current = self._loss_of(self._weights())
        # Where every step brings fresh simulations, later is better; old weights are worth keeping only against
        # simulations learned by heart.
        keep_best = self._clock.by_time or self._all_simulated()
        best = self._loss_of(self._best) if keep_best and self._best is not None else math.inf
        if current <= best:
            self._best = jnp.copy(self._weights())
        self._held_out_loss = min(current, best)
        self._clock.reserve = 1.5 * (time.monotonic() - begin)
        self._history.append(
            {"seconds": self._clock.elapsed(), "steps": self._clock.num_done, "loss": loss, "held_out_loss": current}
        )
        if self._intake.wants_score and len(self._history) >= CHECKS_BEFORE_THINNING:
            self._start_thinning()

    def _loss_of(self, weights: jax.Array) -> float:
        return self._goal.judge(self._held_out_log_odds(weights))

    def _held_out_log_odds(self, weights: jax.Array) -> NDArray[np.float32]:
        """Return the ensemble's mean log odds at the simulations set aside, shape (models, data sets, K - 1)."""
        judge = partial(self._judge, weights, self._settling_batch())
        return np.stack([in_batches(judge, rows, PREPARE_ROWS) for rows in self._intake.held_out.rows()])

    def _held_out_num_obs(self) -> NDArray[np.int32] | None:
        """Return how many observations the simulations set aside have, if that varies."""
        if self._num_obs is None:
            return None
        shares = np.stack([rows[:, self._size_column] for rows in self._intake.held_out.rows()])
        return np.round(shares * self._num_obs[1]).astype(np.int32)

    def _settling_batch(self) -> jax.Array:
        if self._reference is None:
            rows = [model_rows[: self._pool.batch_size] for model_rows in self._intake.held_out.rows()]
            self._reference = jnp.asarray(np.concatenate(rows))
        return self._reference

    def _finish(self, stopped: str) -> TrainedEnsemble:
        if not self._history or self._history[-1]["steps"] != self._clock.num_done:
            self._check(self._last_loss)
        best = self._weights() if self._best is None else self._best
        networks = settle_ensemble(self._networks.ensemble(best), self._settling_batch())
        record = TrainingRecord(
            num_steps=self._clock.num_done,
            num_simulations=self._intake.num_simulations,
            seconds=self._clock.elapsed(),
            held_out_loss=self._held_out_loss if self._held_out_loss is not None else math.nan,
            stopped=stopped,
            history=self._history,
        )
        return TrainedEnsemble(
            self._standardiser,
            self._preparation,
            networks,
            self._data_shape,
            record,
            self._held_out_log_odds(best),
            self._held_out_num_obs(),
            self._num_obs,
            sizes=self._sizes,
            typicality=self._intake.typicality(self._layout),
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


def held_out_log_odds(networks: FlatNetworks, weights: jax.Array, reference: jax.Array, inputs: jax.Array) -> jax.Array:
    """Return the ensemble's mean log odds, shape (batch, K - 1)."""
    return ensemble_log_odds(settle_ensemble(networks.ensemble(weights), reference), inputs).mean(axis=0)
