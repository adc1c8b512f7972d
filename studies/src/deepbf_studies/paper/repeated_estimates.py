"""Estimates repeated at the largest sample size: of one data set's Bayes factor, and of networks trained anew.

Figures 4, S25 and their like for Data 3 repeat every method's estimate at one observed data set. Figure S29 trains one
network from different seeds, and draws the fits against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import spearmanr

from deepbf import plots
from deepbf.evaluation.accuracy import DEFAULT_CLIP
from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf.evaluation.table import aligned_table, write_number
from deepbf_studies import problems
from deepbf_studies.paper.methods import BNN, FNN, OURS, Answers
from deepbf_studies.paper.panels import grid, head, one_legend
from deepbf_studies.paper.plots import pairs
from deepbf_studies.paper.sample_sizes import SCALES, TITLES, Comparison
from deepbf_studies.paper.size_figures import draw_small_scatter
from deepbf_studies.paper.target import Drawing, Plan, Results, Target

STUDY = "data-1-i"
METHODS = (FNN, BNN, OURS)
# As many as can be told apart on a page.
NUM_SHOWN = 5


def _plan_repeated(study: str) -> Callable[[str], Plan]:
    """Return the plan of a figure at the largest sample size: the evaluation, and every repetition of every method."""

    def plan(scale: str) -> Plan:
        one = _largest(scale, study)
        steps: dict[Any, Any] = {"measured": one.measured_step(), EXACT: one.exact_step()}
        for method in one.methods:
            for number, parts in enumerate(one.steps(method)):
                steps |= {(method, number, part): step for part, step in enumerate(parts)}
        return steps

    return plan


def _largest(scale: str, study: str) -> Comparison:
    """Return the comparison at the largest sample size of a scale."""
    settings = SCALES[scale]
    return Comparison(study, max(settings.sizes), settings)


def _repeated_answers(results: Results) -> dict[str, list[Answers]]:
    """Return the answers of each method, one entry for each repetition."""
    num_datasets = int((results["measured"]["source"] == results["measured"].attrs["first"]).sum())
    parts: dict[str, dict[int, list[xr.Dataset]]] = {}
    for label, result in results.items():
        if isinstance(label, tuple):
            method, number, _ = label
            parts.setdefault(method, {}).setdefault(number, []).append(result)
    return {
        method: [Answers.of(found, num_datasets) for found in numbered.values()] for method, numbered in parts.items()
    }


def _at_observed(answers: list[Answers]) -> NDArray[np.float64]:
    """Return all estimates of the observed data set's log Bayes factor."""
    return np.concatenate([one.observed for one in answers])


def _draw_repeated(study: str) -> Callable[[Results], Drawing]:
    """Return how the figure at the largest sample size is drawn: scatter over density, a column per estimator."""

    def draw(results: Results) -> Drawing:
        evaluation = results["measured"]
        answers = _repeated_answers(results)
        exact = float(results[EXACT]["log_bf"][-1])
        num_obs = int(results[EXACT].attrs["num_obs"])
        title = f"{TITLES[study]}, n = {num_obs}: log Bayes factors, and repeated estimates at one data set"
        figure, axes = grid(2, len(answers), title=title, panel=(3.2, 3.2))
        for column, (method, repeated) in zip(axes.T, answers.items(), strict=True):
            draw_small_scatter(evaluation, method, column[0])
            plots.densities(evaluation, method, repeats=_at_observed(repeated), exact_observed=exact, ax=column[1])
            column[1].set_xlabel("log BF")
        head(axes, list(answers))
        for row in axes:
            for ax in row[1:]:
                ax.set_ylabel("")
        one_legend(figure, axes.flat, num_columns=8, names=list(answers))
        estimates = {method: _at_observed(repeated).tolist() for method, repeated in answers.items()}
        numbers = {"exact_log_bf": exact, "estimates": estimates}
        return Drawing(_written_repeats(study, num_obs, exact, answers), {"": figure}, numbers)

    return draw


