"""What all four methods start from: checked input, a reference, a ruler, and one walk through the strata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.baselines.abc.layout import Layout, share_out
from deepbf.baselines.abc.reference import Reference, Stratum, check_reference, run_ahead
from deepbf.baselines.abc.ruler import DISTANCES, Ruler
from deepbf.baselines.abc.screen import Block, Screen, block_of
from deepbf.baselines.abc.summaries import Summary, check_observed_summaries, check_summary, summarise
from deepbf.baselines.observed import check_observed
from deepbf.models import Model, ModelSet

# Draws compared at once where the method itself has no strata; the paper's M / m.
DRAWS_AT_ONCE = 1000


@dataclass(frozen=True)
class Comparison:
    """Observed summaries and the reference they are compared with."""

    model_set: ModelSet
    observed: NDArray[np.float64]
    reference: Reference
    first: Stratum
    ruler: Ruler

    @property
    def num_draws(self) -> NDArray[np.int64]:
        """Reference draws of each model."""
        return self.reference.layout.counts

    def screen(self) -> Screen:
        """Return the observed points, ready to be compared with blocks."""
        return Screen(self.observed, self.ruler)

    def blocks(self) -> Iterator[Block]:
        """Yield the strata in order as blocks of points, each made in the background while the one before is used."""
        # The first stratum was drawn to learn the ruler.
        return run_ahead(
            lambda index: block_of(self.first if index == 0 else self.reference.stratum(index), self.ruler),
            self.reference.layout.num_strata,
        )


def compare(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    num_simulations: int,
    num_strata: int | None,
    summary: Summary | None,
    distance: str,
    prior_probs: ArrayLike | None,
    reference: Sequence[ArrayLike] | None,
    seed: int,
) -> Comparison:
    """Return the checked comparison; `num_strata` of None cuts the reference into convenient strata."""
    model_set = ModelSet.of(models, prior_probs)
    num_simulations = _checks.check_count("num_simulations", num_simulations, least=len(model_set))
    seed = _checks.check_seed("seed", seed)
    _checks.check_choice("distance", distance, DISTANCES)
    check_summary(summary)
    data = check_observed(model_set, observed, seed=seed)
    values = check_observed_summaries(summarise(summary, data, "observed"))
    arrays = None if reference is None else _given(model_set, reference, data.shape[1:], prior_probs)
    counts = _counts(model_set, num_simulations, arrays)
    strata = _num_strata(num_strata, int(counts.sum()), given=arrays is not None)
    source = Reference(model_set, Layout(counts, model_set.names, strata, seed), summary, seed, arrays)
    first = source.stratum(0)
    _check_pilot(first, values)
    return Comparison(model_set, values, source, first, Ruler.of(distance, values, first.values))


def _given(
    model_set: ModelSet, reference: Sequence[ArrayLike], shape: tuple[int, ...], prior_probs: ArrayLike | None
) -> list[NDArray[np.generic]]:
    if prior_probs is not None:
        raise ValueError(
            f"prior_probs={prior_probs!r} was passed with a reference, which has the proportions of its own arrays. "
            "Leave prior_probs out; Bayes factors do not depend on it."
        )
    return check_reference(model_set, reference, shape)


def _counts(
    model_set: ModelSet, num_simulations: int, arrays: Sequence[NDArray[np.generic]] | None
) -> NDArray[np.int64]:
    if arrays is not None:
        return np.array([len(array) for array in arrays], np.int64)
    return share_out(num_simulations, model_set.prior_probs)


def _num_strata(num_strata: int | None, num_draws: int, *, given: bool) -> int:
    if num_strata is None:
        return -(-num_draws // DRAWS_AT_ONCE)
    num_strata = _checks.check_count("num_strata", num_strata)
    if num_draws % num_strata:
        what = f"the reference's {num_draws} draws" if given else f"num_simulations={num_draws}"
        divisor = next(n for n in range(min(num_strata, num_draws), 0, -1) if num_draws % n == 0)
        raise ValueError(
            f"num_strata must divide {what} into equal strata; received {num_strata}. Pass, for example, "
            f"num_strata={divisor}."
        )
    return num_strata


def _check_pilot(first: Stratum, observed: NDArray[np.float64]) -> None:
    if len(first.values) == 0:
        raise ValueError(
            f"summary is nan or inf for all {first.num_undefined} draws of the first stratum. "
            "Choose a summary that is defined for the models' data."
        )
    if first.values.shape[1] != observed.shape[1]:
        raise ValueError(
            f"summary returned {observed.shape[1]} numbers for an observed data set and {first.values.shape[1]} for a "
            "simulated one; it must return equally many for all data."
        )
