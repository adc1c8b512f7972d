"""Heat maps side by side: rows whose panels share their colours, with one colour bar per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from deepbf.plots.axes import Span, wrapped
from deepbf.plots.heat_map_plot import AT_ONE, add_colour_bar, check_pair, check_plane, draw_plane
from deepbf.plots.styles import BLACK, VERMILLION

# Inches of a panel, of a colour bar and of a legend, and characters that fit above or beside a panel.
PANEL_SIZE = (2.6, 2.45)
BAR_WIDTH, LEGEND_HEIGHT = 1.5, 0.5
PANEL_WIDTH, BAR_LABEL = 26, 34
# Small and faint, so that the map is seen through ten thousand of them.
POINT_AREA = 1.0
STAR_AREA = 170.0


@dataclass(frozen=True)
class HeatMapRow:
    """One row of heat maps over the same plane.

    Parameters
    ----------
    x, y
        Increasing coordinates.
    log_bf
        Natural logs of the Bayes factor by what each panel is called, shape (len(y), len(x)) each. The colours span
        the values of the first; others beyond them take the colour at the end.
    names
        The first and the second model.
    labels
        What `x` and `y` are.
    points
        Data sets to be marked by dots, shape (many, 2); empty for none. Those outside the plane are left out.
    stars
        Data sets to be marked by a star, shape (many, 2), by colour. Those outside the plane are left out.
    """

    x: ArrayLike
    y: ArrayLike
    log_bf: Mapping[str, ArrayLike]
    names: Sequence[str]
    labels: Sequence[str] = ("first observation", "second observation")
    points: ArrayLike = ()
    stars: Mapping[str, ArrayLike] = field(default_factory=dict)


def heat_map_grid(
    rows: Mapping[str, HeatMapRow],
    figure: Figure | None = None,
    *,
    title: str = "",
    star_words: Mapping[str, str] | None = None,
) -> Figure:
    """Return a figure with a row of heat maps for each entry, which share their colours and one colour bar.

    Parameters
    ----------
    rows
        By what stands left of the row. All have the same panels.
    figure
        Where to draw; None for a new one.
    title
        What stands above everything.
    star_words
        What the stars of each colour are, for the legend.
    """
    columns = _check_columns(rows)
    if figure is None:
        figure = Figure(figsize=grid_size(len(rows), len(columns)), layout="constrained")
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    for (name, row), line in zip(rows.items(), panels, strict=True):
        _draw_row(row, line)
        line[0].set_ylabel(f"{wrapped(name, PANEL_WIDTH)}\n\n{wrapped(row.labels[1], PANEL_WIDTH)}")
    for column, axes in zip(columns, panels[0], strict=True):
        axes.set_title(wrapped(column, PANEL_WIDTH), fontsize="medium")
    handles = [_line_at_one()]
    if any(np.size(row.points) for row in rows.values()):
        dot = Line2D([], [], color=VERMILLION, linestyle="none", marker="o", markersize=3, label="a simulated data set")
        handles.append(dot)
    for colour, words in (star_words or {}).items():
        handles.append(_star(colour, words))
    figure.legend(
        handles=handles,
        # A title of the figure itself would stand where the legend does.
        title=title or None,
        title_fontsize="large",
        loc="outside upper center",
        ncols=len(handles),
        frameon=False,
        fontsize="small",
    )
    return figure


def grid_size(num_rows: int, num_columns: int) -> tuple[float, float]:
    """Return inches that suit so many panels, their colour bars and a legend."""
    return PANEL_SIZE[0] * num_columns + BAR_WIDTH, PANEL_SIZE[1] * num_rows + LEGEND_HEIGHT


def _draw_row(row: HeatMapRow, panels: Sequence[Axes]) -> None:
    names, labels = check_pair("names", row.names), check_pair("labels", row.labels)
    checked = [check_plane(row.x, row.y, plane) for plane in row.log_bf.values()]
    span = Span.of(checked[0][2])
    drawn = []
    for axes, (x, y, log_bf) in zip(panels, checked, strict=True):
        drawn.append(draw_plane(axes, x, y, log_bf, span, labelled=False))
        num_missing = int(np.isnan(log_bf).sum())
        if num_missing:
            axes.text(0.97, 0.97, f"{num_missing} nan, hatched", transform=axes.transAxes, ha="right", va="top")
        _draw_marks(axes, row)
        axes.set_xlabel(wrapped(labels[0], PANEL_WIDTH))
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    mesh, contours = drawn[0]
    planes = [plane for _, _, plane in checked]
    bar = add_colour_bar(panels, mesh, contours, span, names, beyond=planes, label_width=BAR_LABEL)
    bar.ax.yaxis.label.set_fontsize("small")


def _draw_marks(axes: Axes, row: HeatMapRow) -> None:
    limits = axes.get_xlim(), axes.get_ylim()
    if np.size(row.points):
        points = _inside(row.points, *limits)
        dots = axes.scatter(
            points[:, 0], points[:, 1], s=POINT_AREA, c=VERMILLION, alpha=0.25, linewidths=0, zorder=1.5
        )
        dots.set_rasterized(True)
    for colour, places in row.stars.items():
        stars = _inside(places, *limits)
        axes.scatter(
            stars[:, 0], stars[:, 1], s=STAR_AREA, c=colour, marker="*", edgecolors=BLACK, linewidths=0.8, zorder=5
        )
    axes.set(xlim=limits[0], ylim=limits[1])


def _inside(points: ArrayLike, x_limits: tuple[float, float], y_limits: tuple[float, float]) -> NDArray[np.float64]:
    array = np.asarray(points, dtype=np.float64)
    low, high = np.transpose([x_limits, y_limits])
    return array[np.all((array >= low) & (array <= high), axis=1)]


def _line_at_one() -> Line2D:
    """Return what the legend shows for the thick contour, which is white on dark colours and black on light ones."""
    edge = [Stroke(linewidth=4.4, foreground=BLACK), Normal()]
    return Line2D([], [], color="white", linewidth=2.8, path_effects=edge, label=f"{AT_ONE} (white or black)")


def _star(colour: str, words: str) -> Line2D:
    star = Line2D([], [], linestyle="none", marker="*", markersize=STAR_AREA**0.5, color=colour, label=words)
    star.set_markeredgecolor(BLACK)
    return star


def _check_columns(rows: Mapping[str, HeatMapRow]) -> list[str]:
    """Return the names of the panels, the same in every row."""
    if not isinstance(rows, Mapping) or not rows or not all(isinstance(row, HeatMapRow) for row in rows.values()):
        raise TypeError(f"rows must map titles to HeatMapRow, at least one; received {rows!r}.")
    first = next(iter(rows))
    for title, row in rows.items():
        if list(row.log_bf) != list(rows[first].log_bf) or not row.log_bf:
            raise ValueError(
                f"rows must have the same panels, at least one; {first} has {', '.join(rows[first].log_bf)}, {title} "
                f"has {', '.join(row.log_bf)}."
            )
    return list(rows[first].log_bf)
