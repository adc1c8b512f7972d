"""Axes to draw on: the words that fit them, a legend beside them, and the scales of log Bayes factors and of counts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.scale import SymmetricalLogTransform
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    Locator,
    NullFormatter,
    NullLocator,
    SymmetricalLogLocator,
)
from numpy.typing import ArrayLike, NDArray

# What a legend can show; matplotlib's own types leave error bars out.
Handle = Artist | ErrorbarContainer

# Characters that fit beside an axis, and beside a legend's marks, at matplotlib's default sizes.
AXIS_WIDTH = 46
LEGEND_WIDTH = 28
# How much wider a new figure is made, for the legend beside the axes.
WITH_LEGEND = 1.2
# A name longer than this many lines is cut: the rest would push the plot off the page.
NAME_LINES = 3

# A linear axis that reaches further hides the decision, which is made near 0.
LINEAR_REACH = 50.0
# Beyond Bayes factors of exp(10), one in 22,000, only the order of magnitude is of interest.
LINEAR_PART = 10.0
# Decades that each half of the linear part takes up: matplotlib's default, which colour maps must share.
LINEAR_DECADES = 1.0
# Transformed limits stay exact up to here; larger values stand at the edge.
GREATEST_REACH = 1e15
MARGIN = 0.04
# More ticks of numbers of observations than this run into each other.
MOST_TICKS = 10


def axes_or_new(ax: Axes | None, width: float = WITH_LEGEND) -> Axes:
    """Return `ax`, or the axes of a new figure, `width` times as wide as its user's default.

    Every plot begins with it: what is not axes is refused here, before anything is drawn.
    """
    if ax is None:
        # Only here: whoever passes axes needs no pyplot, and no graphical backend.
        from matplotlib import pyplot

        usual_width, height = pyplot.rcParams["figure.figsize"]
        return pyplot.subplots(figsize=(width * usual_width, height), layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be matplotlib Axes or None; received {type(ax).__name__}. "
            "Pass one of the axes that matplotlib.pyplot.subplots returned."
        )
    return ax


def wrapped(text: str, width: int = LEGEND_WIDTH, max_lines: int = NAME_LINES) -> str:
    r"""Return `text` broken into lines of at most `width` characters, to be shown as it stands.

    Examples
    --------
    >>> wrapped("process dissociation with guessing", width=20)
    'process dissociation\nwith guessing'
    """
    lines = textwrap.fill(" ".join(text.split()), width, max_lines=max_lines, placeholder=" …")
    # Models may be called anything: a dollar would start mathematics, a leading underscore hides a legend's entry.
    lines = lines.replace("$", r"\$")
    return f" {lines}" if lines.startswith("_") else lines


def axis_label(*phrases: str, width: int = AXIS_WIDTH) -> str:
    r"""Return the phrases on one line if they fit, else each on lines of its own.

    Examples
    --------
    >>> axis_label("predicted probability of", "Stroop")
    'predicted probability of Stroop'
    """
    phrases = tuple(phrase for phrase in phrases if phrase)
    joined = " ".join(phrases)
    if len(joined) <= width:
        return wrapped(joined, width)
    return "\n".join(wrapped(phrase, width) for phrase in phrases)


def note(text: str) -> Line2D:
    """Return a legend's entry that is words alone.

    It tells, for example, how many values could not be drawn.
    """
    return Line2D([], [], linestyle="none", marker="none", label=text)


def legend_beside(ax: Axes, handles: Iterable[Handle]) -> None:
    """Put a legend to the right of `ax`, where it hides no data.

    Constrained layouts leave room for it.
    """
    ax.legend(
        handles=list(handles),  # pyright: ignore[reportArgumentType]
        loc="upper left",
        bbox_to_anchor=(1.03, 1.0),
        borderaxespad=0.0,
        frameon=False,
        fontsize="small",
        # Long enough for the longest dashes to repeat.
        handlelength=2.8,
    )


@dataclass(frozen=True)
class Span:
    """The range of log Bayes factors that an axis shows, 0 included, which settles its scale too."""

    low: float
    high: float

    @classmethod
    def of(cls, *values: ArrayLike, reach: float = GREATEST_REACH) -> Span:
        """Return the span of all finite values, which `reach` bounds on either side."""
        pooled = np.concatenate([np.ravel(np.asarray(part, dtype=np.float64)) for part in values])
        finite = np.clip(pooled[np.isfinite(pooled)], -reach, reach)
        low, high = float(np.min(finite, initial=0.0)), float(np.max(finite, initial=0.0))
        return cls(low, high) if low < high else cls(-1.0, 1.0)

    @property
    def is_far(self) -> bool:
        """Whether the axis is logarithmic away from 0."""
        return max(abs(self.low), abs(self.high)) > LINEAR_REACH

    @property
    def scale_words(self) -> str:
        """What to say of the scale, if it is not linear."""
        return f"(linear to ±{LINEAR_PART:g}, then log base 10)" if self.is_far else ""

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the axis: the span and a margin, on the axis's own scale."""
        ends = np.array([self.low, self.high])
        if not self.is_far:
            low, high = ends + np.ptp(ends) * MARGIN * np.array([-1.0, 1.0])
            return float(low), float(high)
        transform = SymmetricalLogTransform(10, LINEAR_PART, LINEAR_DECADES)
        on_page = np.asarray(transform.transform(ends))
        on_page = on_page + np.ptp(on_page) * MARGIN * np.array([-1.0, 1.0])
        low, high = transform.inverted().transform(on_page)
        return float(low), float(high)

    def outside(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Return where values are infinite or lie beyond the span."""
        array = np.asarray(values, dtype=np.float64)
        return (array < self.low) | (array > self.high)

    def at_edge(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the values with those outside moved to the end of the axis."""
        array = np.asarray(values, dtype=np.float64)
        low, high = self.limits
        return np.where(array < self.low, low, np.where(array > self.high, high, array))

    def show(self, ax: Axes, which: Literal["x", "y"]) -> None:
        """Give one axis of `ax` this span and its scale."""
        if self.is_far:
            set_scale = ax.set_xscale if which == "x" else ax.set_yscale
            set_scale("symlog", base=10, linthresh=LINEAR_PART, linscale=LINEAR_DECADES)
            axis = ax.xaxis if which == "x" else ax.yaxis
            axis.set_major_locator(self.locator())
            axis.set_minor_locator(self.minor_locator())
            axis.set_minor_formatter(NullFormatter())
            axis.set_major_formatter(FuncFormatter(lambda value, _: write_tick(value)))
        set_limits = ax.set_xlim if which == "x" else ax.set_ylim
        set_limits(*self.limits)

    def locator(self) -> SymmetricalLogLocator:
        """Return the labelled ticks of a far axis: powers of ten, few enough to stand side by side."""
        # Below 100 there is a single power of ten either side, which says too little.
        subs = (1.0, 5.0) if max(abs(self.low), abs(self.high)) < 100 else (1.0,)
        return _locator(subs, numticks=5)

    def minor_locator(self) -> Locator:
        """Return the other ticks of a far axis: every power of ten, or what lies between while those are few."""
        is_short = max(abs(self.low), abs(self.high)) < 10_000
        return _locator(range(2, 10) if is_short else (1.0,), numticks=100)


def _locator(subs: Sequence[float], numticks: int) -> SymmetricalLogLocator:
    locator = SymmetricalLogLocator(base=10, linthresh=LINEAR_PART, subs=subs)
    locator.set_params(numticks=numticks)
    return locator


def write_tick(value: float) -> str:
    """Return a round number as short as it is said.

    Examples
    --------
    >>> write_tick(50.0), write_tick(-1e5)
    ('50', '$-10^{5}$')
    """
    if abs(value) < 1000:
        return f"{value:g}".replace("-", "\N{MINUS SIGN}")
    return f"${'-' if value < 0 else ''}10^{{{np.log10(abs(value)):.0f}}}$"


def log_bf_label(
    names: Sequence[str], *, kind: str = "", span: Span | None = None, extra: str = "", width: int = AXIS_WIDTH
) -> str:
    """Return the words for an axis of log Bayes factors: which, in which base, of which model over which.

    Examples
    --------
    >>> log_bf_label(["A", "B"])
    'log Bayes factor (natural log), A over B'
    """
    first, second = names
    what = f"{kind} log Bayes factor (natural log),".lstrip()
    return axis_label(what, f"{first} over {second}", span.scale_words if span else "", extra, width=width)


def show_num_obs(axes: Axes, num_obs: Sequence[int]) -> None:
    """Make the x axis one of numbers of observations, in log base 2, with a tick at each while there is room.

    `num_obs` increases; of more than ten numbers, every second or third has a tick.
    """
    axes.set_xscale("log", base=2)
    every = -(-len(num_obs) // MOST_TICKS)
    axes.xaxis.set_major_locator(FixedLocator([float(n) for n in num_obs[::every]]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    margin = 2**0.4
    axes.set_xlim(num_obs[0] / margin, num_obs[-1] * margin)
    axes.set_xlabel("number of observations (log base 2)")
