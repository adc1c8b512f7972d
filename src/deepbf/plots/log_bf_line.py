"""A line of log Bayes factors with its error and the thresholds of evidence, against anything."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from deepbf._checks import check_positive
from deepbf.plots.axes import Handle, axis_label, legend_beside
from deepbf.plots.styles import BLUE, GUIDE

FEW_ENOUGH_TO_MARK = 40


def draw_log_bf_line(
    axes: Axes,
    places: NDArray[np.generic],
    log_bf: NDArray[np.float64],
    error: NDArray[np.float64] | None,
    *,
    threshold: float | None,
    over: str,
) -> None:
    """Draw log Bayes factors at these places, in the direction `over` says in words, and label their axis."""
    marker = "o" if len(places) < FEW_ENOUGH_TO_MARK else "none"
    handles: list[Handle] = []
    handles += axes.plot(places, log_bf, color=BLUE, marker=marker, markersize=3.5, label="log Bayes factor")
    if error is not None:
        low, high = log_bf - 2 * error, log_bf + 2 * error
        handles.append(axes.fill_between(places, low, high, color=BLUE, alpha=0.2, linewidth=0, label="+- 2 errors"))
    axes.axhline(0.0, color=GUIDE, linewidth=0.9)
    if threshold is not None:
        level = math.log(check_positive("threshold", threshold))
        handles.append(axes.axhline(level, color=GUIDE, linestyle="dashed", linewidth=1.0, label=f"{threshold:g} to 1"))
        axes.axhline(-level, color=GUIDE, linestyle="dashed", linewidth=1.0)
    axes.set_ylabel(axis_label("log Bayes factor (natural log),", over))
    legend_beside(axes, handles)
