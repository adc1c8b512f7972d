"""Exact against estimated log Bayes factors, one point per data set."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from deepbf.plots.axes import Handle, Span, axes_or_new, legend_beside, log_bf_label, note, wrapped
from deepbf.plots.results import EXACT, Evaluated, choose_estimator, has_exact, model_names, results_of
from deepbf.plots.styles import BLACK, GUIDE, MODEL_STYLES, SHADE

# Estimates may reach this many times as far as exact values before they are moved to the edge:
# one absurd estimate must not shrink all others to a dot.
REACH_OF_ESTIMATES = 2.0
POINT_AREA = 14.0
EDGE_MARKER = "X"
EDGE_AREA = 55.0


def scatter(evaluation: Evaluated, estimator: str | None = None, ax: Axes | None = None) -> Axes:
    """Return axes with one point per data set, the exact log Bayes factor to the right and the estimated one upwards.

    Points on the line are estimated without error; points in a shaded quadrant are decided differently than by the
    exact Bayes factor. Values that are infinite, or reach more than twice as far as all exact ones, stand at the edge
    with a marker of their own; the legend counts them, and those that are nan.

    Parameters
    ----------
    evaluation
        An evaluation, or its results, in which the exact log Bayes factors were known.
    estimator
        The one to draw; None for the only one.
    ax
        Where to draw; None for a new figure.
    """
    results = results_of(evaluation, ("log_bf", "source", "prior_prob"))
    name = choose_estimator(results, estimator)
    if not has_exact(results):
        raise ValueError(
            f"evaluation must hold the exact log Bayes factors, as an estimator called {EXACT!r}; received none. "
            "Evaluate with exact values, or draw densities() instead."
        )
    axes = axes_or_new(ax)
    exact = np.asarray(results["log_bf"].sel(estimator=EXACT), dtype=np.float64)
    estimated = np.asarray(results["log_bf"].sel(estimator=name), dtype=np.float64)
    # The log Bayes factor at which both models are equally probable, 0 under equal prior probabilities.
    first_prob, second_prob = np.asarray(results["prior_prob"], dtype=np.float64)
    threshold = float(np.log(second_prob) - np.log(first_prob))
    finite = exact[np.isfinite(exact)]
    # Without a finite exact value, nothing says which estimates are absurd.
    reach = REACH_OF_ESTIMATES * max(float(np.max(np.abs(finite))), 1.0) if finite.size else np.inf
    span = Span.of(exact, threshold, np.where(np.abs(estimated) <= reach, estimated, np.nan))
    points, notes = _draw_points(axes, span, exact, estimated, results)
    handles = [*points, *_draw_guides(axes, span, threshold), *notes]
    if "agreement" in results.variables:
        share = float(results["agreement"].sel(estimator=name, group="weighted"))
        written = f"same decision\n{100 * share:.1f}%"
        if "agreement_error" in results.variables:
            error = float(results["agreement_error"].sel(estimator=name, group="weighted"))
            # More digits where the error would read as none.
            digits = 2 if 0 < 100 * error < 0.1 else 1
            written = f"same decision\n{100 * share:.{digits}f}% ± {100 * error:.{digits}f}%"
        # This corner is free of good points.
        axes.text(0.97, 0.03, written, transform=axes.transAxes, ha="right", va="bottom", fontsize="small")
    for which in ("x", "y"):
        span.show(axes, which)
    axes.set_aspect("equal", adjustable="box")
    names = model_names(results)
    axes.set_xlabel(log_bf_label(names, kind="exact", span=span))
    axes.set_ylabel(log_bf_label(names, kind="estimated", span=span))
    legend_beside(axes, handles)
    return axes


def _draw_points(
    axes: Axes, span: Span, exact: NDArray[np.float64], estimated: NDArray[np.float64], results: xr.Dataset
) -> tuple[list[Handle], list[Handle]]:
    """Draw every data set that is not nan; those that the axes cannot hold go to the edge.

    Return the legend's entries for the models, and those that count what could not be drawn where it belongs.
    """
    handles: list[Handle] = []
    missing = np.isnan(exact) | np.isnan(estimated)
    outside = span.outside(exact) | span.outside(estimated)
    x, y = span.at_edge(exact), span.at_edge(estimated)
    for model, style in zip(model_names(results), MODEL_STYLES, strict=True):
        mine = ~missing & np.asarray(results["source"] == model)
        inside, edge = mine & ~outside, mine & outside
        handle = axes.scatter(
            x[inside],
            y[inside],
            s=POINT_AREA,
            c=style.colour,
            marker=style.marker,
            alpha=0.6,
            linewidths=0,
            zorder=2,
            label=wrapped(f"data from {model}"),
        )
        handles.append(handle)
        if edge.any():
            axes.scatter(
                x[edge],
                y[edge],
                s=EDGE_AREA,
                c=style.colour,
                marker=EDGE_MARKER,
                edgecolors=BLACK,
                linewidths=0.8,
                zorder=4,
                clip_on=False,
            )
    infinite = ~missing & (np.isinf(exact) | np.isinf(estimated))
    beyond = ~missing & ~infinite & outside
    notes: list[Handle] = []
    counts = [f"{many.sum()} {what}" for many, what in ((infinite, "infinite"), (beyond, "too far")) if many.any()]
    if counts:
        label = f"at the edge: {', '.join(counts)}"
        marker = Line2D(
            [], [], linestyle="none", marker=EDGE_MARKER, markersize=EDGE_AREA**0.5, color="white", label=label
        )
        marker.set_markeredgecolor(BLACK)
        notes.append(marker)
    if missing.any():
        notes.append(note(f"{missing.sum()} nan, not drawn"))
    return handles, notes


def _draw_guides(axes: Axes, span: Span, threshold: float) -> list[Handle]:
    """Draw the line of no error, the decision threshold either way, and the quadrants in which decisions differ."""
    low, high = span.limits
    for left, bottom, right, top in ((low, threshold, threshold, high), (threshold, low, high, threshold)):
        quadrant = Rectangle(
            (left, bottom), right - left, top - bottom, facecolor=SHADE, edgecolor="none", zorder=0, label="_quadrant"
        )
        axes.add_patch(quadrant)
    axes.axvline(threshold, color=GUIDE, linewidth=0.8, zorder=1)
    axes.axhline(threshold, color=GUIDE, linewidth=0.8, zorder=1)
    [identity] = axes.plot([low, high], [low, high], color=BLACK, linewidth=1.0, zorder=3, label="estimated = exact")
    lines = Line2D([], [], color=GUIDE, linewidth=0.8, label=f"decision at Bayes factor {np.exp(threshold):.3g}")
    return [identity, lines, Patch(facecolor=SHADE, edgecolor=GUIDE, linewidth=0.5, label="decisions differ")]
