"""What changes with the number of observations: metrics, recovered priors, and the evidence that a design promises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from deepbf._checks import check_choice
from deepbf.plots.axes import Handle, axes_or_new, axis_label, legend_beside, note, show_num_obs, wrapped
from deepbf.plots.results import EXACT, Evaluated, model_names, results_by_num_obs, results_of, union_of_estimators
from deepbf.plots.styles import BLACK, GUIDE, MODEL_STYLES, Style, estimator_styles

# Errors that shrink by orders of magnitude as an estimator improves.
LOGARITHMIC = ("mse", "clipped_mse", "kl", "surprise_mse", "posterior_kl")
# These compare with the exact Bayes factor, which is therefore perfect in all of them.
AGAINST_EXACT = (*LOGARITHMIC, "spearman", "agreement", "excess_loss")
# What goes with a metric, and is none.
COMPANIONS = ("_error", "_low", "_high", "_z")
WEIGHTED = "weighted"
BAND_WIDTH = 5.0
# Estimators stand side by side, so that their error bars do not cover each other: this many octaves apart at most,
# and all within this share of the way from one number of observations to the next.
STEP = 0.1
SHARE = 0.5


def metric_against_num_obs(
    evaluations: Mapping[int, Evaluated], metric: str = "clipped_mse", group: str = WEIGHTED, ax: Axes | None = None
) -> Axes:
    """Return axes with a metric against the number of observations, one line per estimator, with error bars.

    Squared errors and divergences have a logarithmic axis while all are positive. The exact Bayes factor is drawn only
    where it is not perfect by definition. Shaded bars, for the calibration error, are what perfect calibration gives.

    Parameters
    ----------
    evaluations
        Evaluations, or their results, by number of observations.
    metric
        A variable of the results with one value per estimator, or one per estimator and group.
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
    pooled = np.concatenate(list(values.values()))
    is_log = metric in LOGARITHMIC and bool(np.isfinite(pooled).any() and np.all(pooled[~np.isnan(pooled)] > 0))
    if is_log:
        axes.set_yscale("log", base=10)
    name = str(all_results[0][metric].attrs.get("long_name", metric.replace("_", " ")))
    over = {None: "", WEIGHTED: "over both models"}.get(chosen_group, f"over data from {chosen_group}")
    axes.set_ylabel(axis_label(name, over, "(log base 10)" if is_log else ""))
    legend_beside(axes, handles)
    return axes


def _check_metric(metric: str, all_results: Sequence[xr.Dataset]) -> None:
    """Accept what every evaluation holds for each estimator, besides what only goes with a metric."""
    known = [set(map(str, results.data_vars)) for results in all_results]
    # calibration_error ends like a companion, but there is no variable "calibration" for it to go with.
    companions = {f"{name}{ending}" for name in known[0] for ending in COMPANIONS}
    valid = [
        str(name)
        for name, values in all_results[0].data_vars.items()
        if set(values.dims) in ({"estimator"}, {"estimator", "group"})
        and name not in companions
        and all(name in variables for variables in known)
    ]
    if metric in AGAINST_EXACT and metric not in valid:
        raise ValueError(
            f"metric {metric!r} compares with the exact Bayes factor, and at least one evaluation is without it; "
            f"received {metric!r}. Evaluate with exact values, or pass one of {', '.join(map(repr, valid))}."
        )
    check_choice("metric", metric, valid)


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


def prior_against_num_obs(evaluations: Mapping[int, Evaluated], ax: Axes | None = None) -> Axes:
    """Return axes with the estimated prior probability of the first model against the number of observations.

    One line per estimator, with error bars; the true prior probability is the thick grey line.

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


def values_by_estimator(
    by_num_obs: Mapping[int, xr.Dataset], variable: str, names: Sequence[str], group: str | None = None
) -> dict[str, NDArray[np.float64]]:
    """Return a variable of the results by estimator: arrays with one entry per number of observations.

    An entry is nan where that evaluation is without the variable or the estimator. A variable that differs by `group`
    needs one; pass None for those that have one value per estimator.
    """
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
    """Return the numbers of observations, shifted a little for the estimator at `place`.

    The lines of all estimators then stand beside each other on a logarithmic axis, and their error bars can be told
    apart.

    Examples
    --------
    >>> side_by_side([8, 16], place=1, num_lines=3).tolist()
    [8.0, 16.0]
    """
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
    """Draw one estimator with error bars, and return what the legend shows for it.

    Infinite values stand at the edge of the axes, with a mark of their own; the legend counts them, and those that are
    nan, which are not drawn. `errors` has the shape of `values`, or two rows, for bars downwards and upwards.
    """
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
