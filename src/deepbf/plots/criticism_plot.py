"""Model criticism: the density of Z against 1/2, and a statistic of predictions against its observed value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from deepbf.plots.axes import Handle, axes_or_new, axis_label, legend_beside, wrapped
from deepbf.plots.styles import BLUE, GUIDE, SKY, VERMILLION

HALF = 0.5
# Below this share of the highest density nothing can be seen.
VISIBLE = 1e-3
MARGIN = 0.06
# Inches of a panel in a grid, and characters that fit above or beside it.
PANEL_SIZE = (2.7, 2.0)
PANEL_WIDTH = 26
ROW_WIDTH = 24

MOST_BARS = 40
# Whole numbers spread no wider than this have a bar each.
MOST_WHOLE = 60


class ZValues(Protocol):
    """Draws of Z, summed up."""

    @property
    def model(self) -> str:
        """The model that made the predictions."""
        ...

    @property
    def low(self) -> float:
        """The 2.5% quantile."""
        ...

    @property
    def high(self) -> float:
        """The 97.5% quantile."""
        ...

    def density(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a grid and the density on it."""
        ...


def z_values(values: ZValues, ax: Axes | None = None) -> Axes:
    """Return axes with the density of Z, its 2.5% and 97.5% quantiles, and 1/2.

    Parameters
    ----------
    values
        What `deepbf.criticism.z_values` returned.
    ax
        Where to draw; None for a new figure.
    """
    axes = axes_or_new(ax)
    handles = _draw(axes, values)
    axes.set_xlabel(axis_label("Z, mean probability of being observed,", f"at predictions of {values.model}"))
    axes.set_ylabel("density")
    legend_beside(axes, handles)
    return axes


def z_values_grid(rows: Mapping[str, Mapping[str, ZValues]], figure: Figure | None = None) -> Figure:
    """Return a figure with a panel for each model's predictions, down, and each data set, across.

    Parameters
    ----------
    rows
        By model, then by data set: ``{"Poisson": {"Poisson data": z_values(...), "outliers": z_values(...)}, ...}``.
        All models have the same data sets.
    figure
        Where to draw; None for a new one.
    """
    if not isinstance(rows, Mapping) or not rows or not all(isinstance(row, Mapping) and row for row in rows.values()):
        raise TypeError(
            f"rows must map models to Z-values by data set; received {type(rows).__name__}. Pass, for example, "
            "{'Poisson': {'observed': z_values(...)}}."
        )
    first, columns = next((model, list(row)) for model, row in rows.items())
    for model, row in rows.items():
        if set(row) != set(columns):
            raise ValueError(
                f"rows must have the same data sets for every model; {first} has {', '.join(columns)}, "
                f"{model} has {', '.join(row)}."
            )
    if figure is None:
        # Only here: whoever passes a figure needs no pyplot, and no graphical backend.
        from matplotlib import pyplot

        size = (PANEL_SIZE[0] * len(columns), PANEL_SIZE[1] * len(rows) + 0.6)
        figure = pyplot.figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    handles: list[Handle] = []
    for model, row in zip(rows, panels, strict=True):
        for column, axes in zip(columns, row, strict=True):
            handles = _draw(axes, rows[model][column], label_numbers=False)
            axes.tick_params(labelsize="small")
            axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
            axes.set_yticks([])
        row[0].set_ylabel(wrapped(f"predictions of {model}", ROW_WIDTH), fontsize="small")
    for column, axes in zip(columns, panels[0], strict=True):
        axes.set_title(wrapped(column, PANEL_WIDTH), fontsize="medium")
    figure.supxlabel("Z, mean probability of being observed, at predictions", fontsize="medium")
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize="small")  # pyright: ignore[reportArgumentType]
    return figure


