"""Densities of the log Bayes factor under either model, and where the observed data fall among them."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from deepbf._checks import check_numeric_array, check_positive
from deepbf.plots.axes import Handle, Span, axes_or_new, legend_beside, log_bf_label, note, wrapped
from deepbf.plots.results import EXACT, Evaluated, choose_estimator, has_exact, model_names, results_of
from deepbf.plots.styles import BLACK, GUIDE, MODEL_STYLES, VERMILLION, LineStyle

# Below this share of the highest density nothing can be seen.
VISIBLE = 1e-3
# Height of the marks for repeated estimates, as a share of the axes.
RUG_HEIGHT = 0.07


def densities(
    evaluation: Evaluated,
    estimator: str | None = None,
    observed: float | None = None,
    repeats: ArrayLike | None = None,
    exact_observed: float | None = None,
    threshold: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Return axes with the densities of the log Bayes factor under each model: estimated as areas, exact as lines.

    Marks stand for the observed data; one beyond the axis is drawn at its edge as an arrow head, its value in the
    legend.

    Parameters
    ----------
    evaluation
        An evaluation, or its results.
    estimator
        The one to draw; None for the only one besides the exact.
    observed
        Estimated log Bayes factor of the observed data, natural log, first model over second.
    repeats
        Further estimates for the same data, for example of the ensemble's members, of any shape.
    exact_observed
        Exact log Bayes factor of the observed data.
    threshold
        The Bayes factor, not its log, above which one decides for the first model.
    ax
        Where to draw; None for a new figure.
    """
    results = results_of(evaluation, ("density", "grid"))
    name = choose_estimator(results, estimator)
    log_threshold = math.log(check_positive("threshold", threshold))
    marks = _Marks(
        observed=None if observed is None else _check_log_bf("observed", observed),
        exact=None if exact_observed is None else _check_log_bf("exact_observed", exact_observed),
        repeats=np.empty(0)
        if repeats is None
        else np.ravel(check_numeric_array("repeats", repeats)).astype(np.float64),
    )
    axes = axes_or_new(ax)
    # The part of the grid where a density can be seen, widened to hold the marks on the grid.
    grid = np.asarray(results["grid"], dtype=np.float64)
    curves = np.asarray(results["density"], dtype=np.float64).reshape(-1, grid.size)
    peaks = np.nanmax(curves, axis=1, keepdims=True, initial=0.0)
    visible = grid[(curves > VISIBLE * peaks).any(axis=0)]
    on_grid = [value for value in (log_threshold, *marks.values()) if grid.min() <= value <= grid.max()]
    span = Span.of(visible, on_grid)
    handles = [
        *_draw_densities(axes, results, name),
        _draw_mark(axes, span, log_threshold, f"threshold: Bayes factor {threshold:g}", GUIDE, "dashdot", 1.2),
        *marks.draw(axes, span),
    ]
    span.show(axes, "x")
    axes.set_ylim(bottom=0)
    # Where values were clipped the density heaps up: say so if that end of the axis is shown.
    clip = float(results.attrs.get("clip", np.inf))
    clipping = f"[values clipped at ±{clip:.3g}]" if max(abs(span.low), abs(span.high)) >= clip else ""
    axes.set_xlabel(log_bf_label(model_names(results), span=span, extra=clipping))
    axes.set_ylabel("density")
    legend_beside(axes, handles)
    return axes


def _draw_densities(axes: Axes, results: xr.Dataset, estimator: str) -> list[Handle]:
    grid = np.asarray(results["grid"], dtype=np.float64)
    handles: list[Handle] = []
    for model, style in zip(model_names(results), MODEL_STYLES, strict=True):
        curve = np.asarray(results["density"].sel(estimator=estimator, model=model), dtype=np.float64)
        area = axes.fill_between(
            grid,
            curve,
            facecolor=to_rgba(style.colour, 0.25),
            edgecolor=to_rgba(style.colour, 0.7),
            hatch=style.hatch,
            linewidth=0.8,
            zorder=1,
            label=wrapped(f"{model}, {estimator}"),
        )
        handles.append(area)
        if has_exact(results):
            exact = np.asarray(results["density"].sel(estimator=EXACT, model=model), dtype=np.float64)
            [line] = axes.plot(
                grid,
                exact,
                color=style.colour,
                linestyle=style.line_style,
                linewidth=2.0,
                zorder=2,
                label=wrapped(f"{model}, exact"),
            )
            handles.append(line)
    return handles


