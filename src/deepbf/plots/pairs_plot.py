"""Estimators against each other, one small scatter plot a pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from deepbf._checks import check_choice
from deepbf.plots.axes import wrapped
from deepbf.plots.log_bf_axis import Span, log_bf_label
from deepbf.plots.results import Evaluated, estimator_names, model_names, results_of
from deepbf.plots.styles import BLACK, GUIDE, MODEL_STYLES

PANEL_INCHES = 2.3
POINT_AREA = 4.0


def pairs(evaluation: Evaluated, estimators: Sequence[str], figure: Figure | None = None) -> Figure:
    """Return a figure in which every two of the estimators meet: one point a data set, the axes all the same.

    Values that are infinite, or beyond what the others reach, stand at the edge.

    Parameters
    ----------
    evaluation
        An evaluation, or its results.
    estimators
        Which of them, two or more; the exact one may be among them.
    figure
        Where to draw; None for a new one.
    """
    results = results_of(evaluation, ("log_bf", "source"))
    if len(estimators) < 2:
        raise ValueError(f"estimators must name at least two to compare; received {list(estimators)!r}.")
    names = [check_choice("one of estimators", name, estimator_names(results)) for name in estimators]
    number = len(names) - 1
    if figure is None:
        side = PANEL_INCHES * number + 1.2
        figure = Figure(figsize=(side, side), layout="constrained")
    values = {name: np.asarray(results["log_bf"].sel(estimator=name), dtype=np.float64) for name in names}
    span = Span.of(*values.values())
    grid = figure.subplots(number, number, squeeze=False, sharex=True, sharey=True)
    source = np.asarray(results["source"].values).astype(str)
    for row, upwards in enumerate(names[1:]):
        for column, across in enumerate(names[:-1]):
            axes = grid[row, column]
            if column > row:
                axes.set_visible(False)
                continue
            _draw_pair(axes, span, values[across], values[upwards], source, model_names(results))
            if column == 0:
                axes.set_ylabel(wrapped(upwards))
            if row == number - 1:
                axes.set_xlabel(wrapped(across))
            axes.tick_params(labelleft=column == 0, labelbottom=row == number - 1)
    figure.legend(handles=_handles(model_names(results)), loc="upper right", frameon=False)
    figure.supxlabel(log_bf_label(model_names(results), span=span).replace("\n", " "), fontsize="medium")
    return figure


def _draw_pair(
    axes: Axes,
    span: Span,
    across: NDArray[np.float64],
    upwards: NDArray[np.float64],
    source: NDArray[np.str_],
    names: Sequence[str],
) -> None:
    for model, style in zip(names, MODEL_STYLES, strict=True):
        mine = source == model
        axes.scatter(
            span.at_edge(across[mine]),
            span.at_edge(upwards[mine]),
            s=POINT_AREA,
            c=style.colour,
            marker=style.marker,
            alpha=0.5,
            linewidths=0,
            zorder=2,
        )
    axes.plot(span.limits, span.limits, color=BLACK, linewidth=0.8, zorder=3)
    axes.axvline(0.0, color=GUIDE, linewidth=0.6, zorder=1)
    axes.axhline(0.0, color=GUIDE, linewidth=0.6, zorder=1)
    for which in ("x", "y"):
        span.show(axes, which)
    axes.set_aspect("equal", adjustable="box")


def _handles(names: Sequence[str]) -> list[Line2D]:
    points = [
        Line2D([], [], linestyle="none", marker=style.marker, color=style.colour, label=wrapped(f"data from {model}"))
        for model, style in zip(names, MODEL_STYLES, strict=True)
    ]
    return [
        *points,
        Line2D([], [], color=BLACK, linewidth=0.8, label="both say the same"),
        Line2D([], [], color=GUIDE, linewidth=0.6, label="Bayes factor 1"),
    ]
