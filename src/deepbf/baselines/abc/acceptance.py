"""ABC by acceptance: count the draws of each model near the observed data, within epsilon or nearest by rank.

Of N_k draws of model k, a_k are accepted. The evidence of model k is in proportion to a_k / N_k. Half a draw is added
to each a_k: then log(a_k + 1/2) is unbiased for the log of the expected count up to terms of second order (Anscombe,
1956; 1 instead of 1/2 would pull the estimate to 0, and 0 would make it infinite). With k accepted in all and equal
prior odds, the Bayes factor then lies in [1 / (2k + 1), 2k + 1]; the paper's range is [1/k, k].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.baselines.abc.distance import Distance, Summary
from deepbf.baselines.abc.nearest import Screen, rank
from deepbf.baselines.abc.reference import Comparison, compare
from deepbf.baselines.baseline_result import BaselineResult
from deepbf.models.model import Model

# What is added to a count of draws before its logarithm is taken; the reason stands above.
HALF_A_DRAW = 0.5


def abc_epsilon(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    epsilon: float,
    num_simulations: int = 1_200_000,
    summary: Summary | None = None,
    distance: Distance = "euclidean",
    prior_probs: ArrayLike | None = None,
    reference: Sequence[ArrayLike] | None = None,
    seed: int = 0,
) -> BaselineResult:
    """Return log evidences from the draws within `epsilon` of the observed data, and what was accepted.

    The evidence of a model is in proportion to the share of its draws that are accepted, with half a draw added (see
    `deepbf.baselines.abc.acceptance`). Section 2.1 of *Deep Bayes Factors* (Kim and Rockova), after Robert et al.
    (2011). Use `abc_ranked` where it is not known beforehand which distance is small.

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
        "euclidean", or "scaled": each feature divided by its median absolute deviation over the first 1,000 draws; or a
        distance of your own (see `deepbf.baselines.abc.distance`).
    prior_probs
        In what proportion the models are simulated, rounded by largest remainder. Bayes factors have it divided out.
    reference
        One array of data sets per model, instead of simulating.
    seed
        The same seed gives the same draws of a model wherever it stands: swapping two models flips the sign exactly.

    Returns
    -------
    Log evidence up to a constant, and the Monte Carlo error of the log Bayes factor by the delta method. Diagnostics:
    ``accepted`` (data sets, K), ``largest_distance`` accepted (nan where nothing is), ``num_draws`` of each model (the
    same in every row), ``num_undefined`` draws without a summary, ``bound`` where a model has no accepted draw.

    Examples
    --------
    >>> from deepbf.example import counts_example
    >>> models = counts_example(num_obs=2).models
    >>> result = abc_epsilon(models, [0, 2], epsilon=0.5, num_simulations=20_000)  # accepts only equal counts
    >>> float(result.diagnostics["largest_distance"][0])
    0.0
    """
    epsilon = _checks.check_positive("epsilon", epsilon)
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
    num_observed = len(comparison.observed)
    accepted = np.zeros((num_observed, len(comparison.model_set)), np.int64)
    largest = np.zeros(num_observed)
    num_undefined = 0
    # A little above the square, which rounds; the comparison of distances below is the one that decides.
    thresholds = np.full(num_observed, epsilon * epsilon * (1 + 1e-15))
    with Screen(comparison.observed, comparison.distance) as screen:
        for block in comparison.walk(screen.block):
            hits = screen.start(block, thresholds)()
            distances = np.sqrt(hits.squared)
            close = distances <= epsilon
            np.add.at(accepted, (hits.rows[close], hits.labels[close]), 1)
            np.maximum.at(largest, hits.rows[close], distances[close])
            num_undefined += block.num_undefined
    return _accepted_result(
        f"ABC, distance at most {epsilon:g}",
        comparison,
        accepted,
        np.where(accepted.sum(axis=1) > 0, largest, np.nan),
        num_undefined,
        "Raise epsilon, simulate more, or compare fewer summaries.",
    )


def abc_ranked(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    num_simulations: int = 1_200_000,
    num_strata: int = 1_200,
    kept_per_stratum: int = 5,
    num_kept: int = 120,
    summary: Summary | None = None,
    distance: Distance = "euclidean",
    prior_probs: ArrayLike | None = None,
    reference: Sequence[ArrayLike] | None = None,
    seed: int = 0,
) -> BaselineResult:
    """Return log evidences from the `num_kept` draws nearest to the observed data, and what was accepted.

    The reference comes in strata of equal size, one compared at a time while its neighbours are made and ranked. Of
    each stratum the `kept_per_stratum` nearest draws are candidates; of all candidates the `num_kept` nearest are
    accepted. This is Section S2 of *Deep Bayes Factors* (Kim and Rockova), with its numbers as defaults.

    Every stratum mixes the models in proportion to `prior_probs`, give or take one draw, in an order shuffled by the
    seed. Ties in distance go to the draw that comes first in that order, so to no model more than its share.
    Distances are ranked in double precision; single precision only decides what need not be looked at.

    Parameters
    ----------
    models
        Two or more models.
    observed
        One data set, or many along a leading axis. All share one reference, so their errors are correlated.
    num_simulations
        Reference draws of all models together; with `reference`, its arrays decide.
    num_strata
        How many strata; it must divide the number of draws.
    kept_per_stratum, num_kept
        How many draws are candidates in each stratum, and how many are accepted in the end.
    summary
        Maps data sets along a leading axis to numbers along the same axis; None compares the data themselves. A draw
        whose summary is nan is not accepted, and is counted.
    distance
        "euclidean", or "scaled": each feature divided by its median absolute deviation over the first stratum; or a
        distance of your own (see `deepbf.baselines.abc.distance`).
    prior_probs
        In what proportion the models are simulated, rounded by largest remainder. Bayes factors have it divided out.
    reference
        One array of data sets per model, instead of simulating.
    seed
        The same seed gives the same draws of a model wherever it stands: swapping two models flips the sign exactly.

    Returns
    -------
    Log evidence up to a constant, from accepted counts with half a draw added (see `deepbf.baselines.abc.acceptance`),
    and the Monte Carlo error of the log Bayes factor by the delta method. Diagnostics: ``accepted`` (data sets, K),
    ``largest_distance`` accepted, ``num_draws`` of each model (the same in every row), ``num_undefined`` draws without
    a summary, ``bound`` where one of the first two models has no accepted draw.

    Examples
    --------
    >>> from deepbf.example import counts_example
    >>> models = counts_example(num_obs=2).models
    >>> result = abc_ranked(models, [0, 2], num_simulations=20_000, num_strata=20, num_kept=100)
    >>> int(result.diagnostics["accepted"].sum())
    100
    """
    kept_per_stratum = _checks.check_count("kept_per_stratum", kept_per_stratum)
    num_kept = _checks.check_count("num_kept", num_kept)
    comparison = compare(
        models,
        observed,
        num_simulations=num_simulations,
        num_strata=_checks.check_count("num_strata", num_strata),
        summary=summary,
        distance=distance,
        prior_probs=prior_probs,
        reference=reference,
        seed=seed,
    )
    check_num_kept(num_kept, comparison)
    candidates = min(kept_per_stratum, comparison.total // num_strata) * num_strata
    if candidates < num_kept:
        raise ValueError(
            f"num_kept must not exceed the candidates of all strata, kept_per_stratum * num_strata = {candidates}; "
            f"received num_kept={num_kept}. Raise kept_per_stratum or lower num_kept."
        )
    nearest, num_undefined = rank(comparison, kept_per_stratum, num_kept)
    return _accepted_result(
        f"ABC, nearest {num_kept} of {comparison.total}",
        comparison,
        nearest.counts(len(comparison.model_set)),
        nearest.largest_distance,
        num_undefined,
        "Simulate more and keep more, or compare fewer summaries.",
    )


def check_num_kept(num_kept: int, comparison: Comparison) -> None:
    """Raise if more draws are to be kept than the reference has."""
    if num_kept > comparison.total:
        raise ValueError(
            f"num_kept must not exceed the {comparison.total} reference draws; received {num_kept}. "
            "Keep fewer or simulate more."
        )


def log_bf_error_from_counts(accepted: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the standard error of the log Bayes factor of the first two models, by the delta method.

    The variance of log(a_1 / a_2) is 1 / E[a_1] + 1 / E[a_2], for counts that share a total or not. `accepted` has
    shape (data sets, K); half a draw is added to each count.
    """
    return np.sqrt((1 / (accepted[:, :2] + HALF_A_DRAW)).sum(axis=1))


