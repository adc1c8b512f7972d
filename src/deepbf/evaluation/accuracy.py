"""Against the truth: how far estimated log Bayes factors are from the exact ones (Section 5.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from deepbf.evaluation.bootstrap import ModelStatistic, Statistic, by_model, mean_of
from deepbf.evaluation.density import Divergence
from deepbf.evaluation.log_bfs import ByModel, log_losses, merge_rounding, shift
from deepbf.evaluation.ranking import rank_correlation
from deepbf.evaluation.tail_areas import SquaredSurpriseError

METRICS = {
    "mse": "MSE of log BF",
    "clipped_mse": "MSE of log BF, clipped",
    "kl": "KL of densities of log BF",
    "spearman": "Spearman's rho",
    "agreement": "agreement of decisions",
    "excess_loss": "excess loss",
    "posterior_kl": "KL of model probabilities",
    "surprise_mse": "MSE of surprise",
}


def accuracy_statistics(
    estimated: ByModel, exact: ByModel, prior_probs: NDArray[np.float64], clip: float
) -> dict[str, Statistic]:
    """Return every metric that needs the exact log Bayes factors, under each model and weighted by prior probability.

    Means over the data sets of a model: squared error of log BF, as it is and with both sides clipped at +-`clip`;
    whether both sides decide for the same model; cross-entropy of the model posterior minus that of the exact one; the
    same in expectation, which is the Kullback-Leibler divergence from exact to estimated model probabilities. From
    their distributions: Kullback-Leibler divergence from the kernel density of exact to that of estimated log BF, both
    clipped, for densities over a range of millions would show nothing; Spearman's rho. From ranks within the model's
    own simulations: squared error of surprise.
    """
    log_prior_odds = float(np.log(prior_probs[0]) - np.log(prior_probs[1]))
    clipped_pairs = [(np.clip(a, -clip, clip), np.clip(b, -clip, clip)) for a, b in zip(estimated, exact, strict=True)]
    ranked = merge_rounding(estimated)
    statistics = {
        "mse": [mean_of(difference(a, b) ** 2) for a, b in zip(estimated, exact, strict=True)],
        "clipped_mse": [mean_of((a - b) ** 2) for a, b in clipped_pairs],
        "kl": [Divergence(b, a) for a, b in clipped_pairs],
        "spearman": [_spearman(a, b) for a, b in zip(ranked, exact, strict=True)],
        "agreement": [
            mean_of(same_decision(a + log_prior_odds, b + log_prior_odds))
            for a, b in zip(estimated, exact, strict=True)
        ],
        "excess_loss": [mean_of(values) for values in excess_losses(estimated, exact, log_prior_odds)],
        "posterior_kl": [
            mean_of(posterior_divergence(a + log_prior_odds, b + log_prior_odds))
            for a, b in zip(estimated, exact, strict=True)
        ],
        "surprise_mse": [
            SquaredSurpriseError(ranked[0], exact[0], against="low"),
            SquaredSurpriseError(ranked[1], exact[1], against="high"),
        ],
    }
    return {name: by_model(first, second, prior_probs) for name, (first, second) in statistics.items()}


def difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a - b, and 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, a - b)


def same_decision(estimated: NDArray[np.float64], exact: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 where both log odds favour the same model, 0 where not; odds of exactly 1 agree with nothing else."""
    return (np.sign(estimated) == np.sign(exact)).astype(np.float64)


def excess_losses(estimated: ByModel, exact: ByModel, log_prior_odds: float) -> ByModel:
    """Return the loss at each data set minus that of the exact Bayes factor."""
    estimated_losses = log_losses(shift(estimated, log_prior_odds))
    exact_losses = log_losses(shift(exact, log_prior_odds))
    return difference(estimated_losses[0], exact_losses[0]), difference(estimated_losses[1], exact_losses[1])


def posterior_divergence(estimated: NDArray[np.float64], exact: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Kullback-Leibler divergence from exact to estimated model probabilities, given as log odds.

    It is the excess loss in expectation over which model a data set came from, given the data set: never negative, and
    without the noise of that draw, which is most of the noise of the excess loss.
    """
    if_first = difference(np.logaddexp(0.0, -estimated), np.logaddexp(0.0, -exact))
    if_second = difference(np.logaddexp(0.0, estimated), np.logaddexp(0.0, exact))
    expected = np.zeros(np.shape(exact))
    for prob, loss in ((expit(exact), if_first), (expit(-exact), if_second)):
        # What has probability 0 costs nothing, however wrong.
        expected += prob * np.where(prob > 0, loss, 0.0)
    # Rounding may end just below 0.
    return np.maximum(expected, 0.0)


def _spearman(estimated: NDArray[np.float64], exact: NDArray[np.float64]) -> ModelStatistic:
    return lambda weights: rank_correlation(estimated, exact, weights)
