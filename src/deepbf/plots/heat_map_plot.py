"""The log Bayes factor over a plane, for example of two observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize, SymLogNorm
from matplotlib.contour import ContourSet
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from deepbf._checks import check_numeric_array, check_positive
from deepbf.plots.axes import (
    AXIS_WIDTH,
    LINEAR_DECADES,
    LINEAR_PART,
    Span,
    axes_or_new,
    log_bf_label,
    wrapped,
    write_tick,
)
from deepbf.plots.styles import BLACK, GUIDE, SHADE

# Its lightness rises from end to end, for greyscale and for colour-blind readers, and nowhere is it white.
COLOUR_MAP = "cividis"
NUM_CONTOURS = 9
AT_ONE = "Bayes factor 1"
LABEL_WIDTH = 40


def heat_map(
    x: ArrayLike,
    y: ArrayLike,
    log_bf: ArrayLike,
    *,
    names: Sequence[str],
    labels: Sequence[str] = ("first observation", "second observation"),
    limit: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Return axes with a colour for every log Bayes factor over the plane, and labelled contours.

    Infinite values, and those beyond `limit`, take the colour at the end of the colour bar; nan is hatched, and
    counted in a note. The thick contour is where the Bayes factor is 1.

    Parameters
    ----------
    x, y
        Increasing coordinates, at least two each.
    log_bf
        Natural logs of the Bayes factor, first model over second, shape (len(y), len(x)).
    names
        The first and the second model.
    labels
        What `x` and `y` are.
    limit
        Where colours end, as a natural log, on either side; None for the lowest and the highest finite value.
    ax
        Where to draw; None for a new figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> x = np.linspace(-3, 3, 7)
    >>> ax = heat_map(x, x, x[:, None] * x, names=["dependent", "independent"], ax=Figure().subplots())
    >>> ax.get_xlabel()
    'first observation'
    """
    x, y, log_bf = check_plane(x, y, log_bf)
    names, labels = check_pair("names", names), check_pair("labels", labels)
    span = Span.of(log_bf) if limit is None else Span(-check_positive("limit", limit), limit)
    axes = axes_or_new(ax, width=1.0)
    mesh, contours = draw_plane(axes, x, y, log_bf, span)
    add_colour_bar([axes], mesh, contours, span, names, beyond=[log_bf])
    num_missing = int(np.isnan(log_bf).sum())
    if num_missing:
        axes.set_title(f"{num_missing} nan, hatched", fontsize="small", loc="right")
    axes.set_xlabel(wrapped(labels[0], LABEL_WIDTH))
    axes.set_ylabel(wrapped(labels[1], LABEL_WIDTH))
    return axes


def draw_plane(
    axes: Axes,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    log_bf: NDArray[np.float64],
    span: Span,
    *,
    labelled: bool = True,
) -> tuple[QuadMesh, ContourSet | None]:
    """Draw the colours of a plane, and contours which say their values if they are `labelled`; return both.

    Values outside the span take the colour at its end; nan shows the hatched background. There are no contours, and
    None comes back for them, where all values are the same.
    """
    shown = np.clip(log_bf, span.low, span.high)
    norm = Normalize(span.low, span.high)
    if span.is_far:
        norm = SymLogNorm(LINEAR_PART, linscale=LINEAR_DECADES, vmin=span.low, vmax=span.high, base=10)
    # What is nan lets this background through.
    axes.set_facecolor(SHADE)
    axes.patch.set(hatch="xxx", edgecolor=GUIDE)
    mesh = axes.pcolormesh(x, y, np.ma.masked_invalid(shown), cmap=COLOUR_MAP, norm=norm, shading="nearest")
    mesh.set_rasterized(True)
    low, high = np.nanmin(shown, initial=np.inf), np.nanmax(shown, initial=-np.inf)
    if not low < high:
        return mesh, None
    if span.is_far:
        levels = np.asarray(span.locator().tick_values(span.low, span.high))
    else:
        levels = np.asarray(MaxNLocator(NUM_CONTOURS, steps=[1, 2, 5, 10]).tick_values(low, high))
    # 0 may come out as -1e-16, and must be told from the others.
    levels = np.unique(np.append(np.where(np.abs(levels) < 1e-9 * (high - low), 0.0, levels), 0.0))
    # On the edge there is nothing to draw.
    levels = levels[(levels > low) & (levels < high)]
    if levels.size == 0:
        return mesh, None
    # White on the dark half of the colour map, black on the light half.
    red, green, blue = colormaps[COLOUR_MAP](norm(levels))[:, :3].T
    is_dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
    contours = axes.contour(
        x,
        y,
        np.ma.masked_invalid(shown),
        levels=levels,
        colors=["white" if dark else BLACK for dark in is_dark],
        linewidths=[2.8 if level == 0 else 0.9 for level in levels],
        linestyles=["dashed" if level < 0 else "solid" for level in levels],
    )
    if labelled:
        words = {level: AT_ONE if level == 0 else write_tick(level) for level in levels}
        axes.clabel(contours, fmt=words, fontsize="small", inline_spacing=2)
    return mesh, contours


