"""The log Bayes factor as observations arrive."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from deepbf.plots.axes import axes_or_new
from deepbf.plots.log_bf_line import draw_log_bf_line


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
    draw_log_bf_line(axes, path.num_obs, path.log_bf, path.error, threshold=threshold, over=over)
    axes.set_xlabel("observations so far")
    return axes
