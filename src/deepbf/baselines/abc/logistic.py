"""ABC by multinomial logistic regression: models told apart locally, among the draws nearest to the observed data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from deepbf import _checks
from deepbf.baselines.abc.acceptance import (
    HALF_A_DRAW,
    check_num_kept,
    half_sampling_error,
    log_bf_error_from_counts,
)
from deepbf.baselines.abc.distance import Distance, Summary
from deepbf.baselines.abc.nearest import Block, Nearest, Table, join_strata, rank
from deepbf.baselines.abc.reference import Comparison, Stratum, compare, name_ranks
from deepbf.baselines.baseline_result import BaselineResult
from deepbf.models.model import Model

# Weight of the likelihood against a unit ridge on the slopes of standardised features: scikit-learn's default. It is
# lost among hundreds of draws, and keeps the slopes finite where the models separate.
_INVERSE_RIDGE = 1.0
_MAX_ITERATIONS = 1000
# A range of this share of a feature's size is rounding error.
_LEAST_RANGE = 1e-12


def abc_logistic(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    num_simulations: int = 100_000,
    num_kept: int = 1_000,
    num_splits: int = 8,
    summary: Summary | None = None,
    distance: Distance = "scaled",
    prior_probs: ArrayLike | None = None,
    reference: Sequence[ArrayLike] | None = None,
    seed: int = 0,
) -> BaselineResult:
    """Return log evidences from a logistic regression on the draws nearest to the observed data.

    The `num_kept` nearest draws are weighted by an Epanechnikov kernel, 1 - (distance / largest distance)^2, and a
    multinomial logistic regression of the model on the standardised summaries is read off at the observed summaries
    (Beaumont, 2008; Fagundes et al., 2007). The prior odds of the reference are divided out. A light ridge on the
    slopes keeps separable tables finite. The table of all summaries is held in memory.

    Parameters
    ----------
    models
        Two or more models.
    observed
        One data set, or many along a leading axis; each has a regression of its own.
    num_simulations
        Reference draws of all models together; with `reference`, its arrays decide.
    num_kept
        How many of the nearest draws the regression sees.
    num_splits
        Cuts of the kept draws into random halves, refitted for the standard error: two small fits each.
    summary
        Maps data sets along a leading axis to numbers along the same axis; None takes the data themselves. Draws whose
        summary is nan are left out, and counted.
    distance
        "scaled" (each feature divided by its median absolute deviation over the first draws), "euclidean", or a
        distance of your own (see `deepbf.baselines.abc.distance`).
    prior_probs
        In what proportion the models are simulated, rounded by largest remainder. Bayes factors have it divided out.
    reference
        One array of data sets per model, instead of simulating.
    seed
        The same seed gives the same draws and halves. Swapping two models flips the sign exactly.

    Returns
    -------
    Log evidence up to a constant. A model without any kept draw gets half a draw among them, a bound on its evidence.
    Diagnostics: ``accepted`` (data sets, K), ``largest_distance`` kept, ``num_draws`` of each model, ``num_undefined``
    draws without a summary, ``bound`` where one of the first two models has no kept draw, ``converged``.

    Examples
    --------
    >>> from deepbf.example import counts_example
    >>> example = counts_example(num_obs=2)
    >>> result = abc_logistic(example.models, [0, 2], num_simulations=5_000, num_kept=500, num_splits=2)
    >>> bool(abs(result.log_bf - example.exact_log_bf([[0, 2]]))[0] < 0.5)
    True
    """
    num_kept = _checks.check_count("num_kept", num_kept, least=2)
    num_splits = _checks.check_count("num_splits", num_splits)
    comparison = compare(
        models,
        observed,
        num_simulations=num_simulations,
        summary=summary,
        distance=distance,
        prior_probs=prior_probs,
        reference=reference,
        seed=seed,
    )
    check_num_kept(num_kept, comparison)
    # The table is read on the same walk that finds the nearest draws, so that nothing is simulated twice.
    strata: list[Stratum] = []

    def keep(block: Block) -> None:
        strata.append(Stratum(block.draws, block.labels, block.points, block.num_undefined))

    nearest, _ = rank(comparison, num_kept, num_kept, visit=keep)
    table = join_strata(strata)
    log_prior, ranks = np.log(comparison.num_draws), name_ranks(comparison.model_set.names)
    fits, errors = [], []
    for row, point in enumerate(comparison.distance.to_points(comparison.observed)):
        local = _Local.of(table, nearest, row)
        fits.append(_fit(local, point, log_prior, ranks))

        def log_bf(rows: NDArray[np.intp], local: _Local = local, point: NDArray[np.float64] = point) -> Any:
            log_evidence = _fit(local.at(rows), point, log_prior, ranks).log_evidence
            return log_evidence[0] - log_evidence[1]

        rng = np.random.default_rng((seed, row))
        errors.append(half_sampling_error(log_bf, len(local.labels), num_splits, rng))
    return _result(comparison, table, nearest, fits, np.array(errors))


class _Local(NamedTuple):
    """The draws near one observed data set: points, models and kernel weights."""

    points: NDArray[np.float64]
    labels: NDArray[np.int16]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, table: Table, nearest: Nearest, row: int) -> _Local:
        """Return the draws kept for one observed data set, with weights by the kernel of Epanechnikov.

        They are 1 - squared / largest of the squared distances, divided by their mean: the farthest draw has weight 0.
        All weights are 1 where all distances are the same, as they can be with counts.
        """
        kept = nearest.draws[row] >= 0
        # Both number the draws of the whole reference; the table's have gaps where summaries were nan.
        rows = np.searchsorted(table.draws, nearest.draws[row][kept])
        squared = nearest.squared[row][kept]
        weights = 1 - squared / max(squared.max(initial=0.0), np.finfo(np.float64).tiny)
        is_flat = not weights.any() or squared.min() == squared.max()
        weights = np.ones_like(squared) if is_flat else weights / weights.mean()
        return cls(table.points[rows], table.labels[rows], weights)

    def at(self, rows: NDArray[np.intp]) -> _Local:
        """Return some of the draws, by their positions."""
        return _Local(self.points[rows], self.labels[rows], self.weights[rows])


class _Fit(NamedTuple):
    """Log evidences of one fit, whether its optimiser converged, and the draws of each model that it gave weight."""

    log_evidence: NDArray[np.float64]
    converged: bool
    counts: NDArray[np.int64]


def _fit(local: _Local, point: NDArray[np.float64], log_prior: NDArray[np.float64], ranks: NDArray[np.intp]) -> _Fit:
    """Return the log evidences at `point`, up to a constant.

    The optimiser sees the models in the order of their names, `ranks`: it stops a little elsewhere when classes are
    swapped.
    """
    points, labels, weights = local.at(np.flatnonzero(local.weights > 0))
    named = ranks[labels]
    present = np.unique(named)
    # Half a draw among those kept, for every model that has none: the bound of plain ABC.
    log_posterior = np.full(len(log_prior), np.log(HALF_A_DRAW) - np.log(max(len(labels), 1)))
    converged = True
    if len(present) == 1:
        log_posterior[present] = 0.0
    elif len(present) > 1:
        features, target = _standardised(points, point)
        model = LogisticRegression(C=_INVERSE_RIDGE, max_iter=_MAX_ITERATIONS).fit(features, named, weights)
        converged = bool(np.all(model.n_iter_ < _MAX_ITERATIONS))
        # From the scores: probabilities themselves would round to 0 or 1.
        scores = np.atleast_1d(model.decision_function(target[None])[0])
        log_posterior[present] = log_softmax(np.array([0.0, scores[0]]) if len(scores) == 1 else scores)
    counts = np.bincount(labels, minlength=len(log_prior))
    return _Fit(log_posterior[ranks] - log_prior, converged, counts)


def _standardised(
    points: NDArray[np.float64], point: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the kept points and the observed one with the kept ones' mean 0 and deviation 1."""
    centre, spread = points.mean(axis=0), points.std(axis=0)
    # A feature that is constant among the kept draws tells nothing; its deviation is rounding error, not always 0.
    varies = np.ptp(points, axis=0) > _LEAST_RANGE * np.abs(points).max(axis=0)
    safe = np.where(varies, spread, 1.0)
    return np.where(varies, (points - centre) / safe, 0.0), np.where(varies, (point - centre) / safe, 0.0)


