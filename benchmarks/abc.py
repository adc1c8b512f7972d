"""ABC ranked in strata: its time against its parts, its memory, and how it loses its way as data grow.

Run: python benchmarks/abc.py                      both parts
     python benchmarks/abc.py speed                3,000 data sets of n = 128 against 1,200,000 draws
     python benchmarks/abc.py accuracy             n = 2, 8, 32, 128, 300 data sets per model
     python benchmarks/abc.py --out results.json   and write the numbers
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from deepbf.baselines.abc import abc_ranked
from deepbf.simulation import chunk_seed
from deepbf_studies import problems

NUM_OBSERVED = 3_000
NUM_OBS = 128
NUM_DRAWS = 1_200_000
NUM_STRATA = 1_200
# The bare parts are timed on a quarter of the strata, half of them before and half after the whole, and scaled up.
PART_STRATA = 150
DATASETS_A_MODEL = 300
NUM_KEPT = 120
LOG_RANGE = np.log(2 * NUM_KEPT + 1)
LARGEST_RATIO = 1.5
LARGEST_MEMORY = 2.0


def stratum_seconds(work: Callable[[int], object]) -> np.ndarray:
    """Seconds that each of some strata takes."""
    times = []
    for stratum in range(PART_STRATA):
        begin = time.perf_counter()
        work(stratum)
        times.append(time.perf_counter() - begin)
    return np.array(times)


def simulation_seconds(study: problems.Study) -> np.ndarray:
    """Seconds a stratum takes to simulate, and nothing else."""
    size = NUM_DRAWS // NUM_STRATA // len(study.models)

    def simulate(stratum: int) -> None:
        for k, model in enumerate(study.models):
            model.simulate(size, chunk_seed(0, k, stratum))

    return stratum_seconds(simulate)


def product_seconds() -> np.ndarray:
    """Seconds a stratum takes for the bare single-precision matrix product."""
    rng = np.random.default_rng(1)
    observed = rng.standard_normal((NUM_OBSERVED, NUM_OBS), np.float32)
    draws = rng.standard_normal((NUM_DRAWS // NUM_STRATA, NUM_OBS), np.float32)
    out = np.empty((len(observed), len(draws)), np.float32)
    np.matmul(observed, draws.T, out=out)
    return stratum_seconds(lambda _: np.matmul(observed, draws.T, out=out))


def observed_data(study: problems.Study, size: int) -> np.ndarray:
    return np.concatenate([model.simulate(size, seed=1000 + k).data for k, model in enumerate(study.models)])


def speed() -> dict[str, float]:
    study = problems.load("data-1-i", num_obs=NUM_OBS)
    observed = observed_data(study, NUM_OBSERVED // 2)
    # Before and after: a shared machine drifts, and the whole run lies between the two.
    simulation, product = [simulation_seconds(study)], [product_seconds()]
    begin, begin_cpu = time.perf_counter(), time.process_time()
    abc_ranked(study.models, observed, num_simulations=NUM_DRAWS, num_strata=NUM_STRATA, num_kept=NUM_KEPT)
    total, total_cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    simulation.append(simulation_seconds(study))
    product.append(product_seconds())
    parts = [NUM_STRATA * np.concatenate(part) for part in (simulation, product)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    mean, quick = ([summary(part) for part in parts] for summary in (np.mean, lambda part: np.quantile(part, 0.1)))
    ratio = total / sum(mean)
    print(f"{NUM_OBSERVED} data sets of n = {NUM_OBS} against {NUM_DRAWS} draws in {NUM_STRATA} strata")
    print(f"  simulation alone      {mean[0]:7.1f} s   (were all strata as fast as the fastest tenth: {quick[0]:.1f})")
    print(f"  bare matrix product   {mean[1]:7.1f} s   (were all strata as fast as the fastest tenth: {quick[1]:.1f})")
    print(f"  abc_ranked            {total:7.1f} s   ({total_cpu:.1f} processor seconds)")
    print(f"  ratio                 {ratio:7.2f}     target {LARGEST_RATIO}: {verdict(bool(ratio <= LARGEST_RATIO))}")
    print(f"    against the fastest {total / sum(quick):7.2f}     unfair to the whole on a busy machine")
    print(f"  peak memory           {memory:7.2f} GB  target {LARGEST_MEMORY}: {verdict(memory < LARGEST_MEMORY)}")
    return {
        "simulation_seconds": float(mean[0]),
        "product_seconds": float(mean[1]),
        "abc_seconds": total,
        "ratio": float(ratio),
        "peak_memory_gb": memory,
    }


def accuracy() -> list[dict[str, float]]:
    print(
        f"Data 1 (i), {DATASETS_A_MODEL} data sets per model, {NUM_DRAWS} draws, nearest {NUM_KEPT}; "
        "log BF by ABC against exact"
    )
    print(
        f"  {'n':>4} {'mean |error|':>13} {'MSE':>9} {'MSE in range':>13} {'Spearman':>9} "
        f"{'reported error':>15} {'bounds':>7}"
    )
    rows = []
    for num_obs in (2, 8, 32, 128):
        study = problems.load("data-1-i", num_obs=num_obs)
        observed = observed_data(study, DATASETS_A_MODEL)
        result = abc_ranked(study.models, observed, num_simulations=NUM_DRAWS, num_strata=NUM_STRATA, num_kept=NUM_KEPT)
        exact = study.exact_log_bf(observed)
        errors = result.log_bf - exact
        # What is left when the exact value, too, is kept in the range that 120 accepted draws can express.
        in_range = np.mean((result.log_bf - np.clip(exact, -LOG_RANGE, LOG_RANGE)) ** 2)
        rank_correlation: Any = spearmanr(result.log_bf, exact)[0]
        row = {
            "num_obs": num_obs,
            "mean_absolute_error": float(np.abs(errors).mean()),
            "mse": float(np.mean(errors**2)),
            "mse_in_range": float(in_range),
            "spearman": float(rank_correlation),
            "mean_reported_error": float(result.log_bf_error.mean()),
            "share_bounds": float(result.diagnostics["bound"].mean()),
        }
        rows.append(row)
        print(
            f"  {num_obs:>4} {row['mean_absolute_error']:>13.3f} {row['mse']:>9.3f} {in_range:>13.3f} "
            f"{rank_correlation:>9.3f} {row['mean_reported_error']:>15.3f} {row['share_bounds']:>7.1%}"
        )
    return rows


def verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


PARTS: dict[str, Callable[[], Any]] = {"speed": speed, "accuracy": accuracy}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which parts; both by default")
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    arguments = parser.parse_args()
    results = {part: PARTS[part]() for part in arguments.parts or PARTS}
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
