"""Prior sensitivity: the curve of the log Bayes factor over the prior's scale against the closed form.

The mean of a normal, unknown against 0, 20 observations; the scale of the mean's prior from 0.1 to 10, one fit.

Run: python benchmarks/sensitivity.py                     one fit of 120 seconds
     python benchmarks/sensitivity.py --out results.json  and write the numbers
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import deepbf
from deepbf_studies.problems import normal_mean_log_bf

NUM_OBS = 20
RANGE = (0.1, 10.0)
NUM_OBSERVED = 20
TEST_SEED = 1_000_003


def scaled_prior(rng: np.random.Generator, size: int, scale: Any) -> Any:
    return rng.normal(0.0, scale, size)


def about_mean(rng: np.random.Generator, mean: Any) -> Any:
    return rng.normal(mean[:, None], 1.0, (len(mean), NUM_OBS))


def about_zero(rng: np.random.Generator, size: int) -> Any:
    return rng.normal(0.0, 1.0, (size, NUM_OBS))


MODELS = [
    deepbf.Model("free mean", prior=scaled_prior, simulator=about_mean, hyperparameters={"scale": RANGE}),
    deepbf.Model("zero mean", simulator=about_zero),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--loss", default="cross_entropy")
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    bf = deepbf.fit(MODELS, structure="exchangeable", seconds=options.seconds, seed=options.seed, loss=options.loss,
                    progress=False)  # fmt: skip
    # Half of the data sets have no effect, half one of moderate size: what people who ask the question have.
    rng = np.random.default_rng(TEST_SEED)
    means = np.where(np.arange(NUM_OBSERVED) % 2, rng.normal(0.0, 0.5, NUM_OBSERVED), 0.0)
    rows = []
    for mean in means:
        observed = rng.normal(mean, 1.0, NUM_OBS)
        curve = bf.sensitivity(observed)
        exact = np.array([float(normal_mean_log_bf(observed[None], prior_scale=scale)[0]) for scale in curve.values])
        gap = np.abs(curve.log_bf - exact)
        rows.append({"mean": float(observed.mean()), "largest_log_bf": float(exact.max()), "worst": float(gap.max()),
                     "median": float(np.median(gap)), "at_scale": float(curve.values[gap.argmax()])})  # fmt: skip
        print(f"mean {rows[-1]['mean']:>6.2f}  exact log BF up to {rows[-1]['largest_log_bf']:>6.2f}  worst error "
              f"{rows[-1]['worst']:.3f} at scale {rows[-1]['at_scale']:.2g}, median {rows[-1]['median']:.3f}",
              flush=True)  # fmt: skip
    worst = [row["worst"] for row in rows]
    print(f"worst of all {max(worst):.3f}, within 0.05 everywhere: {sum(w <= 0.05 for w in worst)} of {len(worst)}; "
          f"{bf.record.num_simulations:,} simulations")  # fmt: skip
    if options.out is not None:
        options.out.write_text(
            json.dumps({"loss": options.loss, "seconds": options.seconds, "rows": rows}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
