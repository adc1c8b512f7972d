"""Whether training again gives the same answer: fits of one network from different seeds, against each other."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import spearmanr

from deepbf.evaluation.accuracy import DEFAULT_CLIP
from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf.evaluation.table import aligned_table
from deepbf_studies import problems
from deepbf_studies.paper import plots
from deepbf_studies.paper.methods import BNN, FNN, OURS
from deepbf_studies.paper.questions import Answers
from deepbf_studies.paper.sample_sizes import TITLES
from deepbf_studies.paper.size_figures import largest
from deepbf_studies.paper.target import Drawing, Plan, Results, Target

STUDY = "data-1-i"
METHODS = (FNN, BNN, OURS)
# As many as can be told apart on a page.
NUM_SHOWN = 5


def plan(scale: str) -> Plan:
    """Return the repeated fits of every network at the largest sample size."""
    one = largest(scale, STUDY)
    steps: dict[Any, Any] = {EXACT: one.exact_step()}
    for method in METHODS:
        steps |= {(method, number): step for number, (step,) in enumerate(one.steps(method))}
    return steps


def disagreement(answers: list[Answers]) -> tuple[float, float]:
    """Return the typical difference of two fits' log Bayes factors, clipped, and their mean rank correlation."""
    pooled = np.clip([np.concatenate(one.by_model) for one in answers], -DEFAULT_CLIP, DEFAULT_CLIP)
    differences = [np.sqrt(np.mean((a - b) ** 2)) for a, b in combinations(pooled, 2)]
    ranks = [within_models(a, b) for a, b in combinations(answers, 2)]
    return float(np.mean(differences)), float(np.mean(ranks))


def within_models(one: Answers, other: Answers) -> float:
    """Return Spearman's rho between two fits under each model, averaged."""
    correlations = [_rank_correlation(a, b) for a, b in zip(one.by_model, other.by_model, strict=True)]
    return float(np.mean(correlations))


def _rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(spearmanr(a, b).statistic)  # pyright: ignore[reportAttributeAccessIssue]


def draw(results: Results) -> Drawing:
    """Draw the first fits against each other, a figure a network; say how far all are apart."""
    num_obs = int(results[EXACT].attrs["num_obs"])
    num_datasets = (results[EXACT].sizes["question"] - 1) // 2
    names = [model.name for model in problems.load(STUDY).models]
    figures, rows, numbers = {}, [], {}
    for method in METHODS:
        answers = [Answers.of(r, num_datasets) for label, r in results.items() if label != EXACT and label[0] == method]
        difference, correlation = disagreement(answers)
        rows.append((method, [str(len(answers)), f"{difference:.3f}", f"{correlation:.4f}"]))
        numbers[method] = {"num_fits": len(answers), "rms_difference": difference, "spearman": correlation}
        figures[method.lower()] = drawn_pairs(method, answers, names, num_obs)
    columns = ["fits", "typical difference", "Spearman's rho"]
    lines = aligned_table(f"{TITLES[STUDY]}, n = {num_obs}", columns, rows, narrowest=10)
    lines += ["", "Differences are root mean squares over pairs of fits, log BF clipped at a million to one;"]
    lines += ["rank correlations are under each model, averaged."]
    return Drawing("\n".join(lines), figures, numbers)


def drawn_pairs(method: str, answers: list[Answers], names: list[str], num_obs: int) -> Figure:
    """Return the first few fits of one network against each other."""
    shown = {f"fit {number}": one.by_model for number, one in enumerate(answers[:NUM_SHOWN], start=1)}
    side = 2.3 * (len(shown) - 1) + 1.4
    figure = Figure(figsize=(max(side, 5.0), max(side, 4.0)), layout="constrained")
    figure.suptitle(f"{TITLES[STUDY]}, n = {num_obs}: log BF by {method}, trained anew")
    return plots.pairs(shown, names=names, figure=figure)


TARGETS = (Target("figure-s29", "Data 1 (i) at n = 128: repeated fits against each other", "Figure S29", plan, draw),)
