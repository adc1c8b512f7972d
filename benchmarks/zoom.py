"""One data set, zoomed in on: error and coverage of `deepbf.compare`, beside the global estimator after the same time.

For every study some observed data sets with exact log Bayes factors within log 1e3, from each model in turn, with seeds
fixed in advance. Each answer gets the same budget: three tenths train a global estimator, which the data sets of a
study share (as all their calls would train the same one), and the rest zooms in. Beside it stands a global estimator
that had the whole budget. Raw numbers are appended to benchmarks/results/zoom.jsonl as they come, and what is there
already is not computed again.

Run: python benchmarks/zoom.py                                            all studies, 40 data sets each: many hours
     python benchmarks/zoom.py --studies weapon-sum t-test --datasets 10   some of it
     python benchmarks/zoom.py --seconds 60 --seeds 1 2                    other budgets and seeds
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

import deepbf
from deepbf.estimator.zooming import GLOBAL_SHARE
from deepbf_studies import problems

# What choices were made by, and what only confirms them.
DEVELOPMENT = {"weapon-sum": None, "data-1-i": 128, "t-test": None, "ar-ma": None, "pairs": None}
CONFIRMATION = {
    "weapon-full": None,
    "data-1-ii": 128,
    "data-2": 128,
    "data-3": 128,
    "random-effects": None,
    "covariate": None,
    "five-counts": None,
}
STUDIES: dict[str, int | None] = DEVELOPMENT | CONFIRMATION
INSIDE = math.log(1e3)
OBSERVED_SEED = 77_000_001
# Data sets that are looked through for such as are wanted.
NUM_CANDIDATES = 400
RESULTS = Path(__file__).parent / "results" / "zoom.jsonl"

Line = dict[str, Any]


def observed_data(study: problems.Study, number: int) -> list[tuple[int, Any, float]]:
    """Return observed data sets with their model and exact log Bayes factor, the models' in turn."""
    found: list[list[tuple[int, Any, float]]] = []
    for k, model in enumerate(study.models[:2]):
        data = model.simulate(NUM_CANDIDATES, seed=OBSERVED_SEED + k).data
        exact = exact_log_bf(study, data)
        inside = np.flatnonzero(np.abs(exact) < INSIDE)[: -(-number // 2)]
        found.append([(int(i), one_of(data, i), float(exact[i])) for i in inside])
    taken = [one for pair in zip(*found, strict=False) for one in pair]
    return taken[:number]


def exact_log_bf(study: problems.Study, data: Any) -> np.ndarray:
    """Return exact log Bayes factors of the first model over the second."""
    if study.exact_log_evidence is not None:
        evidence = study.exact_log_evidence(data)
        return evidence[:, 0] - evidence[:, 1]
    return study.exact_log_bf(data)


def one_of(data: Any, index: int) -> Any:
    return {name: array[index] for name, array in data.items()} if isinstance(data, dict) else data[index]


def measure(study: problems.Study, seconds: float, seed: int, number: int, done: set[tuple[Any, ...]]) -> list[Line]:
    """Answer at each data set that is not done, and return the lines."""
    observed = observed_data(study, number)
    todo = [(place, *one) for place, one in enumerate(observed) if (study.name, seconds, seed, place) not in done]
    if not todo:
        return []
    options: dict[str, Any] = {"structure": study.structure, "covariates": study.covariates, "seed": seed}
    whole = deepbf.fit(study.models, seconds=seconds, progress=False, **options)
    begun = deepbf.fit(study.models, seconds=GLOBAL_SHARE * seconds, progress=False, **options)
    lines = []
    for place, index, data, exact in todo:
        told = whole.compare(data, model=0, over=1)
        answer = begun.compare(
            data, model=0, over=1, seconds=(1 - GLOBAL_SHARE) * seconds, seed=1000 * seed + place, progress=False
        )
        line = {
            "study": study.name,
            "seconds": seconds,
            "seed": seed,
            "place": place,
            "index": index,
            "exact": exact,
            "global": told.log_bf,
            "global_interval": told.interval,
            **{key: value for key, value in answer.to_dict().items() if key in KEPT},
            # JSON's infinity, which Python reads.
            "interval": answer.interval,
        }
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")
        lines.append(line)
        low, high = answer.interval or (math.nan, math.nan)
        print(
            f"{study.name} {place}: exact {exact:.2f}, global {told.log_bf:.2f}, zoomed {answer.log_bf:.2f} "
            f"({low:.2f} to {high:.2f}){'' if low <= exact <= high else ' MISSED'}",
            flush=True,
        )
    return lines


KEPT = ("log_bf", "error", "interval", "errors", "zoomed", "bounded", "regions", "warnings", "num_simulations")


def print_table(lines: list[Line]) -> None:
    """Print coverage, median width and mean absolute errors, per study."""
    titles = ("sets", "coverage", "width", "error", "global", "coverage", "warned")
    print(f"{'study':<18} " + " ".join(f"{title:>8}" for title in titles))
    pooled = []
    for name in dict.fromkeys(line["study"] for line in lines):
        own = [line for line in lines if line["study"] == name]
        covered = [line["interval"][0] <= line["exact"] <= line["interval"][1] for line in own]
        globally = [line["global_interval"][0] <= line["exact"] <= line["global_interval"][1] for line in own]
        pooled += covered
        widths = [line["interval"][1] - line["interval"][0] for line in own]
        print(
            f"{name:<18} {len(own):>8} {np.mean(covered):>8.2f} {np.median(widths):>8.2f} "
            f"{np.mean([abs(line['log_bf'] - line['exact']) for line in own]):>8.3f} "
            f"{np.mean([abs(line['global'] - line['exact']) for line in own]):>8.3f} {np.mean(globally):>8.2f} "
            f"{np.mean([bool(line['warnings']) for line in own]):>8.2f}"
        )
    print(f"pooled coverage {np.mean(pooled):.3f} of {len(pooled)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="+", choices=problems.names(), default=list(STUDIES), metavar="NAME")
    parser.add_argument("--datasets", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    options = parser.parse_args()

    def kept() -> list[Line]:
        lines = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
        return [
            line
            for line in lines
            if line["study"] in options.studies
            and line["seconds"] == options.seconds
            and line["seed"] in options.seeds
            and line["place"] < options.datasets
        ]

    for seed in options.seeds:
        for name in options.studies:
            done = {(line["study"], line["seconds"], line["seed"], line["place"]) for line in kept()}
            study = problems.load(name, num_obs=STUDIES.get(name))
            measure(study, options.seconds, seed, options.datasets, done)
    print_table(kept())


if __name__ == "__main__":
    main()
