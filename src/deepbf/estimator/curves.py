"""The log Bayes factor as a curve: over the number of observations, and over a hyperparameter of the prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf._numerics import ensemble_error, log_ratio
from deepbf.answer import write_odds
from deepbf.layout.data_layout import Data
from deepbf.models.hyperparameters import check_values, scaled

if TYPE_CHECKING:
    from deepbf.estimator.bayes_factor import BayesFactor


MOST_ROWS_PRINTED = 24


@dataclass(frozen=True)
class LogBfPath:
    """The log Bayes factor of the first observations, for each number of them.

    A Bayes factor may be read after every observation, and the reading stopped at any time: what it says about the
    data so far does not depend on when one meant to stop.

    Parameters
    ----------
    num_obs
        How many observations had arrived, increasing.
    log_bf
        Natural log Bayes factor of `model` over `against` from those.
    error
        Spread of the ensemble's members, as a standard error; None for an ensemble of one.
    model, against
        The direction, by name.
    """

    num_obs: NDArray[np.intp]
    log_bf: NDArray[np.float64]
    error: NDArray[np.float64] | None
    model: str
    against: str

    def first_beyond(self, threshold: float) -> int | None:
        """Return the number of observations at which the Bayes factor first passed `threshold` in either direction."""
        beyond = np.flatnonzero(np.abs(self.log_bf) >= np.log(threshold))
        return int(self.num_obs[beyond[0]]) if len(beyond) else None

    def __str__(self) -> str:
        lines = [f"Log Bayes factor (natural log) of {self.model} over {self.against}, as observations arrive"]
        shown = np.unique(np.linspace(0, len(self.num_obs) - 1, MOST_ROWS_PRINTED).round().astype(int))
        for k in shown:
            error = "" if self.error is None else f" +- {self.error[k]:.2g}"
            favours = self.model if self.log_bf[k] >= 0 else self.against
            odds = write_odds(abs(float(self.log_bf[k])))
            lines.append(f"  {self.num_obs[k]:>6}  {self.log_bf[k]:>8.2f}{error:<9} {odds} for {favours}")
        return "\n".join(lines)


def path_of(bf: BayesFactor, observed: Data, model: int | str, over: int | str, *, extrapolate: bool) -> LogBfPath:
    """Return the path of one observed data set; see `BayesFactor.path`."""
    fewest, _ = need_range(bf, "path")
    layout = bf.layout
    data = layout.check_one("observed", observed, values=bf.values, extrapolate=extrapolate)
    first, second = bf.index_of("model", model), bf.index_of("over", over)
    numbers = np.arange(fewest, int(layout.count(data)[0]) + 1)
    # One data set for each number of observations, of which the rest has yet to arrive. Of mixed data, the arrays that
    # do not grow are there from the start.
    grown = {}
    for array in layout.arrays:
        whole = layout.unpack(data)[array.name]
        repeated = np.repeat(whole, len(numbers), axis=0)
        if array.grows:
            arrived = np.arange(whole.shape[1]) < numbers[:, None]
            repeated = np.where(arrived.reshape(*arrived.shape, *([1] * (whole.ndim - 2))), repeated, np.nan)
        grown[array.name] = repeated
    growing = layout.pack(grown) if layout.packed else grown[layout.arrays[0].name]
    members = log_ratio(bf.log_odds_members(growing), first, second)
    return LogBfPath(numbers, members.mean(axis=0), ensemble_error(members), bf.names[first], bf.names[second])


def need_range(bf: BayesFactor, what: str) -> tuple[int, int]:
    """Return the fewest and the most observations that simulators were asked for in the fit.

    Raises a ValueError, which says that `what` needs such a range, if they were asked for none.
    """
    if bf.layout.num_obs is None or bf.layout.asked is None:
        raise ValueError(
            f"{what} needs an estimator for a range of sample sizes; this one is for data of shape "
            f"{bf.data_shape}. Fit with num_obs=(fewest, most)."
        )
    return bf.layout.num_obs


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
    ranges = bf.layout.hyperparameters
    if not ranges:
        raise ValueError(
            "sensitivity needs models whose priors have hyperparameters; this estimator's have none. Pass "
            "hyperparameters={'scale': (0.1, 10)} to deepbf.Model, and fit."
        )
    if hyperparameter is None and len(ranges) > 1:
        raise ValueError(f"hyperparameter must name one of {', '.join(ranges)}; received None.")
    name = _checks.check_choice("hyperparameter", hyperparameter or next(iter(ranges)), ranges)
    ends = ranges[name]
    # Evenly over the range, on the scale that values were drawn on in training.
    low, high = (float(scaled(ends, end)) for end in ends)
    grid = np.linspace(low, high, _checks.check_count("num_values", num_values, least=2))
    grid = np.exp(grid) if ends[0] > 0 else grid
    # Rounding must not carry the ends out of the range.
    grid[[0, -1]] = ends
    first, second = bf.index_of("model", model), bf.index_of("over", over)
    values = [check_values("at", ranges, {**fixed, name: value}) for value in grid.tolist()]
    rows = [bf.layout.check_one("observed", observed, values=value) for value in values]
    members = log_ratio(bf.log_odds_members(np.concatenate(rows)), first, second)
    return LogBfCurve(
        hyperparameter=name,
        values=grid,
        log_bf=members.mean(axis=0),
        error=ensemble_error(members),
        on_log_scale=ends[0] > 0,
        model=bf.names[first],
        against=bf.names[second],
    )
