"""Bridge and warp bridge sampling against the closed form: bias, error, and whether the reported error is honest.

Run: python benchmarks/bridge.py [--out results.json]
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from deepbf.baselines import bridge, warp_bridge
from deepbf_studies import problems

STUDIES = ("data-1-i", "data-1-ii")
SIZES = (2, 8, 32, 128)
DATASETS_A_MODEL = 100
CLOSE = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    results = []
    columns = ("mean error", "its error", "within 0.02", "largest", "covered", "seconds")
    print(f"{'method':<7} {'study':<10} {'n':>4} " + " ".join(f"{column:>11}" for column in columns))
    for name in STUDIES:
        for num_obs in SIZES:
            study = problems.load(name, num_obs=num_obs)
            data = np.concatenate([model.simulate(DATASETS_A_MODEL, arguments.seed).data for model in study.models])
            exact = study.exact_log_bf(data)
            for label, method in (("bridge", bridge), ("warp", warp_bridge)):
                begin = time.perf_counter()
                result = method(study.models, data, seed=arguments.seed)
                row = summarise(result.log_bf - exact, result.log_bf_error)
                row |= {"method": label, "study": name, "num_obs": num_obs, "seconds": time.perf_counter() - begin}
                row["num_warnings"] = len(result.warnings)
                results.append(row)
                print(
                    f"{label:<7} {name:<10} {num_obs:>4} {row['mean_error']:>+11.4f} {row['mean_error_se']:>11.4f} "
                    f"{row['share_close']:>11.1%} {row['largest_error']:>11.4f} {row['coverage']:>11.1%} "
                    f"{row['seconds']:>11.1f}",
                    flush=True,
                )
                for warning in result.warnings:
                    print(f"    warning: {warning}")
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


def summarise(errors: np.ndarray, reported: np.ndarray) -> dict[str, float]:
    """Bias with its standard error, the share of small errors, and how often 95% intervals cover the truth."""
    return {
        "mean_error": float(errors.mean()),
        "mean_error_se": float(errors.std(ddof=1) / np.sqrt(len(errors))),
        "share_close": float((np.abs(errors) <= CLOSE).mean()),
        "largest_error": float(np.abs(errors).max()),
        "coverage": float((np.abs(errors) <= 1.96 * reported).mean()),
        "mean_reported_error": float(reported.mean()),
    }


if __name__ == "__main__":
    main()
