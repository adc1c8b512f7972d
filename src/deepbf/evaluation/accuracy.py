"""Against the truth: how far estimated log Bayes factors are from the exact ones, and which estimator is nearer.

The metrics are those of Section 5.1 of *Deep Bayes Factors* (Kim and Rockova), and a few more.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from deepbf import _checks
from deepbf.evaluation.bootstrap import (
    Ranking,
    Statistic,
    Weights,
    by_model,
    mean_of,
    merge_rounding,
    rank_correlation,
    with_errors,
)
from deepbf.evaluation.decisions import area_under_roc
from deepbf.evaluation.density import Divergence
from deepbf.evaluation.log_bf_arrays import (
    ByModel,
    answered_by,
    check_estimates,
    check_exact,
    log_losses,
    posterior_log_odds,
)

# Beyond a Bayes factor of a million to one, no decision depends on the number (the range of the paper's figures).
DEFAULT_CLIP = float(np.log(1e6))

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
HIGHER_IS_BETTER = ("spearman", "agreement", "auc")
# Closer than this many standard errors of the difference counts as a tie.
CLEAR = 2.0


def accuracy_statistics(
    estimated: ByModel, exact: ByModel, prior_probs: NDArray[np.float64], clip: float
) -> dict[str, Statistic]:
    """Return every metric that needs the exact log Bayes factors, under each model and weighted by prior probability.

    Means over the data sets of a model: `mse`, the squared error of log BF; `clipped_mse`, the same with both sides
    clipped at +-`clip`; `agreement`, whether both sides decide for the same model; `excess_loss`, the cross-entropy of
    the model posterior minus that of the exact one; `posterior_kl`, its expectation, which is the Kullback-Leibler
    divergence from exact to estimated model probabilities. From the distributions of log BF: `kl`, the Kullback-Leibler
    divergence from the kernel density of the exact to that of the estimated ones, both clipped, for densities over a
    range of millions would show nothing; `spearman`, Spearman's rho. From ranks within the model's own simulations:
    `surprise_mse`, the squared error of surprise.
    """
    pairs = list(zip(estimated, exact, strict=True))
    log_odds = posterior_log_odds(estimated, prior_probs), posterior_log_odds(exact, prior_probs)
    losses = log_losses(log_odds[0]), log_losses(log_odds[1])
    clipped_pairs = [(np.clip(a, -clip, clip), np.clip(b, -clip, clip)) for a, b in pairs]
    ranked, exact_ranked = merge_rounding(estimated), merge_rounding(exact)
    statistics = {
        "mse": [mean_of(_difference(a, b) ** 2) for a, b in pairs],
        "clipped_mse": [mean_of((a - b) ** 2) for a, b in clipped_pairs],
        "kl": [Divergence(b, a) for a, b in clipped_pairs],
        "spearman": [rank_correlation(a, b) for a, b in zip(ranked, exact_ranked, strict=True)],
        # Odds of exactly 1 agree with nothing else.
        "agreement": [mean_of((np.sign(a) == np.sign(b)).astype(np.float64)) for a, b in zip(*log_odds, strict=True)],
        "excess_loss": [mean_of(_difference(a, b)) for a, b in zip(*losses, strict=True)],
        "posterior_kl": [mean_of(posterior_divergence(a, b)) for a, b in zip(*log_odds, strict=True)],
        "surprise_mse": [
            SquaredSurpriseError(ranked[0], exact_ranked[0], against="low"),
            SquaredSurpriseError(ranked[1], exact_ranked[1], against="high"),
        ],
    }
    return {name: by_model(first, second, prior_probs) for name, (first, second) in statistics.items()}


def posterior_divergence(estimated: NDArray[np.float64], exact: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Kullback-Leibler divergence from exact to estimated model probabilities, given as log odds.

    It is the excess loss in expectation over which model a data set came from, given the data set: never negative, and
    without the noise of that draw, which is most of the noise of the excess loss. The shape is that of the log odds.

    Examples
    --------
    From probabilities 3/4 and 1/4 to 1/2 and 1/2 it is 3/4 log(3/2) + 1/4 log(1/2):

    >>> posterior_divergence(np.array([0.0]), np.array([np.log(3)])).round(4)
    array([0.1308])
    """
    if_first = _difference(np.logaddexp(0.0, -estimated), np.logaddexp(0.0, -exact))
    if_second = _difference(np.logaddexp(0.0, estimated), np.logaddexp(0.0, exact))
    expected = np.zeros(np.shape(exact))
    for prob, loss in ((expit(exact), if_first), (expit(-exact), if_second)):
        # What has probability 0 costs nothing, however wrong.
        expected += prob * np.where(prob > 0, loss, 0.0)
    # Rounding may end just below 0.
    return np.maximum(expected, 0.0)


def _difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a - b, and 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, a - b)