def _written_repeats(study: str, num_obs: int, exact: float, answers: dict[str, list[Answers]]) -> str:
    """Return the repeated estimates at the observed data as a table."""
    rows = []
    for method, repeated in answers.items():
        values = _at_observed(repeated)
        spread = values.std(ddof=1) if len(values) > 1 else np.nan
        rows.append(
            (
                method,
                [str(len(values)), f"{values.mean():.3f}", f"{values.mean() - exact:+.3f}", write_number(spread)],
            )
        )
    title = f"{TITLES[study]}, n = {num_obs}"
    lines = aligned_table(title, ["estimates", "mean log BF", "off by", "their sd"], rows, narrowest=12)
    return "\n".join([*lines, "", f"Exact log Bayes factor of the data set: {exact:.3f}"])


def _plan_fits(scale: str) -> Plan:
    """Return the repeated fits of every network at the largest sample size."""
    one = _largest(scale, STUDY)
    steps: dict[Any, Any] = {EXACT: one.exact_step()}
    for method in METHODS:
        steps |= {(method, number): step for number, (step,) in enumerate(one.steps(method))}
    return steps


def _disagreement(answers: list[Answers]) -> tuple[float, float]:
    """Return the typical difference of two fits' log Bayes factors, clipped, and their mean rank correlation."""
    pooled = np.clip([np.concatenate(one.by_model) for one in answers], -DEFAULT_CLIP, DEFAULT_CLIP)
    differences = [np.sqrt(np.mean((a - b) ** 2)) for a, b in combinations(pooled, 2)]
    ranks = [_within_models(a, b) for a, b in combinations(answers, 2)]
    return float(np.mean(differences)), float(np.mean(ranks))


def _within_models(one: Answers, other: Answers) -> float:
    """Return Spearman's rho between two fits under each model, averaged."""
    pairs = zip(one.by_model, other.by_model, strict=True)
    return float(np.mean([np.asarray(spearmanr(a, b))[0] for a, b in pairs]))


def _draw_fits(results: Results) -> Drawing:
    """Draw the first fits against each other, a figure for each network; say how far all are apart."""
    num_obs = int(results[EXACT].attrs["num_obs"])
    num_datasets = (results[EXACT].sizes["question"] - 1) // 2
    names = [model.name for model in problems.load(STUDY).models]
    figures, rows, numbers = {}, [], {}
    for method in METHODS:
        answers = [Answers.of(r, num_datasets) for label, r in results.items() if label != EXACT and label[0] == method]
        difference, correlation = _disagreement(answers)
        rows.append((method, [str(len(answers)), f"{difference:.3f}", f"{correlation:.4f}"]))
        numbers[method] = {"num_fits": len(answers), "rms_difference": difference, "spearman": correlation}
        figures[method.lower()] = _drawn_pairs(method, answers, names, num_obs)
    columns = ["fits", "typical difference", "Spearman's rho"]
    lines = aligned_table(f"{TITLES[STUDY]}, n = {num_obs}", columns, rows, narrowest=10)
    lines += ["", "Differences are root mean squares over pairs of fits, log BF clipped at a million to one;"]
    lines += ["rank correlations are under each model, averaged."]
    return Drawing("\n".join(lines), figures, numbers)


def _drawn_pairs(method: str, answers: list[Answers], names: list[str], num_obs: int) -> Figure:
    """Return the first few fits of one network against each other."""
    shown = {f"fit {number}": one.by_model for number, one in enumerate(answers[:NUM_SHOWN], start=1)}
    side = 2.3 * (len(shown) - 1) + 1.4
    figure = Figure(figsize=(max(side, 5.0), max(side, 4.0)), layout="constrained")
    figure.suptitle(f"{TITLES[STUDY]}, n = {num_obs}: log BF by {method}, trained anew")
    return pairs(shown, names=names, figure=figure)


TARGETS = (
    Target(
        "figure-4",
        "Data 1 (i) at n = 128: scatter plots, densities, repeated estimates at one data set",
        "Figure 4",
        _plan_repeated("data-1-i"),
        _draw_repeated("data-1-i"),
    ),
    Target(
        "figure-s25",
        "Data 1 (ii) at n = 128: scatter plots, densities, repeated estimates at one data set",
        "Figure S25",
        _plan_repeated("data-1-ii"),
        _draw_repeated("data-1-ii"),
    ),
    Target(
        "repeats-data-3",
        "Data 3 at n = 128: scatter plots, densities, repeated estimates at one data set",
        "",
        _plan_repeated("data-3"),
        _draw_repeated("data-3"),
    ),
    Target(
        "figure-s29", "Data 1 (i) at n = 128: repeated fits against each other", "Figure S29", _plan_fits, _draw_fits
    ),
)
