"""Surprise: tail areas of an observed Bayes factor among those that each model generates (Section 5.2).

p1 = P(BF <= BF0 | M1) and p2 = P(BF >= BF0 | M2): small means surprising. The paper prints the complements, its table
reports these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

from deepbf import _checks
from deepbf._numerics import FLOAT32_ROUNDING, FLOAT64_ROUNDING, rounding_of

LEVEL = 0.95


class Surprise(NamedTuple):
    """Tail areas with the 95% interval that the number of simulations leaves; arrays of shape (data sets, 2)."""

    tail_area: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def surprise(log_bf: ArrayLike, reference: Sequence[ArrayLike], *, rounding: bool = False) -> Surprise:
    """Return how surprising log Bayes factors are under the first model and under the second.

    Parameters
    ----------
    log_bf
        Observed log Bayes factors, first model over second.
    reference
        Log Bayes factors of the same estimator at data simulated from the first model, and from the second.
    rounding
        Whether values that differ no more than float32 arithmetic rounds count as equal, as those of a network should.
        Values that differ no more than float64 arithmetic rounds, 1e-9 of their size, always do. Discrete data give
        the same Bayes factor again and again, and ties are then most of a tail area: all of them belong to it.

    Examples
    --------
    >>> at_first, at_second = [-1.0, 0.5, 2.0, 3.0], [-4.0, -3.0, -2.0, 1.0]
    >>> surprise(0.5, (at_first, at_second)).tail_area.tolist()
    [[0.5, 0.25]]
    """
    observed = np.atleast_1d(_checks.check_numeric_array("log_bf", log_bf).astype(np.float64))
    references = _checks.check_log_bfs("reference", reference, ("the first model", "the second model"))
    for name, values in zip(("first", "second"), references, strict=True):
        if np.isnan(values).any():
            raise ValueError(
                f"reference at data of the {name} model has {np.isnan(values).sum()} nan of {len(values)}; "
                "leave them out, or count them as you would count an observed one."
            )
    slack = rounding_of(observed, FLOAT32_ROUNDING if rounding else FLOAT64_ROUNDING)
    counts = np.stack(
        [_count_at_most(observed + slack, references[0]), _count_at_most(slack - observed, -references[1])], axis=-1
    )
    totals = np.array([len(values) for values in references])
    low, high = binomial_interval(counts, totals)
    missing = np.isnan(observed)[:, None]
    return Surprise(*(np.where(missing, np.nan, values) for values in (counts / totals, low, high)))


def _count_at_most(observed: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return how many reference values are at or below each observed one."""
    return np.searchsorted(np.sort(reference), observed, "right")


def binomial_interval(
    successes: NDArray[np.integer], trials: NDArray[np.integer], level: float = LEVEL
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the central interval of a probability, by Clopper and Pearson; 95% by default.

    It covers the probability at least that often, also for no success or nothing but successes; the price is that it
    is somewhat wide. Either end alone is a bound that holds with probability (1 + level) / 2. The shapes of both ends
    are that of the successes.

    Examples
    --------
    Without a success in 1,000 trials, the probability is below 0.003 with 95%, the rule of three:

    >>> low, high = binomial_interval(np.array([0]), np.array([1000]), level=0.9)
    >>> float(low[0]), round(float(high[0]), 4)
    (0.0, 0.003)
    """
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(successes > 0, beta.ppf(tail, successes, trials - successes + 1), 0.0)
        high = np.where(successes < trials, beta.ppf(1 - tail, successes + 1, trials - successes), 1.0)
    return low, high
