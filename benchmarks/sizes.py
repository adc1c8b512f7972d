"""Sample sizes: one fit for a whole range of n, and large n; error against the exact Bayes factor.

Run: python benchmarks/sizes.py                        the range and the large n, 120 seconds a fit
     python benchmarks/sizes.py range                  only the range
     python benchmarks/sizes.py large --seconds 60     only large n
     python benchmarks/sizes.py far                    large n, from a fit for all n up to it: the order far out
     python benchmarks/sizes.py --out results.json     and write the numbers
"""

import argparse
import json
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import deepbf
from deepbf_studies import problems

RANGE = (2, 256)
EVALUATED = (2, 8, 32, 128, 256)
LARGE = (1024, 4096)
NUM_TEST = 10_000
TEST_SEED = 1_000_003


def measured(evaluation: deepbf.Evaluation) -> dict[str, float]:
    """Return what matters of an evaluation, as plain numbers."""
    results = evaluation.results.sel(estimator="deepbf")
    first, second = evaluation.names
    return {
        "excess_loss": evaluation.value("excess_loss", "deepbf"),
        "excess_loss_standard_error": float(results["excess_loss_error"].sel(group="weighted")),
        "clipped_mse": evaluation.value("clipped_mse", "deepbf"),
        "spearman_first": float(results["spearman"].sel(group=first)),
        "spearman_second": float(results["spearman"].sel(group=second)),
    }


def fit_range(seconds: float, seed: int) -> list[dict[str, Any]]:
    """One estimator of Data 1 (i) for n from 2 to 256, evaluated at several n."""
    study = problems.load("data-1-i")
    bf = deepbf.fit(study.models, structure="exchangeable", num_obs=RANGE, seconds=seconds, seed=seed, progress=False)
    rows = []
    for num_obs in EVALUATED:
        found = bf.evaluate(
            NUM_TEST, num_obs=num_obs, exact=study.exact_log_bf, num_replicates=100, seed=TEST_SEED, progress=False
        )
        rows.append({"case": f"data-1-i, one fit for n = 2 to 256, at n = {num_obs}", **measured(found),
                     "simulations": bf.record.num_simulations, "steps": bf.record.num_steps})  # fmt: skip
    return rows


def fit_large(num_obs: int, seconds: float, seed: int) -> list[dict[str, Any]]:
    """Data 3 at one large n."""
    study = problems.load("data-3", num_obs=num_obs)
    begin = time.monotonic()
    bf = deepbf.fit(study.models, structure="exchangeable", seconds=seconds, seed=seed, progress=False)
    wall = time.monotonic() - begin
    found = bf.evaluate(NUM_TEST, exact=study.exact_log_bf, num_replicates=100, seed=TEST_SEED, progress=False)
    return [{"case": f"data-3, n = {num_obs}", **measured(found), "simulations": bf.record.num_simulations,
             "steps": bf.record.num_steps, "wall_seconds": wall,
             "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}]  # fmt: skip


def fit_far(seconds: float, seed: int) -> list[dict[str, Any]]:
    """Data 3 at n = 1,024, from one fit for n from 2: small n show how evidence grows where large n are clear."""
    study = problems.load("data-3", num_obs=LARGE[0])
    bf = deepbf.fit(
        study.models, structure="exchangeable", num_obs=(2, LARGE[0]), seconds=seconds, seed=seed, progress=False
    )
    found = bf.evaluate(
        NUM_TEST, num_obs=LARGE[0], exact=study.exact_log_bf, num_replicates=100, seed=TEST_SEED, progress=False
    )
    return [{"case": f"data-3, one fit for n = 2 to {LARGE[0]}, at n = {LARGE[0]}", **measured(found),
             "simulations": bf.record.num_simulations, "steps": bf.record.num_steps}]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["range", "large", "far", []], help="all three by default")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    parts = options.parts or ["range", "large", "far"]
    tasks: list[tuple[Any, ...]] = [(fit_range, options.seconds, options.seed)] if "range" in parts else []
    tasks += [(fit_large, num_obs, options.seconds, options.seed) for num_obs in LARGE] if "large" in parts else []
    tasks += [(fit_far, options.seconds, options.seed)] if "far" in parts else []
    results = []
    for function, *arguments in tasks:
        # A process of its own for each fit, so that its peak memory is its own too.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            rows = process.submit(function, *arguments).result()
        for row in rows:
            memory = f"  {row['peak_memory_gb']:.2f} GB" if "peak_memory_gb" in row else ""
            print(f"{row['case']:<49} excess loss {row['excess_loss']:>8.1e} +- {row['excess_loss_standard_error']:.0e}"
                  f"  clipped MSE {row['clipped_mse']:.3f}"
                  f"  Spearman {row['spearman_first']:.4f} {row['spearman_second']:.4f}"
                  f"  {row['simulations']:,} simulations{memory}", flush=True)  # fmt: skip
        results += rows
    if options.out is not None:
        options.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
