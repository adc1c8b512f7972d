"""Receiver operating characteristics: how well each estimator's log Bayes factors rank data sets of the two models."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from deepbf.plots.axes import Handle, axes_or_new, axis_label, legend_beside, wrapped
from deepbf.plots.results import EXACT, Evaluated, estimator_names, model_names, results_of
from deepbf.plots.styles import GUIDE, estimator_styles


def roc(evaluation: Evaluated, ax: Axes | None = None) -> Axes:
    """Return axes with the ROC curve of every estimator; the legend gives the area under each, and its error.

    Positive is to decide for the first model. The diagonal is what a guess reaches.

    Parameters
    ----------
    evaluation
        An evaluation, or its results.
    ax
        Where to draw; None for a new figure.
    """
    results = results_of(evaluation, ("false_positive_rate", "true_positive_rate", "auc", "auc_error"))
    axes = axes_or_new(ax)
    handles: list[Handle] = []
    for name, style in estimator_styles(estimator_names(results)).items():
        one = results.sel(estimator=name)
        area = f"AUC {float(one['auc']):.3f} ± {float(one['auc_error']):.3f}"
        handles += axes.plot(
            np.asarray(one["false_positive_rate"], dtype=np.float64),
            np.asarray(one["true_positive_rate"], dtype=np.float64),
            color=style.colour,
            linestyle=style.line_style,
            # Curves of good estimators lie on the exact one, which therefore is thin and on top.
            linewidth=1.2 if name == EXACT else 1.8,
            zorder=3 if name == EXACT else 2,
            label=f"{wrapped(name)}\n{area}",
        )
    handles += axes.plot([0, 1], [0, 1], color=GUIDE, linewidth=0.8, zorder=1, label="a guess")
    finish_roc(axes, model_names(results)[0], handles)
    return axes


def finish_roc(axes: Axes, first: str, handles: list[Handle]) -> None:
    """Give axes of ROC curves their limits, their labels, which name the `first` model as the positive, and a legend.

    The axes are square, so that the diagonal, which is what a guess reaches, halves them.
    """
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel(axis_label("false positive rate", f"(positive: {first})"))
    axes.set_ylabel(axis_label("true positive rate", f"(positive: {first})"))
    legend_beside(axes, handles)
