"""The local classifier: a ridge logistic regression among the simulations near the observed data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

# Weight of the likelihood against a unit ridge on standardised features, and how much longer the leading ones are made,
# for they alone nearly tell the models apart. Among the members, which nearly agree, the ridge holds the differences,
# and leaves what they share alone. Measured on Data 1 (i): docs/tailoring.md.
INVERSE_RIDGE = 0.3
LEADING_WEIGHT = 5.0
# How long the other features may be made: cross-validation decides, for of few simulations they learn noise.
OTHER_WEIGHTS = (1.0, 0.1, 0.01)
NUM_FOLDS = 3
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
        tried = _weights_to_try(near[0].shape[1], num_leading)
        whole = _fit(near, _best_weights(near, tried))
        at_observed = _scores(whole, observed[None])[0] - log_screened
        simulated = [_scores(whole, features) - log_screened for features in near]
        log_counts = np.log([len(features) for features in near])
        halves = []
        for _ in range(NUM_HALVES):
            some = [features[rng.permutation(len(features))[: (len(features) + 1) // 2]] for features in near]
            log_halved = np.log([len(features) for features in some])
            # With every feature at full length: what was left out for want of simulations is uncertain all the same.
            halves.append(_scores(_fit(some, tried[0]), observed[None])[0] - log_halved + log_counts - log_screened)
    return LocalOdds(at_observed, np.stack(halves), simulated)


def _weights_to_try(num_features: int, num_leading: int) -> list[NDArray[np.float64]]:
    is_leading = np.arange(num_features) < num_leading
    return [np.where(is_leading, LEADING_WEIGHT, other) for other in OTHER_WEIGHTS]


def _best_weights(near: Sequence[NDArray[np.float64]], tried: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the weights of the features under which simulations left out are told apart best."""
    folds = StratifiedKFold(NUM_FOLDS)
    features, labels = _stacked(near)
    scores = [
        cross_val_score(_classifier(weights), features, labels, scoring="neg_log_loss", cv=folds).mean()
        for weights in tried
    ]
    return tried[int(np.argmax(scores))]


def _fit(near: Sequence[NDArray[np.float64]], weights: NDArray[np.float64]) -> Pipeline:
    return _classifier(weights).fit(*_stacked(near))


def _classifier(weights: NDArray[np.float64]) -> Pipeline:
    return make_pipeline(
        StandardScaler(),
        FunctionTransformer(partial(_weighed, weights=weights)),
        LogisticRegression(C=INVERSE_RIDGE, max_iter=MAX_ITERATIONS),
    )


def _weighed(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return values * weights


def _stacked(near: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    return np.concatenate(near), np.repeat(np.arange(len(near)), [len(of_model) for of_model in near])


def _scores(fitted: Pipeline, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log odds as one column a model, up to a constant a row."""
    decision = np.asarray(fitted.decision_function(features), np.float64)
    return np.stack([np.zeros(len(decision)), decision], axis=1) if decision.ndim == 1 else decision
