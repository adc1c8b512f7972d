"""One estimator against another at the same data sets: the difference of every metric, and its error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.evaluation.accuracy import accuracy_statistics
from deepbf.evaluation.arguments import check_estimates, check_exact, check_names, check_same_data
from deepbf.evaluation.bootstrap import Statistic, Weights, with_errors
from deepbf.evaluation.log_bfs import ByModel, merge_rounding
from deepbf.evaluation.measuring import DEFAULT_CLIP
from deepbf.evaluation.roc import area_under_roc

HIGHER_IS_BETTER = ("spearman", "agreement", "auc")
# Closer than this many standard errors of the difference counts as a tie.
CLEAR = 2.0


class Difference(NamedTuple):
    """A metric of the first estimator minus that of the second, over both models, and its bootstrap error."""

    value: float
    error: float
    higher_is_better: bool

    @property
    def verdict(self) -> str:
        """Whether the first is "better" or "worse", or "tie": by less than two standard errors."""
        # Not so written, what is nan would not be a tie.
        if not abs(self.value) > CLEAR * self.error:
            return "tie"
        return "better" if (self.value > 0) == self.higher_is_better else "worse"


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
    >>> found["mse"].verdict, found["spearman"].verdict
    ('better', 'tie')
    """
    names = check_names(("first model", "second model"))
    prior = _checks.check_probs("prior_probs", prior_probs, names)
    clip = _checks.check_positive("clip", clip)
    num_replicates = _checks.check_count("num_replicates", num_replicates, least=2)
    seed = _checks.check_seed("seed", seed)
    estimates = check_estimates({"first": first, "second": second}, names)
    truth = check_exact(exact, estimates, names)
    check_same_data(estimates, names)
    one, other, truth = answered_by_both(estimates["first"], estimates["second"], truth)
    theirs = all_statistics(other, truth, prior, clip)
    ours = all_statistics(one, truth, prior, clip)
    statistics = {metric: _difference(statistic, theirs[metric]) for metric, statistic in ours.items()}
    found = with_errors(statistics, (len(one[0]), len(one[1])), num_replicates=num_replicates, seed=seed)
    # The last number of a statistic is that over both models.
    return {
        metric: Difference(float(value[-1]), float(error[-1]), metric in HIGHER_IS_BETTER)
        for metric, (value, error) in found.items()
    }


def all_statistics(
    log_bf: ByModel, exact: ByModel, prior_probs: NDArray[np.float64], clip: float
) -> dict[str, Statistic]:
    """Return every metric that tells good estimators from better ones."""
    return {
        **accuracy_statistics(log_bf, exact, prior_probs, clip),
        "auc": area_under_roc(merge_rounding(log_bf)),
    }


def answered_by_both(one: ByModel, other: ByModel, exact: ByModel) -> tuple[ByModel, ByModel, ByModel]:
    """Return all three without the data sets that either estimator left unanswered."""
    known = [~(np.isnan(a) | np.isnan(b)) for a, b in zip(one, other, strict=True)]
    if min(int(kept.sum()) for kept in known) < 2:
        raise ValueError(
            f"first and second must both answer at least 2 data sets of each model; received estimators that both "
            f"answer {known[0].sum()} and {known[1].sum()}. Ask them about the same data sets."
        )
    a, b, c = ((values[0][known[0]], values[1][known[1]]) for values in (one, other, exact))
    return a, b, c


def _difference(one: Statistic, other: Statistic) -> Statistic:
    def statistic(weights: Weights) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            return one(weights) - other(weights)

    return statistic
