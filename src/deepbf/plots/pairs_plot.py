"""Estimators against each other: where they agree, whatever the truth is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from deepbf._checks import check_numeric_array
from deepbf.plots.axes import Handle, wrapped
from deepbf.plots.log_bf_axis import Span
from deepbf.plots.styles import BLACK, GUIDE, MODEL_STYLES

PANEL_SIZE = 2.3
# Estimates further out than this stand at the edge: one absurd value must not shrink all others to a dot.
REACH = 1e3
POINT_AREA = 6.0

ByModel = tuple[NDArray[np.float64], NDArray[np.float64]]


def pairs(log_bfs: Mapping[str, Sequence[ArrayLike]], *, names: Sequence[str], figure: Figure | None = None) -> Figure:
    """Return a figure with every estimator against every other, one point a data set, below the diagonal.

    Points on a panel's line are answered alike. Values that are infinite or beyond +-1,000 stand at the edge; nan are
    left out.

    Parameters
    ----------
    log_bfs
        By estimator: natural log Bayes factors at data of the first model, and at data of the second.
    names
        The two models.
    figure
        Where to draw; None for a new one.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(1)
    >>> values = rng.normal(1, 1, 50), rng.normal(-1, 1, 50)
    >>> drawn = pairs({"one": values, "other": values}, names=["A", "B"], figure=Figure())
    >>> len(drawn.axes)
    1
    """
    estimators = {name: _check_answers(name, values) for name, values in log_bfs.items()}
    if len(estimators) < 2:
        raise ValueError(f"log_bfs must hold at least two estimators; received {len(estimators)}. Add another.")
    if figure is None:
        # Only here: whoever passes a figure needs no pyplot, and no graphical backend.
        from matplotlib import pyplot

        side = PANEL_SIZE * (len(estimators) - 1) + 1.0
        figure = pyplot.figure(figsize=(side, side), layout="constrained")
    span = Span.of(*(part for values in estimators.values() for part in values), reach=REACH)
    last = len(estimators) - 1
    panels = figure.subplots(last, last, squeeze=False, sharex=True, sharey=True)
    handles: list[Handle] = []
    listed = list(estimators)
    for row, upwards in enumerate(listed[1:]):
        for column, to_the_right in enumerate(listed[:-1]):
            axes = panels[row, column]
            if column > row:
                axes.remove()
                continue
            handles = _draw_pair(axes, estimators[to_the_right], estimators[upwards], span, names)
            if row == last - 1:
                axes.set_xlabel(wrapped(to_the_right))
            if column == 0:
                axes.set_ylabel(wrapped(upwards))
    figure.legend(handles=handles, loc="outside upper right", frameon=False, fontsize="small")  # pyright: ignore[reportArgumentType]
    return figure


def _check_answers(name: str, values: Sequence[ArrayLike]) -> ByModel:
    if len(values) != 2:
        raise ValueError(
            f"log_bfs[{name!r}] must be two arrays, one a model that data came from; received {len(values)}."
        )
    first, second = (check_numeric_array(f"log_bfs[{name!r}]", part).astype(np.float64) for part in values)
    return first, second


def _draw_pair(axes: Axes, x: ByModel, y: ByModel, span: Span, names: Sequence[str]) -> list[Handle]:
    handles: list[Handle] = []
    for model, style, right, up in zip(names, MODEL_STYLES, x, y, strict=True):
        if right.shape != up.shape:
            raise ValueError(
                f"log_bfs must be at the same data sets; received {right.shape} and {up.shape} for {model}."
            )
        known = ~(np.isnan(right) | np.isnan(up))
        handles.append(
            axes.scatter(
                span.at_edge(right[known]),
                span.at_edge(up[known]),
                s=POINT_AREA,
                c=style.colour,
                marker=style.marker,
                alpha=0.5,
                linewidths=0,
                zorder=2,
                label=wrapped(f"data from {model}"),
            )
        )
    low, high = span.limits
    handles += axes.plot([low, high], [low, high], color=BLACK, linewidth=0.8, zorder=3, label="the same answer")
    axes.axvline(0.0, color=GUIDE, linewidth=0.6, zorder=1)
    axes.axhline(0.0, color=GUIDE, linewidth=0.6, zorder=1)
    for which in ("x", "y"):
        span.show(axes, which)
    axes.set_aspect("equal", adjustable="box")
    axes.tick_params(labelsize="small")
    return handles
