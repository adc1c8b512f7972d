"""The scorecard: whether our default beats the paper's networks, metric by metric, at every sample size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

from deepbf import plots
from deepbf.evaluation.paired import CLEAR, HIGHER_IS_BETTER, Difference, paired_differences
from deepbf_studies.paper.methods import BNN, FNN, OURS
from deepbf_studies.paper.panels import grid, head, one_legend, only_outer_labels
from deepbf_studies.paper.prose import paragraph
from deepbf_studies.paper.questions import Answers
from deepbf_studies.paper.sample_sizes import STUDIES, TITLES, Comparison, comparisons
from deepbf_studies.paper.size_figures import METRICS, ByStudy, by_study, metric_numbers, plan_measured
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.paper.target import Drawing, Plan, Results, Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RIVALS = (FNN, BNN)
JUDGED = ("clipped_mse", "mse", "kl", "spearman", "auc", "surprise_mse", "posterior_kl")
WORDS = ("better", "tie", "worse")
PAIRED = "paired"

# By study, metric and rival: a word of `WORDS` at each sample size.
Verdicts = dict[tuple[str, str, str], dict[int, str]]


def plan(scale: str) -> Plan:
    """Return the evaluations at all sample sizes, and the differences between our default and its rivals."""
    paired = {(PAIRED, one.study, one.num_obs): paired_step(one) for one in comparisons(scale, STUDIES)}
    return {**plan_measured(STUDIES)(scale), **paired}


def paired_step(comparison: Comparison) -> Step:
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
    """Return every metric of our default minus that of each rival, with its error."""
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


def draw(results: Results) -> Drawing:
    """Say for every study, metric, rival and sample size who is better, and draw the metrics."""
    found = by_study({label: result for label, result in results.items() if label[0] != PAIRED})
    verdicts: Verdicts = {
        (study, metric, rival): {n: verdict(results[PAIRED, study, n], metric, rival) for n in evaluations}
        for study, evaluations in found.items()
        for metric in JUDGED
        for rival in RIVALS
    }
    numbers: dict[str, Any] = {"verdicts": {}, "values": metric_numbers(found, JUDGED)}
    for (study, metric, rival), by_size in verdicts.items():
        by_rival = numbers["verdicts"].setdefault(study, {}).setdefault(metric, {})
        by_rival[rival] = {str(n): word for n, word in by_size.items()}
    return Drawing(written_verdicts(verdicts), {"": metric_grid(found)}, numbers)


def verdict(paired: xr.Dataset, metric: str, rival: str) -> str:
    """Return whether our default is "better" or "worse" than a rival, or "tie"."""
    one = paired.sel(metric=metric, rival=rival)
    return Difference(float(one["difference"]), float(one["difference_error"]), metric in HIGHER_IS_BETTER).verdict


def written_verdicts(verdicts: Verdicts) -> str:
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


def metric_grid(found: ByStudy) -> Figure:
    """Return every metric over the sample sizes: a row a metric, a column a study."""
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
        "scorecard",
        "our default against the paper's networks: every metric, every n",
        "",
        plan,
        draw,
    ),
)
