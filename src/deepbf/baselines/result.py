"""What every baseline returns: log Bayes factors, their errors, and what a referee would ask about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf._numerics import log_posterior_probs

MOST_ROWS_PRINTED = 10


@dataclass(frozen=True)
class BaselineResult:
    """The answer of one baseline at one or many observed data sets.

    Parameters
    ----------
    method
        The baseline, in words.
    names
        The models' names, in the order that gives every Bayes factor its direction.
    log_evidence
        Log evidence of each model, shape (data sets, K), up to one constant a data set; nan where the method says
        nothing about a model.
    log_bf_error
        Standard error of `log_bf`, one entry a data set: Monte Carlo error alone, not what the method gets wrong.
    diagnostics
        Arrays by name, each with one entry or one row a data set.
    warnings
        What a reader has to know before using the numbers.
    """

    method: str
    names: tuple[str, ...]
    log_evidence: NDArray[np.float64]
    log_bf_error: NDArray[np.float64]
    diagnostics: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def log_bf(self) -> NDArray[np.float64]:
        """Natural log Bayes factor of the first model over the second, one entry a data set."""
        # Data impossible under both models have no Bayes factor: nan.
        with np.errstate(invalid="ignore"):
            return self.log_evidence[:, 0] - self.log_evidence[:, 1]

    def posterior_probs(self, prior_probs: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the models' posterior probabilities, shape (data sets, K); equal prior probabilities if none given."""
        prior = _checks.check_probs("prior_probs", prior_probs, self.names)
        return np.exp(log_posterior_probs(self.log_evidence, np.log(prior)))

    def __str__(self) -> str:
        """Return a few lines: direction, one log Bayes factor a line, warnings."""
        lines = [f"{self.method}: log Bayes factor of {self.names[0]} over {self.names[1]}"]
        for log_bf, error in list(zip(self.log_bf, self.log_bf_error, strict=True))[:MOST_ROWS_PRINTED]:
            lines.append(f"  {log_bf:.3f} +- {error:.3f}")
        if len(self.log_bf) > MOST_ROWS_PRINTED:
            lines.append(f"  and {len(self.log_bf) - MOST_ROWS_PRINTED} more data sets")
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)
