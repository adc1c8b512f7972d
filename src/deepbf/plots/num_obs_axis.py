"""What grows with the number of observations: one line an estimator, with error bars, over a logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from deepbf.plots.axes import Handle, note, wrapped
from deepbf.plots.styles import BLACK, Style

# Estimators stand side by side, so that their error bars do not cover each other: this many octaves apart at most,
# and all within this share of the way from one number of observations to the next.
STEP = 0.1
SHARE = 0.5
# More ticks than this run into each other.
MOST_TICKS = 10


def values_by_estimator(
    by_num_obs: Mapping[int, xr.Dataset], variable: str, names: Sequence[str], group: str | None = None
) -> dict[str, NDArray[np.float64]]:
    """Return the variable by estimator, one entry a number of observations; nan where an evaluation is without it."""
    values = {name: np.full(len(by_num_obs), np.nan) for name in names}
    for place, results in enumerate(by_num_obs.values()):
        if variable not in results.variables:
            continue
        one = results[variable] if group is None else results[variable].sel(group=group)
        for name in names:
            if name in one["estimator"].values:
                values[name][place] = float(one.sel(estimator=name))
    return values


def side_by_side(num_obs: Sequence[float], place: int, num_lines: int) -> NDArray[np.float64]:
    """Return the numbers of observations, shifted a little for the estimator at `place`."""
    gap = float(np.min(np.diff(np.log2(num_obs)), initial=1.0))
    step = min(STEP, SHARE * gap / num_lines)
    return np.asarray(num_obs, dtype=np.float64) * 2 ** (step * (place - (num_lines - 1) / 2))


def draw_line(
    axes: Axes,
    x: NDArray[np.float64],
    values: NDArray[np.float64],
    errors: NDArray[np.float64],
    name: str,
    style: Style,
) -> list[Handle]:
    """Draw one estimator; infinite values stand at the upper edge, and the legend counts those that are nan."""
    finite, infinite = np.isfinite(values), np.isinf(values)
    label = wrapped(name)
    line, *_ = axes.errorbar(
        x,
        np.where(finite, values, np.nan),
        yerr=np.where(finite, np.maximum(np.nan_to_num(errors, nan=0.0, posinf=0.0), 0.0), 0.0),
        color=style.colour,
        linestyle=style.line_style,
        linewidth=1.6,
        marker=style.marker,
        markersize=5,
        elinewidth=1.0,
        capsize=2.5,
        zorder=2,
    )
    # A legend that is copied to another place keeps of lines with error bars the bars alone.
    line.set_label(label)
    handles: list[Handle] = [line]
    if infinite.any():
        handles += axes.plot(
            x[infinite],
            (values[infinite] > 0).astype(np.float64),
            transform=axes.get_xaxis_transform(),
            linestyle="none",
            marker="X",
            markersize=8,
            color=style.colour,
            markeredgecolor=BLACK,
            clip_on=False,
            zorder=4,
            label=f"{label},\n{infinite.sum()} infinite, at the edge",
        )
    missing = np.isnan(values)
    if missing.any():
        handles.append(note(f"{label},\n{missing.sum()} nan, not drawn"))
    return handles


def show_num_obs(axes: Axes, num_obs: Sequence[int]) -> None:
    """Make the x axis one of numbers of observations, in log base 2, with a tick at each while there is room."""
    axes.set_xscale("log", base=2)
    every = -(-len(num_obs) // MOST_TICKS)
    axes.xaxis.set_major_locator(FixedLocator([float(n) for n in num_obs[::every]]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    margin = 2**0.4
    axes.set_xlim(num_obs[0] / margin, num_obs[-1] * margin)
    axes.set_xlabel("number of observations (log base 2)")
