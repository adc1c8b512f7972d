"""Posterior samplers against conjugate posteriors: the flow and the GAN, on the models whose posterior is known.

Each sampler is asked about data sets drawn from its model. Reported: the error of the posterior mean in units of the
exact posterior standard deviation, the error of the standard deviation as a ratio, and whether the rank of the
parameter that made the data is uniform among the draws (simulation-based calibration). Drawing from the exact posterior
itself is measured too, as the best that so many draws allow.

Run: python benchmarks/posteriors.py                                both methods on all models, about ten minutes
     python benchmarks/posteriors.py --methods flow --steps 4000    one method, a fixed number of steps
     python benchmarks/posteriors.py --out results.json             and write the numbers
"""

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import deepbf
from deepbf_studies import problems

Array = NDArray[Any]
NUM_OBS = 128
NUM_DATASETS = 500
NUM_DRAWS = 2000
NUM_BINS = 20
TEST_SEED = 1_000_003
SECONDS = {"flow": 60.0, "gan": 120.0}
METHODS = ("flow", "gan")


class Case(NamedTuple):
    """A model of a study, and its exact posterior as a frozen distribution, one entry per data set."""

    study: str
    model: int
    posterior: Callable[[Array], Any]


CASES = {
    "negative binomial": Case(
        "data-1-i", 0, lambda data: stats.beta(2 + data.shape[1], 2 + data.sum(axis=1, dtype=float))
    ),
    "Poisson": Case(
        "data-1-i", 1, lambda data: stats.gamma(4 + data.sum(axis=1, dtype=float), scale=1 / (4 + data.shape[1]))
    ),
    "exponential": Case("data-3", 0, lambda data: stats.gamma(2 + data.shape[1], scale=1 / (2 + data.sum(axis=1)))),
}


def against_exact(draws: Array, exact: Any, truth: Array) -> dict[str, float]:
    """Compare draws, shape (data sets, draws), with the exact posteriors and the parameters that made the data."""
    mean_error = np.abs(draws.mean(axis=1) - exact.mean()) / exact.std()
    sd_ratio = draws.std(axis=1, ddof=1) / exact.std()
    ranks = (draws < truth[:, None]).sum(axis=1)
    counts = np.bincount(ranks * NUM_BINS // (draws.shape[1] + 1), minlength=NUM_BINS)
    return {
        "mean_error": float(mean_error.mean()),
        "largest_mean_error": float(mean_error.max()),
        "sd_error": float(np.abs(sd_ratio - 1).mean()),
        "mean_sd_ratio": float(sd_ratio.mean()),
        "rank_chi_squared_p": float(stats.chisquare(counts).pvalue),
        "rank_ks_p": float(stats.kstest((ranks + 0.5) / (draws.shape[1] + 1), "uniform").pvalue),
    }


def measure(case: str, method: str, budget: dict[str, Any], seed: int) -> dict[str, Any]:
    """Fit one sampler and compare it with the exact posteriors of fresh data sets."""
    study, index, posterior = CASES[case]
    model = problems.load(study, num_obs=NUM_OBS).models[index]
    truth, data = model.simulate(NUM_DATASETS, TEST_SEED)
    exact = posterior(data)
    if method == "exact":
        rng = np.random.default_rng(seed)
        draws = exact.rvs((NUM_DRAWS, NUM_DATASETS), random_state=rng).T
        return {"case": case, "method": method, **against_exact(draws, exact, np.asarray(truth))}
    begin = time.monotonic()
    sampler = deepbf.fit_posterior(model, structure="exchangeable", method=method, seed=seed, progress=False, **budget)
    fitted = time.monotonic()
    draws = np.asarray(sampler.sample_many(data, NUM_DRAWS, seed=seed))
    drawn = time.monotonic()
    return {
        "case": case,
        "method": method,
        "seed": seed,
        **budget,
        **against_exact(draws, exact, np.asarray(truth)),
        "steps_taken": sampler.record.num_steps,
        "simulations": sampler.record.num_simulations,
        "fit_seconds": fitted - begin,
        "sample_seconds": drawn - fitted,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    parser.add_argument("--seconds", type=float, help="a fit; 60 for a flow and 120 for a GAN by default")
    parser.add_argument("--steps", type=int, help="a fit, instead of seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    print(f"{'model':<18} {'method':<6} {'mean error':>10} {'largest':>8} {'sd error':>8} {'sd ratio':>8} "
          f"{'ranks: chi2 p':>13} {'KS p':>6} {'steps':>7} {'simulations':>11} {'fit s':>6} {'draw s':>6}")  # fmt: skip
    results = []
    for case in options.cases:
        for method in ("exact", *options.methods):
            budget = {"steps": options.steps} if options.steps else {"seconds": options.seconds or SECONDS.get(method)}
            # A process of its own for each fit: none finds another's programs compiled.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                row = process.submit(measure, case, method, budget, options.seed).result()
            results.append(row)
            print(f"{case:<18} {method:<6} {row['mean_error']:>10.4f} {row['largest_mean_error']:>8.3f} "
                  f"{row['sd_error']:>8.4f} {row['mean_sd_ratio']:>8.3f} {row['rank_chi_squared_p']:>13.3f} "
                  f"{row['rank_ks_p']:>6.3f} {row.get('steps_taken', 0):>7,} {row.get('simulations', 0):>11,} "
                  f"{row.get('fit_seconds', 0):>6.1f} {row.get('sample_seconds', 0):>6.2f}", flush=True)  # fmt: skip
            if options.out is not None:
                options.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
