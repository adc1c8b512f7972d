"""Whether estimators give back the prior: the mean posterior probability of a model is its prior probability."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from deepbf.plots.axes import Handle, axes_or_new, axis_label, legend_beside, wrapped
from deepbf.plots.num_obs_axis import draw_line, show_num_obs, side_by_side, values_by_estimator
from deepbf.plots.results import (
    Evaluated,
    estimator_names,
    model_names,
    results_by_num_obs,
    results_of,
    union_of_estimators,
)
from deepbf.plots.styles import GUIDE, estimator_styles


def prior_against_num_obs(evaluations: Mapping[int, Evaluated], ax: Axes | None = None) -> Axes:
    """Return axes with the estimated prior probability of the first model against the number of observations.

    One line an estimator, with error bars; the true prior probability is the thick grey line.

    Parameters
    ----------
    evaluations
        Evaluations, or their results, by number of observations.
    ax
        Where to draw; None for a new figure.
    """
    by_num_obs = results_by_num_obs(evaluations, ("estimated_prior", "estimated_prior_error", "prior_prob"))
    axes = axes_or_new(ax)
    num_obs = list(by_num_obs)
    first, _ = model_names(by_num_obs[num_obs[0]])
    names = union_of_estimators(by_num_obs.values())
    values = values_by_estimator(by_num_obs, "estimated_prior", names)
    errors = values_by_estimator(by_num_obs, "estimated_prior_error", names)

    show_num_obs(axes, num_obs)
    # Continued to both ends of the axis, so that it shows for a single number of observations too.
    ends = axes.get_xlim()
    true = [float(results["prior_prob"].sel(model=first)) for results in by_num_obs.values()]
    handles: list[Handle] = []
    handles += axes.plot(
        [ends[0], *num_obs, ends[1]],
        [true[0], *true, true[-1]],
        color=GUIDE,
        linewidth=3.0,
        alpha=0.6,
        zorder=1,
        label="true prior",
    )
    for place, (name, style) in enumerate(estimator_styles(names).items()):
        handles += draw_line(axes, side_by_side(num_obs, place, len(names)), values[name], errors[name], name, style)
    axes.set_xlim(*ends)
    axes.set_ylabel(axis_label("estimated prior probability of", first))
    legend_beside(axes, handles)
    return axes


def priors(evaluation: Evaluated, ax: Axes | None = None) -> Axes:
    """Return axes with the estimated prior probability of the first model, one line of the page an estimator.

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
