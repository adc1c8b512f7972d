"""Thinning: of many simulations, train on those that teach most, with weights that undo the choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

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
        # One a model: what is drawn for the rows of one does not depend on when those of another arrive.
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
            gradients = gradients_of(score(rows), model_index)
            slope = slope_for(gradients, self._kept)
            self._slopes.append(slope)
            self._num_rows[model_index] = len(rows)
            self._chances[model_index] = float(chances_of(gradients, slope, self._kept).sum())

    def __call__(self, rows: Sequence[Floats]) -> list[Floats]:
        """Return what is kept of the rows, with weights, the same number from each model; the rest waits."""
        if self._score is None:
            raise RuntimeError("thinning needs a guess to choose by. Call set_up first.")
        log_probs = np.split(self._score(np.concatenate(rows)), np.cumsum([len(one) for one in rows])[:-1])
        for model_index, (model_rows, scores) in enumerate(zip(rows, log_probs, strict=True)):
            chances = chances_of(gradients_of(scores, model_index), self._slopes[model_index], self._kept)
            chosen = self._rngs[model_index].random(len(chances)) < chances
            weights = self._mean_chances(chances, model_index) / chances
            self._waiting[model_index].append(with_weights(model_rows[chosen], weights[chosen]))
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


def with_weights(rows: Floats, weights: NDArray[np.floating] | float = 1.0) -> Floats:
    """Return the rows with their weights as a last column."""
    column = np.broadcast_to(np.asarray(weights, np.float32), len(rows))
    return np.concatenate([rows, column[:, None]], axis=1)


def gradients_of(log_probs: NDArray[np.floating], model_index: int) -> NDArray[np.float64]:
    """Return the probability of all models but the one that rows came from."""
    return -np.expm1(np.minimum(np.asarray(log_probs[:, model_index], np.float64), 0.0))


def chances_of(gradients: NDArray[np.float64], slope: float, kept: float) -> NDArray[np.float64]:
    """Return the chance of each row to be kept: an even part, and one that grows with the gradient."""
    return np.minimum(1.0, kept * (EVEN_SHARE + slope * gradients))


def slope_for(gradients: NDArray[np.float64], kept: float) -> float:
    """Return the slope at which the wanted share of rows like these is kept."""

    def too_many(slope: float) -> float:
        return float(chances_of(gradients, slope, kept).mean()) - kept

    return STEEPEST if too_many(STEEPEST) < 0 else cast("float", brentq(too_many, 0.0, STEEPEST))
