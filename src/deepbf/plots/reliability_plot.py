"""Reliability: whether models come true as often as each estimator's posterior probabilities say."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from deepbf.plots.axes import Handle, axes_or_new, axis_label, legend_beside, wrapped
from deepbf.plots.results import EXACT, Evaluated, estimator_names, model_names, results_of
from deepbf.plots.styles import GUIDE, Style, estimator_styles

NEEDS = (
    "predicted",
    "frequency",
    "frequency_low",
    "frequency_high",
    "bin_count",
    "calibration_error",
    "calibration_error_low",
    "calibration_error_high",
)
# The strip of counts above the curves, in shares of the axes' height.
STRIP_GAP = 0.04
STRIP_HEIGHT = 0.2


def reliability(evaluation: Evaluated, ax: Axes | None = None) -> Axes:
    """Return axes with frequency against predicted probability of the first model, for every estimator.

    A calibrated estimator lies on the diagonal within its error bars. The strip above shows how many data sets are in
    each bin; the legend gives the calibration error, and the interval that perfect calibration would give.

    Parameters
    ----------
    evaluation
        An evaluation, or its results.
    ax
        Where to draw; None for a new figure.
    """
    results = results_of(evaluation, NEEDS)
    axes = axes_or_new(ax)
    strip = axes.inset_axes((0.0, 1.0 + STRIP_GAP, 1.0, STRIP_HEIGHT), sharex=axes)
    handles: list[Handle] = [*axes.plot([0, 1], [0, 1], color=GUIDE, linewidth=0.8, zorder=1, label="calibrated")]
    for name, style in estimator_styles(estimator_names(results)).items():
        one = results.sel(estimator=name)
        handles.append(_draw_estimator(axes, strip, one, name, style))
    # Not of equal aspect: the strip's height follows the axes', and constrained layouts then cut the labels off.
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    first, _ = model_names(results)
    axes.set_xlabel(axis_label("predicted probability of", first))
    axes.set_ylabel(axis_label("relative frequency of", first))
    # Limits at powers of ten, so that at least two of them are labelled in this little space.
    counts = np.asarray(results["bin_count"], dtype=np.float64)
    decades = np.log10(counts[counts > 0])
    low, high = np.floor(np.min(decades, initial=1.0)), np.ceil(np.max(decades, initial=1.0) + 0.1)
    strip.set_yscale("log", base=10)
    strip.set_ylim(0.7 * 10**low, 1.4 * 10**high)
    strip.yaxis.set_major_locator(LogLocator(base=10, numticks=4))
    strip.yaxis.set_minor_locator(NullLocator())
    strip.tick_params(labelbottom=False)
    strip.set_ylabel("data sets\n(log base 10)", fontsize="small")
    strip.tick_params(axis="y", labelsize="small")
    legend_beside(axes, handles)
    return axes


def _draw_estimator(axes: Axes, strip: Axes, one: xr.Dataset, name: str, style: Style) -> Handle:
    """Draw the curve of one estimator, and its counts into the strip; return what the legend shows."""
    filled = np.asarray(one["bin_count"]) > 0
    predicted, frequency, low, high, counts = (np.asarray(one[key], dtype=np.float64)[filled] for key in NEEDS[:5])
    strip.plot(
        predicted,
        counts,
        color=style.colour,
        linestyle=style.line_style,
        linewidth=1.0,
        marker=style.marker,
        markersize=3.5,
    )
    error, expected_low, expected_high = (float(one[key]) for key in NEEDS[-3:])
    expected = f"(if calibrated {expected_low:.3f} to {expected_high:.3f})"
    return axes.errorbar(
        predicted,
        frequency,
        # Rounding may put the frequency of a full bin a hair outside its own interval.
        yerr=np.maximum([frequency - low, high - frequency], 0.0),
        color=style.colour,
        linestyle=style.line_style,
        linewidth=1.4,
        marker=style.marker,
        markersize=7 if name == EXACT else 5,
        elinewidth=1.0,
        capsize=2.0,
        zorder=2,
        label=f"{wrapped(name)}\ncalibration error {error:.3f}\n{expected}",
    )
