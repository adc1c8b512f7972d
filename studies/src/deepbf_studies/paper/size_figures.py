"""Figures of the simulation study: scatter plots, densities, priors, metrics and ROC curves over sample sizes.

Also how the exact Bayes factors of Data 1 are spread (Figure S24): (i) has fewer near 1 than (ii), so its models are
told apart sooner. And the scorecard: whether our default beats the paper's networks, metric by metric, at every size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from deepbf import plots
from deepbf.evaluation.accuracy import CLEAR, HIGHER_IS_BETTER, Difference, paired_differences
from deepbf.evaluation.density import density
from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf.evaluation.table import aligned_table, write_number
from deepbf.plots.styles import GUIDE, estimator_styles
from deepbf_studies.paper.methods import BNN, FNN, OURS, Answers
from deepbf_studies.paper.panels import grid, head, one_legend, only_outer_labels
from deepbf_studies.paper.sample_sizes import STUDIES, TITLES, Comparison, comparisons
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.paper.target import Drawing, Plan, Results, Target, paragraph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

COUNT_STUDIES = ("data-1-i", "data-1-ii")
# The paper trims Bayes factors at 0.01 and 100.
TRIM = float(np.log(100))
# Within a factor of 3, Jeffreys calls evidence barely worth mentioning.
NEAR_ONE = float(np.log(3))

RIVALS = (FNN, BNN)
JUDGED = ("clipped_mse", "mse", "kl", "spearman", "auc", "surprise_mse", "posterior_kl")
WORDS = ("better", "tie", "worse")
PAIRED = "paired"

ByStudy = dict[str, dict[int, xr.Dataset]]
# By study, metric and rival: a word of `WORDS` at each sample size.
Verdicts = dict[tuple[str, str, str], dict[int, str]]


def _plan_measured(studies: Sequence[str]) -> Callable[[str], Plan]:
    """Return the plan of a figure that draws evaluations at all sample sizes."""

    def plan(scale: str) -> Plan:
        return {(one.study, one.num_obs): one.measured_step() for one in comparisons(scale, studies)}

    return plan


def _by_study(results: Results) -> ByStudy:
    """Return evaluations by study and number of observations."""
    found: ByStudy = {}
    for (study, num_obs), result in results.items():
        found.setdefault(study, {})[num_obs] = result
    return found


def _estimators_of(evaluations: dict[int, xr.Dataset]) -> list[str]:
    """Return the estimators of any of the evaluations, the exact one aside, in order."""
    names = [str(name) for result in evaluations.values() for name in result["estimator"].values]
    return [name for name in dict.fromkeys(names) if name != EXACT]


def metric_value(result: xr.Dataset, metric: str, estimator: str) -> tuple[float, float]:
    """Return a metric of one estimator over both models, and its bootstrap error.

    Both are nan if the estimator did not take part. `result` is an evaluation, as `sample_sizes.measured` keeps it.
    """
    if estimator not in result["estimator"].values:
        return np.nan, np.nan
    one = result.sel(estimator=estimator)
    values = (one[name] for name in (metric, f"{metric}_error"))
    value, error = (float(value.sel(group="weighted") if "group" in value.dims else value) for value in values)
    return value, error


def _metric_table(evaluations: dict[int, xr.Dataset], metric: str, title: str) -> list[str]:
    """Return one metric as lines of text: a title, a row for each estimator, a column for each n."""
    rows = []
    for name in _estimators_of(evaluations):
        found = [metric_value(result, metric, name) for result in evaluations.values()]
        # Seven of them in a line that fits a screen.
        cells = ["-" if np.isnan(value) else write_number(value, error).replace(" +- ", "±") for value, error in found]
        rows.append((name, cells))
    columns = [f"n = {num_obs}" for num_obs in evaluations]
    return [title, *aligned_table("", columns, rows, narrowest=COLUMN, label_width=LABEL_WIDTH)]


def _metric_numbers(found: ByStudy, metrics: Sequence[str]) -> dict[str, Any]:
    """Return metrics for machines: by study, metric, estimator and sample size, with their errors."""

    def value_of(result: xr.Dataset, metric: str, name: str) -> list[float] | None:
        value = metric_value(result, metric, name)
        return None if np.isnan(value[0]) else list(value)

    return {
        study: {
            metric: {
                name: {str(num_obs): value_of(result, metric, name) for num_obs, result in evaluations.items()}
                for name in _estimators_of(evaluations)
            }
            for metric in metrics
        }
        for study, evaluations in found.items()
    }


def draw_metrics(metrics: Sequence[str], title: str) -> Callable[[Results], Drawing]:
    """Return how a figure of metrics against n is drawn: a row for each study, a column for each metric."""

    def draw(results: Results) -> Drawing:
        found = _by_study(results)
        figure, axes = grid(len(found), len(metrics), title=title, panel=(4.2, 3.4))
        lines: list[str] = []
        for row, (study, evaluations) in zip(axes, found.items(), strict=True):
            for ax, metric in zip(row, metrics, strict=True):
                plots.metric_against_num_obs(evaluations, metric, ax=ax)
                ax.set_title(TITLES[study], fontsize="medium")
                lines += [*_metric_table(evaluations, metric, f"{TITLES[study]}: {METRICS[metric]}"), ""]
        one_legend(figure, axes.flat)
        return Drawing("\n".join(lines), {"": figure}, _metric_numbers(found, metrics))

    return draw


def draw_priors(results: Results) -> Drawing:
    """Draw the estimated prior probability of the first model against the sample size; 1/2 is right."""
    found = _by_study(results)
    figure, axes = grid(1, len(found), title="Estimated prior probability of the first model", panel=(5.0, 3.8))
    lines: list[str] = []
    for ax, (study, evaluations) in zip(axes.flat, found.items(), strict=True):
        plots.prior_against_num_obs(evaluations, ax=ax)
        ax.set_title(TITLES[study], fontsize="medium")
        lines += [*_metric_table(evaluations, "estimated_prior", f"{TITLES[study]}: prior, 0.5 is right"), ""]
    one_legend(figure, axes.flat)
    return Drawing("\n".join(lines), {"": figure}, _metric_numbers(found, ["estimated_prior"]))


def draw_roc(results: Results) -> Drawing:
    """Draw ROC curves at the smallest and the largest sample size, and the MSE of surprise at all."""
    found = _by_study(results)
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
            lines += [*_metric_table(evaluations, metric, f"{TITLES[study]}: {METRICS[metric]}"), ""]
    one_legend(figure, axes[:, :2].flat)
    for ax in axes[:, 2]:
        ax.get_legend().remove()
    return Drawing("\n".join(lines), {"": figure}, _metric_numbers(found, ["auc", "surprise_mse"]))


def draw_scatters(results: Results) -> Drawing:
    """Draw estimated against exact log Bayes factors: a row for each estimator, a column for each sample size."""
    [(study, evaluations)] = _by_study(results).items()
    names = _estimators_of(evaluations)
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
    lines = _metric_table(evaluations, "spearman", f"{TITLES[study]}: Spearman's rho")
    return Drawing("\n".join(lines), {"": figure}, _metric_numbers({study: evaluations}, ["spearman"]))


def draw_scatters_and_densities(results: Results) -> Drawing:
    """Draw scatter plot over density at every sample size, for the paper's network and for ours."""
    [(study, evaluations)] = _by_study(results).items()
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
    lines = _metric_table(evaluations, "kl", f"{TITLES[study]}: {METRICS['kl']}")
    return Drawing("\n".join(lines), {"": figure}, _metric_numbers({study: evaluations}, ["kl", "clipped_mse"]))


