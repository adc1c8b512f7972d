"""The intake: from simulations to rows, some set aside to judge by, the others (all, or a choice) for the pool.

The first simulations, the pilot, show the data's shape, scale and cost before anything is built.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from deepbf._compilation import compiled, in_batches
from deepbf.layout.data_layout import DataLayout
from deepbf.models.model import SimulationError
from deepbf.networks.base import AbstractPreparation, InputLayout, prepare
from deepbf.simulation import CHUNK_SIZE, SimulationStream, Source
from deepbf.support import MOST_FITTED, Typicality
from deepbf.training.console import StopOnInterrupt
from deepbf.training.pool import Pool

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


# One chunk in so many is set aside, the first of them early, until there are enough.
ONE_IN = 8
FIRST = 1
MOST_DATASETS = 8192


class HeldOut:
    """Splits a stream of chunks into rows to train on and rows to judge by, always the same way."""

    def __init__(self, num_models: int) -> None:
        self._kept: list[list[NDArray[np.float32]]] = [[] for _ in range(num_models)]
        self._next_chunk = 0
        self.num_rows = 0

    def split(self, rows: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        """Keep this part's held-out chunks; return the rest, one array per model."""
        num_rows = len(rows[0])
        chunk_of_row = self._next_chunk + np.arange(num_rows) // CHUNK_SIZE
        self._next_chunk += -(-num_rows // CHUNK_SIZE)
        kept = self._is_kept(chunk_of_row)
        if not kept.any():
            return list(rows)
        self.num_rows += int(kept.sum())
        for model_index, model_rows in enumerate(rows):
            self._kept[model_index].append(model_rows[kept])
        return [model_rows[~kept] for model_rows in rows]

    def num_among(self, num_rows: int) -> int:
        """Return how many of the first `num_rows` rows of each model were set aside, whole chunks alone."""
        chunks = np.arange(num_rows // CHUNK_SIZE)
        return int(CHUNK_SIZE * self._is_kept(chunks).sum())

    def _is_kept(self, chunk: NDArray[np.intp]) -> NDArray[np.bool_]:
        return (chunk % ONE_IN == FIRST) & (chunk < ONE_IN * MOST_DATASETS // CHUNK_SIZE)

    def rows(self) -> list[NDArray[np.float32]]:
        """Return what has been set aside, one array per model."""
        return [np.concatenate(parts) for parts in self._kept]


# Simulations kept. A cheap simulator and a glance at each cost a fraction of a training step, so four in five may go.
KEPT_SHARE = 0.2
# Of those, what is drawn evenly whatever a simulation teaches: weights then stay below the inverse of it.
EVEN_SHARE = 0.25
# Where next to nothing is left to learn, fewer are kept than wanted, rather than chance ups and downs blown up.
STEEPEST = 1000.0

Floats = NDArray[np.float32]
# From rows to the log probability of each model, shape (rows, models).
Score = Callable[[Floats], NDArray[np.floating]]


class Thinning:
    """Keeps simulations in proportion to what they can still teach.

    The gradient of the cross-entropy at a data set is the probability of the models that it did not come from. Most
    simulations are told apart with ease and have next to none; a few come from the model that their own values speak
    against, and these say how strong strong evidence is. A simulation is kept with a chance that grows with its
    gradient, by a classifier's first guess, and weighs the inverse of the chance: the loss stays the same on average,
    whatever the guess, and a step learns from several times as many simulations.

    The result does not depend on how the stream was cut into parts.

    Parameters
    ----------
    num_models
        Models that rows come from.
    seed
        Of the choice.
    kept
        Share of the simulations that are kept.
    """

    def __init__(self, num_models: int, seed: int, kept: float = KEPT_SHARE) -> None:
        self._kept = kept
        # One per model: what is drawn for the rows of one does not depend on when those of another arrive.
        self._rngs = [np.random.default_rng((seed, model_index)) for model_index in range(num_models)]
        self._waiting: list[list[Floats]] = [[] for _ in range(num_models)]
        self._score: Score | None = None
        self._slopes: list[float] = []
        # Rows that were chosen among so far, and the sum of their chances, of each model.
        self._num_rows = [0] * num_models
        self._chances = [0.0] * num_models

    @property
    def is_set(self) -> bool:
        """Whether there is a guess to choose by."""
        return self._score is not None

    def set_up(self, score: Score, reference: Sequence[Floats]) -> None:
        """Choose by this guess from now on; `reference` has rows of each model that tell how many would be kept."""
        self._score = score
        for model_index, rows in enumerate(reference):
            gradients = _gradients_of(score(rows), model_index)
            slope = _slope_for(gradients, self._kept)
            self._slopes.append(slope)
            self._num_rows[model_index] = len(rows)
            self._chances[model_index] = float(_chances_of(gradients, slope, self._kept).sum())

    def __call__(self, rows: Sequence[Floats]) -> list[Floats]:
        """Return what is kept of the rows, with weights, the same number from each model; the rest waits."""
        if self._score is None:
            raise RuntimeError("thinning needs a guess to choose by. Call set_up first.")
        log_probs = np.split(self._score(np.concatenate(rows)), np.cumsum([len(one) for one in rows])[:-1])
        for model_index, (model_rows, scores) in enumerate(zip(rows, log_probs, strict=True)):
            chances = _chances_of(_gradients_of(scores, model_index), self._slopes[model_index], self._kept)
            chosen = self._rngs[model_index].random(len(chances)) < chances
            weights = self._mean_chances(chances, model_index) / chances
            self._waiting[model_index].append(_with_weights(model_rows[chosen], weights[chosen]))
        return self._released()

    def _mean_chances(self, chances: NDArray[np.float64], model_index: int) -> NDArray[np.float64]:
        """Return, at each row, the mean chance of all rows of its model until then: what weights are a share of.

        A mean over the few rows set aside would be a percent off, and so would every Bayes factor.
        """
        sums = np.cumsum(np.concatenate([[self._chances[model_index]], chances]))[1:]
        numbers = self._num_rows[model_index] + 1 + np.arange(len(chances))
        if len(chances):
            self._chances[model_index], self._num_rows[model_index] = float(sums[-1]), int(numbers[-1])
        return sums / numbers

    def _released(self) -> list[Floats]:
        ready = [np.concatenate(parts) for parts in self._waiting]
        number = min(len(model_rows) for model_rows in ready)
        self._waiting = [[model_rows[number:]] for model_rows in ready]
        return [model_rows[:number] for model_rows in ready]


def _with_weights(rows: Floats, weights: NDArray[np.floating] | float = 1.0) -> Floats:
    """Return the rows with their weights as a last column."""
    column = np.broadcast_to(np.asarray(weights, np.float32), len(rows))
    return np.concatenate([rows, column[:, None]], axis=1)


def _gradients_of(log_probs: NDArray[np.floating], model_index: int) -> NDArray[np.float64]:
    """Return the probability of all models but the one that rows came from."""
    return -np.expm1(np.minimum(np.asarray(log_probs[:, model_index], np.float64), 0.0))


def _chances_of(gradients: NDArray[np.float64], slope: float, kept: float) -> NDArray[np.float64]:
    """Return the chance of each row to be kept: an even part, and one that grows with the gradient."""
    return np.minimum(1.0, kept * (EVEN_SHARE + slope * gradients))


def _slope_for(gradients: NDArray[np.float64], kept: float) -> float:
    """Return the slope at which the wanted share of rows like these is kept."""

    def too_many(slope: float) -> float:
        return float(_chances_of(gradients, slope, kept).mean()) - kept

    return STEEPEST if too_many(STEEPEST) < 0 else cast("float", brentq(too_many, 0.0, STEEPEST))


# Data sets prepared at a time: fewer would cost twice as much next to a busy simulator.
PREPARE_ROWS = 4096
# Of large data sets fewer, for a batch is filled up to its size, and a task of the simulator brings but a few of them.
PREPARE_VALUES = 128 * PREPARE_ROWS
FEWEST_PREPARED = 256


class Intake:
    """Prepares simulations as they come, and hands each to where it belongs.

    Parameters
    ----------
    preparation
        From standardised data to the rows that networks take.
    data_shape
        Shape of one data set.
    num_models
        Models that simulations come from.
    pool
        Where rows to train on go.
    thinning
        What chooses among them, once there is something to choose by; None to take them all.
    num_steps_unthinned
        Steps that get all rows, before any are chosen among; None if that is a matter of time.
    """

    def __init__(
        self,
        preparation: AbstractPreparation,
        data_shape: tuple[int, ...],
        num_models: int,
        pool: Pool,
        *,
        thinning: Thinning | None = None,
        num_steps_unthinned: int | None = None,
    ) -> None:
        self.held_out = HeldOut(num_models)
        self._prepare = compiled(prepare, preparation)
        self._prepared_at_once = prepared_at_once(data_shape)
        self._num_models = num_models
        self._pool = pool
        self._thinning = thinning
        self._num_steps_unthinned = num_steps_unthinned
        # Rows that came before there was anything to choose by, and are not needed until then.
        self._held_back: list[list[Floats]] = []
        self._first_rows: list[list[Floats]] = [[] for _ in range(num_models)]
        self._num_fed = 0

    def feed(self, standardised: Sequence[NDArray[np.generic]]) -> None:
        """Take in standardised simulations, one array per model, the same number of each."""
        prepared = in_batches(self._prepare, np.concatenate(standardised), self._prepared_at_once)
        rows = self.held_out.split(np.split(prepared, self._num_models))
        if sum(map(len, self._first_rows[0])) < MOST_FITTED:
            for kept, model_rows in zip(self._first_rows, rows, strict=True):
                kept.append(model_rows)
        self._num_fed += len(rows[0])
        if self._thinning is None:
            self._pool.add(rows)
        elif self._thinning.is_set:
            self._pool.add(self._thinning(rows))
        else:
            self._add_unthinned(rows)

    @property
    def wants_score(self) -> bool:
        """Whether simulations are to be chosen among, and there is nothing yet to choose by."""
        return self._thinning is not None and not self._thinning.is_set

    def choose_by(self, score: Score) -> None:
        """Choose among simulations from now on, by this guess, and first among those held back."""
        if self._thinning is None:
            raise RuntimeError("there is no thinning to choose by a score. Pass one to Intake.")
        self._thinning.set_up(score, self.held_out.rows())
        for rows in self._held_back:
            self._pool.add(self._thinning(rows))
        self._held_back.clear()

    @property
    def num_simulations(self) -> int:
        """Data sets taken in so far, of all models."""
        return self._num_models * (self._num_fed + self.held_out.num_rows)

    def typicality(self, layout: InputLayout) -> Typicality | None:
        """Return what tells strange data from usual ones: fitted on the first rows, compared with those set aside."""
        first = [np.concatenate(rows)[:MOST_FITTED] for rows in self._first_rows]
        return Typicality.fit(first, self.held_out.rows(), layout)

    def _add_unthinned(self, rows: Sequence[Floats]) -> None:
        """Take in rows as they are, but where steps are planned no more than until some can be chosen.

        Which rows are chosen among then depends on nothing but their number, and the same seed gives the same weights.
        """
        wanted = self._num_steps_unthinned
        for start in range(0, len(rows[0]), CHUNK_SIZE):
            chunk = [model_rows[start : start + CHUNK_SIZE] for model_rows in rows]
            if wanted is None or self._pool.num_steps_brought() < wanted:
                self._pool.add([_with_weights(model_rows) for model_rows in chunk])
            else:
                self._held_back.append(chunk)


def num_obs_of(
    rows: Sequence[NDArray[np.float32]], inputs: InputLayout, layout: DataLayout
) -> NDArray[np.int32] | None:
    """Return how many observations prepared data sets have, shape (models, data sets), if that varies."""
    if not inputs.knows_size:
        return None
    # The last summary column is the number of observations as a share of the most.
    shares = np.stack([own[:, inputs.num_summary - 1] for own in rows])
    return np.round(shares * layout.sized.sizes[0][1]).astype(np.int32)


def prepared_at_once(data_shape: tuple[int, ...]) -> int:
    """Return how many data sets of this shape are prepared in one batch."""
    return int(np.clip(PREPARE_VALUES // max(1, math.prod(data_shape)), FEWEST_PREPARED, PREPARE_ROWS))
