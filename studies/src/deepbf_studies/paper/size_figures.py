"""Figures of the simulation study: scatter plots, densities, priors, metrics and ROC curves over sample sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from deepbf import plots
from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf.evaluation.table import aligned_table, write_number
from deepbf_studies.paper.methods import FNN, OURS
from deepbf_studies.paper.panels import grid, head, one_legend, only_outer_labels
from deepbf_studies.paper.questions import Answers
from deepbf_studies.paper.sample_sizes import SCALES, TITLES, Comparison, comparisons
from deepbf_studies.paper.target import Drawing, Plan, Results, Target

METRICS = {
    "spearman": "Spearman's rho",
    "kl": "KL divergence of densities of log BF",
    "clipped_mse": "MSE of log BF, both clipped at a million to one",
    "mse": "MSE of log BF",
    "surprise_mse": "MSE of surprise",
    "auc": "area under ROC",
    "posterior_kl": "KL divergence of model probabilities",
}
# Widths in a table of estimators against n: of names, and of values with their errors.
LABEL_WIDTH = 16
COLUMN = 13

ByStudy = dict[str, dict[int, xr.Dataset]]


def plan_measured(studies: Sequence[str]) -> Callable[[str], Plan]:
    """Return the plan of a figure that draws evaluations at all sample sizes."""

    def plan(scale: str) -> Plan:
        return {(one.study, one.num_obs): one.measured_step() for one in comparisons(scale, studies)}

    return plan


def by_study(results: Results) -> ByStudy:
    """Return evaluations by study and number of observations."""
    found: ByStudy = {}
    for (study, num_obs), result in results.items():
        found.setdefault(study, {})[num_obs] = result
    return found


def estimators_of(evaluations: dict[int, xr.Dataset]) -> list[str]:
    """Return the estimators of any of the evaluations, the exact one aside, in order."""
    names = [str(name) for result in evaluations.values() for name in result["estimator"].values]
    return [name for name in dict.fromkeys(names) if name != EXACT]


def metric_value(result: xr.Dataset, metric: str, estimator: str) -> tuple[float, float]:
    """Return a metric over both models and its error; nan if the estimator did not take part."""
    if estimator not in result["estimator"].values:
        return np.nan, np.nan
    one = result.sel(estimator=estimator)
    values = (one[name] for name in (metric, f"{metric}_error"))
    value, error = (float(value.sel(group="weighted") if "group" in value.dims else value) for value in values)
    return value, error


def metric_table(evaluations: dict[int, xr.Dataset], metric: str, title: str) -> list[str]:
    """Return one metric as lines of text: a title, a row an estimator, a column a sample size."""
    rows = []
    for name in estimators_of(evaluations):
        found = [metric_value(result, metric, name) for result in evaluations.values()]
        # Seven of them in a line that fits a screen.
        cells = ["-" if np.isnan(value) else write_number(value, error).replace(" +- ", "±") for value, error in found]
        rows.append((name, cells))
    columns = [f"n = {num_obs}" for num_obs in evaluations]
    return [title, *aligned_table("", columns, rows, narrowest=COLUMN, label_width=LABEL_WIDTH)]


def metric_numbers(found: ByStudy, metrics: Sequence[str]) -> dict[str, Any]:
    """Return metrics for machines: by study, metric, estimator and sample size, with their errors."""

    def value_of(result: xr.Dataset, metric: str, name: str) -> list[float] | None:
        value = metric_value(result, metric, name)
        return None if np.isnan(value[0]) else list(value)

    return {
        study: {
            metric: {
                name: {str(num_obs): value_of(result, metric, name) for num_obs, result in evaluations.items()}
                for name in estimators_of(evaluations)
            }
            for metric in metrics
        }
        for study, evaluations in found.items()
    }


def draw_metrics(metrics: Sequence[str], title: str) -> Callable[[Results], Drawing]:
    """Return how a figure of metrics against the sample size is drawn: a row a study, a column a metric."""

    def draw(results: Results) -> Drawing:
        found = by_study(results)
        figure, axes = grid(len(found), len(metrics), title=title, panel=(4.2, 3.4))
        lines: list[str] = []
        for row, (study, evaluations) in zip(axes, found.items(), strict=True):
            for ax, metric in zip(row, metrics, strict=True):
                plots.metric_against_num_obs(evaluations, metric, ax=ax)
                ax.set_title(TITLES[study], fontsize="medium")
                lines += [*metric_table(evaluations, metric, f"{TITLES[study]}: {METRICS[metric]}"), ""]
        one_legend(figure, axes.flat)
        return Drawing("\n".join(lines), {"": figure}, metric_numbers(found, metrics))

    return draw


def draw_priors(results: Results) -> Drawing:
    """Draw the estimated prior probability of the first model against the sample size; 1/2 is right."""
    found = by_study(results)
    figure, axes = grid(1, len(found), title="Estimated prior probability of the first model", panel=(5.0, 3.8))
    lines: list[str] = []
    for ax, (study, evaluations) in zip(axes.flat, found.items(), strict=True):
        plots.prior_against_num_obs(evaluations, ax=ax)
        ax.set_title(TITLES[study], fontsize="medium")
        lines += [*metric_table(evaluations, "estimated_prior", f"{TITLES[study]}: prior, 0.5 is right"), ""]
    one_legend(figure, axes.flat)
    return Drawing("\n".join(lines), {"": figure}, metric_numbers(found, ["estimated_prior"]))


def draw_roc(results: Results) -> Drawing:
    """Draw ROC curves at the smallest and the largest sample size, and the MSE of surprise at all."""
    found = by_study(results)
    figure, axes = grid(len(found), 3, title="Decisions: ROC curves, and the error of surprise", panel=(4.4, 4.2))
    lines: list[str] = []
    for row, (study, evaluations) in zip(axes, found.items(), strict=True):
        for ax, num_obs in zip(row, (min(evaluations), max(evaluations)), strict=False):
            plots.roc(evaluations[num_obs], ax=ax)
            ax.set_title(f"{TITLES[study]}, n = {num_obs}", fontsize="medium")
            # Areas differ from panel to panel: they stand in the table.
            for text in ax.get_legend().get_texts():
                text.set_text(text.get_text().split("\nAUC")[0])
        plots.metric_against_num_obs(evaluations, "surprise_mse", ax=row[2])
        row[2].set_title(TITLES[study], fontsize="medium")
        for metric in ("auc", "surprise_mse"):
            lines += [*metric_table(evaluations, metric, f"{TITLES[study]}: {METRICS[metric]}"), ""]
    one_legend(figure, axes[:, :2].flat)
    for ax in axes[:, 2]:
        ax.get_legend().remove()
    return Drawing("\n".join(lines), {"": figure}, metric_numbers(found, ["auc", "surprise_mse"]))


def draw_scatters(results: Results) -> Drawing:
    """Draw estimated against exact log Bayes factors: a row an estimator, a column a sample size."""
    [(study, evaluations)] = by_study(results).items()
    names = estimators_of(evaluations)
    figure, axes = grid(
        len(names), len(evaluations), title=f"{TITLES[study]}: estimated against exact log Bayes factor"
    )
    for row, name in zip(axes, names, strict=True):
        for ax, result in zip(row, evaluations.values(), strict=True):
            draw_small_scatter(result, name, ax)
        row[0].set_ylabel(f"{name}\nestimated log BF")
    head(axes, [f"n = {num_obs}" for num_obs in evaluations])
    only_outer_labels(axes)
    one_legend(figure, axes.flat)
    lines = metric_table(evaluations, "spearman", f"{TITLES[study]}: Spearman's rho")
    return Drawing("\n".join(lines), {"": figure}, metric_numbers({study: evaluations}, ["spearman"]))


def draw_scatters_and_densities(results: Results) -> Drawing:
    """Draw scatter plot over density at every sample size, for the paper's network and for ours."""
    [(study, evaluations)] = by_study(results).items()
    names = (FNN, OURS)
    figure, axes = grid(
        2 * len(names), len(evaluations), title=f"{TITLES[study]}: log Bayes factors, estimated and exact"
    )
    for place, name in enumerate(names):
        for column, result in zip(axes.T, evaluations.values(), strict=True):
            draw_small_scatter(result, name, column[2 * place])
            plots.densities(result, name, ax=column[2 * place + 1])
            column[2 * place + 1].set_xlabel("log BF")
        axes[2 * place, 0].set_ylabel(f"{name}\nestimated log BF")
        axes[2 * place + 1, 0].set_ylabel(f"{name}\ndensity")
    head(axes, [f"n = {num_obs}" for num_obs in evaluations])
    for row in axes:
        for ax in row[1:]:
            ax.set_ylabel("")
    one_legend(figure, axes.flat, num_columns=8, names=names)
    lines = metric_table(evaluations, "kl", f"{TITLES[study]}: {METRICS['kl']}")
    return Drawing("\n".join(lines), {"": figure}, metric_numbers({study: evaluations}, ["kl", "clipped_mse"]))


