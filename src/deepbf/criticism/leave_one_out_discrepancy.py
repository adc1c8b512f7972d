"""The leave-one-out discrepancy: how far observations lie from what the others predict (Section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.answer import TailArea, write_tail_area
from deepbf.criticism.posterior_predictive_check import Tails, Verdict, tails_of
from deepbf.criticism.predictive_source import (
    PredictiveSource,
    check_observed,
    check_source,
    checked_draws,
    draw_predictive,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LeaveOneOut:
    """The mean squared distance of observations from their leave-one-out expectations, among that of predictions.

    Parameters
    ----------
    discrepancy
        The discrepancy of the observed data, in squared units of the data.
    replicates
        The discrepancies of data sets from the posterior predictive, shape (num_replicates,).
    model
        The model, by name.
    num_obs
        The number of observations in a data set.
    num_draws
        The number of predictive draws behind each expectation.
    """

    discrepancy: float
    replicates: Floats
    model: str
    num_obs: int
    num_draws: int

    @property
    def tails(self) -> Tails:
        """Both tail areas of the discrepancy."""
        return tails_of(self.discrepancy, self.replicates)

    @property
    def tail_area(self) -> TailArea:
        """The probability of a discrepancy at least as large, if the model were true; small speaks against it."""
        return self.tails.at_least

    @property
    def verdict(self) -> str:
        """What the discrepancy says about the model, in words."""
        found = self.tails.verdict
        if found == Verdict.AS_PREDICTED:
            return f"observations lie as far from what the others predict as {self.model} says: no sign against it here"
        where = "farther from" if found in {Verdict.TOO_LARGE, Verdict.BORDERLINE_LARGE} else "closer to"
        said = f"observations lie {where} what the others predict than {self.model} says"
        return f"{said}: it does not fit them" if found.fails else f"borderline, more replications would tell: {said}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "model": self.model,
            "num_obs": self.num_obs,
            "num_draws": self.num_draws,
            "num_replicates": len(self.replicates),
            "discrepancy": self.discrepancy,
            "tail_area": self.tails.at_least._asdict(),
            "lower_tail_area": self.tails.at_most._asdict(),
            "verdict": self.verdict,
            "replicates": self.replicates.tolist(),
        }

    def __str__(self) -> str:
        low, high = np.quantile(self.replicates, [0.025, 0.975])
        rows = [
            ("discrepancy", f"{self.discrepancy:.4g}; 95% of predictions {low:.4g} to {high:.4g}"),
            ("as large", f"{write_tail_area(self.tails.at_least)}; as small {write_tail_area(self.tails.at_most)}"),
            ("from", f"{len(self.replicates):,} predictions, {self.num_draws:,} draws for each expectation"),
        ]
        said = self.verdict[0].upper() + self.verdict[1:]
        return "\n".join([said, *(f"  {label:<11} {text}" for label, text in rows)])


def leave_one_out(
    sampler: PredictiveSource, observed: ArrayLike, *, num_draws: int = 200, num_replicates: int = 200, seed: int = 0
) -> LeaveOneOut:
    """Return the mean over observations of (Y_i - E[Y_i given the others])^2, and its tail area.

    The reference is the same discrepancy of data sets from the posterior predictive, each with expectations of its
    own. That takes num_replicates + 1 calls of ``sampler.leave_one_out``, each with num_obs x num_draws predictive
    draws: 5 million draws by default at n = 128.

    Expectations are means of `num_draws` draws; what their noise adds to the squares, variance / num_draws, is taken
    off. Of vector observations, squares are summed over columns: bring them to one scale first.

    Parameters
    ----------
    sampler
        A posterior sampler of the model in question, for data sets of this size and of one observation fewer: fit it
        with ``num_obs=(n - 1, n)``.
    observed
        One data set of at least 2 exchangeable observations.
    num_draws
        The number of predictive draws behind each expectation.
    num_replicates
        The number of data sets from the posterior predictive.
    seed
        The same seed gives the same result.

    Examples
    --------
    >>> import numpy as np
    >>> from deepbf import Model
    >>> from deepbf.criticism import ExactPosterior
    >>> standard = Model("standard normal", simulator=lambda rng, size, num_obs: rng.normal(size=(size, num_obs)))
    >>> wide = np.random.default_rng(1).normal(0.0, 3.0, 20)
    >>> found = leave_one_out(ExactPosterior(standard, None), wide)
    >>> found.verdict
    'observations lie farther from what the others predict than standard normal says: it does not fit them'
    """
    sampler = check_source(sampler)
    num_draws = _checks.check_count("num_draws", num_draws, least=2)
    num_replicates = _checks.check_count("num_replicates", num_replicates)
    seed = _checks.check_seed("seed", seed)
    values = check_observed(
        sampler.model,
        observed,
        least=2,
        why="with one alone there are no others to predict it from; use predictive_check.",
    )
    seeds = [int(state) for state in np.random.SeedSequence(seed).generate_state(num_replicates + 2)]
    predicted = draw_predictive(sampler, values, num_replicates, seeds[0])
    wanted = (len(values), num_draws, *values.shape[1:])
    discrepancies = []
    for data, data_seed in zip([values, *predicted], seeds[1:], strict=True):
        drawn = sampler.leave_one_out(data, num_draws, seed=data_seed)
        draws = checked_draws(sampler.model, drawn, wanted, "leave-one-out predictive")
        # The squared distance from the mean of the draws, less what the noise of that mean adds to it.
        squares = (data - draws.mean(axis=1)) ** 2 - draws.var(axis=1, ddof=1) / num_draws
        discrepancies.append(float(squares.reshape(len(data), -1).sum(axis=1).mean()))
    return LeaveOneOut(discrepancies[0], np.array(discrepancies[1:]), sampler.model.name, len(values), num_draws)
