"""Large samples: set networks where the paper's vector networks no longer learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr

from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf.evaluation.table import aligned_table, write_number
from deepbf_studies.paper.methods import DEEPSET2, OURS, Questions, by_training, exactly
from deepbf_studies.paper.panels import grid, head, one_legend, only_outer_labels
from deepbf_studies.paper.sample_sizes import PAPER_STEPS, STUDIES, TITLES, measured
from deepbf_studies.paper.size_figures import draw_small_scatter, metric_value
from deepbf_studies.paper.step import Step
from deepbf_studies.paper.target import Drawing, Plan, Results, Target


@dataclass(frozen=True)
class Settings:
    """How much is computed: sample sizes and training steps by method, data sets of each model, replicates."""

    sizes: Mapping[str, tuple[int, ...]]
    num_steps: Mapping[str, int]
    num_datasets: int
    num_replicates: int


SCALES = {
    "quick": Settings({OURS: (256,)}, {OURS: 500}, 200, 20),
    "standard": Settings(
        {OURS: (256, 1024, 4096), DEEPSET2: (256,)}, {OURS: 5000, DEEPSET2: 300}, num_datasets=1500, num_replicates=200
    ),
    "paper": Settings(
        {OURS: (256, 1024, 4096), DEEPSET2: (256, 1024, 4096)},
        {OURS: PAPER_STEPS, DEEPSET2: PAPER_STEPS},
        num_datasets=1500,
        num_replicates=1000,
    ),
}


def plan(scale: str) -> Plan:
    """Return the evaluations of set networks by study and sample size."""
    settings = SCALES[scale]
    sizes = sorted({size for sizes in settings.sizes.values() for size in sizes})
    return {(study, size): _measured_step(settings, study, size) for study in STUDIES for size in sizes}


def _measured_step(settings: Settings, study: str, num_obs: int) -> Step:
    """Return the step that measures the set networks at one sample size."""
    asked = Questions(study, num_obs, settings.num_datasets)
    methods = [method for method, sizes in settings.sizes.items() if num_obs in sizes]
    fits = [
        Step(
            by_training,
            {"questions": asdict(asked), "method": method, "num_steps": settings.num_steps[method], "seed": 1},
        )
        for method in methods
    ]
    return Step(
        measured,
        {
            "parts": dict.fromkeys(methods, 1),
            "models": [model.name for model in asked.load().models],
            "num_datasets": settings.num_datasets,
            "num_replicates": settings.num_replicates,
        },
        inputs=(Step(exactly, {"questions": asdict(asked)}), *fits),
        revision=2,
    )


def draw(results: Results) -> Drawing:
    """Draw estimated against exact log Bayes factors: a row for each study, a column for each network and n."""
    sizes = sorted({num_obs for _, num_obs in results})
    listed = [
        (method, num_obs)
        for method in (OURS, DEEPSET2)
        for num_obs in sizes
        if any(method in results[study, num_obs]["estimator"].values for study in STUDIES)
    ]
    figure, axes = grid(len(STUDIES), len(listed), title="Large samples: estimated against exact log Bayes factor")
    rows, numbers = [], {}
    for row, study in zip(axes, STUDIES, strict=True):
        for ax, (method, num_obs) in zip(row, listed, strict=True):
            draw_small_scatter(results[study, num_obs], method, ax)
            found = _described(results[study, num_obs], method)
            numbers[f"{study}, n = {num_obs}, {method}"] = found
            rows.append((f"{TITLES[study]}, n = {num_obs}, {method}", _written(found)))
        row[0].set_ylabel(f"{TITLES[study]}\nestimated log BF")
    head(axes, [f"{method}, n = {num_obs}" for method, num_obs in listed])
    only_outer_labels(axes)
    one_legend(figure, axes.flat)
    columns = ["correlation", "KL of model probs", "MSE, clipped", "same decision", "seconds"]
    return Drawing("\n".join(aligned_table("Set networks", columns, rows, narrowest=12)), {"": figure}, numbers)


def _described(result: xr.Dataset, method: str) -> dict[str, Any]:
    """Return what the table says of one network at one sample size.

    The correlation is of log Bayes factors over both models, clipped at a million to one, as the paper's figure has it.
    """
    clip = float(result.attrs["clip"])
    exact, estimated = (np.clip(result["log_bf"].sel(estimator=name), -clip, clip) for name in (EXACT, method))
    return {
        "correlation": float(np.corrcoef(exact, estimated)[0, 1]) if float(np.std(estimated)) > 0 else 0.0,
        **{m: list(metric_value(result, m, method)) for m in ("posterior_kl", "clipped_mse", "agreement", "spearman")},
        "seconds": float(result["answer_seconds"].sel(estimator=method)),
    }


def _written(found: Mapping[str, Any]) -> list[str]:
    """Return the cells of one row."""
    metrics = (write_number(*found[name]) for name in ("posterior_kl", "clipped_mse", "agreement"))
    return [f"{found['correlation']:.4f}", *metrics, f"{found['seconds']:.0f}"]


TARGETS = (Target("figure-s12", "large samples with set networks", "Figure S12", plan, draw),)
