"""Decisions: at conventional thresholds, at the one that errs equally both ways, and at all (the area under ROC)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepbf.evaluation.bootstrap import Ranking, Statistic, Weights
from deepbf.evaluation.log_bf_arrays import ByModel
from deepbf.evaluation.tail_areas import binomial_interval

# Bayes factors at which papers draw their lines; at 1, every data set is decided.
CONVENTIONAL_THRESHOLDS = (1.0, 3.0, 10.0, 30.0, 100.0)
DECISIONS = ("right", "misleading", "undecided")


class DecisionRates(NamedTuple):
    """Shares of the data sets of each model that are decided rightly, wrongly or not, shape (models, thresholds, 3).

    `low` and `high` are the ends of the 95% interval of Clopper and Pearson.
    """

    rate: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def decision_rates(log_bf: ByModel, thresholds: tuple[float, ...] = CONVENTIONAL_THRESHOLDS) -> DecisionRates:
    """Return how often a Bayes factor beyond a threshold, or one over it, speaks for the right model.

    A Bayes factor above c decides for the first model, one below 1 / c for the second, and the rest are undecided.
    """
    log_thresholds = np.log(thresholds)
    # Turned so that a positive log Bayes factor speaks for the model which made the data.
    for_the_right = (log_bf[0], -log_bf[1])
    counts = np.array(
        [
            [[np.sum(part > cut), np.sum(part < -cut), np.sum(np.abs(part) <= cut)] for cut in log_thresholds]
            for part in for_the_right
        ]
    )
    totals = np.array([len(part) for part in log_bf])[:, None, None]
    return DecisionRates(counts / totals, *binomial_interval(counts, np.broadcast_to(totals, counts.shape)))


def area_under_roc(log_bf: ByModel) -> Statistic:
    """Return the area under the ROC curve as a statistic of one number.

    It is P(BF at data of the first model > BF at data of the second), where ties count half.
    """
    ranking = Ranking(log_bf[1])

    def statistic(weights: Weights) -> NDArray[np.float64]:
        share_beaten = ranking.share_mid(weights[1], log_bf[0])
        return ((weights[0] * share_beaten).sum(axis=1) / weights[0].sum(axis=1))[:, None]

    return statistic


class BalancedThreshold:
    """The threshold c with P(BF <= c | M1) = P(BF >= c | M2) (Garcia-Donato and Chen, 2005), under any weights.

    Called, it gives the log threshold and the mean of the two error rates there, which with finitely many data sets
    differ by a step.
    """

    def __init__(self, log_bf: ByModel) -> None:
        self._rankings = tuple(Ranking(part) for part in log_bf)
        values = np.unique(np.concatenate(log_bf))
        self._below, self._above = self._neighbours(values)

    @staticmethod
    def _neighbours(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the values on either side of each cut between them; the outermost cuts have one neighbour."""
        return np.concatenate([[-np.inf], values]), np.concatenate([values, [np.inf]])

    def __call__(self, weights: Weights) -> NDArray[np.float64]:
        """Return log threshold and error rate, shape (replicates, 2)."""
        # No value lies on a cut, so "at most the lower neighbour" and "at least the upper" share out all data sets.
        missed = self._rankings[0].share_at_most(weights[0], self._below)
        false = 1 - self._rankings[1].share_at_most(weights[1], self._below)
        excess = missed - false
        # The excess grows from -1 to 1 along the cuts: the equal ones are those between "below 0" and "above 0".
        nearest = np.abs(excess).min(axis=1, keepdims=True)
        balanced = np.abs(excess) <= nearest + 1e-12
        rows = np.arange(len(excess))
        first, last = balanced.argmax(axis=1), balanced.shape[1] - 1 - balanced[:, ::-1].argmax(axis=1)
        finite = np.concatenate([self._below, self._above])
        finite = finite[np.isfinite(finite)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
        threshold = 0.5 * (np.clip(self._below[first], low, high) + np.clip(self._above[last], low, high))
        return np.stack([threshold, 0.5 * (missed[rows, first] + false[rows, first])], axis=-1)
