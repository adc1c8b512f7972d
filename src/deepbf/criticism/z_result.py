"""ZValues: how well a classifier told the observed data from a model's predictions, and what to make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf.evaluation.density import common_grid, density

Floats = NDArray[np.float64]

HALF = 0.5
TAIL = 0.025
# Of 1,500 data sets simulated from the model itself (Data 1, 2 and 3, n = 3, 8 and 128), none had 1/2 so far out.
BORDERLINE_TAIL = 0.1
# Independent fits of the same problem agree in Z to about this much; nobody's verdict should hang on less.
ROUNDING = 1e-9


@dataclass(frozen=True)
class ZValues:
    """Draws of Z, the mean probability of being observed that a classifier gives to fresh predictions of a model.

    Parameters
    ----------
    z
        One entry a replication. Near 1/2 the classifier cannot tell predictions from the observed data; near 0 it
        tells them apart without an error.
    model
        The model that made the predictions, by name.
    num_obs
        Observations in the observed data, and in each prediction.
    classifier
        The classifier, in words.
    refit
        Whether the classifier was trained anew for every replication.
    num_unconverged
        Replications whose classifier did not reach its optimum; they are kept.
    """

    z: Floats
    model: str
    num_obs: int
    classifier: str
    refit: bool
    num_unconverged: int = 0

    @property
    def low(self) -> float:
        """The 2.5% quantile of Z."""
        return float(np.quantile(self.z, TAIL))

    @property
    def high(self) -> float:
        """The 97.5% quantile of Z."""
        return float(np.quantile(self.z, 1 - TAIL))

    @property
    def mean(self) -> float:
        """The mean of Z."""
        return float(self.z.mean())

    @property
    def covers_half(self) -> bool:
        """Whether 1/2 lies between the 2.5% and the 97.5% quantile."""
        return self.low - ROUNDING <= HALF <= self.high + ROUNDING

    @property
    def tail_of_half(self) -> float:
        """The smaller of the shares of Z on either side of 1/2; near 0 if 1/2 lies at the edge or beyond."""
        at_least, at_most = self.z >= HALF - ROUNDING, self.z <= HALF + ROUNDING
        return float(min(at_least.mean(), at_most.mean()))

    @property
    def verdict(self) -> str:
        """What Z says about the model, in words."""
        if not self.covers_half:
            return f"predictions of {self.model} are told from the observed data: it does not fit them"
        if self.tail_of_half < BORDERLINE_TAIL:
            return f"borderline: predictions of {self.model} are nearly told from the observed data"
        return f"predictions of {self.model} are not told from the observed data: no sign against it here"

    def density(self) -> tuple[Floats, Floats]:
        """Return a grid and the kernel density of Z on it, for plots."""
        values = self.z if len(self.z) > 1 else np.repeat(self.z, 2)
        grid = common_grid([values])
        return grid, density(values, grid)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "model": self.model,
            "num_obs": self.num_obs,
            "num_replicates": len(self.z),
            "classifier": self.classifier,
            "refit": self.refit,
            "mean": self.mean,
            "low": self.low,
            "high": self.high,
            "covers_half": self.covers_half,
            "tail_of_half": self.tail_of_half,
            "verdict": self.verdict,
            "num_unconverged": self.num_unconverged,
            "z": self.z.tolist(),
        }

    def __str__(self) -> str:
        inside = "1/2 lies inside" if self.covers_half else "1/2 lies outside"
        how = "trained anew each time" if self.refit else "trained once"
        rows = [
            ("Z", f"mean {self.mean:.3f}, 95% of draws {self.low:.3f} to {self.high:.3f}; {inside}"),
            ("classifier", f"{self.classifier}, {how}"),
            ("from", f"{len(self.z):,} predictions of {self.num_obs} observations"),
        ]
        if not self.refit:
            rows.append(("careful", "what the classifier learned from one prediction shifts every Z alike"))
        if self.num_unconverged:
            rows.append(("careful", f"{self.num_unconverged:,} fits did not reach their optimum"))
        said = self.verdict[0].upper() + self.verdict[1:]
        return "\n".join([said, *(f"  {label:<11} {text}" for label, text in rows)])
