"""Losses and schedules side by side: error against the exact Bayes factor on every study, the same budget for each.

Run: python benchmarks/losses.py                             all losses, 60 seconds a fit, about an hour and a half
     python benchmarks/losses.py --studies data-1-i data-3 --steps 1500   some studies, a fixed number of steps
     python benchmarks/losses.py --losses cross_entropy squared_hellinger  some losses
     python benchmarks/losses.py --losses cross_entropy --schedules auto thorough   the default loss by both schedules
     python benchmarks/losses.py --out results.json                 and write the numbers
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import deepbf
from deepbf.losses import LOSSES
from deepbf_studies import problems

# Observations a data set; None: as many as the study has by itself.
STUDIES = {
    "data-1-i": 32,
    "data-1-ii": 32,
    "data-2": 32,
    "data-3": 32,
    "random-effects": None,
    "ar-ma": None,
    "covariate": None,
    # Of five models, the first against the second.
    "five-counts": None,
    "weapon-sum": None,
}
NUM_TEST = 10_000
# Its exact answers take 20 ms a data set.
NUM_TEST_OF = {"weapon-sum": 1_500}
SCHEDULES = ("auto", "thorough")
TEST_SEED = 1_000_003


def measure(name: str, loss: str, schedule: str, budget: dict[str, Any], seed: int) -> dict[str, Any]:
    """Fit by one loss and schedule, and compare with the exact answer on fresh data of each model."""
    num_obs = STUDIES[name]
    study = problems.load(name) if num_obs is None else problems.load(name, num_obs=num_obs)
    begin = time.monotonic()
    bf = deepbf.fit(
        study.models, structure=study.structure, loss=loss, schedule=schedule, seed=seed, progress=False, **budget
    )
    wall = time.monotonic() - begin
    num_test = NUM_TEST_OF.get(name, NUM_TEST)
    found = bf.evaluate(num_test, exact=study.exact_log_bf, num_replicates=100, seed=TEST_SEED, progress=False)
    results = found.results.sel(estimator="deepbf")
    first, second = found.names
    return {
        "study": name,
        "num_obs": study.num_obs,
        "loss": loss,
        "schedule": schedule,
        "seed": seed,
        **budget,
        "excess_loss": found.value("excess_loss", "deepbf"),
        "excess_loss_standard_error": float(results["excess_loss_error"].sel(group="weighted")),
        "clipped_mse": found.value("clipped_mse", "deepbf"),
        "spearman_first": float(results["spearman"].sel(group=first)),
        "spearman_second": float(results["spearman"].sel(group=second)),
        "steps_taken": bf.record.num_steps,
        "simulations": bf.record.num_simulations,
        "wall_seconds": wall,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=list(STUDIES), metavar="STUDY")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES), metavar="LOSS")
    parser.add_argument("--schedules", nargs="+", choices=SCHEDULES, default=["auto"], metavar="SCHEDULE")
    parser.add_argument("--seconds", type=float, default=60.0, help="a fit; 60 by default")
    parser.add_argument("--steps", type=int, help="a fit, instead of seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    budget = {"seconds": options.seconds} if options.steps is None else {"steps": options.steps}
    print(f"{'study':<14} {'n':>4} {'loss':<17} {'schedule':<9} {'excess loss':>18} {'MSE':>7} "
          f"{'Spearman, first and second':>26} {'steps':>7} {'simulations':>11} {'wall s':>6}")  # fmt: skip
    results = []
    for name in options.studies:
        for loss, schedule in product(options.losses, options.schedules):
            # A process of its own for each fit: none finds another's programs compiled.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                row = process.submit(measure, name, loss, schedule, budget, options.seed).result()
            results.append(row)
            print(f"{name:<14} {row['num_obs']:>4} {loss:<17} {schedule:<9} {row['excess_loss']:>9.1e} +- "
                  f"{row['excess_loss_standard_error']:.0e} {row['clipped_mse']:>7.3f} {row['spearman_first']:>19.4f} "
                  f"{row['spearman_second']:.4f} {row['steps_taken']:>7,} {row['simulations']:>11,} "
                  f"{row['wall_seconds']:>6.1f}", flush=True)  # fmt: skip
            if options.out is not None:
                # Written as it grows: an hour's numbers should survive an interruption.
                options.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
