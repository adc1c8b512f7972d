"""The weapon study's table and figures, drawn from what every method answered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from deepbf import plots
from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf.evaluation.table import aligned_table
from deepbf.evaluation.tail_areas import surprise
from deepbf_studies.paper.plots import pairs, priors, repeated_roc
from deepbf_studies.paper.target import Drawing, Results, Target
from deepbf_studies.paper.weapon import (
    ABC_FULL,
    ABC_SUM,
    IMPORTANCE,
    INTRINSIC,
    METHODS,
    MODELS,
    NEED_PEOPLE,
    OUR_FULL,
    OUR_SUM,
    PAPER_ARITHMETIC,
    PAPER_BF,
    PAPER_FULL,
    PAPER_GEOMETRIC,
    PAPER_SUM,
    plan,
)
from deepbf_studies.paper.weapon_data import SIMULATED, read_observed

# The paper's table, for the real data: Bayes factor, p1, p2.
PAPER_TABLE = {
    ABC_FULL: (4.304, 0.301, 0.010),
    ABC_SUM: (4.545, 0.219, 0.006),
    IMPORTANCE: (8.10, 0.190, 0.004),
    PAPER_SUM: (7.639, 0.184, 0.005),
    PAPER_FULL: (8.082, 0.198, 0.005),
    PAPER_GEOMETRIC: (1.7, 0.140, 0.023),
}
NEEDS_PEOPLE = "needs one row per person"
# Characters of the longest method's name, and a little.
LABEL_WIDTH = 24
DIRECTION = "process dissociation over Stroop"
MAIN_DENSITIES = (IMPORTANCE, ABC_SUM, OUR_SUM, OUR_FULL)
# Where log Bayes factors are compared number by number: up to a thousand to one.
LOG_MIDDLE = math.log(1e3)


def draw_table(results: Results) -> Drawing:
    """Return Bayes factors and surprise at the observed data and at the paper's Bayes factor, and methods' errors."""
    rows = [row_of(results, method) for method in (*METHODS, EXACT)]
    at_paper = [tails_at(results, method, math.log(PAPER_BF)) for method in (*METHODS, EXACT)]
    accuracy = [_accuracy(results, method) for method in METHODS if method not in INTRINSIC]
    in_paper = {method: [f"{bf:.3g}", f"{p1:.3f}", f"{p2:.3f}"] for method, (bf, p1, p2) in PAPER_TABLE.items()}
    source = _source(results)
    text = "\n\n".join(
        [
            f"Observed data: {source}.\nBayes factors are of {DIRECTION}.\n"
            "p1 = P(BF <= observed, given process dissociation), p2 = P(BF >= observed, given Stroop), each among the\n"
            "method's own answers to data simulated from the trees, with its 95% interval; small is surprising.",
            _written_rows(rows),
            f"At a Bayes factor of {PAPER_BF:.2f}, that of the real data by TreeBUGS, for which the paper has\n"
            "p1 = 0.190 and p2 = 0.004. These depend on the trees alone, so they can be checked without the data:",
            _written_tails(at_paper),
            "Against the exact log Bayes factor, at the simulated data sets of each tree. The error is the root mean\n"
            "square over those with an exact Bayes factor between 1/1000 and 1000:",
            _written_accuracy(accuracy),
            "The paper's table, for the real data:",
            "\n".join(_table(["BF", "p1", "p2"], in_paper)),
        ]
    )
    numbers = {
        "observed": source,
        "direction": DIRECTION,
        "methods": {row["method"]: row for row in rows},
        f"at Bayes factor {PAPER_BF:.2f}": {row["method"]: row for row in at_paper},
        "against the exact log Bayes factor": {row["method"]: row for row in accuracy},
    }
    return Drawing(text, numbers=numbers)


def draw_figure_8(results: Results) -> Drawing:
    """Return the eight panels: priors, scatter plot, ROC curves, repeated ROC curves, four densities."""
    evaluation = results["evaluation"]
    figure = Figure(figsize=(15, 21), layout="constrained")
    panels = figure.subplots(4, 2).ravel()
    priors(evaluation, panels[0])
    plots.scatter(evaluation, OUR_SUM, panels[1])
    plots.roc(evaluation, panels[2])
    repeated_roc(results["repeated"], OUR_SUM, panels[3])
    titles = ["estimated prior", f"{OUR_SUM} against the exact Bayes factor", "ROC curves"]
    titles.append(f"ROC curves of independently trained {OUR_SUM}")
    for panel, method in zip(panels[4:], MAIN_DENSITIES, strict=True):
        _draw_densities(results, method, panel)
        titles.append(method)
    for letter, panel, title in zip("abcdefgh", panels, titles, strict=True):
        panel.set_title(f"({letter}) {title}")
    figure.suptitle(_heading(results))
    return Drawing(_told(results), {"": figure}, _figure_numbers(results))


def _draw_figure_s30(results: Results) -> Drawing:
    """Return scatter plots of every two methods."""
    compared = (EXACT, OUR_SUM, PAPER_FULL, ABC_SUM, PAPER_ARITHMETIC, PAPER_GEOMETRIC)
    figure = Figure(figsize=(13, 13), layout="constrained")
    pairs({name: _log_bfs(results, name) for name in compared}, names=MODELS, figure=figure)
    figure.suptitle(f"Method against method, at data SIMULATED from both trees\n{_heading(results)}", fontsize="medium")
    return Drawing(_told(results), {"": figure}, _figure_numbers(results))


def _draw_figure_s31(results: Results) -> Drawing:
    """Return the densities of the methods that figure 8 leaves out."""
    methods = [method for method in METHODS if method not in MAIN_DENSITIES]
    num_rows = -(-len(methods) // 2)
    figure = Figure(figsize=(15, 5 * num_rows), layout="constrained")
    panels = figure.subplots(num_rows, 2).ravel()
    for panel, method in zip(panels, methods, strict=False):
        _draw_densities(results, method, panel)
        panel.set_title(method)
    for panel in panels[len(methods) :]:
        panel.set_visible(False)
    figure.suptitle(_heading(results))
    return Drawing(_told(results), {"": figure}, _figure_numbers(results))


def _draw_densities(results: Results, method: str, axes: Any) -> None:
    """Draw a method's answers under each tree, the observed one, its repetitions, and the exact one."""
    evaluation = results["evaluation"]
    shown = evaluation.sel(estimator=[method]) if method in INTRINSIC else evaluation.sel(estimator=[method, EXACT])
    observed = _observed_repeats(results, method)
    known = observed[np.isfinite(observed)]
    exact = _exact_observed(results, method)
    plots.densities(
        shown,
        method,
        observed=float(known[0]) if len(known) else None,
        repeats=known if len(known) > 1 else None,
        exact_observed=exact if math.isfinite(exact) else None,
        ax=axes,
    )


