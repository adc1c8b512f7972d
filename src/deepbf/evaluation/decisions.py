"""Decisions at conventional thresholds, and on Jeffreys' scale."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepbf._jeffreys import jeffreys_category
from deepbf.evaluation.log_bfs import ByModel
from deepbf.evaluation.tail_areas import binomial_interval

# Bayes factors at which papers draw their lines; at 1, every data set is decided.
CONVENTIONAL_THRESHOLDS = (1.0, 3.0, 10.0, 30.0, 100.0)
DECISIONS = ("right", "misleading", "undecided")
NUM_CATEGORIES = 10


class DecisionRates(NamedTuple):
    """Shares of data sets of a model that are decided rightly, wrongly or not, shape (models, thresholds, 3)."""

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


def category_counts(log_bf: ByModel) -> NDArray[np.int64]:
    """Return how many data sets of each model fall into each of Jeffreys' ten categories, shape (2, 10)."""
    return np.stack([np.bincount(jeffreys_category(part), minlength=NUM_CATEGORIES) for part in log_bf])


def category_confusion(estimated: ByModel, exact: ByModel) -> NDArray[np.int64]:
    """Return counts of data sets by model, exact category and estimated category, shape (2, 10, 10)."""
    table = np.zeros((2, NUM_CATEGORIES, NUM_CATEGORIES), dtype=np.int64)
    for model in range(2):
        np.add.at(table[model], (jeffreys_category(exact[model]), jeffreys_category(estimated[model])), 1)
    return table
