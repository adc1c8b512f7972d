"""The local classifier: a ridge logistic regression among the simulations near the observed data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

# Weight of the likelihood against a unit ridge on standardised features, and how much longer the leading ones are made,
# for they alone nearly tell the models apart. Among the members, which nearly agree, the ridge holds the differences,
# and leaves what they share alone. Measured on Data 1 (i): docs/tailoring.md.
INVERSE_RIDGE = 0.3
LEADING_WEIGHT = 5.0
MAX_ITERATIONS = 1000
# Fits on random halves, for the error.
NUM_HALVES = 16


class LocalOdds(NamedTuple):
    """Log evidences of the models at the observed data.

    `log_evidence` has shape (models,), up to a constant. `halves`, of shape (halves, models), has those of fits on
    random halves, each with the acceptance rates of all: their spread is the classifier's error alone. `simulated` has
    the evidences at each model's own simulations, shape (simulations, models).
    """

    log_evidence: NDArray[np.float64]
    halves: NDArray[np.float64]
    simulated: list[NDArray[np.float64]]


def local_odds(
    near: Sequence[NDArray[np.float64]],
    num_screened: Sequence[int],
    observed: NDArray[np.float64],
    num_leading: int,
    rng: np.random.Generator,
) -> LocalOdds:
    """Return the models' log evidences, from the features of the simulations of each that came near.

    The first `num_leading` features are trusted most.

    Given acceptance, the classifier's log odds hold the counts as prior odds. Taking those out and multiplying by the
    acceptance rates leaves the number screened alone::

        log odds - log(a_1 / a_2) + log(a_1 / n_1) - log(a_2 / n_2) = log odds - log(n_1 / n_2)
    """
    log_screened = np.log(np.asarray(num_screened, np.float64))
    # The matrices are small: on busy cores, threads that wait for each other cost far more than they save.
    with threadpool_limits(1):
        whole = _fit(near, num_leading)
        at_observed = _scores(whole, observed[None])[0] - log_screened
        simulated = [_scores(whole, features) - log_screened for features in near]
        log_counts = np.log([len(features) for features in near])
        halves = []
        for _ in range(NUM_HALVES):
            some = [features[rng.permutation(len(features))[: (len(features) + 1) // 2]] for features in near]
            log_halved = np.log([len(features) for features in some])
            halves.append(_scores(_fit(some, num_leading), observed[None])[0] - log_halved + log_counts - log_screened)
    return LocalOdds(at_observed, np.stack(halves), simulated)


def _fit(near: Sequence[NDArray[np.float64]], num_leading: int) -> Pipeline:
    features = np.concatenate(near)
    labels = np.repeat(np.arange(len(near)), [len(of_model) for of_model in near])
    classifier = LogisticRegression(C=INVERSE_RIDGE, max_iter=MAX_ITERATIONS)
    weights = np.where(np.arange(features.shape[1]) < num_leading, LEADING_WEIGHT, 1.0)
    weigh = FunctionTransformer(lambda values: values * weights)
    return make_pipeline(StandardScaler(), weigh, classifier).fit(features, labels)


def _scores(fitted: Pipeline, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log odds as one column a model, up to a constant a row."""
    decision = np.asarray(fitted.decision_function(features), np.float64)
    return np.stack([np.zeros(len(decision)), decision], axis=1) if decision.ndim == 1 else decision
