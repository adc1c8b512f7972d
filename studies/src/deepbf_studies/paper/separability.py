"""How the exact Bayes factors of Data 1 are spread: (i) has fewer near 1 than (ii), so its models are told sooner."""

from __future__ import annotations

import numpy as np

from deepbf.evaluation.density import density
from deepbf.evaluation.table import aligned_table
from deepbf.plots.styles import GUIDE, estimator_styles
from deepbf_studies.paper.panels import grid
from deepbf_studies.paper.questions import Answers
from deepbf_studies.paper.sample_sizes import TITLES, comparisons
from deepbf_studies.paper.target import Drawing, Plan, Results, Target

STUDIES = ("data-1-i", "data-1-ii")
# The paper trims Bayes factors at 0.01 and 100.
TRIM = float(np.log(100))
# Within a factor of 3, Jeffreys calls evidence barely worth mentioning.
NEAR_ONE = float(np.log(3))


def plan(scale: str) -> Plan:
    """Return the exact Bayes factors of both studies at every sample size."""
    return {(one.study, one.num_obs): one.exact_step() for one in comparisons(scale, STUDIES)}


def draw(results: Results) -> Drawing:
    """Draw the density of the exact log Bayes factor over both models, a panel a sample size."""
    sizes = sorted({num_obs for _, num_obs in results})
    figure, axes = grid(1, len(sizes), title="Exact log Bayes factors, both models together, trimmed at 100 to one")
    points = np.linspace(-TRIM, TRIM, 301)
    shares: dict[str, dict[str, float]] = {}
    styles = estimator_styles([TITLES[study] for study in STUDIES])
    for ax, num_obs in zip(axes.flat, sizes, strict=True):
        for study in STUDIES:
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
    rows = [(f"n = {n}", [f"{shares[study][str(n)]:.3f}" for study in STUDIES]) for n in sizes]
    lines = aligned_table("Share of data sets with BF within 1/3 and 3", [TITLES[s] for s in STUDIES], rows)
    return Drawing("\n".join(lines), {"": figure}, {"share_near_one": shares})


TARGETS = (Target("figure-s24", "Data 1: how the exact Bayes factors are spread", "Figure S24", plan, draw),)