def _observed_repeats(results: Results, method: str) -> NDArray[np.float64]:
    """Return the log Bayes factors of the observed data in all repetitions of a method, the first one first."""
    found = {key[1]: one for key, one in results.items() if isinstance(key, tuple) and key[0] == method}
    return np.array([float(found[k]["observed"]) for k in sorted(found)])


def _exact_observed(results: Results, method: str) -> float:
    """Return the exact log Bayes factor of the observed data, of the kind that the method estimates."""
    exact = results[(EXACT, 0)]
    return float(exact[f"observed_{INTRINSIC[method]}" if method in INTRINSIC else "observed"])


def _log_bfs(results: Results, method: str) -> list[NDArray[np.float64]]:
    return list(results[(method, 0)]["log_bf"].values)


def row_of(results: Results, method: str) -> dict[str, Any]:
    """Return what a method says of the observed data; None where it has nothing to say."""
    repeats = _observed_repeats(results, method)
    repeats = repeats[np.isfinite(repeats)]
    row: dict[str, Any] = {"method": method, "what": METHODS.get(method, "integration")}
    if len(repeats) == 0:
        return row | {"note": NEEDS_PEOPLE, "bf": None}
    error = float(results[(method, 0)]["observed_error"])
    spread = float(np.std(repeats, ddof=1)) if len(repeats) > 1 else None
    exact = _exact_observed(results, method)
    return row | {
        "log_bf": float(repeats[0]),
        "bf": math.exp(min(repeats[0], 700.0)),
        "log_bf_error": error if math.isfinite(error) else None,
        "num_repeats": len(repeats),
        "log_bf_spread_of_repeats": spread,
        "exact_bf": math.exp(min(exact, 700.0)) if math.isfinite(exact) else None,
        **_tails(repeats[0], _log_bfs(results, method)),
    }


def tails_at(results: Results, method: str, log_bf: float) -> dict[str, Any]:
    """Return a method's tail areas at a given log Bayes factor."""
    return {"method": method, **_tails(log_bf, _log_bfs(results, method))}


def _tails(log_bf: float, reference: list[NDArray[np.float64]]) -> dict[str, Any]:
    """Return p1 and p2 with their 95% intervals."""
    found = surprise(log_bf, reference, rounding=True)
    return {
        name: {"p": float(found.tail_area[0, k]), "low": float(found.low[0, k]), "high": float(found.high[0, k])}
        for k, name in enumerate(("p1", "p2"))
    }


