"""Sample-size design: how many observations make strong evidence probable, and misleading evidence rare.

After Schoenbrodt and Wagenmakers (2018): simulate from each model at many sample sizes, and count how often the Bayes
factor passes a threshold in the right and in the wrong direction.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf._files import write_whole
from deepbf.evaluation.decisions import DECISIONS, decision_rates
from deepbf.evaluation.log_bf_arrays import check_names


@dataclass(frozen=True)
class Design:
    """Rates of right, misleading and undecided outcomes against the number of observations.

    Parameters
    ----------
    results
        An `xarray.Dataset`: `rate`, `rate_low` and `rate_high` by `num_obs`, `model` and `decision`, and `needed`,
        `needed_low` and `needed_high` by `model`, the number of observations from which on the wanted probability of
        right evidence is reached; nan where it is not reached, or holds from the first number on only as a bound.
    """

    results: xr.Dataset

    @property
    def names(self) -> tuple[str, str]:
        """The two models."""
        return self.results.attrs["first"], self.results.attrs["second"]

    def needed(self, model: str) -> int | None:
        """Return the number of observations that a model needs, or None if none of those tried is enough."""
        name = _checks.check_choice("model", model, self.names)
        value = float(self.results["needed"].sel(model=name))
        return None if math.isnan(value) else int(value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file: netCDF, or JSON if the name ends in .json."""
        if Path(path).suffix == ".json":
            write_whole(path, json.dumps(self.to_dict(), indent=1).encode())
        else:
            write_whole(path, bytes(self.results.to_netcdf(engine="scipy")))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        rates = self.results["rate"]
        return {
            **{name: value for name, value in self.results.attrs.items()},
            "num_obs": self.results["num_obs"].values.tolist(),
            "rates": {
                name: {str(d): rates.sel(model=name, decision=d).values.tolist() for d in rates["decision"].values}
                for name in self.names
            },
            "needed": {name: self.needed(name) for name in self.names},
        }

    def __str__(self) -> str:
        threshold, power = self.results.attrs["threshold"], self.results.attrs["power"]
        lines = [f"Evidence of {threshold:g} to 1 or more, with a probability of {power:g}"]
        lines += [f"  if {name} is true: {self._written_need(name)}" for name in self.names]
        lines += ["", f"{'observations':>12}" + "".join(f"  {name:>26}" for name in self.names)]
        lines += [f"{'':>12}" + f"  {'right  misleading  neither':>26}" * 2]
        for number in self.results["num_obs"].values:
            cells = ""
            for name in self.names:
                rate = self.results["rate"].sel(num_obs=number, model=name)
                right, misleading, undecided = (float(rate.sel(decision=decision)) for decision in DECISIONS)
                cells += f"  {right:>9.3f} {misleading:>8.3f} {undecided:>7.3f}"
            lines.append(f"{number:>12}{cells}")
        return "\n".join(lines)

    def _written_need(self, name: str) -> str:
        found = self.results.sel(model=name)
        low, high = float(found["needed_low"]), float(found["needed_high"])
        number, most = self.needed(name), int(self.results["num_obs"].max())
        if number is None:
            return f"more than {most} observations, the most that were tried"
        upper = f"{high:.0f}" if math.isfinite(high) else f"more than {most}"
        return f"{number} observations (95% interval {low:.0f} to {upper})"


def design_from(
    log_bf: Mapping[int, Sequence[ArrayLike]],
    *,
    names: Sequence[str],
    threshold: float = 10.0,
    power: float = 0.8,
) -> Design:
    """Return the design from log Bayes factors by number of observations.

    Parameters
    ----------
    log_bf
        By number of observations: natural log Bayes factors of the first model over the second, at data of the first
        model, and at data of the second.
    names
        The two models.
    threshold
        The Bayes factor, or one over it, from which on evidence counts.
    power
        The wanted probability of evidence for the right model.
    """
    names = check_names(names)
    threshold = _checks.check_positive("threshold", threshold)
    if threshold < 1:
        raise ValueError(
            f"threshold must be a Bayes factor of at least 1; received {threshold}. Pass, for example, 10."
        )
    if not 0 < power < 1:
        raise ValueError(f"power must be a probability between 0 and 1; received {power}. Pass, for example, 0.8.")
    if not log_bf:
        raise ValueError("log_bf must hold at least one number of observations; received none.")
    numbers = sorted(_checks.check_count("num_obs", number) for number in log_bf)
    rates = [
        decision_rates(_checks.check_log_bfs(f"log_bf[{number}]", log_bf[number], names), (threshold,))
        for number in numbers
    ]
    stacked = {name: np.stack([getattr(one, name)[:, 0] for one in rates]) for name in ("rate", "low", "high")}
    right = {name: values[:, :, 0] for name, values in stacked.items()}
    dims = ("num_obs", "model", "decision")
    results = xr.Dataset(
        {
            "rate": (dims, stacked["rate"]),
            "rate_low": (dims, stacked["low"]),
            "rate_high": (dims, stacked["high"]),
            # A rate that may be higher is reached sooner.
            "needed": (("model",), [reached(numbers, right["rate"][:, k], power) for k in range(2)]),
            "needed_low": (("model",), [reached(numbers, right["high"][:, k], power) for k in range(2)]),
            "needed_high": (("model",), [reached(numbers, right["low"][:, k], power) for k in range(2)]),
        },
        coords={"num_obs": numbers, "model": list(names), "decision": list(DECISIONS)},
        attrs={"first": names[0], "second": names[1], "threshold": threshold, "power": power},
    )
    return Design(results)


def reached(numbers: Sequence[int], rates: NDArray[np.float64], power: float) -> float:
    """Return the smallest number of observations from which on the rate is at least `power`; nan if none is.

    Between the numbers tried, the rate is taken as a straight line in the logarithm of the number.
    """
    if rates[-1] < power:
        return math.nan
    below = np.flatnonzero(rates < power)
    if len(below) == 0:
        return float(numbers[0])
    last = int(below[-1])
    share = (power - rates[last]) / (rates[last + 1] - rates[last])
    log_low, log_high = math.log(numbers[last]), math.log(numbers[last + 1])
    return float(math.ceil(math.exp(log_low + share * (log_high - log_low)) - 1e-9))
