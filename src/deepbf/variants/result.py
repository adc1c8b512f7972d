"""What a variant of the Bayes factor is told as: log Bayes factors with both of their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepbf._jeffreys import strength_on_jeffreys_scale
from deepbf.answer import write_odds

MOST_ROWS_PRINTED = 12


@dataclass(frozen=True)
class VariantBayesFactor:
    """Log Bayes factors of some variant, one entry a data set.

    Parameters
    ----------
    variant
        Which one, in words.
    log_bf
        Natural log, of `model` over `against`.
    error
        Spread of the ensemble's members, as a standard error; None for an ensemble of one.
    monte_carlo_error
        What choosing some subsets at random adds; None where all of them were used, or none are needed.
    num_subsets, num_possible
        Training samples that were averaged over, and how many there are; 0 where there is nothing to average.
    doubtful
        Where one of the Bayes factors that the variant is made of is larger than the simulations can show: their
        ratio then rests on the form of the network.
    model, against
        The direction, by name.
    """

    variant: str
    log_bf: NDArray[np.float64]
    error: NDArray[np.float64] | None
    monte_carlo_error: NDArray[np.float64] | None
    num_subsets: int
    num_possible: int
    doubtful: NDArray[np.bool_]
    model: str
    against: str

    def __str__(self) -> str:
        lines = [f"Log {self.variant} Bayes factor (natural log) of {self.model} over {self.against}"]
        for k in range(min(len(self.log_bf), MOST_ROWS_PRINTED)):
            lines.append(f"  {self._written(k)}")
        if len(self.log_bf) > MOST_ROWS_PRINTED:
            lines.append(f"  ... and {len(self.log_bf) - MOST_ROWS_PRINTED} more")
        if self.num_possible:
            which = "all" if self.monte_carlo_error is None else f"{self.num_subsets:,} random ones"
            lines.append(f"  over {which} of {self.num_possible:,} training samples")
        if self.doubtful.any():
            lines.append(
                f"  careful: of {int(self.doubtful.sum())} data sets, a Bayes factor behind the variant is beyond what "
                "the simulations show; trust neither its digits nor its direction there"
            )
        return "\n".join(lines)

    def _written(self, k: int) -> str:
        value = float(self.log_bf[k])
        errors = [] if self.error is None else [f"+- {self.error[k]:.2g} (training)"]
        errors += [] if self.monte_carlo_error is None else [f"+- {self.monte_carlo_error[k]:.2g} (subsets)"]
        favours = self.model if value >= 0 else self.against
        return (
            f"{value:>9.2f} {' '.join(errors)}  {write_odds(abs(value))} for {favours}, "
            f"{strength_on_jeffreys_scale(value)}"
        )