def draw_small_scatter(result: xr.Dataset, name: str, ax: Any) -> None:
    """Draw estimated against exact log Bayes factors where there is little room.

    Axes of an estimator that `result`, an evaluation, does not have stay empty, and say so.
    """
    if name not in result["estimator"].values:
        ax.text(0.5, 0.5, "not asked", ha="center", transform=ax.transAxes, color="0.45")
        ax.set_axis_off()
        return
    plots.scatter(result, name, ax=ax)
    ax.set_xlabel("exact log BF")
    ax.set_ylabel("estimated log BF")


# Figure S24.


def _plan_spread(scale: str) -> Plan:
    """Return the exact Bayes factors of both studies at every sample size."""
    return {(one.study, one.num_obs): one.exact_step() for one in comparisons(scale, COUNT_STUDIES)}


def _draw_spread(results: Results) -> Drawing:
    """Draw the density of the exact log Bayes factor over both models, a panel for each n."""
    sizes = sorted({num_obs for _, num_obs in results})
    figure, axes = grid(1, len(sizes), title="Exact log Bayes factors, both models together, trimmed at 100 to one")
    points = np.linspace(-TRIM, TRIM, 301)
    shares: dict[str, dict[str, float]] = {}
    styles = estimator_styles([TITLES[study] for study in COUNT_STUDIES])
    for ax, num_obs in zip(axes.flat, sizes, strict=True):
        for study in COUNT_STUDIES:
            result = results[study, num_obs]
            pooled = np.concatenate(Answers.of(result, (result.sizes["question"] - 1) // 2).by_model)
            style = styles[TITLES[study]]
            curve = density(np.clip(pooled, -TRIM, TRIM), points)
            ax.plot(points, curve, color=style.colour, linestyle=style.line_style, label=TITLES[study])
            shares.setdefault(study, {})[str(num_obs)] = float(np.mean(np.abs(pooled) < NEAR_ONE))
        ax.axvline(0.0, color=GUIDE, linewidth=0.8)
        ax.set(title=f"n = {num_obs}", xlabel="log Bayes factor")
        ax.set_ylim(bottom=0.0)
    axes[0, 0].set_ylabel("density")
    axes[0, -1].legend(frameon=False, fontsize="small")
    rows = [(f"n = {n}", [f"{shares[study][str(n)]:.3f}" for study in COUNT_STUDIES]) for n in sizes]
    lines = aligned_table("Share of data sets with BF within 1/3 and 3", [TITLES[s] for s in COUNT_STUDIES], rows)
    return Drawing("\n".join(lines), {"": figure}, {"share_near_one": shares})


# The scorecard.


def plan_scorecard(scale: str) -> Plan:
    """Return the evaluations at all sample sizes, and the differences between our default and its rivals."""
    paired = {(PAIRED, one.study, one.num_obs): _paired_step(one) for one in comparisons(scale, STUDIES)}
    return {**_plan_measured(STUDIES)(scale), **paired}


def _paired_step(comparison: Comparison) -> Step:
    """Return the step that compares our default with its rivals, one by one."""
    firsts = [comparison.steps(method)[0][0] for method in (OURS, *RIVALS)]
    settings = {
        "rivals": list(RIVALS),
        "num_datasets": comparison.settings.num_datasets,
        "num_replicates": comparison.settings.num_replicates,
    }
    return Step(differences, settings, inputs=(comparison.exact_step(), *firsts))


@step_function("scorecard.differences")
def differences(
    exact: xr.Dataset,
    ours: xr.Dataset,
    *theirs: xr.Dataset,
    rivals: Sequence[str],
    num_datasets: int,
    num_replicates: int,
) -> xr.Dataset:
    """Return every metric of our default minus that of each rival, with its error.

    A step. Errors are by the bootstrap over data sets that both were asked about, so that what makes a data set hard
    for everyone cancels. Variables `difference` and `difference_error`, dimensions (rival, metric).
    """
    truth, our_answers = (Answers.of(one, num_datasets).by_model for one in (exact, ours))
    found = [
        paired_differences(our_answers, Answers.of(one, num_datasets).by_model, truth, num_replicates=num_replicates)
        for one in theirs
    ]
    dims = ("rival", "metric")
    return xr.Dataset(
        {
            "difference": (dims, [[by_metric[metric].value for metric in JUDGED] for by_metric in found]),
            "difference_error": (dims, [[by_metric[metric].error for metric in JUDGED] for by_metric in found]),
        },
        coords={"rival": list(rivals), "metric": list(JUDGED)},
    )


def draw_scorecard(results: Results) -> Drawing:
    """Say for every study, metric, rival and sample size who is better, and draw the metrics."""
    found = _by_study({label: result for label, result in results.items() if label[0] != PAIRED})
    verdicts: Verdicts = {
        (study, metric, rival): {n: verdict(results[PAIRED, study, n], metric, rival) for n in evaluations}
        for study, evaluations in found.items()
        for metric in JUDGED
        for rival in RIVALS
    }
    numbers: dict[str, Any] = {"verdicts": {}, "values": _metric_numbers(found, JUDGED)}
    for (study, metric, rival), by_size in verdicts.items():
        by_rival = numbers["verdicts"].setdefault(study, {}).setdefault(metric, {})
        by_rival[rival] = {str(n): word for n, word in by_size.items()}
    return Drawing(_written_verdicts(verdicts), {"": _metric_grid(found)}, numbers)


def verdict(paired: xr.Dataset, metric: str, rival: str) -> str:
    """Return whether our default is "better" or "worse" than a rival by one metric, or "tie".

    `paired` is what `differences` keeps. A tie is a difference within its error, times `CLEAR`.
    """
    one = paired.sel(metric=metric, rival=rival)
    return Difference(float(one["difference"]), float(one["difference_error"]), metric in HIGHER_IS_BETTER).verdict


def _written_verdicts(verdicts: Verdicts) -> str:
    """Return a line for each study, metric and rival, and how often each verdict falls."""
    lines = [
        paragraph(
            f"Where {OURS} beats the paper's networks. A tie is within {CLEAR:g} standard errors of the difference, by",
            "the bootstrap over data sets that all share.",
        ),
        "",
    ]
    for (study, metric, rival), by_size in verdicts.items():
        sizes = {word: [str(n) for n, found in by_size.items() if found == word] for word in WORDS}
        said = "; ".join(f"{word} at n = {', '.join(at)}" for word, at in sizes.items() if at)
        lines.append(f"  {TITLES[study]:<12}{METRICS[metric]:<50}{rival:<12}{said}")
    counts = Counter(word for by_size in verdicts.values() for word in by_size.values())
    better, ties, worse = (counts[word] for word in WORDS)
    return "\n".join([*lines, "", f"{counts.total()} comparisons: {better} better, {ties} ties, {worse} worse."])


def _metric_grid(found: ByStudy) -> Figure:
    """Return every metric over the sample sizes: a row for each metric, a column for each study."""
    figure, axes = grid(len(JUDGED), len(found), title="Every metric over n", panel=(4.4, 3.0))
    for column, evaluations in zip(axes.T, found.values(), strict=True):
        for ax, metric in zip(column, JUDGED, strict=True):
            plots.metric_against_num_obs(evaluations, metric, ax=ax)
    head(axes, [TITLES[study] for study in found])
    only_outer_labels(axes)
    one_legend(figure, axes.flat, num_columns=7)
    return figure


TARGETS = (
    Target(
        "figure-5",
        "Data 1: estimated model priors against n",
        "Figure 5",
        _plan_measured(("data-1-i", "data-1-ii")),
        draw_priors,
    ),
    Target(
        "figure-6",
        "Data 1: Spearman's rho, KL divergence and MSE of log BF against n",
        "Figure 6",
        _plan_measured(("data-1-i", "data-1-ii")),
        draw_metrics(("spearman", "kl", "clipped_mse"), "How good the estimators are, over n"),
    ),
    Target(
        "figure-s14",
        "Data 3: scatter plots and densities over n",
        "Figure S14",
        _plan_measured(("data-3",)),
        draw_scatters_and_densities,
    ),
    Target(
        "figure-s15",
        "Data 3: Spearman's rho, KL divergence and MSE of log BF against n",
        "Figure S15",
        _plan_measured(("data-3",)),
        draw_metrics(("spearman", "kl", "clipped_mse"), "How good the estimators are, over n"),
    ),
    Target(
        "figure-s16", "Data 3: ROC curves, and MSE of surprise", "Figure S16", _plan_measured(("data-3",)), draw_roc
    ),
    Target(
        "figure-s17", "Data 3: estimated model priors against n", "Figure S17", _plan_measured(("data-3",)), draw_priors
    ),
    Target(
        "figure-s26",
        "Data 1: ROC curves, and MSE of surprise",
        "Figure S26",
        _plan_measured(("data-1-i", "data-1-ii")),
        draw_roc,
    ),
    Target("figure-s24", "Data 1: how the exact Bayes factors are spread", "Figure S24", _plan_spread, _draw_spread),
    Target(
        "figure-s27",
        "Data 1 (i): scatter plots of every estimator at every n",
        "Figure S27",
        _plan_measured(("data-1-i",)),
        draw_scatters,
    ),
    Target(
        "figure-s28",
        "Data 1 (ii): scatter plots of every estimator at every n",
        "Figure S28",
        _plan_measured(("data-1-ii",)),
        draw_scatters,
    ),
    Target(
        "scorecard",
        "our default against the paper's networks: every metric, every n",
        "",
        plan_scorecard,
        draw_scorecard,
    ),
)