class SquaredSurpriseError:
    """Mean squared error of surprise under a model: of P(BF <= b), or P(BF >= b), among the model's own simulations.

    Discrete data give many data sets the same exact Bayes factor b, and at such an atom the tail area jumps, from
    P(BF < b) to P(BF <= b). An estimator that is off by however little, but not by the same amount at each data set of
    the atom, tells these data sets apart, in an order that means nothing, and their estimated tail areas are spread
    over the whole jump. That is not an error in the Bayes factor: at two observations of Data 1 (i), noise of 0.001 in
    log BF would cost 0.011, two thirds of what noise of 0.1 costs. So each estimated tail area is compared with all
    that the exact Bayes factors allow if ties are broken in any order, from P(BF < b) plus the data set's own share to
    P(BF <= b) (the values of a fuzzy p-value; Geyer and Meeden, 2005), and the error is its distance from these: noise
    of 0.001 then costs nothing. Where no two exact Bayes factors are equal it is the plain difference. Mid-p values on
    both sides would leave a quarter of the cost.

    Ties among the estimated Bayes factors are not so excused: an estimator that ties what differs is wrong there.
    """

    def __init__(
        self, estimated: NDArray[np.float64], exact: NDArray[np.float64], *, against: Literal["low", "high"]
    ) -> None:
        # Under the first model low Bayes factors surprise, under the second high ones: turned round, the same tail.
        sign = 1.0 if against == "low" else -1.0
        self._estimated, self._exact = sign * estimated, sign * exact
        self._estimated_ranking, self._exact_ranking = Ranking(self._estimated), Ranking(self._exact)

    def __call__(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean squared error, one number per replicate."""
        total = weights.sum(axis=1, keepdims=True)
        estimated = self._estimated_ranking.share_at_most(weights, self._estimated)
        highest = self._exact_ranking.share_at_most(weights, self._exact)
        lowest = self._exact_ranking.share_below(weights, self._exact) + weights / total
        # Of a single data set the two are the same number, up to the order of a sum.
        error = estimated - np.minimum(np.maximum(estimated, lowest), highest)
        return (weights * error**2).sum(axis=1) / total[:, 0]


class Comparison(StrEnum):
    """Whether the first of two estimators is better by a metric than the second; each value prints as its word."""

    BETTER = "better"
    TIE = "tie"
    WORSE = "worse"


class Difference(NamedTuple):
    """A metric of the first estimator minus that of the second, over both models, and its bootstrap error."""

    value: float
    error: float
    higher_is_better: bool

    @property
    def verdict(self) -> Comparison:
        """Whether the first is better or worse, or a tie: different by no more than two standard errors."""
        # Written with "not", so that nan is a tie.
        if not abs(self.value) > CLEAR * self.error:
            return Comparison.TIE
        return Comparison.BETTER if (self.value > 0) == self.higher_is_better else Comparison.WORSE


def paired_differences(
    first: Sequence[ArrayLike],
    second: Sequence[ArrayLike],
    exact: Sequence[ArrayLike],
    *,
    prior_probs: ArrayLike | None = None,
    clip: float = DEFAULT_CLIP,
    num_replicates: int = 1000,
    seed: int = 0,
) -> dict[str, Difference]:
    """Return by how much one estimator is better than another, metric by metric.

    Both are judged at the same data sets, so most of the noise of either is shared, and gone in the difference: its
    error is far smaller than those of the two metrics suggest. Data sets that one of them left unanswered (nan) do not
    count.

    Parameters
    ----------
    first, second
        Natural log Bayes factors of the two estimators: two arrays each, at data of the first model and of the second.
    exact
        The exact ones, at the same data sets.
    prior_probs, clip, num_replicates, seed
        As for `measure`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> exact = rng.normal(0.5, 1, 1000), rng.normal(-0.5, 1, 1000)
    >>> found = paired_differences([1.2 * part for part in exact], [1.5 * part for part in exact], exact)
    >>> print(found["mse"].verdict, found["spearman"].verdict)
    better tie
    """
    names = ("first model", "second model")
    prior = _checks.check_probs("prior_probs", prior_probs, names)
    clip = _checks.check_positive("clip", clip)
    num_replicates = _checks.check_count("num_replicates", num_replicates, least=2)
    seed = _checks.check_seed("seed", seed)
    estimates = check_estimates({"first": first, "second": second}, names)
    truth = check_exact(exact, estimates, names)
    kept = answered_by(*estimates.values())
    if min(int(one.sum()) for one in kept) < 2:
        raise ValueError(
            f"first and second must both answer at least 2 data sets of each model; received estimators that both "
            f"answer {kept[0].sum()} and {kept[1].sum()}. Ask them about the same data sets."
        )

    def statistics_of(log_bf: ByModel) -> dict[str, Statistic]:
        answers = log_bf[0][kept[0]], log_bf[1][kept[1]]
        right = truth[0][kept[0]], truth[1][kept[1]]
        return accuracy_statistics(answers, right, prior, clip) | {"auc": area_under_roc(merge_rounding(answers))}

    def minus(one: Statistic, other: Statistic) -> Statistic:
        def statistic(weights: Weights) -> NDArray[np.float64]:
            with np.errstate(invalid="ignore"):
                return one(weights) - other(weights)

        return statistic

    ours, theirs = (statistics_of(log_bf) for log_bf in estimates.values())
    statistics = {metric: minus(statistic, theirs[metric]) for metric, statistic in ours.items()}
    sizes = int(kept[0].sum()), int(kept[1].sum())
    found = with_errors(statistics, sizes, num_replicates=num_replicates, seed=seed)
    # The last number of a statistic is that over both models.
    return {
        metric: Difference(float(value[-1]), float(error[-1]), metric in HIGHER_IS_BETTER)
        for metric, (value, error) in found.items()
    }
