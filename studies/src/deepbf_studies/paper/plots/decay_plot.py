"""What falls as something grows: both axes logarithmic, so that power laws are straight lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from deepbf.plots.axes import Handle, axes_or_new, legend_beside, wrapped
from deepbf.plots.num_obs_plot import draw_line, side_by_side
from deepbf.plots.styles import Style, estimator_styles

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Decay:
    """One falling line.

    Parameters
    ----------
    x, values
        What grows, and what falls; both positive. A value of 0 has no logarithm: its `high` is drawn instead, as a
        bound.
    low, high
        Ends of the error bars.
    fitted
        The ends of a fitted line, as (x, values); None for none.
    words
        What the legend says about it, such as its slope.
    """

    x: Floats
    values: Floats
    low: Floats
    high: Floats
    fitted: tuple[Floats, Floats] | None = None
    words: str = ""


def decay(curves: Mapping[str, Decay], ax: Axes | None = None, *, x_label: str, y_label: str) -> Axes:
    """Return axes with one line of marks per curve, with error bars, and its fitted line, thin.

    Parameters
    ----------
    curves
        By name; "exact" always looks the same.
    ax
        Where to draw; None for a new figure.
    x_label, y_label
        What grows, and what falls.
    """
    axes = axes_or_new(ax)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=10)
    handles: list[Handle] = []
    for place, (name, style) in enumerate(estimator_styles(curves).items()):
        curve = curves[name]
        x = side_by_side(curve.x.tolist(), place, len(curves))
        zero = curve.values == 0
        values = np.where(zero, np.nan, curve.values)
        errors = np.stack([curve.values - curve.low, curve.high - curve.values])
        # The marks alone: what connects them is the fitted line.
        marks = Style(style.colour, "none" if curve.fitted else style.line_style, style.marker)
        draw_line(axes, x, values, errors, name, marks)
        label = f"{wrapped(name)}\n{curve.words}" if curve.words else wrapped(name)
        handles += axes.plot([], [], color=style.colour, linestyle=style.line_style, marker=style.marker, label=label)
        if curve.fitted is not None:
            axes.plot(*curve.fitted, color=style.colour, linestyle=style.line_style, linewidth=1.1, zorder=1.5)
        if zero.any():
            handles += axes.plot(
                x[zero], curve.high[zero], linestyle="none", marker=r"$\downarrow$", markersize=9, color=style.colour,
                zorder=2, label=f"{wrapped(name)},\nnone seen: 95% bound",
            )  # fmt: skip
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    legend_beside(axes, handles)
    return axes
