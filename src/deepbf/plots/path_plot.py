"""The log Bayes factor as observations arrive."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from deepbf._checks import check_positive
from deepbf.plots.axes import Handle, axes_or_new, axis_label, legend_beside
from deepbf.plots.styles import BLUE, GUIDE


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
    handles: list[Handle] = []
    handles += axes.plot(
        path.num_obs, path.log_bf, color=BLUE, marker="o" if len(path.num_obs) < 40 else "none", markersize=3.5,
        label="log Bayes factor",
    )  # fmt: skip
    if path.error is not None:
        low, high = path.log_bf - 2 * path.error, path.log_bf + 2 * path.error
        handles.append(
            axes.fill_between(path.num_obs, low, high, color=BLUE, alpha=0.2, linewidth=0, label="+- 2 errors")
        )
    axes.axhline(0.0, color=GUIDE, linewidth=0.9)
    if threshold is not None:
        level = math.log(check_positive("threshold", threshold))
        handles.append(axes.axhline(level, color=GUIDE, linestyle="dashed", linewidth=1.0, label=f"{threshold:g} to 1"))
        axes.axhline(-level, color=GUIDE, linestyle="dashed", linewidth=1.0)
    axes.set_xlabel("observations so far")
    axes.set_ylabel(axis_label("log Bayes factor (natural log),", f"{path.model} over {path.against}"))
    legend_beside(axes, handles)
    return axes
