"""Prior sensitivity: the log Bayes factor at the observed data as a curve over a hyperparameter of the prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf._numerics import log_ratio
from deepbf.answer import write_odds
from deepbf.estimator.observed_data import Data
from deepbf.models.hyperparameters import Ranges, scaled

if TYPE_CHECKING:
    from deepbf.estimator.bayes_factor import BayesFactor

MOST_ROWS_PRINTED = 24


@dataclass(frozen=True)
class LogBfCurve:
    """The log Bayes factor of one data set, for each value of a hyperparameter.

    Parameters
    ----------
    hyperparameter
        Its name.
    values
        Its values, increasing.
    log_bf
        Natural log Bayes factor of `model` over `against` there.
    error
        Spread of the ensemble's members, as a standard error; None for an ensemble of one.
    on_log_scale
        Whether the values are spread over a log scale.
    model, against
        The direction, by name.
    """

    hyperparameter: str
    values: NDArray[np.float64]
    log_bf: NDArray[np.float64]
    error: NDArray[np.float64] | None
    on_log_scale: bool
    model: str
    against: str

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest log Bayes factor on the curve: what the choice of the prior can do."""
        return float(self.log_bf.min()), float(self.log_bf.max())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "hyperparameter": self.hyperparameter,
            "values": self.values.tolist(),
            "log_bf": self.log_bf.tolist(),
            "error": None if self.error is None else self.error.tolist(),
            "model": self.model,
            "against": self.against,
        }

    def __str__(self) -> str:
        lines = [f"Log Bayes factor (natural log) of {self.model} over {self.against}, by {self.hyperparameter}"]
        for k in np.unique(np.linspace(0, len(self.values) - 1, MOST_ROWS_PRINTED).round().astype(int)):
            error = "" if self.error is None else f" +- {self.error[k]:.2g}"
            favours = self.model if self.log_bf[k] >= 0 else self.against
            odds = write_odds(abs(float(self.log_bf[k])))
            lines.append(f"  {self.values[k]:>9.4g}  {self.log_bf[k]:>8.2f}{error:<9} {odds} for {favours}")
        return "\n".join(lines)


def curve_over(
    bf: BayesFactor,
    observed: Data,
    hyperparameter: str | None,
    *,
    num_values: int,
    model: int | str,
    over: int | str,
    fixed: Mapping[str, float],
) -> LogBfCurve:
    """Return the curve of one observed data set; see `BayesFactor.sensitivity`."""
    ranges = bf.ensemble.hyperparameters
    if not ranges:
        raise ValueError(
            "sensitivity needs models whose priors have hyperparameters; this estimator's have none. Pass "
            "hyperparameters={'scale': (0.1, 10)} to deepbf.Model, and fit."
        )
    if hyperparameter is None and len(ranges) > 1:
        raise ValueError(f"hyperparameter must name one of {', '.join(ranges)}; received None.")
    name = _checks.check_choice("hyperparameter", hyperparameter or next(iter(ranges)), ranges)
    grid = grid_over(ranges, name, _checks.check_count("num_values", num_values, least=2))
    first, second = bf.index_of("model", model), bf.index_of("over", over)
    rows = [bf.at(**{**fixed, name: value}).check_data("observed", observed) for value in grid.tolist()]
    if len(rows[0]) != 1:
        raise ValueError(f"observed must be one data set; received {len(rows[0])}. Pass one of them.")
    members = log_ratio(bf.log_odds_members(np.concatenate(rows)), first, second)
    return LogBfCurve(
        hyperparameter=name,
        values=grid,
        log_bf=members.mean(axis=0),
        error=members.std(axis=0, ddof=1) if len(members) > 1 else None,
        on_log_scale=ranges[name][0] > 0,
        model=bf.names[first],
        against=bf.names[second],
    )


def grid_over(ranges: Ranges, name: str, number: int) -> NDArray[np.float64]:
    """Return values evenly over the range, on the scale that they were drawn on in training."""
    ends = ranges[name]
    low, high = (float(scaled(ends, end)) for end in ends)
    grid = np.linspace(low, high, number)
    values = np.exp(grid) if ends[0] > 0 else grid
    # Rounding must not carry the ends out of the range.
    values[[0, -1]] = ends
    return values