def _accuracy(results: Results, method: str) -> dict[str, Any]:
    """Return Spearman's rank correlation under each tree, and the error where it matters."""
    evaluation: xr.Dataset = results["evaluation"]
    estimated, exact = (np.concatenate(_log_bfs(results, name)) for name in (method, EXACT))
    near = np.abs(exact) < LOG_MIDDLE
    spearman = evaluation["spearman"].sel(estimator=method)
    return {
        "method": method,
        "spearman": {str(name): float(spearman.sel(group=name)) for name in evaluation["model"].values},
        "rmse": float(np.sqrt(np.mean((estimated[near] - exact[near]) ** 2))),
        "excess_loss": float(evaluation["excess_loss"].sel(estimator=method, group="weighted")),
        "auc": float(evaluation["auc"].sel(estimator=method)),
    }


def _written_rows(rows: list[dict[str, Any]]) -> str:
    columns = ["BF", "exact", "error of log BF", "p1", "p2"]
    lines = _table(columns, {row["method"]: _written_row(row) for row in rows if row["bf"] is not None})
    lines += [f"  {row['method']:<{LABEL_WIDTH}}{NEEDS_PEOPLE}" for row in rows if row["bf"] is None]
    widest = max(len(method) for method in METHODS)
    notes = [f"  {method:<{widest}}  {words}" for method, words in METHODS.items()]
    return "\n".join(
        [*lines, "", "The error is the spread over repetitions, or the method's own if there is one.", *notes]
    )


def _table(columns: list[str], rows: dict[str, list[str]]) -> list[str]:
    return aligned_table("method", columns, list(rows.items()), narrowest=7, label_width=LABEL_WIDTH)


def _written_row(row: dict[str, Any]) -> list[str]:
    exact = "" if row["exact_bf"] is None else f"{row['exact_bf']:.3g}"
    error = "" if row["log_bf_error"] is None else f"{row['log_bf_error']:.2g}"
    if row["log_bf_spread_of_repeats"] is not None:
        error = f"{row['log_bf_spread_of_repeats']:.2g} ({row['num_repeats']})"
    return [f"{row['bf']:.3g}", exact, error, _written_tail(row["p1"]), _written_tail(row["p2"])]


def _written_tail(tail: dict[str, float]) -> str:
    return f"{tail['p']:.3f} ({tail['low']:.3f} to {tail['high']:.3f})"


def _written_tails(rows: list[dict[str, Any]]) -> str:
    tails = {row["method"]: [_written_tail(row["p1"]), _written_tail(row["p2"])] for row in rows}
    return "\n".join(_table(["p1", "p2"], tails))


def _written_accuracy(rows: list[dict[str, Any]]) -> str:
    cells = {
        row["method"]: [*(f"{rho:.4f}" for rho in row["spearman"].values()), f"{row['rmse']:.3f}", f"{row['auc']:.4f}"]
        for row in rows
    }
    return "\n".join(_table(["Spearman, PD", "Spearman, Stroop", "error", "AUC"], cells))


def _source(results: Results) -> str:
    return str(results["observed"].attrs["source"])


def _heading(results: Results) -> str:
    source = _source(results)
    told = source if source == SIMULATED else f"from {source}"
    return f"Weapon identification, process dissociation against Stroop. Observed data: {told}"


def _told(results: Results) -> str:
    """Return the words under a figure: where the observed data come from, and what is not there."""
    missing = [method for method in NEED_PEOPLE if not np.isfinite(_observed_repeats(results, method)).any()]
    words = f"Observed data: {_source(results)}. Log Bayes factors are natural logs, {DIRECTION}."
    if missing:
        words += f"\nNot asked about the observed data, since it {NEEDS_PEOPLE}: {', '.join(missing)}."
    return words


def _figure_numbers(results: Results) -> dict[str, Any]:
    evaluation: xr.Dataset = results["evaluation"]
    return {
        "observed": _source(results),
        "direction": DIRECTION,
        "observed_log_bf": {
            method: [value if math.isfinite(value) else None for value in _observed_repeats(results, method).tolist()]
            for method in (*METHODS, EXACT)
        },
        "estimated_prior": dict(
            zip(evaluation["estimator"].values.tolist(), evaluation["estimated_prior"].values.tolist(), strict=True)
        ),
        "auc": dict(zip(evaluation["estimator"].values.tolist(), evaluation["auc"].values.tolist(), strict=True)),
        "auc_of_repeats": results["repeated"]["auc"].values.tolist(),
    }


TARGETS = (
    Target("table-1", "Weapon identification: Bayes factors and surprise", "Table 1", plan, draw_table, read_observed),
    Target(
        "figure-8",
        "Weapon identification: priors, scatter plot, ROC curves, densities",
        "Figure 8",
        plan,
        draw_figure_8,
        read_observed,
    ),
    Target(
        "figure-s30",
        "Weapon identification: method against method",
        "Figure S30",
        plan,
        _draw_figure_s30,
        read_observed,
    ),
    Target(
        "figure-s31",
        "Weapon identification: densities of the other methods",
        "Figure S31",
        plan,
        _draw_figure_s31,
        read_observed,
    ),
)
