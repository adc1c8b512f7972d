"""The evaluation toolkit: what it adds to simulating and asking, for 3,000 data sets with their bootstrap.

Run: python benchmarks/toolkit.py
     python benchmarks/toolkit.py --out results.json       and write the numbers
"""

import argparse
import json
import time
from pathlib import Path

import deepbf
from deepbf.evaluation import measure
from deepbf_studies import problems

NUM_DATASETS = 1500
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    study = problems.load("data-1-i")
    bf = deepbf.fit(study.models, structure=study.structure, seconds=20, seed=1, progress=False)
    seconds: dict[str, list[float]] = {"simulate": [], "ask": [], "measure": []}
    for repeat in range(REPEATS):
        begin = time.monotonic()
        data = [model.simulate(NUM_DATASETS, seed=100 + repeat).data for model in study.models]
        simulated = time.monotonic()
        log_bf = [bf.log_bf(part) for part in data]
        asked = time.monotonic()
        exact = [study.exact_log_bf(part) for part in data]
        exact_known = time.monotonic()
        measure(log_bf, exact=exact, names=bf.names)
        end = time.monotonic()
        for name, value in (
            ("simulate", simulated - begin),
            ("ask", asked - simulated),
            ("measure", end - exact_known),
        ):
            seconds[name].append(value)
    result = {f"{name}_seconds": sorted(values)[REPEATS // 2] for name, values in seconds.items()}
    print(f"2 x {NUM_DATASETS} data sets, median of {REPEATS}: "
          + ", ".join(f"{name} {result[f'{name}_seconds']:.2f} s" for name in seconds))  # fmt: skip
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
