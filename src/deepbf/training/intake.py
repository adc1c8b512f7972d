"""The intake: from simulations to rows, some set aside, the first remembered, the others for the pool."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepbf.networks import AbstractPreparation, InputLayout
from deepbf.networks.ensemble import compile_evaluation, in_batches
from deepbf.simulation import CHUNK_SIZE
from deepbf.training.held_out import HeldOut
from deepbf.training.pool import Pool
from deepbf.training.thinning import Floats, Score, Thinning, with_weights
from deepbf.training.typicality import MOST_FITTED, Typicality

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
        self._prepare = compile_evaluation(preparation)
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
        """Take in standardised simulations, one array a model, the same number of each."""
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
                self._pool.add([with_weights(model_rows) for model_rows in chunk])
            else:
                self._held_back.append(chunk)


def prepared_at_once(data_shape: tuple[int, ...]) -> int:
    """Return how many data sets of this shape are prepared in one batch."""
    return int(np.clip(PREPARE_VALUES // max(1, math.prod(data_shape)), FEWEST_PREPARED, PREPARE_ROWS))
