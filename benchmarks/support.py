"""Support: the level of its tail areas under every model of every study, and their power against strange data.

Run: python benchmarks/support.py                     all studies but those kept out of development, fits of 15 seconds
     python benchmarks/support.py data-2 weapon-sum   some of them
     python benchmarks/support.py --out results.json  and write the numbers
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import deepbf
from deepbf_studies import problems

NUM_TEST = 2000
NUM_STRANGE = 500
NUM_OBS = 128
LEVEL = 0.05
TEST_SEED = 1_000_003
# The paper's outliers: all entries the same.
OUTLIERS = {"data-1-i": 18, "data-1-ii": 18, "data-2": 10.0, "data-3": 2.5}

Strange = Callable[[np.random.Generator, Any], Any]


def moved(by: float) -> Strange:
    return lambda rng, data: data + by


def overdispersed(mean: float, size: float) -> Strange:
    """Counts that vary more than geometric ones of the same mean."""
    return lambda rng, data: rng.negative_binomial(size, size / (size + mean), data.shape)


def widened(by: float) -> Strange:
    return lambda rng, data: by * data


def less_dispersed(mean: float, shape: float) -> Strange:
    return lambda rng, data: rng.gamma(shape, mean / shape, data.shape)


def in_clusters(rng: np.random.Generator, data: Any) -> Any:
    """Return each data set in an order in which neighbours are alike, at a correlation of about 0.7."""
    size, num_obs = data.shape
    hidden = rng.normal(size=(size, num_obs))
    for i in range(1, num_obs):
        hidden[:, i] = 0.7 * hidden[:, i - 1] + np.sqrt(1 - 0.7**2) * hidden[:, i]
    ranks = hidden.argsort(axis=1).argsort(axis=1)
    return np.take_along_axis(np.sort(data, axis=1), ranks, axis=1)


# Shifts of location, of dispersion and of dependence, away from every parameter of either model.
SHIFTS: dict[str, dict[str, Strange]] = {
    "data-1-i": {"location": moved(3), "dispersion": overdispersed(2.0, 0.25), "dependence": in_clusters},
    "data-2": {"location": moved(8.0), "dispersion": widened(2.5), "dependence": in_clusters},
    "data-3": {"location": moved(0.7), "dispersion": less_dispersed(0.5, 3.0), "dependence": in_clusters},
}


def reject(bf: deepbf.BayesFactor, data: Any, model: int) -> float:
    support = bf.support(data)
    if support is None:
        raise RuntimeError("the estimator gives no support")
    return float((support.tail_area[:, model] <= LEVEL).mean())


def first_rows(data: Any, number: int) -> Any:
    return {name: rows[:number] for name, rows in data.items()} if isinstance(data, dict) else data[:number]


def measure(name: str, seconds: float, seed: int) -> list[dict[str, Any]]:
    toy = name in OUTLIERS
    study = problems.load(name, num_obs=NUM_OBS) if toy else problems.load(name)
    bf = deepbf.fit(study.models, structure=study.structure, seconds=seconds, seed=seed, progress=False)
    rng = np.random.default_rng(TEST_SEED)
    rows: list[dict[str, Any]] = []
    for k, model in enumerate(study.models):
        data = model.simulate(NUM_TEST, seed=TEST_SEED).data
        row: dict[str, Any] = {"study": name, "model": model.name, "level": reject(bf, data, k)}
        if toy:
            row["outlier"] = reject(bf, np.full((1, NUM_OBS), OUTLIERS[name]), k)
        for shift, make in SHIFTS.get(name, {}).items():
            row[shift] = reject(bf, make(rng, first_rows(data, NUM_STRANGE)), k)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", help="names of studies; all that development may use by default")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    results = []
    for name in options.studies or [name for name in problems.names() if name not in problems.KEPT_OUT]:
        for row in measure(name, options.seconds, options.seed):
            results.append(row)
            power = "  ".join(f"{what} {share:.3f}" for what, share in row.items() if isinstance(share, float))
            print(f"{name:<15} {row['model']:<28} {power}", flush=True)
        if options.out is not None:
            options.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
