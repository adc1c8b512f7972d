"""Many plots on one page: a grid of axes, one legend for all, no label said twice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

# Inches of one panel, by default.
PANEL = (3.0, 2.8)
# Inches of a legend's entry: at least, of its symbol with the gaps around it, and of a letter.
ENTRY_WIDTH = 2.2
SYMBOL_WIDTH = 0.6
LETTER_WIDTH = 0.06


def grid(
    num_rows: int, num_columns: int, *, title: str, panel: tuple[float, float] = PANEL
) -> tuple[Figure, NDArray[Any]]:
    """Return a figure with a title, and its axes, an array of shape (rows, columns).

    `panel` is the width and the height of one of the axes, in inches.
    """
    figure = Figure(figsize=(panel[0] * num_columns, panel[1] * num_rows + 0.8), layout="constrained")
    figure.suptitle(title)
    return figure, np.asarray(figure.subplots(num_rows, num_columns, squeeze=False))


def one_legend(figure: Figure, axes: Iterable[Axes], *, num_columns: int = 4, names: Sequence[str] = ()) -> None:
    """Replace the legends of all axes by one below them, each entry once.

    What an entry says of one of the estimators `names` it says of them all.
    """
    entries: dict[str, Any] = {}
    for ax in axes:
        legend = ax.get_legend()
        if legend is None:
            continue
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            words = " ".join(text.get_text().split())
            # What counts points of one panel makes no sense for all.
            if not words[:1].isdigit() and not words.startswith("at the edge"):
                entries.setdefault(_said_of_all(words, names), handle)
        legend.remove()
    entry_width = max(ENTRY_WIDTH, SYMBOL_WIDTH + LETTER_WIDTH * max(map(len, entries), default=0))
    num_columns = min(num_columns, max(1, int(figure.get_figwidth() / entry_width)))
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=num_columns,
        frameon=False,
        fontsize="small",
        handlelength=2.8,
    )


def _said_of_all(words: str, names: Sequence[str]) -> str:
    """Return an entry of a legend without the estimator's name and without counts.

    Examples
    --------
    >>> _said_of_all("Poisson, DeepBF- FNN", ["DeepBF-FNN"]), _said_of_all("observed, 20 repeated estimates", [])
    ('Poisson, estimated', 'observed, repeated estimates')
    """
    for name in names:
        # Long names are broken after a hyphen.
        for written in (name, name.replace("-", "- ")):
            if words.endswith(f", {written}"):
                return f"{words.removesuffix(written)}estimated"
    return re.sub(r", \d+ repeated estimates?$", ", repeated estimates", words)


def only_outer_labels(axes: NDArray[Any]) -> None:
    """Keep labels of the y axis in the first column, and of the x axis in the last row.

    For grids in which all panels of a row, and all of a column, have the same axes.
    """
    for row in axes:
        for ax in row[1:]:
            ax.set_ylabel("")
    for row in axes[:-1]:
        for ax in row:
            ax.set_xlabel("")


def head(axes: NDArray[Any], columns: Sequence[str]) -> None:
    """Write what each column is above its first panel.

    `columns` has one heading for each column of `axes`.
    """
    for ax, words in zip(axes[0], columns, strict=True):
        ax.set_title(words, fontsize="medium")