def _result(
    comparison: Comparison, table: Table, nearest: Nearest, fits: Sequence[_Fit], errors: NDArray[np.float64]
) -> BaselineResult:
    # A kernel gives no weight to the farthest draws, which with discrete data may be all of one model.
    weighted = np.stack([fit.counts for fit in fits])
    bound = (weighted[:, :2] == 0).any(axis=1)
    converged = np.array([fit.converged for fit in fits])
    # Halves without a model all repeat the same bound: the error is then at least that of the added half draw.
    at_least = log_bf_error_from_counts(weighted)
    warnings = []
    if bound.any():
        warnings.append(
            f"one of the first two models has no draw of any weight among those kept for {bound.sum()} of "
            f"{len(bound)} data sets: their log Bayes factor is a bound that half a draw sets. "
            "Keep more draws, or simulate more."
        )
    if not converged.all():
        warnings.append(
            f"the regression did not converge for {(~converged).sum()} of {len(converged)} data sets. "
            "Compare fewer summaries."
        )
    return comparison.result(
        f"ABC, logistic regression on the nearest {nearest.draws.shape[1]} of {comparison.total}",
        np.stack([fit.log_evidence for fit in fits]),
        np.where(bound, np.maximum(errors, at_least), errors),
        num_undefined=table.num_undefined,
        diagnostics={
            "accepted": nearest.counts(len(comparison.model_set)),
            "largest_distance": nearest.largest_distance,
            "bound": bound,
            "converged": converged,
        },
        warnings=warnings,
    )
