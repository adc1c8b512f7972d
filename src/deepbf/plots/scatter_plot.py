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
    span = _common_span(exact, estimated, threshold)
    handles = [
        *_draw_points(axes, span, exact, estimated, results),
        *_draw_guides(axes, span, threshold),
        *_notes(span, exact, estimated),
    ]
    _write_agreement(axes, results, name)
    for which in ("x", "y"):
        span.show(axes, which)
    axes.set_aspect("equal", adjustable="box")
    names = model_names(results)
    axes.set_xlabel(log_bf_label(names, kind="exact", span=span))
    axes.set_ylabel(log_bf_label(names, kind="estimated", span=span))
    legend_beside(axes, handles)
    return axes


def _common_span(exact: NDArray[np.float64], estimated: NDArray[np.float64], threshold: float) -> Span:
    finite = exact[np.isfinite(exact)]
    if finite.size == 0:
        return Span.of(estimated, threshold)
    reach = REACH_OF_ESTIMATES * max(float(np.max(np.abs(finite))), 1.0)
    return Span.of(exact, threshold, np.where(np.abs(estimated) <= reach, estimated, np.nan))


def _draw_points(
    axes: Axes, span: Span, exact: NDArray[np.float64], estimated: NDArray[np.float64], results: xr.Dataset
) -> list[Handle]:
    """Draw every data set that is not nan; those that the axes cannot hold go to the edge."""
    handles: list[Handle] = []
    known = ~(np.isnan(exact) | np.isnan(estimated))
    outside = span.outside(exact) | span.outside(estimated)
    x, y = span.at_edge(exact), span.at_edge(estimated)
    for model, style in zip(model_names(results), MODEL_STYLES, strict=True):
        mine = known & np.asarray(results["source"] == model)
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
    return handles


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


def _notes(span: Span, exact: NDArray[np.float64], estimated: NDArray[np.float64]) -> list[Handle]:
    """Return legend entries that count what could not be drawn where it belongs."""
    missing = np.isnan(exact) | np.isnan(estimated)
    infinite = ~missing & (np.isinf(exact) | np.isinf(estimated))
    beyond = ~missing & ~infinite & (span.outside(exact) | span.outside(estimated))
    entries: list[Handle] = []
    counts = [f"{many.sum()} {what}" for many, what in ((infinite, "infinite"), (beyond, "too far")) if many.any()]
    if counts:
        label = f"at the edge: {', '.join(counts)}"
        marker = Line2D(
            [], [], linestyle="none", marker=EDGE_MARKER, markersize=EDGE_AREA**0.5, color="white", label=label
        )
        marker.set_markeredgecolor(BLACK)
        entries.append(marker)
    if missing.any():
        entries.append(note(f"{missing.sum()} nan, not drawn"))
    return entries


def _write_agreement(axes: Axes, results: xr.Dataset, estimator: str) -> None:
    """Write the share of data sets decided as by the exact Bayes factor into the corner that is free of good points."""
    if "agreement" not in results.variables:
        return
    share = float(results["agreement"].sel(estimator=estimator, group="weighted"))
    error = None
    if "agreement_error" in results.variables:
        error = float(results["agreement_error"].sel(estimator=estimator, group="weighted"))
    text = f"same decision\n{_in_percent(share, error)}"
    axes.text(0.97, 0.03, text, transform=axes.transAxes, ha="right", va="bottom", fontsize="small")


def _in_percent(share: float, error: float | None) -> str:
    """Return a share and its error in percent; more digits where the error would read as none.

    Examples
    --------
    >>> _in_percent(0.9866, 0.0021), _in_percent(0.99967, 0.00034), _in_percent(1.0, 0.0), _in_percent(0.5, None)
    ('98.7% ± 0.2%', '99.97% ± 0.03%', '100.0% ± 0.0%', '50.0%')
    """
    if error is None:
        return f"{100 * share:.1f}%"
    digits = 2 if 0 < 100 * error < 0.1 else 1
    return f"{100 * share:.{digits}f}% ± {100 * error:.{digits}f}%"
