"""A metric of the evaluation against the number of observations."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from deepbf._checks import check_choice
from deepbf.plots.axes import Handle, axes_or_new, axis_label, legend_beside
from deepbf.plots.num_obs_axis import draw_line, show_num_obs, side_by_side, values_by_estimator
from deepbf.plots.results import EXACT, Evaluated, model_names, results_by_num_obs, union_of_estimators
from deepbf.plots.styles import GUIDE, estimator_styles

# Errors that shrink by orders of magnitude as an estimator improves.
LOGARITHMIC = ("mse", "clipped_mse", "kl", "surprise_mse", "posterior_kl")
# These compare with the exact Bayes factor, which is therefore perfect in all of them.
AGAINST_EXACT = (*LOGARITHMIC, "spearman", "agreement", "excess_loss")
# What goes with a metric, and is none.
COMPANIONS = ("_error", "_low", "_high", "_z")
WEIGHTED = "weighted"
BAND_WIDTH = 5.0


def metric_against_num_obs(
    evaluations: Mapping[int, Evaluated], metric: str = "clipped_mse", group: str = WEIGHTED, ax: Axes | None = None
) -> Axes:
    """Return axes with a metric against the number of observations, one line an estimator, with error bars.

    Squared errors and divergences have a logarithmic axis while all are positive. The exact Bayes factor is drawn only
    where it is not perfect by definition. Shaded bars, for the calibration error, are what perfect calibration gives.

    Parameters
    ----------
    evaluations
        Evaluations, or their results, by number of observations.
    metric
        A variable of the results with one value an estimator, or one an estimator and group.
    group
        The model that data were simulated from, or "weighted" for both, by their prior probabilities.
    ax
        Where to draw; None for a new figure.
    """
    by_num_obs = results_by_num_obs(evaluations, ("estimator",))
    all_results = list(by_num_obs.values())
    _check_metric(metric, all_results)
    chosen_group = _check_group(metric, group, all_results)
    names = [name for name in union_of_estimators(all_results) if metric not in AGAINST_EXACT or name != EXACT]
    axes = axes_or_new(ax)
    num_obs = list(by_num_obs)

    values = values_by_estimator(by_num_obs, metric, names, chosen_group)
    errors = values_by_estimator(by_num_obs, f"{metric}_error", names, chosen_group)
    lows = values_by_estimator(by_num_obs, f"{metric}_low", names, chosen_group)
    highs = values_by_estimator(by_num_obs, f"{metric}_high", names, chosen_group)
    handles: list[Handle] = []
    has_bars = False
    for place, (name, style) in enumerate(estimator_styles(names).items()):
        x = side_by_side(num_obs, place, len(names))
        handles += draw_line(axes, x, values[name], errors[name], name, style)
        if np.any(np.isfinite(lows[name] + highs[name])):
            axes.vlines(x, lows[name], highs[name], color=style.colour, alpha=0.3, linewidth=BAND_WIDTH, zorder=1)
            has_bars = True
    if has_bars:
        handles.append(Patch(facecolor=GUIDE, alpha=0.3, label="95% interval if calibrated"))

    show_num_obs(axes, num_obs)
    is_log = metric in LOGARITHMIC and _all_positive(values.values())
    if is_log:
        axes.set_yscale("log", base=10)
    axes.set_ylabel(_label(metric, chosen_group, all_results[0], is_log))
    legend_beside(axes, handles)
    return axes


def _check_metric(metric: str, all_results: Sequence[xr.Dataset]) -> None:
    """Accept what every evaluation holds for each estimator."""
    known = [set(map(str, results.data_vars)) for results in all_results]
    valid = [
        str(name)
        for name, values in all_results[0].data_vars.items()
        if set(values.dims) in ({"estimator"}, {"estimator", "group"})
        and not _is_companion(str(name), known[0])
        and all(name in variables for variables in known)
    ]
    if metric in AGAINST_EXACT and metric not in valid:
        raise ValueError(
            f"metric {metric!r} compares with the exact Bayes factor, and at least one evaluation is without it; "
            f"received {metric!r}. Evaluate with exact values, or pass one of {', '.join(map(repr, valid))}."
        )
    check_choice("metric", metric, valid)


def _is_companion(name: str, variables: Container[str]) -> bool:
    # calibration_error ends like one, but there is no variable "calibration" for it to go with.
    return any(name.endswith(ending) and name.removesuffix(ending) in variables for ending in COMPANIONS)


def _check_group(metric: str, group: str, all_results: Sequence[xr.Dataset]) -> str | None:
    """Return the group to select, None for a metric that has one value for both models together."""
    if "group" in all_results[0][metric].dims:
        return check_choice("group", group, [*model_names(all_results[0]), WEIGHTED])
    if group != WEIGHTED:
        raise ValueError(
            f"group must be {WEIGHTED!r} for {metric}, which has one value for both models together; "
            f"received {group!r}. Leave it out."
        )
    return None


def _all_positive(lines: Iterable[NDArray[np.float64]]) -> bool:
    pooled = np.concatenate(list(lines))
    return bool(np.any(np.isfinite(pooled)) and np.all(pooled[~np.isnan(pooled)] > 0))


def _label(metric: str, group: str | None, results: xr.Dataset, is_log: bool) -> str:
    name = str(results[metric].attrs.get("long_name", metric.replace("_", " ")))
    of = {None: "", WEIGHTED: "over both models"}.get(group, f"over data from {group}")
    return axis_label(name, of, "(log base 10)" if is_log else "")
