"""Sequential reading: the log Bayes factor as observations arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepbf._mixed import MixedForm
from deepbf._numerics import log_ratio
from deepbf.answer import write_odds
from deepbf.estimator.observed_data import Data

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
    data = np.asarray(bf.check_data("observed", observed, extrapolate))
    if len(data) != 1:
        raise ValueError(f"observed must be one data set; received {len(data)}. Pass one of them.")
    first, second = bf.index_of("model", model), bf.index_of("over", over)
    numbers, growing = growing_data(data, fewest, bf.count_observations(data), bf.ensemble.form)
    members = log_ratio(bf.log_odds_members(growing), first, second)
    error = members.std(axis=0, ddof=1) if len(members) > 1 else None
    return LogBfPath(numbers, members.mean(axis=0), error, bf.names[first], bf.names[second])


def need_range(bf: BayesFactor, what: str) -> tuple[int, int]:
    """Return the range of the number of observations, if simulators were asked for one."""
    if bf.num_obs is None or not bf.ensemble.num_obs_asked:
        raise ValueError(
            f"{what} needs an estimator for a range of sample sizes; this one is for data of shape "
            f"{bf.data_shape}. Fit with num_obs=(fewest, most)."
        )
    return bf.num_obs


def growing_data(
    data: NDArray[np.generic], fewest: int, number: int, form: MixedForm | None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the numbers from `fewest` to `number`, and one data set for each, of which the rest has yet to arrive.

    `data` holds one data set along its leading axis. Of mixed data, the arrays that do not grow are there from the
    start.
    """
    numbers = np.arange(fewest, number + 1)
    if form is None:
        return numbers, _first_ones(data, numbers)
    arrays = form.unpack(data)
    growing = {part.name for part in form.parts if part.grows}
    repeated = {name: np.repeat(array, len(numbers), axis=0) for name, array in arrays.items() if name not in growing}
    return numbers, form.pack({name: _first_ones(arrays[name], numbers) for name in growing} | repeated)


def _first_ones(data: NDArray[np.generic], numbers: NDArray[np.intp]) -> NDArray[np.float64]:
    arrived = np.arange(data.shape[1]) < numbers[:, None]
    return np.where(arrived.reshape(*arrived.shape, *([1] * (data.ndim - 2))), data, np.nan)