def half_sampling_error(
    estimate: Callable[[NDArray[np.intp]], NDArray[np.float64]],
    num_rows: int,
    num_splits: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the standard error of a fit on all rows of a table, from fits on random halves of it.

    Each estimate on a half has twice the variance v of the estimate on everything, and the two of a split are
    independent, so that half their difference has variance v. `estimate` takes the rows of a half, in order, and
    returns an array; the error has its shape. The mean square over `num_splits` splits is taken.
    """
    orders = [rng.permutation(num_rows) for _ in range(num_splits)]
    halves = [
        [estimate(np.sort(order[: num_rows // 2])), estimate(np.sort(order[num_rows // 2 :]))] for order in orders
    ]
    first, second = np.moveaxis(np.array(halves), 1, 0)
    return np.sqrt(np.mean(((first - second) / 2) ** 2, axis=0))


def _accepted_result(
    method: str,
    comparison: Comparison,
    accepted: NDArray[np.int64],
    largest_distance: NDArray[np.float64],
    num_undefined: int,
    next_step: str,
) -> BaselineResult:
    """Return the result that counts of accepted draws give; `next_step` ends the warnings."""
    # The draws of each model are the prior odds actually simulated, and divided out.
    log_rate = np.log(accepted + HALF_A_DRAW) - np.log(comparison.num_draws)
    # Several models without an accepted draw get equal evidences: otherwise the prior odds alone would decide.
    none = accepted == 0
    shared = np.log(HALF_A_DRAW) - np.log(comparison.num_draws.min())
    log_evidence = np.where(none & (none.sum(axis=1, keepdims=True) > 1), shared, log_rate)
    num_datasets = len(accepted)
    bound = (accepted[:, :2] == 0).any(axis=1)
    nothing = accepted.sum(axis=1) == 0
    warnings = []
    if nothing.any():
        warnings.append(
            f"no draw was accepted for {nothing.sum()} of {num_datasets} data sets: their log Bayes factor of 0 says "
            f"nothing. {next_step}"
        )
    if (bound & ~nothing).any():
        warnings.append(
            f"one of the first two models has no accepted draw for {(bound & ~nothing).sum()} of {num_datasets} data "
            f"sets: their log Bayes factor is a bound that the added half draw sets. {next_step}"
        )
    return comparison.result(
        method,
        log_evidence,
        log_bf_error_from_counts(accepted),
        num_undefined=num_undefined,
        diagnostics={"accepted": accepted, "largest_distance": largest_distance, "bound": bound},
        warnings=warnings,
    )
