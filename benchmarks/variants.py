"""Partial, posterior, fractional and intrinsic Bayes factors against exact ones, from one fit a study.

The exact Bayes factor is known at every n, and so is every variant made of it, over the same training samples.

Run: python benchmarks/variants.py                        all studies, 120 seconds a fit
     python benchmarks/variants.py data-3 --seconds 60    one study
     python benchmarks/variants.py --out results.json     and write the numbers
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

import deepbf
from deepbf.variants.intrinsic import Subsets
from deepbf_studies import problems

STUDIES = ("data-1-i", "data-1-ii", "data-3")
NUM_OBS = 16
NUM_TRAINING = (2, 8)
NUM_TEST = 1500
NUM_SUBSETS = 500
TEST_SEED = 1_000_003
NUM_EXTREMES = 1_000_000
# Beyond a Bayes factor of a million to one, no decision depends on the exact number.
CLIP = np.log(1e6)
MODERATE = np.log(100)

Floats = NDArray[np.float64]


def exact_variants(exact: Any, data: NDArray[Any], num_training: int) -> dict[str, Floats]:
    """Return exact log partial, arithmetic and geometric Bayes factors."""
    whole = exact(data)
    subsets = Subsets.choose(NUM_OBS, num_training, NUM_SUBSETS, seed=0).indices
    inverse = np.stack([-exact(data[:, places]) for places in subsets])
    return {
        "partial": whole - exact(data[:, :num_training]),
        "arithmetic": whole + logsumexp(inverse, axis=0) - np.log(len(subsets)),
        "geometric": whole + inverse.mean(axis=0),
    }


def rows_of(variants: deepbf.Variants, study: Any, model: deepbf.Model) -> list[dict[str, Any]]:
    """Return the error of every variant at data of one model."""
    data = model.simulate(NUM_TEST, seed=TEST_SEED, num_obs=NUM_OBS).data
    exact = study.exact_log_bf
    twice = np.concatenate([data, data], axis=1)
    rows = [measured(variants.posterior(data), exact(twice) - exact(data), model)]
    for num_training in NUM_TRAINING:
        truth = exact_variants(exact, data, num_training)
        found = {
            "partial": variants.partial(data, num_training),
            "arithmetic": variants.arithmetic(data, num_training, num_subsets=NUM_SUBSETS),
            "geometric": variants.geometric(data, num_training, num_subsets=NUM_SUBSETS),
        }
        rows += [{"num_training": num_training, **measured(found[name], truth[name], model)} for name in truth]
    return rows


def measured(found: deepbf.VariantBayesFactor, exact: Floats, model: deepbf.Model) -> dict[str, Any]:
    error = found.log_bf - exact
    inside, moderate = np.abs(exact) < CLIP, np.abs(exact) < MODERATE
    sound = inside & ~found.doubtful

    def rmse(kept: NDArray[np.bool_]) -> float:
        return float(np.sqrt(np.mean(error[kept] ** 2))) if kept.any() else float("nan")

    return {
        "variant": found.variant,
        "model": model.name,
        "rmse": rmse(inside),
        "rmse_not_doubtful": rmse(sound),
        "share_doubtful": float(1 - sound.sum() / inside.sum()),
        "median_absolute_error": float(np.median(np.abs(error[inside]))),
        "rmse_within_100_to_1": rmse(moderate),
        "num_datasets": int(inside.sum()),
    }


def count_nonfinite(variants: deepbf.Variants, study: Any) -> int:
    """Return how many log Bayes factors of any variant are not finite, in a million data sets with extremes."""
    rng = np.random.default_rng(TEST_SEED)
    extremes = np.array([0.0, 1e7, 1e30, -1e30, 1e-30, 1.0, 1e300, -1e300, np.finfo(float).max, 123456.0])
    nonfinite = 0
    for k in range(0, NUM_EXTREMES, 100_000):
        model = study.models[(k // 100_000) % 2]
        data = model.simulate(100_000, seed=TEST_SEED + k, num_obs=NUM_OBS).data.astype(float)
        where = rng.uniform(size=data.shape) < rng.choice([0.0, 0.01, 0.3], (len(data), 1))
        data = np.where(where, rng.choice(extremes, data.shape), data)
        for found in (
            variants.partial(data, 2),
            variants.posterior(data),
            variants.fractional(data, 0.25),
            variants.arithmetic(data, 2, num_subsets=8),
            variants.geometric(data, 2, num_subsets=8),
        ):
            nonfinite += int((~np.isfinite(found.log_bf)).sum())
    return nonfinite


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", help=f"of {', '.join(STUDIES)}; all by default")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--loss", default="cross_entropy")
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    results = []
    for name in options.studies or STUDIES:
        study = problems.load(name, num_obs=NUM_OBS)
        variants = deepbf.fit_variants(
            study.models,
            NUM_OBS,
            NUM_TRAINING,
            seconds=options.seconds,
            seed=options.seed,
            loss=options.loss,
            progress=False,
        )
        rows = [{"study": name, **row} for model in study.models for row in rows_of(variants, study, model)]
        for row in rows:
            size = f"n_x = {row['num_training']}" if "num_training" in row else ""
            print(f"{name:<10} {row['variant']:<21}{size:<8} {row['model']:<26} RMSE {row['rmse']:>7.3f}  to 100 "
                  f"{row['rmse_within_100_to_1']:>7.3f}  median {row['median_absolute_error']:.3f}  not doubtful "
                  f"{row['rmse_not_doubtful']:>7.3f} (doubtful {row['share_doubtful']:.1%})", flush=True)  # fmt: skip
        nonfinite = count_nonfinite(variants, study)
        print(f"{name:<10} not finite in {NUM_EXTREMES:,} data sets, five variants each: {nonfinite}", flush=True)
        results += [*rows, {"study": name, "nonfinite_in_a_million": nonfinite}]
    if options.out is not None:
        options.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
