"""Z-values: whether a classifier can tell the observed data from a model's predictions (Section 4).

For each replication, a classifier is trained on the observed data, label 1, against a predictive data set of the same
size, label 0; Z is the mean of its probabilities at another, fresh predictive data set. If the two cannot be told
apart, Z lies about 1/2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from deepbf import _checks
from deepbf.criticism.predictive_source import PredictiveSource, check_observed, check_source, draw_predictive
from deepbf.criticism.quadratic_logistic import MOST_FEATURES, fit_quadratics, num_features
from deepbf.criticism.trained_classifier import ClassifierFit, check_classifier
from deepbf.criticism.z_result import ZValues

Floats = NDArray[np.float64]
DRAWS = ("independent", "joint")


def z_values(
    sampler: PredictiveSource,
    observed: ArrayLike,
    *,
    num_replicates: int = 3000,
    classifier: Any = None,
    refit: bool = True,
    draws: str = "independent",
    seed: int = 0,
) -> ZValues:
    """Return draws of Z for one observed data set of independent observations.

    A check of single observations: neither their order nor their dependence enters. It is a careful one, for the
    posterior has seen the observed data, and a quadratic sees means, variances and correlations alone: a model that Z
    does not speak against may still fail a check aimed at something else (`predictive_check`).

    Parameters
    ----------
    sampler
        A posterior sampler of the model in question.
    observed
        One data set: numbers, or rows of several numbers, one an observation.
    num_replicates
        Draws of Z.
    classifier
        None for the paper's logistic regression on a quadratic, fitted to all replications at once, 3,000 in a second
        or two at n = 128. Or any scikit-learn classifier with `predict_proba`, which sees the observations as rows;
        trained once a replication, it takes as long as that takes.
    refit
        Whether to train anew for every replication. Trained once, a classifier stays cheap, but what it happened to
        learn from one predictive draw shifts every Z alike: a random forest, trained once, excluded 1/2 for 12 of 100
        data sets simulated from the model itself (Data 1 (i), n = 128), trained anew for none.
    draws
        "independent": every observation of a predictive data set comes from its own posterior draw, so that they are
        independent draws of the posterior predictive, as the paper has it. "joint": a data set shares one posterior
        draw, so that what the posterior leaves open widens Z too.
    seed
        The same seed gives the same draws.

    Examples
    --------
    >>> from deepbf.criticism import ExactPosterior
    >>> from deepbf.example import counts_example
    >>> negbin, poisson = counts_example().models
    >>> counts = negbin.simulate(1, seed=11).data[0]
    >>> def draw_rate(rng, counts, num_draws, left_out):
    ...     return rng.gamma(4 + counts.sum(), 1 / (4 + len(counts)), (1, num_draws))
    >>> print(z_values(ExactPosterior(poisson, draw_rate), counts, num_replicates=500).verdict)
    predictions of Poisson are told from the observed data: it does not fit them
    >>> def draw_prob(rng, counts, num_draws, left_out):
    ...     return rng.beta(2 + len(counts), 2 + counts.sum(), (1, num_draws))
    >>> z_values(ExactPosterior(negbin, draw_prob), counts, num_replicates=500).covers_half
    True
    """
    sampler = check_source(sampler)
    num_replicates = _checks.check_count("num_replicates", num_replicates)
    draws = _checks.check_choice("draws", draws, DRAWS)
    seed = _checks.check_seed("seed", seed)
    if classifier is not None:
        check_classifier(classifier)
    values = check_observed(
        sampler.model, observed, least=2, why="a classifier needs at least 2 to learn from; use predictive_check."
    )
    rows = values.reshape(len(values), -1)
    if classifier is None and num_features(rows.shape[1]) > MOST_FEATURES:
        raise ValueError(
            f"observed has {rows.shape[1]} numbers an observation, which have {num_features(rows.shape[1])} values, "
            f"squares and products; the quadratic takes up to {MOST_FEATURES}. Pass classifier=, such as "
            "sklearn.ensemble.RandomForestClassifier()."
        )
    num_training = num_replicates if refit else 1
    predicted = draw_predictive(sampler, values, num_training + num_replicates, seed)
    predicted = predicted.reshape(len(predicted), *rows.shape)
    # The sampler may use the seed itself, so what is drawn here starts elsewhere.
    rng = np.random.default_rng([seed, 1])
    if draws == "independent":
        predicted = _shuffled_over_draws(rng, predicted)
    fit = _fit_quadratic if classifier is None else ClassifierFit(classifier, rng)
    z, num_unconverged = _z(fit, rows, predicted[:num_training], predicted[num_training:])
    return ZValues(
        z=z,
        model=sampler.model.name,
        num_obs=len(values),
        classifier="logistic regression on a quadratic" if classifier is None else type(classifier).__name__,
        refit=refit,
        num_unconverged=num_unconverged,
    )


def _z(fit: Any, observed: Floats, training: Floats, fresh: Floats) -> tuple[Floats, int]:
    """Return Z of each fresh data set, by its own classifier or, given one training data set, by the same."""
    num_replicates, num_obs, num_columns = fresh.shape
    # One classifier sees all fresh data sets as one long one.
    at = fresh if len(training) == num_replicates else fresh.reshape(1, num_replicates * num_obs, num_columns)
    probs, num_unconverged = fit(observed, training, at)
    return probs.reshape(num_replicates, num_obs).mean(axis=1), num_unconverged


def _fit_quadratic(observed: Floats, training: Floats, fresh: Floats) -> tuple[Floats, int]:
    found = fit_quadratics(observed, training, fresh)
    return expit(found.values), int((~found.converged).sum())


def _shuffled_over_draws(rng: np.random.Generator, predicted: Floats) -> Floats:
    """Return data sets whose observations come from different posterior draws, each draw's values used once.

    The k-th observation is permuted over the draws, for each k apart: two observations of a data set then share a draw
    as often as one in the number of draws, and are independent otherwise.
    """
    shuffled = np.empty_like(predicted)
    for k in range(predicted.shape[1]):
        shuffled[:, k] = predicted[rng.permutation(len(predicted)), k]
    return shuffled