def draw_small_scatter(result: xr.Dataset, name: str, ax: Any) -> None:
    """Draw a scatter plot that has little room; axes that an estimator did not reach stay empty, and say so."""
    if name not in result["estimator"].values:
        ax.text(0.5, 0.5, "not asked", ha="center", transform=ax.transAxes, color="0.45")
        ax.set_axis_off()
        return
    plots.scatter(result, name, ax=ax)
    ax.set_xlabel("exact log BF")
    ax.set_ylabel("estimated log BF")


def plan_repeated(study: str) -> Callable[[str], Plan]:
    """Return the plan of a figure at the largest sample size: the evaluation, and every repetition of every method."""

    def plan(scale: str) -> Plan:
        one = largest(scale, study)
        steps: dict[Any, Any] = {"measured": one.measured_step(), EXACT: one.exact_step()}
        for method in one.methods:
            for number, parts in enumerate(one.steps(method)):
                steps |= {(method, number, part): step for part, step in enumerate(parts)}
        return steps

    return plan


def largest(scale: str, study: str) -> Comparison:
    """Return the comparison at the largest sample size of a scale."""
    settings = SCALES[scale]
    return Comparison(study, max(settings.sizes), settings)


def repeated_answers(results: Results) -> dict[str, list[Answers]]:
    """Return the answers of each method, one entry a repetition."""
    num_datasets = int((results["measured"]["source"] == results["measured"].attrs["first"]).sum())
    parts: dict[str, dict[int, list[xr.Dataset]]] = {}
    for label, result in results.items():
        if isinstance(label, tuple):
            method, number, _ = label
            parts.setdefault(method, {}).setdefault(number, []).append(result)
    return {
        method: [Answers.of(found, num_datasets) for found in numbered.values()] for method, numbered in parts.items()
    }


