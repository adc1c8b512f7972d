"""ABC by multinomial logistic regression: models told apart locally, among the draws nearest to the observed data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from deepbf import _checks
from deepbf.baselines.abc.comparison import Comparison, compare
from deepbf.baselines.abc.evidence import ADJUSTMENT, count_labels, undefined_warnings
from deepbf.baselines.abc.half_sampling import error_from_halves, split_in_halves
from deepbf.baselines.abc.nearest import Nearest
from deepbf.baselines.abc.summaries import Summary
from deepbf.baselines.abc.table import Table, read_table_and_rank
from deepbf.baselines.result import BaselineResult
from deepbf.models import Model

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
    distance: str = "scaled",
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
        "scaled" (each feature divided by its median absolute deviation over the first draws) or "euclidean".
    prior_probs
        In what proportion the models are simulated, rounded by largest remainder. Bayes factors have it divided out.
    reference
        One array of data sets a model, instead of simulating.
    seed
        The same seed gives the same draws and halves.

    Returns
    -------
    Log evidence up to a constant. A model without any kept draw gets half a draw among them, a bound on its evidence.
    Diagnostics: ``accepted`` (data sets, K), ``largest_distance`` kept, ``num_draws`` of each model, ``num_undefined``
    draws without a summary, ``bound`` where one of the first two models has no kept draw, ``converged``.
    """
    num_kept = _checks.check_count("num_kept", num_kept, least=2)
    num_splits = _checks.check_count("num_splits", num_splits)
    comparison = compare(
        models,
        observed,
        num_simulations=num_simulations,
        num_strata=None,
        summary=summary,
        distance=distance,
        prior_probs=prior_probs,
        reference=reference,
        seed=seed,
    )
    _check_num_kept(num_kept, int(comparison.num_draws.sum()))
    table, nearest = read_table_and_rank(comparison, num_kept)
    log_prior = np.log(comparison.num_draws)
    local = [_local_table(table, nearest, row) for row in range(len(comparison.observed))]
    points = comparison.observed / comparison.ruler.scale
    fits = [_fit(kept, point, log_prior) for kept, point in zip(local, points, strict=True)]
    errors = [
        _error(kept, point, log_prior, num_splits, np.random.default_rng((seed, row)))
        for row, (kept, point) in enumerate(zip(local, points, strict=True))
    ]
    return _result(comparison, table, nearest, fits, np.array(errors))


class _Local(NamedTuple):
    """The draws near one observed data set: points, models and kernel weights; `labels` count up from 0 to K - 1."""

    points: NDArray[np.float64]
    labels: NDArray[np.int16]
    weights: NDArray[np.float64]


class _Fit(NamedTuple):
    """Log evidences of one fit, whether its optimiser converged, and the draws of each model that it gave weight."""

    log_evidence: NDArray[np.float64]
    converged: bool
    counts: NDArray[np.int64]


def _local_table(table: Table, nearest: Nearest, row: int) -> _Local:
    """Return the draws kept for one observed data set."""
    kept = nearest.draws[row] >= 0
    rows = np.searchsorted(table.draws, nearest.draws[row][kept])
    return _Local(table.points[rows], table.labels[rows], epanechnikov(nearest.squared[row][kept]))


