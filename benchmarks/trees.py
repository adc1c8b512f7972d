"""Processing trees of the weapon study: two integrals and importance sampling, and the tail areas at BF = 8.10.

Run: python benchmarks/trees.py                        a few minutes on two cores
     python benchmarks/trees.py --out results.json     and write the numbers
     python benchmarks/trees.py --quick                a tenth of the data sets
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf.baselines.baseline_result import BaselineResult
from deepbf.baselines.importance_sampling import importance
from deepbf.baselines.integration import integrate
from deepbf_studies.problems import load

STUDY = "weapon-sum"
SEED = 20_170
NUM_COMPARED = 200
NUM_SURPRISE = 3_000
# Enough for a standard error of a few thousandths where the parameters are most correlated.
NUM_DRAWS = 100_000
# The Bayes factor of the real data, by TreeBUGS; p1 and p2 at a given Bayes factor depend on the models alone.
PAPER_BF = 8.10
# (target, tolerance)
TARGET_P1 = (0.19, 0.01)
TARGET_P2 = (0.004, 0.002)
TARGET_DIFFERENCE = 0.02
TARGET_ROUTES = 1e-3
CHUNK = 25


def run_chunk(method_fn: Callable[..., BaselineResult], data: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    result = method_fn(load(STUDY).models, data)
    return result.log_bf, result.log_bf_error, *(result.diagnostics[name] for name in sorted(result.diagnostics))


def exact_chunk(data: NDArray[Any]) -> NDArray[np.float64]:
    return load(STUDY).exact_log_bf(data)


def run(executor: ProcessPoolExecutor, method_fn: Callable[..., BaselineResult], data: NDArray[Any]):
    """Log Bayes factors, errors, diagnostics in order of name, and wall seconds."""
    begin = time.monotonic()
    chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    parts = list(executor.map(partial(run_chunk, method_fn), chunks))
    return [np.concatenate(column) for column in zip(*parts, strict=True)], time.monotonic() - begin


def compare(executor: ProcessPoolExecutor, num_datasets: int, num_draws: int) -> dict[str, Any]:
    """Importance sampling and both integrals at the same data sets of both models."""
    data = np.concatenate([model.simulate(num_datasets, seed=SEED).data for model in load(STUDY).models])
    (adaptive, adaptive_error, adaptive_converged, *_), adaptive_seconds = run(executor, integrate, data)
    (grid, grid_error, grid_converged, *_), grid_seconds = run(executor, partial(integrate, route="grid"), data)
    (sampled, error, effective, *_), sampled_seconds = run(executor, partial(importance, num_draws=num_draws), data)
    exact = np.concatenate(list(executor.map(exact_chunk, np.array_split(data, max(1, len(data) // CHUNK)))))
    difference = np.abs(sampled - adaptive)
    return {
        "num_datasets": len(data),
        "num_draws": num_draws,
        "largest_difference_importance": float(difference.max()),
        "largest_error_importance": float(error.max()),
        "median_error_importance": float(np.median(error)),
        "coverage_95": float(np.mean(difference <= 1.96 * error)),
        "root_mean_square_z": float(np.sqrt(np.mean((difference / error) ** 2))),
        "smallest_effective_share": float(effective.min() / num_draws),
        "largest_difference_routes": float(np.abs(grid - adaptive).max()),
        "largest_difference_study": float(np.abs(exact - adaptive).max()),
        "routes_within_reported_errors": float(np.mean(np.abs(grid - adaptive) <= grid_error + adaptive_error)),
        "adaptive_converged": float(adaptive_converged.mean()),
        "grid_converged": float(grid_converged.mean()),
        "seconds": {"adaptive": adaptive_seconds, "grid": grid_seconds, "importance": sampled_seconds},
    }


def surprise(executor: ProcessPoolExecutor, num_datasets: int) -> dict[str, Any]:
    """Tail areas at the paper's Bayes factor under each model."""
    first, second = load(STUDY).models
    begin = time.monotonic()
    under_pd, under_stroop = (
        np.concatenate(list(executor.map(exact_chunk, np.array_split(data, max(1, num_datasets // CHUNK)))))
        for data in (
            first.simulate(num_datasets, seed=SEED + 1).data,
            second.simulate(num_datasets, seed=SEED + 2).data,
        )
    )
    seconds = time.monotonic() - begin
    p1 = float(np.mean(under_pd <= np.log(PAPER_BF)))
    p2 = float(np.mean(under_stroop >= np.log(PAPER_BF)))
    return {
        "num_datasets_a_model": num_datasets,
        "p1": p1,
        "p1_standard_error": float(np.sqrt(p1 * (1 - p1) / num_datasets)),
        "p2": p2,
        "p2_standard_error": float(np.sqrt(p2 * (1 - p2) / num_datasets)),
        "not_finite": int((~np.isfinite(np.concatenate([under_pd, under_stroop]))).sum()),
        "seconds": seconds,
    }


def print_table(compared: dict[str, Any], surprised: dict[str, Any]) -> None:
    seconds = compared["seconds"]
    rows = [
        ("max |importance - integration|", compared["largest_difference_importance"], f"<= {TARGET_DIFFERENCE}"),
        ("  largest reported error", compared["largest_error_importance"], ""),
        ("  median reported error", compared["median_error_importance"], ""),
        ("  share within 1.96 errors", compared["coverage_95"], "0.90 to 0.99"),
        ("  smallest effective share of draws", compared["smallest_effective_share"], ""),
        ("max |grid - adaptive|", compared["largest_difference_routes"], f"<= {TARGET_ROUTES:g}"),
        ("max |study's own grid - adaptive|", compared["largest_difference_study"], f"<= {TARGET_ROUTES:g}"),
        ("  share within reported errors", compared["routes_within_reported_errors"], ""),
        ("  converged, adaptive", compared["adaptive_converged"], "1"),
        ("  converged, grid", compared["grid_converged"], "1"),
        ("seconds, adaptive", seconds["adaptive"], ""),
        ("seconds, grid", seconds["grid"], ""),
        ("seconds, importance", seconds["importance"], ""),
        ("P(BF <= 8.10 given PD)", surprised["p1"], f"{TARGET_P1[0]} +- {TARGET_P1[1]}"),
        ("  standard error", surprised["p1_standard_error"], ""),
        ("P(BF >= 8.10 given Stroop)", surprised["p2"], f"{TARGET_P2[0]} +- {TARGET_P2[1]}"),
        ("  standard error", surprised["p2_standard_error"], ""),
        ("seconds, the study's own grid", surprised["seconds"], ""),
    ]
    print(
        f"{compared['num_datasets']} data sets of both models, {compared['num_draws']:,} draws; "
        f"{surprised['num_datasets_a_model']} a model for the tail areas"
    )
    for label, value, target in rows:
        print(f"{label:38} {value:12.4g}   {target}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets")
    parser.add_argument("--draws", type=int, default=NUM_DRAWS, help="draws for each importance sampling estimate")
    arguments = parser.parse_args()
    share = 10 if arguments.quick else 1
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as executor:
        # Workers import before any clock starts.
        list(executor.map(run_chunk, [integrate] * 4, [np.full((1, 12), 756)] * 4))
        compared = compare(executor, NUM_COMPARED // share, arguments.draws)
        surprised = surprise(executor, NUM_SURPRISE // share)
    print_table(compared, surprised)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps({"compared": compared, "surprise": surprised}, indent=2) + "\n")


if __name__ == "__main__":
    main()