def _draw(axes: Axes, values: ZValues, *, label_numbers: bool = True) -> list[Handle]:
    grid, curve = values.density()
    # Kernels reach beyond the ends of what a probability can be; the curve does not.
    inside = (grid >= 0) & (grid <= 1)
    grid, curve = grid[inside], curve[inside]
    area = axes.fill_between(
        grid, curve, facecolor=to_rgba(SKY, 0.35), edgecolor="0.3", linewidth=1.0, label="density of Z", zorder=1
    )
    numbers = f": {values.low:.3f} and {values.high:.3f}" if label_numbers else ""
    quantiles = [
        axes.axvline(end, color=VERMILLION, linestyle=(0, (4, 2)), linewidth=1.6, zorder=2)
        for end in (values.low, values.high)
    ]
    quantiles[0].set_label(wrapped(f"2.5% and 97.5% quantiles{numbers}"))
    half = axes.axvline(HALF, color=BLUE, linestyle="solid", linewidth=2.2, zorder=3, label="1/2: not told apart")
    visible = grid[curve > VISIBLE * curve.max()]
    ends = np.array([min(visible.min(), values.low, HALF), max(visible.max(), values.high, HALF)])
    margin = MARGIN * max(float(np.ptp(ends)), 1e-3)
    axes.set_xlim(float(ends[0]) - margin, float(ends[1]) + margin)
    axes.set_ylim(0, 1.08 * float(curve.max()))
    return [area, quantiles[0], half]


class StatisticCheck(Protocol):
    """One statistic at the observed data, and at predictions."""

    @property
    def name(self) -> str:
        """What the statistic is called."""
        ...

    @property
    def observed(self) -> float:
        """Its observed value."""
        ...

    @property
    def draws(self) -> NDArray[np.float64]:
        """Its values at predictions."""
        ...

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """The 2.5%, 50% and 97.5% quantiles of the predictions."""
        ...

    @property
    def model(self) -> str:
        """The model that made the predictions."""
        ...

    @property
    def verdict(self) -> str:
        """Whether the observed value is as predicted, in words."""
        ...


def predictive_check(check: StatisticCheck, ax: Axes | None = None) -> Axes:
    """Return axes with a histogram of a statistic over predictions, and a line at its observed value.

    Parameters
    ----------
    check
        One statistic of what `deepbf.criticism.predictive_check` returned, such as ``found["sd"]``.
    ax
        Where to draw; None for a new figure.
    """
    axes = axes_or_new(ax)
    lowest, highest = float(check.draws.min()), float(check.draws.max())
    if highest - lowest <= MOST_WHOLE and np.all(check.draws == np.round(check.draws)):
        edges = np.arange(lowest - 0.5, highest + 1.0)
    elif lowest == highest:
        # A single bar, wide enough to be seen, whatever the size of the one value.
        reach = 0.5 * max(abs(lowest), 1.0)
        edges = np.array([lowest - reach, lowest + reach])
    else:
        edges = np.linspace(lowest, highest, min(MOST_BARS, max(5, len(check.draws) // 10)) + 1)
    axes.hist(
        check.draws,
        bins=edges.tolist(),
        facecolor=to_rgba(SKY, 0.5),
        edgecolor="0.3",
        linewidth=0.6,
        zorder=1,
    )
    bars = Patch(
        facecolor=to_rgba(SKY, 0.5),
        edgecolor="0.3",
        label=wrapped(f"{len(check.draws):,} predictions of {check.model}"),
    )
    low, _, high = check.quantiles
    ends = [axes.axvline(end, color=GUIDE, linestyle=(0, (4, 2)), linewidth=1.3, zorder=2) for end in (low, high)]
    ends[0].set_label(f"2.5% and 97.5%:\n{low:.4g} and {high:.4g}")
    observed = axes.axvline(
        check.observed,
        color=VERMILLION,
        linewidth=2.4,
        zorder=3,
        label=wrapped(f"observed: {check.observed:.4g}, {check.verdict}"),
    )
    axes.set_xlabel(axis_label(check.name))
    axes.set_ylabel("predictions")
    legend_beside(axes, [observed, bars, ends[0]])
    return axes
