"""What a user is told after training near the observed data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from deepbf.answer import Answer, write_odds


@dataclass(frozen=True, kw_only=True)
class TailoredAnswer(Answer):
    """An `Answer` from simulations near the observed data, with how many of each model came near.

    Where a model that the Bayes factor is about came near too rarely, `tailored` is False, `log_bf`, `error` and
    `interval` are those of the global estimator, and a warning says so, with the bound that the counts do give.
    `surprise` and `support` are always those of the global estimator.

    Parameters
    ----------
    tailored
        Whether `log_bf` comes from the simulations near the observed data.
    global_log_bf, global_error
        What the global estimator says, in the same direction.
    num_near, num_screened
        Simulations of each model that came near, and of how many.
    radius
        How near that is: distance between summaries, each column in units of its interquartile range over all models.
    num_simulations
        All simulations of the call, those of the global estimator and of the pilot included.
    """

    tailored: bool
    global_log_bf: float
    global_error: float | None
    num_near: tuple[int, ...]
    num_screened: tuple[int, ...]
    radius: float
    num_simulations: int

    @property
    def acceptance_rates(self) -> tuple[float, ...]:
        """The share of each model's simulations that came near."""
        return tuple(near / screened for near, screened in zip(self.num_near, self.num_screened, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {**super().to_dict(), "acceptance_rates": self.acceptance_rates}

    def __str__(self) -> str:
        counts = zip(self.names, self.num_near, self.num_screened, strict=True)
        near = ", ".join(f"{name} {count:,} of {screened:,}" for name, count, screened in counts)
        sign = 1.0 if self.log_bf >= 0 else -1.0
        error = "" if self.global_error is None else f" +- {self.global_error:.2g}"
        said = [f"  {'near the data':<17} {near}"]
        if self.tailored:
            said.append(f"  {'trained globally':<17} {sign * self.global_log_bf:.2f}{error}")
        first, *rest = super().__str__().split("\n  careful")
        return "\n  careful".join(["\n".join([first, *said]), *rest])


def rate_bounds(num_near: int, num_screened: int) -> tuple[float, float]:
    """Return the lower and the upper limit of an acceptance rate, each at 95% (Clopper and Pearson).

    Examples
    --------
    >>> low, high = rate_bounds(0, 1000)
    >>> low, round(high, 4)
    (0.0, 0.003)
    """
    low = beta.ppf(0.05, num_near, num_screened - num_near + 1) if num_near > 0 else 0.0
    high = beta.ppf(0.95, num_near + 1, num_screened - num_near) if num_near < num_screened else 1.0
    return float(low), float(high)


def far_warning(names: tuple[str, ...], num_near: NDArray[np.int64], num_screened: NDArray[np.int64], far: int) -> str:
    """Return in words that a model came near too rarely, with the bound that its count gives."""
    counted = f"{names[far]} came near the observed data in {num_near[far]:,} of {num_screened[far]:,} simulations"
    high = rate_bounds(int(num_near[far]), int(num_screened[far]))[1]
    rates = [rate_bounds(int(near), int(screened))[0] for near, screened in zip(num_near, num_screened, strict=True)]
    best = int(np.argmax(rates))
    if best == far or rates[best] <= high:
        return f"{counted}, too few to train on, and no other model surely more often: none of them may fit"
    log_bound = float(np.log(rates[best]) - np.log(high))
    return (
        f"{counted}, too few to train on. At most {high:.1e} of its data do (95%), and {rates[best]:.1e} or more of "
        f"those of {names[best]}: for coming so near, at least {write_odds(log_bound)} (log BF {log_bound:.1f}) in "
        f"favour of {names[best]}"
    )
