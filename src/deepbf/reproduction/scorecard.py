"""The scorecard: whether our default beats the paper's networks, metric by metric, at every sample size."""

from __future__ import annotations

from typing import Any

import xarray as xr

from deepbf import plots
from deepbf.reproduction.methods import BNN, FNN, OURS
from deepbf.reproduction.panels import grid, one_legend
from deepbf.reproduction.sample_sizes import STUDIES, TITLES
from deepbf.reproduction.size_figures import METRICS, by_study, metric_numbers, metric_value, plan_measured
from deepbf.reproduction.target import Drawing, Results, Target

RIVALS = (FNN, BNN)
JUDGED = ("clipped_mse", "mse", "kl", "spearman", "auc", "surprise_mse", "excess_loss")
HIGHER_IS_BETTER = ("spearman", "auc")
# Closer than this many standard errors of either counts as a tie.
CLEAR = 2.0


def verdict(result: xr.Dataset, metric: str, rival: str) -> str:
    """Return "better", "worse", or "tie" for less than two standard errors between our default and a rival."""
    (ours, our_error), (theirs, their_error) = (metric_value(result, metric, name) for name in (OURS, rival))
    gain = (ours - theirs) if metric in HIGHER_IS_BETTER else (theirs - ours)
    # Both are measured on the same data sets, so the sum of variances overstates the error of the difference.
    if abs(gain) <= CLEAR * (our_error**2 + their_error**2) ** 0.5:
        return "tie"
    return "better" if gain > 0 else "worse"


def draw(results: Results) -> Drawing:
    """Say for every study, metric, rival and sample size who is better, and draw the metrics."""
    found = by_study(results)
    judged: dict[str, Any] = {}
    lines = [
        f"Where {OURS} beats the paper's networks; a tie is within {CLEAR:g} standard errors of the difference",
        "",
    ]
    not_better: list[str] = []
    for study, evaluations in found.items():
        for metric in JUDGED:
            for rival in RIVALS:
                verdicts = {n: verdict(result, metric, rival) for n, result in evaluations.items()}
                judged.setdefault(study, {}).setdefault(metric, {})[rival] = {str(n): v for n, v in verdicts.items()}
                kept = [f"{word} at n = {', '.join(str(n) for n, v in verdicts.items() if v == word)}"
                        for word in ("better", "tie", "worse") if word in verdicts.values()]  # fmt: skip
                lines.append(f"  {TITLES[study]:<12}{METRICS[metric]:<50}{rival:<12}{'; '.join(kept)}")
                not_better += [
                    f"{TITLES[study]}, {metric}, {rival}, n = {n}: {v}" for n, v in verdicts.items() if v != "better"
                ]
    num_judged = sum(len(v) for s in judged.values() for m in s.values() for v in m.values())
    num_worse = sum(one.endswith("worse") for one in not_better)
    lines += ["", f"{num_judged} comparisons: {num_judged - len(not_better)} better, "
              f"{len(not_better) - num_worse} ties, {num_worse} worse."]  # fmt: skip
    figure, axes = grid(len(found), len(JUDGED), title="Every metric over n", panel=(4.0, 3.2))
    for row, (study, evaluations) in zip(axes, found.items(), strict=True):
        for ax, metric in zip(row, JUDGED, strict=True):
            plots.metric_against_num_obs(evaluations, metric, ax=ax)
            ax.set_title(TITLES[study], fontsize="medium")
    one_legend(figure, axes.flat, num_columns=7)
    numbers = {"verdicts": judged, "values": metric_numbers(found, JUDGED)}
    return Drawing("\n".join(lines), {"": figure}, numbers)


TARGETS = (
    Target(
        "scorecard",
        "our default against the paper's networks: every metric, every n",
        "",
        plan_measured(STUDIES),
        draw,
    ),
)
