"""PredictiveCheck: where statistics of the observed data stand among those of a model's predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.answer import write_tail_area
from deepbf.criticism.tails import Tails, tails_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StatisticCheck:
    """One statistic: its observed value, and its values at data sets from the posterior predictive.

    Parameters
    ----------
    name
        What the statistic is called.
    observed
        Its value at the observed data.
    draws
        Its values at predictions, shape (num_draws,).
    model
        The model, by name.
    """

    name: str
    observed: float
    draws: Floats
    model: str

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """The 2.5%, 50% and 97.5% quantiles of the predictions."""
        low, middle, high = np.quantile(self.draws, [0.025, 0.5, 0.975])
        return float(low), float(middle), float(high)

    @property
    def tails(self) -> Tails:
        """Both tail areas of the observed value; predictions equal to it count in both."""
        return tails_of(self.observed, self.draws)

    @property
    def verdict(self) -> str:
        """Whether the model predicts the observed value: "as predicted", "too large", "borderline small", ..."""
        return self.tails.words

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        low, middle, high = self.quantiles
        return {
            "name": self.name,
            "observed": self.observed,
            "low": low,
            "median": middle,
            "high": high,
            "at_most": self.tails.at_most._asdict(),
            "at_least": self.tails.at_least._asdict(),
            "share_equal": self.tails.share_equal,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class PredictiveCheck:
    """Statistics of the observed data among those of data sets from the posterior predictive.

    Parameters
    ----------
    checks
        One a statistic, in the order given.
    model
        The model, by name.
    num_draws
        Data sets from the posterior predictive.
    """

    checks: tuple[StatisticCheck, ...]
    model: str
    num_draws: int

    @property
    def names(self) -> tuple[str, ...]:
        """The statistics, by name."""
        return tuple(check.name for check in self.checks)

    def __getitem__(self, name: str) -> StatisticCheck:
        return self.checks[self.names.index(_checks.check_choice("statistic", name, self.names))]

    @property
    def verdict(self) -> str:
        """What the statistics say about the model, in words."""
        failed = [f"{check.name} ({check.verdict})" for check in self.checks if check.verdict.startswith("too")]
        if failed:
            return f"{self.model} does not predict the observed {', '.join(failed)}"
        nearly = [f"{check.name} ({check.verdict})" for check in self.checks if check.verdict != "as predicted"]
        if nearly:
            return f"borderline: {self.model} hardly predicts the observed {', '.join(nearly)}"
        return f"{self.model} predicts the observed {', '.join(self.names)}: no sign against it here"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "model": self.model,
            "num_draws": self.num_draws,
            "verdict": self.verdict,
            "statistics": [check.to_dict() for check in self.checks],
        }

    def __str__(self) -> str:
        width = max(12, *(len(name) for name in self.names))
        lines = [self.verdict[0].upper() + self.verdict[1:] if self.verdict.startswith("borderline") else self.verdict]
        lines.append(f"  {'':<{width}} {'observed':>10} {'95% of predictions':>23} {'as small':>24} {'as large':>24}")
        for check in self.checks:
            low, _, high = check.quantiles
            span = f"{low:.4g} to {high:.4g}"
            small, large = write_tail_area(check.tails.at_most), write_tail_area(check.tails.at_least)
            lines.append(
                f"  {check.name:<{width}} {check.observed:>10.4g} {span:>23} {small:>24} {large:>24}  {check.verdict}"
            )
        lines.append(f"  from {self.num_draws:,} predictions; those equal to the observed value count on both sides")
        return "\n".join(lines)