def _draw_mark(
    axes: Axes, span: Span, value: float, label: str, colour: str, line_style: LineStyle, width: float
) -> Line2D:
    """Draw a vertical line, or an arrow head at the edge that `value` lies beyond."""
    if not span.outside(value):
        return axes.axvline(value, color=colour, linestyle=line_style, linewidth=width, zorder=3, label=label)
    [head] = axes.plot(
        [float(span.at_edge(value))],
        [0.5],
        transform=axes.get_xaxis_transform(),
        linestyle="none",
        marker=_arrow_head(value),
        markersize=10,
        color=colour,
        clip_on=False,
        zorder=4,
        label=f"{label},\nbeyond the axis",
    )
    return head


def _arrow_head(value: float) -> str:
    return "<" if value < 0 else ">"


@dataclass(frozen=True)
class _Marks:
    """What is known of the observed data: log Bayes factors, natural log."""

    observed: float | None
    exact: float | None
    repeats: NDArray[np.float64]

    def values(self) -> list[float]:
        return [value for value in (self.observed, self.exact, *self.repeats.tolist()) if value is not None]

    def draw(self, axes: Axes, span: Span) -> list[Handle]:
        handles: list[Handle] = []
        if self.observed is not None:
            label = f"observed, estimated: {_written(self.observed)}"
            handles.append(_draw_mark(axes, span, self.observed, label, VERMILLION, "solid", 2.0))
        if self.repeats.size:
            handles += self._draw_repeats(axes, span)
        if self.exact is not None:
            label = f"observed, exact: {_written(self.exact)}"
            handles.append(_draw_mark(axes, span, self.exact, label, BLACK, (0, (2, 1)), 2.0))
        return handles

    def _draw_repeats(self, axes: Axes, span: Span) -> list[Handle]:
        missing, outside = np.isnan(self.repeats), span.outside(self.repeats)
        inside = self.repeats[~missing & ~outside]
        rug = axes.vlines(
            inside,
            0.0,
            RUG_HEIGHT,
            transform=axes.get_xaxis_transform(),
            color=VERMILLION,
            linewidth=1.0,
            zorder=3,
        )
        # Drawn upright, so the legend shows it upright: a short dash would pass for a line style.
        label = f"observed, {self.repeats.size} repeated estimates"
        handles: list[Handle] = [
            Line2D([], [], linestyle="none", marker="|", markersize=9, color=VERMILLION, label=wrapped(label))
        ]
        rug.set_label("_repeats")
        for value in (-np.inf, np.inf):
            beyond = outside & (np.sign(self.repeats) == np.sign(value))
            if beyond.any():
                label = f"{beyond.sum()} repeated, beyond the axis"
                [head] = axes.plot(
                    [float(span.at_edge(value))],
                    [RUG_HEIGHT],
                    transform=axes.get_xaxis_transform(),
                    linestyle="none",
                    marker=_arrow_head(value),
                    markersize=7,
                    markerfacecolor="white",
                    color=VERMILLION,
                    clip_on=False,
                    zorder=4,
                    label=label,
                )
                handles.append(head)
        if missing.any():
            handles.append(note(f"{missing.sum()} repeated, nan, not drawn"))
        return handles


def _written(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 1000 else f"{value:.3g}"


def _check_log_bf(argument: str, value: object) -> float:
    # Estimators answer with arrays, one entry per data set: an array of one is as good as a number.
    number = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise TypeError(f"{argument} must be one number, a natural log; received {value!r}. Pass a float.")
    if math.isnan(number):
        raise ValueError(f"{argument} must not be nan; received {value!r}. Leave it out if it is not known.")
    return float(number)
