"""Where an observed value stands among its predictions: both tail areas, ties in both, and words for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepbf.answer import TailArea
from deepbf.evaluation.tail_areas import binomial_interval

# Either tail of the central 95%.
EXTREME = 0.025
# Values that agree to this share of the largest among them are equal: sums in another order differ by as much.
ROUNDING = 1e-12


class Tails(NamedTuple):
    """Tail areas of an observed value among draws; draws equal to it count in both."""

    at_most: TailArea
    at_least: TailArea
    share_equal: float

    @property
    def smaller(self) -> TailArea:
        """The tail that the observed value lies in."""
        return min(self.at_most, self.at_least, key=lambda area: area.prob)

    @property
    def side(self) -> str:
        """On which side of its predictions the observed value lies."""
        return "small" if self.at_most.prob < self.at_least.prob else "large"

    @property
    def words(self) -> str:
        """Whether the observed value is one that the model predicts: "as predicted", "too large", ..."""
        if self.smaller.high < EXTREME:
            return f"too {self.side}"
        # One that cannot be told from the threshold by this many draws.
        return f"borderline {self.side}" if self.smaller.prob < EXTREME else "as predicted"


def tails_of(observed: float, draws: NDArray[np.float64]) -> Tails:
    """Return both tail areas with 95% intervals by Clopper and Pearson.

    Examples
    --------
    >>> tails = tails_of(2.0, np.array([1.0, 2.0, 3.0, 4.0]))
    >>> tails.at_most.prob, tails.at_least.prob, tails.share_equal
    (0.5, 0.75, 0.25)
    """
    slack = ROUNDING * max(abs(observed), float(np.abs(draws).max()))
    counts = np.array([(draws <= observed + slack).sum(), (draws >= observed - slack).sum()])
    total = np.full(2, len(draws))
    low, high = binomial_interval(counts, total)
    areas = [TailArea(float(counts[k] / len(draws)), float(low[k]), float(high[k])) for k in range(2)]
    return Tails(areas[0], areas[1], float((counts.sum() - len(draws)) / len(draws)))