def at_observed(answers: list[Answers]) -> NDArray[np.float64]:
    """Return all estimates of the observed data set's log Bayes factor."""
    return np.concatenate([one.observed for one in answers])


def draw_repeated(study: str) -> Callable[[Results], Drawing]:
    """Return how the figure at the largest sample size is drawn: scatter over density, a column an estimator."""

    def draw(results: Results) -> Drawing:
        evaluation = results["measured"]
        answers = repeated_answers(results)
        exact = float(results[EXACT]["log_bf"][-1])
        num_obs = int(results[EXACT].attrs["num_obs"])
        title = f"{TITLES[study]}, n = {num_obs}: log Bayes factors, and repeated estimates at one data set"
        figure, axes = grid(2, len(answers), title=title, panel=(3.2, 3.2))
        for column, (method, repeated) in zip(axes.T, answers.items(), strict=True):
            draw_small_scatter(evaluation, method, column[0])
            plots.densities(evaluation, method, repeats=at_observed(repeated), exact_observed=exact, ax=column[1])
            column[1].set_xlabel("log BF")
        head(axes, list(answers))
        for row in axes:
            for ax in row[1:]:
                ax.set_ylabel("")
        one_legend(figure, axes.flat, num_columns=8, names=list(answers))
        return Drawing(written_repeats(study, num_obs, exact, answers), {"": figure}, repeat_numbers(exact, answers))

    return draw


def written_repeats(study: str, num_obs: int, exact: float, answers: dict[str, list[Answers]]) -> str:
    """Return the repeated estimates at the observed data as a table."""
    rows = []
    for method, repeated in answers.items():
        values = at_observed(repeated)
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


def repeat_numbers(exact: float, answers: dict[str, list[Answers]]) -> dict[str, Any]:
    """Return the repeated estimates for machines."""
    return {
        "exact_log_bf": exact,
        "estimates": {method: at_observed(repeated).tolist() for method, repeated in answers.items()},
    }


TARGETS = (
    Target(
        "figure-4",
        "Data 1 (i) at n = 128: scatter plots, densities, repeated estimates at one data set",
        "Figure 4",
        plan_repeated("data-1-i"),
        draw_repeated("data-1-i"),
    ),
    Target(
        "figure-5",
        "Data 1: estimated model priors against n",
        "Figure 5",
        plan_measured(("data-1-i", "data-1-ii")),
        draw_priors,
    ),
    Target(
        "figure-6",
        "Data 1: Spearman's rho, KL divergence and MSE of log BF against n",
        "Figure 6",
        plan_measured(("data-1-i", "data-1-ii")),
        draw_metrics(("spearman", "kl", "clipped_mse"), "How good the estimators are, over n"),
    ),
    Target(
        "figure-s14",
        "Data 3: scatter plots and densities over n",
        "Figure S14",
        plan_measured(("data-3",)),
        draw_scatters_and_densities,
    ),
    Target(
        "figure-s15",
        "Data 3: Spearman's rho, KL divergence and MSE of log BF against n",
        "Figure S15",
        plan_measured(("data-3",)),
        draw_metrics(("spearman", "kl", "clipped_mse"), "How good the estimators are, over n"),
    ),
    Target("figure-s16", "Data 3: ROC curves, and MSE of surprise", "Figure S16", plan_measured(("data-3",)), draw_roc),
    Target(
        "figure-s17", "Data 3: estimated model priors against n", "Figure S17", plan_measured(("data-3",)), draw_priors
    ),
    Target(
        "figure-s25",
        "Data 1 (ii) at n = 128: scatter plots, densities, repeated estimates at one data set",
        "Figure S25",
        plan_repeated("data-1-ii"),
        draw_repeated("data-1-ii"),
    ),
    Target(
        "figure-s26",
        "Data 1: ROC curves, and MSE of surprise",
        "Figure S26",
        plan_measured(("data-1-i", "data-1-ii")),
        draw_roc,
    ),
    Target(
        "figure-s27",
        "Data 1 (i): scatter plots of every estimator at every n",
        "Figure S27",
        plan_measured(("data-1-i",)),
        draw_scatters,
    ),
    Target(
        "figure-s28",
        "Data 1 (ii): scatter plots of every estimator at every n",
        "Figure S28",
        plan_measured(("data-1-ii",)),
        draw_scatters,
    ),
    Target(
        "repeats-data-3",
        "Data 3 at n = 128: scatter plots, densities, repeated estimates at one data set",
        "",
        plan_repeated("data-3"),
        draw_repeated("data-3"),
    ),
)
