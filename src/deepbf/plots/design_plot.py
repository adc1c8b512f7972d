"""Sample-size design: rates of right and of misleading evidence against the number of observations."""

from __future__ import annotations

import math

from matplotlib.axes import Axes

from deepbf.plots.axes import Handle, axes_or_new, legend_beside, wrapped
from deepbf.plots.num_obs_axis import show_num_obs
from deepbf.plots.results import Evaluated, model_names, results_of
from deepbf.plots.styles import GUIDE, MODEL_STYLES


def design(design: Evaluated, ax: Axes | None = None) -> Axes:
    """Return axes with the probability of evidence beyond the threshold, against the number of observations.

    Filled marks: evidence for the model that is true, with 95% bands. Open marks: misleading evidence. Vertical lines
    stand where the wanted probability, the dashed line, is reached.

    Parameters
    ----------
    design
        A `Design`, or its results.
    ax
        Where to draw; None for a new figure.
    """
    results = results_of(design, ("rate", "rate_low", "rate_high", "needed"))
    axes = axes_or_new(ax)
    num_obs = results["num_obs"].values
    show_num_obs(axes, [int(number) for number in num_obs])
    handles: list[Handle] = []
    for name, style in zip(model_names(results), MODEL_STYLES, strict=True):
        one = results.sel(model=name)
        right, misleading = (one["rate"].sel(decision=decision) for decision in ("right", "misleading"))
        low, high = (one[key].sel(decision="right") for key in ("rate_low", "rate_high"))
        needed = float(one["needed"])
        reached = not math.isnan(needed)
        words = f"right, if {name} is true" + (f": from {needed:.0f} on" if reached else "")
        axes.fill_between(num_obs, low, high, color=style.colour, alpha=0.2, linewidth=0)
        handles += axes.plot(
            num_obs, right, color=style.colour, linestyle=style.line_style, marker=style.marker, markersize=4.5,
            label=wrapped(words),
        )  # fmt: skip
        handles += axes.plot(
            num_obs, misleading, color=style.colour, linestyle=style.line_style, marker=style.marker, markersize=4.5,
            markerfacecolor="white", linewidth=1.0, label=wrapped(f"misleading, if {name} is true"),
        )  # fmt: skip
        if reached:
            axes.axvline(needed, color=style.colour, linestyle=style.line_style, linewidth=0.9, alpha=0.7)
    power = float(results.attrs["power"])
    handles.append(axes.axhline(power, color=GUIDE, linestyle="dashed", linewidth=1.0, label=f"wanted: {power:g}"))
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel(f"probability of a Bayes factor\nof {float(results.attrs['threshold']):g} to 1 or more")
    legend_beside(axes, handles)
    return axes
