"""The log Bayes factor against a hyperparameter of the prior."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from deepbf.plots.axes import axes_or_new
from deepbf.plots.log_bf_line import draw_log_bf_line


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
    draw_log_bf_line(axes, curve.values, curve.log_bf, curve.error, threshold=threshold, over=over)
    if curve.on_log_scale:
        axes.set_xscale("log")
    axes.set_xlabel(f"{curve.hyperparameter}, hyperparameter of the prior")
    return axes
