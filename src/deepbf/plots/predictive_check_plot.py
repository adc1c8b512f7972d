"""A posterior predictive check: a statistic over predictions, and its observed value."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Patch
from numpy.typing import NDArray

from deepbf.plots.axes import axes_or_new, axis_label, legend_beside, wrapped
from deepbf.plots.styles import GUIDE, SKY, VERMILLION

MOST_BARS = 40
# Whole numbers spread no wider than this have a bar each.
MOST_WHOLE = 60


class StatisticCheck(Protocol):
    """One statistic at the observed data, and at predictions."""

    @property
    def name(self) -> str:
        """What the statistic is called."""
        ...

    @property
    def observed(self) -> float:
        """Its observed value."""
        ...

    @property
    def draws(self) -> NDArray[np.float64]:
        """Its values at predictions."""
        ...

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """The 2.5%, 50% and 97.5% quantiles of the predictions."""
        ...

    @property
    def model(self) -> str:
        """The model that made the predictions."""
        ...

    @property
    def verdict(self) -> str:
        """Whether the observed value is as predicted, in words."""
        ...


def predictive_check(check: StatisticCheck, ax: Axes | None = None) -> Axes:
    """Return axes with a histogram of a statistic over predictions, and a line at its observed value.

    Parameters
    ----------
    check
        One statistic of what `deepbf.criticism.predictive_check` returned, such as ``found["sd"]``.
    ax
        Where to draw; None for a new figure.
    """
    axes = axes_or_new(ax)
    axes.hist(
        check.draws,
        bins=_edges(check.draws).tolist(),
        facecolor=to_rgba(SKY, 0.5),
        edgecolor="0.3",
        linewidth=0.6,
        zorder=1,
    )
    bars = Patch(
        facecolor=to_rgba(SKY, 0.5),
        edgecolor="0.3",
        label=wrapped(f"{len(check.draws):,} predictions of {check.model}"),
    )
    low, _, high = check.quantiles
    ends = [axes.axvline(end, color=GUIDE, linestyle=(0, (4, 2)), linewidth=1.3, zorder=2) for end in (low, high)]
    ends[0].set_label(f"2.5% and 97.5%:\n{low:.4g} and {high:.4g}")
    observed = axes.axvline(
        check.observed,
        color=VERMILLION,
        linewidth=2.4,
        zorder=3,
        label=wrapped(f"observed: {check.observed:.4g}, {check.verdict}"),
    )
    axes.set_xlabel(axis_label(check.name))
    axes.set_ylabel("predictions")
    legend_beside(axes, [observed, bars, ends[0]])
    return axes


def _edges(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where bars begin and end: one bar a whole number where draws are few whole numbers."""
    low, high = float(draws.min()), float(draws.max())
    if high - low <= MOST_WHOLE and np.all(draws == np.round(draws)):
        return np.arange(low - 0.5, high + 1.0)
    if low == high:
        # A single bar, wide enough to be seen, whatever the size of the one value.
        reach = 0.5 * max(abs(low), 1.0)
        return np.array([low - reach, low + reach])
    return np.linspace(low, high, min(MOST_BARS, max(5, len(draws) // 10)) + 1)
