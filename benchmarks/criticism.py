"""Model criticism on the paper's toy data (Section S5.2): Z-values of every data source under every model.

One fixed data set of n = 128 from each model, and one of outliers, all entries the same; predictions from each model's
posterior given it; 3,000 draws of Z by a quadratic logistic regression, refitted each time. Beside it: for how many of
100 further data sets 1/2 is excluded, and the tail area of the leave-one-out discrepancy.

Run: python benchmarks/criticism.py                               exact posteriors, all studies
     python benchmarks/criticism.py data-3 --figures plots/       one study, and its panels
     python benchmarks/criticism.py --sampler flow --seconds 60   posteriors learned from simulations
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deepbf
from deepbf.criticism import PredictiveSource, ZValues, leave_one_out, z_values
from deepbf_studies import problems
from deepbf_studies.paper.criticism import NUM_OBS, OUTLIERS, SAMPLERS, observed_data, posterior_of

NUM_REPLICATES = 3000
NUM_DATASETS, NUM_REPLICATES_EACH = 100, 300
MORE_SEED = 2_000_003
RESULTS = Path(__file__).parent / "results"


def samplers_of(study: Any, options: argparse.Namespace) -> tuple[PredictiveSource, ...]:
    # Leaving one out needs the posterior at one observation fewer too.
    num_obs = (NUM_OBS - 1, NUM_OBS) if options.leave_one_out else None
    return tuple(
        posterior_of(study, model, options.sampler, num_obs=num_obs, seconds=options.seconds, seed=options.seed)
        for model in range(len(study.models))
    )


def sources_of(study: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of each data source, one data set of it, and further ones."""
    more = {model.name: model.simulate(NUM_DATASETS, MORE_SEED).data for model in study.models}
    for source, observed in observed_data(study).items():
        yield source, observed, more.get(source)


def row_of(sampler: PredictiveSource, observed: Any, more: Any, options: argparse.Namespace) -> tuple[ZValues, Any]:
    started = time.perf_counter()
    found = z_values(sampler, observed, num_replicates=NUM_REPLICATES, seed=options.seed)
    row = {name: value for name, value in found.to_dict().items() if name != "z"}
    row["seconds"] = time.perf_counter() - started
    joint = z_values(sampler, observed, num_replicates=NUM_REPLICATES, draws="joint", seed=options.seed)
    row["joint"] = {"low": joint.low, "mean": joint.mean, "high": joint.high, "covers_half": joint.covers_half}
    if more is not None and options.sampler == "exact":
        others = [
            z_values(sampler, data, num_replicates=NUM_REPLICATES_EACH, seed=options.seed + 1 + k)
            for k, data in enumerate(more)
        ]
        row["num_excluding_half"] = sum(not other.covers_half for other in others)
        row["num_datasets"] = len(others)
    if options.leave_one_out:
        started = time.perf_counter()
        left_out = leave_one_out(sampler, observed, seed=options.seed)
        row["leave_one_out"] = {
            name: value for name, value in left_out.to_dict().items() if name not in ("replicates", "model", "num_obs")
        }
        row["leave_one_out_seconds"] = time.perf_counter() - started
    return found, row


def print_row(study: str, source: str, row: dict[str, Any]) -> None:
    excluded = f"{row['num_excluding_half']:>3} of {row['num_datasets']}" if "num_datasets" in row else ""
    left_out = f"{row['leave_one_out']['tail_area']['prob']:.3f}" if "leave_one_out" in row else ""
    covers = "yes" if row["covers_half"] else "no"
    print(f"{study:<10}{source:<27}{row['model']:<27}{row['low']:>7.3f}{row['mean']:>7.3f}{row['high']:>7.3f}  "
          f"{covers:<5}{excluded:>10}{left_out:>10}{row['seconds']:>9.1f}", flush=True)  # fmt: skip


def targets_of(results: list[dict[str, Any]]) -> dict[str, bool]:
    consonant = [row for row in results if row["source"] == row["model"]]
    outliers = [row for row in results if row["source"].startswith("outliers")]
    return {
        "every consonant case covers 1/2": all(row["covers_half"] for row in consonant),
        # By more than the width of the draws of Z themselves.
        "every case of outliers excludes 1/2 by a wide margin": all(
            0.5 - row["high"] > row["high"] - row["low"] for row in outliers
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", help=f"of {', '.join(OUTLIERS)}; all by default")
    parser.add_argument("--sampler", choices=SAMPLERS, default="exact")
    parser.add_argument("--seconds", type=float, default=60.0, help="training of a learned posterior, a model")
    parser.add_argument("--leave-one-out", action=argparse.BooleanOptionalAction, default=None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--figures", type=Path, help="a folder for a figure a study")
    parser.add_argument("--out", type=Path, help="by default benchmarks/results/criticism.json, or -flow, -gan")
    options = parser.parse_args()
    if options.leave_one_out is None:
        options.leave_one_out = options.sampler == "exact"
    started = time.perf_counter()
    print(f"{'study':<10}{'data':<27}{'predictions':<27}{'2.5%':>7}{'mean':>7}{'97.5%':>7}  "
          f"{'1/2?':<5}{'excluded':>10}{'tail area':>10}{'seconds':>9}")  # fmt: skip
    results = []
    for name in options.studies or OUTLIERS:
        study = problems.load(name, num_obs=NUM_OBS)
        samplers, sources = samplers_of(study, options), list(sources_of(study))
        panels: dict[str, dict[str, ZValues]] = {sampler.model.name: {} for sampler in samplers}
        for source, observed, more in sources:
            for sampler in samplers:
                found, row = row_of(sampler, observed, more, options)
                panels[sampler.model.name][source] = found
                results.append({"study": name, "source": source, "sampler": options.sampler, **row})
                print_row(name, source, results[-1])
        if options.figures is not None:
            options.figures.mkdir(parents=True, exist_ok=True)
            deepbf.plots.z_values_grid(panels).savefig(options.figures / f"z-values-{name}.png", dpi=150)
    seconds = time.perf_counter() - started
    targets = targets_of(results)
    for words, met in targets.items():
        print(f"{'met' if met else 'MISSED':<8}{words}")
    print(f"{seconds:.0f} seconds in all")
    suffix = "" if options.sampler == "exact" else f"-{options.sampler}"
    out = options.out or RESULTS / f"criticism{suffix}.json"
    out.write_text(json.dumps({"seconds": seconds, "targets": targets, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