def add_colour_bar(
    panels: Sequence[Axes],
    mesh: QuadMesh,
    contours: ContourSet | None,
    span: Span,
    names: Sequence[str],
    *,
    beyond: Sequence[NDArray[np.float64]],
    label_width: int = AXIS_WIDTH,
) -> Colorbar:
    """Put one colour bar beside panels that share a span, and return it.

    Its ends point on if a plane of `beyond` goes further than the span. `mesh` and `contours` are those of one panel.
    """
    pooled = np.concatenate([plane.ravel() for plane in beyond])
    ticks = span.locator() if span.is_far else None
    ends: dict[tuple[bool, bool], Any] = {
        (False, False): "neither",
        (True, False): "min",
        (False, True): "max",
        (True, True): "both",
    }
    extend = ends[bool(np.any(pooled < span.low)), bool(np.any(pooled > span.high))]
    bar = panels[0].figure.colorbar(mesh, ax=list(panels), extend=extend, ticks=ticks)
    bar.set_label(log_bf_label(names, span=span, width=label_width))
    if span.is_far:
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: write_tick(value)))
        bar.ax.minorticks_off()
    if contours is not None:
        # On the bar, too, the same lines mark the same values.
        bar.add_lines(contours, erase=True)
    return bar


def check_plane(
    x: ArrayLike, y: ArrayLike, log_bf: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return coordinates and values as arrays, if they are of matching shapes.

    Coordinates must increase, since the colours of a plane are drawn between neighbours.
    """
    coordinates = []
    for argument, value in (("x", x), ("y", y)):
        array = check_numeric_array(argument, value).astype(np.float64)
        if array.ndim != 1 or array.size < 2 or not np.all(np.isfinite(array)) or np.any(np.diff(array) <= 0):
            raise ValueError(
                f"{argument} must be finite and increasing, one entry per {'column' if argument == 'x' else 'row'} of "
                f"log_bf and at least two; received shape {array.shape}, values {np.array2string(array, threshold=6)}. "
                f"Pass, for example, {argument}=np.linspace(-3, 3, 101)."
            )
        coordinates.append(array)
    values = check_numeric_array("log_bf", log_bf).astype(np.float64)
    expected = (coordinates[1].size, coordinates[0].size)
    if values.shape != expected:
        hint = "Pass log_bf.T." if values.shape == expected[::-1] else "Give one row per y and one column per x."
        raise ValueError(f"log_bf must have shape (len(y), len(x)) = {expected}; received shape {values.shape}. {hint}")
    return coordinates[0], coordinates[1], values


def check_pair(argument: str, value: Sequence[str]) -> tuple[str, str]:
    """Return `value` as a pair of strings, such as the names of two models or the labels of two axes.

    Raises a ValueError that names the `argument` for anything else, a single string of two letters among it.
    """
    if isinstance(value, str) or len(value) != 2 or not all(isinstance(entry, str) for entry in value):
        raise ValueError(f"{argument} must be two strings; received {value!r}. Pass, for example, ('first', 'second').")
    return value[0], value[1]
