"""Many estimators on one page: against each other, by the priors that they recover, and one of them trained again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from deepbf._checks import check_numeric_array
from deepbf.plots.axes import Handle, Span, axes_or_new, axis_label, legend_beside, wrapped
from deepbf.plots.results import EXACT, Evaluated, estimator_names, model_names, results_of
from deepbf.plots.roc_plot import finish_roc
from deepbf.plots.styles import BLACK, BLUE, EXACT_STYLE, GUIDE, MODEL_STYLES, estimator_styles

PANEL_SIZE = 2.3
# Estimates further out than this stand at the edge: one absurd value must not shrink all others to a dot.
REACH = 1e3
POINT_AREA = 6.0

ByModel = tuple[NDArray[np.float64], NDArray[np.float64]]


def pairs(log_bfs: Mapping[str, Sequence[ArrayLike]], *, names: Sequence[str], figure: Figure | None = None) -> Figure:
    """Return a figure with every estimator against every other, one point per data set, below the diagonal.

    Points on a panel's line are answered alike. Values that are infinite or beyond +-1,000 stand at the edge; nan are
    left out.

    Parameters
    ----------
    log_bfs
        By estimator: natural log Bayes factors at data of the first model, and at data of the second.
    names
        The two models.
    figure
        Where to draw; None for a new one.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(1)
    >>> values = rng.normal(1, 1, 50), rng.normal(-1, 1, 50)
    >>> drawn = pairs({"one": values, "other": values}, names=["A", "B"], figure=Figure())
    >>> len(drawn.axes)
    1
    """
    estimators = {name: _check_answers(name, values) for name, values in log_bfs.items()}
    if len(estimators) < 2:
        raise ValueError(f"log_bfs must hold at least two estimators; received {len(estimators)}. Add another.")
    if figure is None:
        # Only here: whoever passes a figure needs no pyplot, and no graphical backend.
        from matplotlib import pyplot

        side = PANEL_SIZE * (len(estimators) - 1) + 1.0
        figure = pyplot.figure(figsize=(side, side), layout="constrained")
    span = Span.of(*(part for values in estimators.values() for part in values), reach=REACH)
    last = len(estimators) - 1
    panels = figure.subplots(last, last, squeeze=False, sharex=True, sharey=True)
    handles: list[Handle] = []
    listed = list(estimators)
    for row, upwards in enumerate(listed[1:]):
        for column, to_the_right in enumerate(listed[:-1]):
            axes = panels[row, column]
            if column > row:
                axes.remove()
                continue
            handles = _draw_pair(axes, estimators[to_the_right], estimators[upwards], span, names)
            if row == last - 1:
                axes.set_xlabel(wrapped(to_the_right))
            if column == 0:
                axes.set_ylabel(wrapped(upwards))
    figure.legend(handles=handles, loc="outside upper right", frameon=False, fontsize="small")  # pyright: ignore[reportArgumentType]
    return figure


def _check_answers(name: str, values: Sequence[ArrayLike]) -> ByModel:
    if len(values) != 2:
        raise ValueError(
            f"log_bfs[{name!r}] must be two arrays, one for each model that data came from; received {len(values)}."
        )
    first, second = (check_numeric_array(f"log_bfs[{name!r}]", part).astype(np.float64) for part in values)
    return first, second


def _draw_pair(axes: Axes, x: ByModel, y: ByModel, span: Span, names: Sequence[str]) -> list[Handle]:
    handles: list[Handle] = []
    for model, style, right, up in zip(names, MODEL_STYLES, x, y, strict=True):
        if right.shape != up.shape:
            raise ValueError(
                f"log_bfs must be at the same data sets; received {right.shape} and {up.shape} for {model}."
            )
        known = ~(np.isnan(right) | np.isnan(up))
        handles.append(
            axes.scatter(
                span.at_edge(right[known]),
                span.at_edge(up[known]),
                s=POINT_AREA,
                c=style.colour,
                marker=style.marker,
                alpha=0.5,
                linewidths=0,
                zorder=2,
                label=wrapped(f"data from {model}"),
            )
        )
    low, high = span.limits
    handles += axes.plot([low, high], [low, high], color=BLACK, linewidth=0.8, zorder=3, label="the same answer")
    axes.axvline(0.0, color=GUIDE, linewidth=0.6, zorder=1)
    axes.axhline(0.0, color=GUIDE, linewidth=0.6, zorder=1)
    for which in ("x", "y"):
        span.show(axes, which)
    axes.set_aspect("equal", adjustable="box")
    axes.tick_params(labelsize="small")
    return handles


def priors(evaluation: Evaluated, ax: Axes | None = None) -> Axes:
    """Return axes with the estimated prior probability of the first model, a line of the page for each estimator.

    Error bars are two standard errors either way; the true prior probability is the thick grey line.

    Parameters
    ----------
    evaluation
        An evaluation, or its results.
    ax
        Where to draw; None for a new figure.
    """
    results = results_of(evaluation, ("estimated_prior", "estimated_prior_error", "prior_prob"))
    axes = axes_or_new(ax)
    names = estimator_names(results)
    first, _ = model_names(results)
    true = axes.axvline(
        float(results["prior_prob"].sel(model=first)),
        color=GUIDE,
        linewidth=3.0,
        alpha=0.6,
        zorder=1,
        label="true prior",
    )
    # The first stands at the top.
    places = np.arange(len(names))[::-1]
    for place, (name, style) in zip(places, estimator_styles(names).items(), strict=True):
        one = results.sel(estimator=name)
        axes.errorbar(
            float(one["estimated_prior"]),
            place,
            xerr=2.0 * float(one["estimated_prior_error"]),
            color=style.colour,
            marker=style.marker,
            capsize=3,
            zorder=2,
        )
    axes.set_yticks(places, [wrapped(name) for name in names])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlabel(axis_label("estimated prior probability of", f"{first}, ± 2 errors"))
    legend_beside(axes, [true])
    return axes


def repeated_roc(evaluation: Evaluated, label: str, ax: Axes | None = None) -> Axes:
    """Return axes with the ROC curves of one kind of estimator, trained several times, all in one look.

    Parameters
    ----------
    evaluation
        An evaluation, or its results, whose estimators are the repetitions; the exact one is drawn on top.
    label
        What the repetitions are called together.
    ax
        Where to draw; None for a new figure.
    """
    results = results_of(evaluation, ("false_positive_rate", "true_positive_rate", "auc"))
    axes = axes_or_new(ax)
    repeats = [name for name in estimator_names(results) if name != EXACT]
    areas = [float(results["auc"].sel(estimator=name)) for name in repeats]
    handles: list[Handle] = []
    for name in estimator_names(results):
        one = results.sel(estimator=name)
        [line] = axes.plot(
            np.asarray(one["false_positive_rate"], dtype=np.float64),
            np.asarray(one["true_positive_rate"], dtype=np.float64),
            color=EXACT_STYLE.colour if name == EXACT else BLUE,
            linestyle=EXACT_STYLE.line_style if name == EXACT else "solid",
            linewidth=1.2 if name == EXACT else 0.8,
            alpha=1.0 if name == EXACT else 0.6,
            zorder=3 if name == EXACT else 2,
        )
        if name == EXACT:
            line.set_label(f"{EXACT}\nAUC {float(one['auc']):.4f}")
            handles.append(line)
        elif name == repeats[0]:
            line.set_label(f"{wrapped(label)},\n{len(repeats)} times:\nAUC {min(areas):.4f} to {max(areas):.4f}")
            handles.append(line)
    handles += axes.plot([0, 1], [0, 1], color=GUIDE, linewidth=0.8, zorder=1, label="a guess")
    finish_roc(axes, model_names(results)[0], handles)
    return axes
