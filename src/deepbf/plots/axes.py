"""Axes to draw on, words that fit them, and a legend beside them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D

# What a legend can show; matplotlib's own types leave error bars out.
Handle = Artist | ErrorbarContainer

# Characters that fit beside an axis, and beside a legend's marks, at matplotlib's default sizes.
AXIS_WIDTH = 46
LEGEND_WIDTH = 28
# How much wider a new figure is made, for the legend beside the axes.
WITH_LEGEND = 1.2
# A name longer than this many lines is cut: the rest would push the plot off the page.
NAME_LINES = 3


def axes_or_new(ax: Axes | None, width: float = WITH_LEGEND) -> Axes:
    """Return `ax`, or the axes of a new figure, `width` times as wide as its user's default."""
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
    """Return a legend's entry that is words alone."""
    return Line2D([], [], linestyle="none", marker="none", label=text)


def legend_beside(ax: Axes, handles: Iterable[Handle]) -> None:
    """Put a legend to the right of `ax`, where it hides no data."""
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
