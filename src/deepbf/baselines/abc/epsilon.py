"""ABC with a fixed tolerance: accept every draw within epsilon of the observed data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.baselines.abc.accepted import accepted_result
from deepbf.baselines.abc.comparison import Comparison, compare
from deepbf.baselines.abc.screen import Hits
from deepbf.baselines.abc.summaries import Summary
from deepbf.baselines.result import BaselineResult
from deepbf.models import Model


def abc_epsilon(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    epsilon: float,
    num_simulations: int = 1_200_000,
    summary: Summary | None = None,
    distance: str = "euclidean",
    prior_probs: ArrayLike | None = None,
    reference: Sequence[ArrayLike] | None = None,
    seed: int = 0,
) -> BaselineResult:
    """Return log evidences from the draws within `epsilon` of the observed data, and what was accepted.

    The evidence of a model is in proportion to the share of its draws that are accepted, with half a draw added (see
    `deepbf.baselines.abc.evidence`). Section 2.1 of *Deep Bayes Factors* (Kim and Rockova), after Robert et al. (2011).

    Parameters
    ----------
    models
        Two or more models.
    observed
        One data set, or many along a leading axis. All share one reference, so their errors are correlated.
    epsilon
        The largest distance accepted.
    num_simulations
        Reference draws of all models together; with `reference`, its arrays decide.
    summary
        Maps data sets along a leading axis to numbers along the same axis; None compares the data themselves. A draw
        whose summary is nan is not accepted, and is counted.
    distance
        "euclidean", or "scaled": each feature divided by its median absolute deviation over the first 1,000 draws.
    prior_probs
        In what proportion the models are simulated, rounded by largest remainder. Bayes factors have it divided out.
    reference
        One array of data sets a model, instead of simulating.
    seed
        The same seed gives the same draws.

    Returns
    -------
    Log evidence up to a constant, and the Monte Carlo error of the log Bayes factor by the delta method. Diagnostics:
    ``accepted`` (data sets, K), ``largest_distance`` accepted (nan where nothing is), ``num_draws`` of each model (the
    same in every row), ``num_undefined`` draws without a summary, ``bound`` where a model has no accepted draw.
    """
    epsilon = _checks.check_positive("epsilon", epsilon)
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
    accepted, largest, num_undefined = _accept(comparison, epsilon)
    return accepted_result(
        f"ABC, distance at most {epsilon:g}",
        comparison,
        accepted,
        np.where(accepted.sum(axis=1) > 0, largest, np.nan),
        num_undefined,
        "Raise epsilon, simulate more, or compare fewer summaries.",
    )


def _accept(comparison: Comparison, epsilon: float) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Return accepted counts (data sets, K), the largest accepted distances, and how many draws had no summary."""
    num_observed, num_models = len(comparison.observed), len(comparison.model_set)
    accepted = np.zeros((num_observed, num_models), np.int64)
    largest = np.zeros(num_observed)
    num_undefined = 0
    # A little above the square, which rounds; the comparison of distances below is the one that decides.
    thresholds = np.full(num_observed, epsilon * epsilon * (1 + 1e-15))
    with comparison.screen() as screen:
        for block in comparison.blocks():
            hits = screen.within(block, thresholds)
            distances = np.sqrt(hits.squared)
            _count(hits, distances, distances <= epsilon, accepted, largest)
            num_undefined += block.num_undefined
    return accepted, largest, num_undefined


def _count(
    hits: Hits,
    distances: NDArray[np.float64],
    close: NDArray[np.bool_],
    accepted: NDArray[np.int64],
    largest: NDArray[np.float64],
) -> None:
    np.add.at(accepted, (hits.rows[close], hits.labels[close]), 1)
    np.maximum.at(largest, hits.rows[close], distances[close])
