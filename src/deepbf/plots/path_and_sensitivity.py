"""The log Bayes factor of the observed data as a line: as observations arrive, or against a prior's hyperparameter."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from deepbf._checks import check_positive
from deepbf.plots.axes import Handle, axes_or_new, axis_label, legend_beside
from deepbf.plots.styles import BLUE, GUIDE

FEW_ENOUGH_TO_MARK = 40


class LogBfPath(Protocol):
    """A log Bayes factor for each number of observations."""

    @property
    def num_obs(self) -> NDArray[np.intp]:
        """How many observations had arrived."""
        ...

    @property
    def log_bf(self) -> NDArray[np.float64]:
        """The natural log Bayes factor then."""
        ...

    @property
    def error(self) -> NDArray[np.float64] | None:
        """Its error."""
        ...

    @property
    def model(self) -> str:
        """The model that a positive log Bayes factor speaks for."""
        ...

    @property
    def against(self) -> str:
        """The other model."""
        ...


def path(path: LogBfPath, threshold: float | None = 10.0, ax: Axes | None = None) -> Axes:
    """Return axes with the log Bayes factor against the number of observations seen so far.

    Parameters
    ----------
    path
        What `BayesFactor.path` returned.
    threshold
        A Bayes factor to draw lines at, in both directions; None for none.
    ax
        Where to draw; None for a new figure.
    """
    axes = axes_or_new(ax)
    over = f"{path.model} over {path.against}"
    _draw_log_bf_line(axes, path.num_obs, path.log_bf, path.error, threshold=threshold, over=over)
    axes.set_xlabel("observations so far")
    return axes


class LogBfCurve(Protocol):
    """A log Bayes factor for each value of a hyperparameter."""

    @property
    def hyperparameter(self) -> str:
        """The name of the hyperparameter."""
        ...

    @property
    def values(self) -> NDArray[np.float64]:
        """Its values, increasing."""
        ...

    @property
    def log_bf(self) -> NDArray[np.float64]:
        """The natural log Bayes factor there."""
        ...

    @property
    def error(self) -> NDArray[np.float64] | None:
        """Its error."""
        ...

    @property
    def on_log_scale(self) -> bool:
        """Whether the values are spread over a log scale."""
        ...

    @property
    def model(self) -> str:
        """The model that a positive log Bayes factor speaks for."""
        ...

    @property
    def against(self) -> str:
        """The other model."""
        ...


def sensitivity(curve: LogBfCurve, threshold: float | None = 10.0, ax: Axes | None = None) -> Axes:
    """Return axes with the log Bayes factor of the observed data against a hyperparameter of the prior.

    Parameters
    ----------
    curve
        What `BayesFactor.sensitivity` returned.
    threshold
        A Bayes factor to draw lines at, in both directions; None for none.
    ax
        Where to draw; None for a new figure.
    """
    axes = axes_or_new(ax)
    over = f"{curve.model} over {curve.against}"
    _draw_log_bf_line(axes, curve.values, curve.log_bf, curve.error, threshold=threshold, over=over)
    if curve.on_log_scale:
        axes.set_xscale("log")
    axes.set_xlabel(f"{curve.hyperparameter}, hyperparameter of the prior")
    return axes


def _draw_log_bf_line(
    axes: Axes,
    places: NDArray[np.generic],
    log_bf: NDArray[np.float64],
    error: NDArray[np.float64] | None,
    *,
    threshold: float | None,
    over: str,
) -> None:
    """Draw log Bayes factors, their errors and the thresholds of evidence; `over` names both models, for the label."""
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
