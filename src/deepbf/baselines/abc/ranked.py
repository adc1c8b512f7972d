"""ABC by rank: accept the draws nearest to the observed data, ranked in strata."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from deepbf import _checks
from deepbf.baselines.abc.accepted import accepted_result
from deepbf.baselines.abc.comparison import Comparison, compare
from deepbf.baselines.abc.evidence import count_labels
from deepbf.baselines.abc.nearest import Nearest
from deepbf.baselines.abc.screen import Hits
from deepbf.baselines.abc.summaries import Summary
from deepbf.baselines.result import BaselineResult
from deepbf.models import Model


def abc_ranked(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    num_simulations: int = 1_200_000,
    num_strata: int = 1_200,
    kept_per_stratum: int = 5,
    num_kept: int = 120,
    summary: Summary | None = None,
    distance: str = "euclidean",
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
        "euclidean", or "scaled": each feature divided by its median absolute deviation over the first stratum.
    prior_probs
        In what proportion the models are simulated, rounded by largest remainder. Bayes factors have it divided out.
    reference
        One array of data sets a model, instead of simulating.
    seed
        The same seed gives the same draws.

    Returns
    -------
    Log evidence up to a constant, from accepted counts with half a draw added (see `deepbf.baselines.abc.evidence`),
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
    _check_kept(comparison, kept_per_stratum, num_kept)
    nearest, num_undefined = rank(comparison, kept_per_stratum, num_kept)
    accepted = count_labels(nearest.labels, len(comparison.model_set))
    # The last is empty only where summaries were undefined.
    squared = np.where(np.isfinite(nearest.squared), nearest.squared, 0.0)
    return accepted_result(
        f"ABC, nearest {num_kept} of {comparison.num_draws.sum()}",
        comparison,
        accepted,
        np.sqrt(squared.max(axis=1)),
        num_undefined,
        "Simulate more and keep more, or compare fewer summaries.",
    )


def rank(comparison: Comparison, kept_per_stratum: int, num_kept: int) -> tuple[Nearest, int]:
    """Return the nearest draws after one walk through the strata, and how many draws had no summary."""
    nearest = Nearest(len(comparison.observed), num_kept)
    num_undefined = 0
    with comparison.screen() as screen:
        running: Callable[[], Hits] | None = None
        for block in comparison.blocks():
            following = screen.start_nearest(block, kept_per_stratum, nearest.thresholds)
            # Ranked while the next stratum is compared, whose thresholds are then a little too high, and lose nothing.
            if running is not None:
                nearest.add(running())
            running = following
            num_undefined += block.num_undefined
        if running is not None:
            nearest.add(running())
    nearest.merge()
    return nearest, num_undefined


def _check_kept(comparison: Comparison, kept_per_stratum: int, num_kept: int) -> None:
    layout = comparison.reference.layout
    if num_kept > layout.num_draws:
        raise ValueError(
            f"num_kept must not exceed the {layout.num_draws} reference draws; received {num_kept}. "
            "Keep fewer or simulate more."
        )
    candidates = min(kept_per_stratum, layout.num_draws // layout.num_strata) * layout.num_strata
    if candidates < num_kept:
        raise ValueError(
            f"num_kept must not exceed the candidates of all strata, kept_per_stratum * num_strata = {candidates}; "
            f"received num_kept={num_kept}. Raise kept_per_stratum or lower num_kept."
        )