def epanechnikov(squared: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 - squared / largest, with mean 1; equal weights where all distances are the same."""
    weights = 1 - squared / max(squared.max(initial=0.0), np.finfo(np.float64).tiny)
    if not weights.any() or squared.min() == squared.max():
        return np.ones_like(squared)
    return weights / weights.mean()


def _fit(local: _Local, point: NDArray[np.float64], log_prior: NDArray[np.float64]) -> _Fit:
    """Return the log evidences at `point`, up to a constant."""
    seen = local.weights > 0
    points, labels, weights = local.points[seen], local.labels[seen], local.weights[seen]
    present = np.unique(labels)
    # Half a draw among those kept, for every model that has none: the bound of plain ABC.
    log_posterior = np.full(len(log_prior), np.log(ADJUSTMENT) - np.log(max(len(labels), 1)))
    converged = True
    if len(present) == 1:
        log_posterior[present] = 0.0
    elif len(present) > 1:
        features, target = _standardised(points, point)
        model = LogisticRegression(C=_INVERSE_RIDGE, max_iter=_MAX_ITERATIONS).fit(features, labels, weights)
        converged = bool(np.all(model.n_iter_ < _MAX_ITERATIONS))
        log_posterior[present] = _log_probs(model, target)
    counts = np.bincount(labels, minlength=len(log_prior))
    return _Fit(log_posterior - log_prior, converged, counts)


def _standardised(
    points: NDArray[np.float64], point: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the kept points and the observed one with the kept ones' mean 0 and deviation 1."""
    centre, spread = points.mean(axis=0), points.std(axis=0)
    # A feature that is constant among the kept draws tells nothing; its deviation is rounding error, not always 0.
    varies = np.ptp(points, axis=0) > _LEAST_RANGE * np.abs(points).max(axis=0)
    safe = np.where(varies, spread, 1.0)
    return np.where(varies, (points - centre) / safe, 0.0), np.where(varies, (point - centre) / safe, 0.0)


def _log_probs(model: LogisticRegression, target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log class probabilities from the scores; probabilities themselves would round to 0 or 1."""
    scores = np.atleast_1d(model.decision_function(target[None])[0])
    if len(scores) == 1:
        scores = np.array([0.0, scores[0]])
    return log_softmax(scores)


def _error(
    local: _Local,
    point: NDArray[np.float64],
    log_prior: NDArray[np.float64],
    num_splits: int,
    rng: np.random.Generator,
) -> float:
    """Return the standard error of the log Bayes factor, by half-sampling the kept draws."""
    log_bfs = np.empty((num_splits, 2))
    for split, halves in enumerate(split_in_halves(len(local.labels), num_splits, rng)):
        for side, rows in enumerate(halves):
            half = _Local(local.points[rows], local.labels[rows], local.weights[rows])
            evidence = _fit(half, point, log_prior).log_evidence
            log_bfs[split, side] = evidence[0] - evidence[1]
    return float(error_from_halves(log_bfs[:, 0], log_bfs[:, 1]))


def _result(
    comparison: Comparison, table: Table, nearest: Nearest, fits: Sequence[_Fit], errors: NDArray[np.float64]
) -> BaselineResult:
    accepted = count_labels(nearest.labels, len(comparison.model_set))
    # A kernel gives no weight to the farthest draws, which with discrete data may be all of one model.
    weighted = np.stack([fit.counts for fit in fits])
    bound = (weighted[:, :2] == 0).any(axis=1)
    converged = np.array([fit.converged for fit in fits])
    # Halves without a model all repeat the same bound: the error is then at least that of the added half draw.
    at_least = np.sqrt((1 / (weighted[:, :2] + ADJUSTMENT)).sum(axis=1))
    squared = np.where(np.isfinite(nearest.squared), nearest.squared, 0.0)
    num_datasets = len(accepted)
    return BaselineResult(
        method=f"ABC, logistic regression on the nearest {nearest.draws.shape[1]} of {comparison.num_draws.sum()}",
        names=comparison.model_set.names,
        log_evidence=np.stack([fit.log_evidence for fit in fits]),
        log_bf_error=np.where(bound, np.maximum(errors, at_least), errors),
        diagnostics={
            "accepted": accepted,
            "largest_distance": np.sqrt(squared.max(axis=1)),
            "num_draws": np.tile(comparison.num_draws, (num_datasets, 1)),
            "num_undefined": np.full(num_datasets, table.num_undefined),
            "bound": bound,
            "converged": converged,
        },
        warnings=(
            *_warnings(bound, converged),
            *undefined_warnings(table.num_undefined, int(comparison.num_draws.sum())),
        ),
    )


def _warnings(bound: NDArray[np.bool_], converged: NDArray[np.bool_]) -> list[str]:
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
    return warnings


def _check_num_kept(num_kept: int, num_draws: int) -> None:
    if num_kept > num_draws:
        raise ValueError(
            f"num_kept must not exceed the {num_draws} reference draws; received {num_kept}. "
            "Keep fewer or simulate more."
        )
