"""How long a reproduction takes: the seconds that its steps were kept with, added up.

Every worker of `deepbf reproduce` keeps to cores of its own, so a step takes about as long whether the command ran
through or was interrupted and went on. From the steps' times and order follows when so many workers would be done.
A step that is not computed yet counts as those that differ from it in their seed alone. Drawing, a few seconds a
target, comes on top.

Run: deepbf reproduce all --scale standard --workers 2    hours; interrupt it at any time, it goes on where it was
     python benchmarks/reproduction_time.py               seconds; reads reproduction/cache
     python benchmarks/reproduction_time.py --out benchmarks/results/reproduction-time.json
"""

import argparse
import heapq
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from deepbf_studies import paper
from deepbf_studies.paper import Cache, Step
from deepbf_studies.paper.running import CACHE_FOLDER
from deepbf_studies.paper.step import in_order


class Row(NamedTuple):
    """Steps of one kind: how many, and the seconds of all and of the longest."""

    steps: int
    seconds: float
    longest: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", default="standard", choices=("quick", "standard", "paper"))
    parser.add_argument("--kept", type=Path, default=Path("reproduction"), help="folder that was reproduced into")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the times as JSON")
    options = parser.parse_args()
    steps = all_steps(options.scale)
    cache = Cache(options.kept / CACHE_FOLDER)
    seconds = seconds_of(steps, cache)
    rows = rows_of(steps, seconds)
    total, finished = sum(seconds.values()), finish_time(steps, seconds, options.workers)
    print(f"{'':<46}{'steps':>7}{'minutes':>9}{'longest, s':>12}")
    for name, row in sorted(rows.items(), key=lambda item: -item[1].seconds):
        print(f"{name:<46}{row.steps:>7}{row.seconds / 60:>9.1f}{row.longest:>12.0f}")
    num_missing = sum(step not in cache for step in steps)
    print(f"\n{len(steps)} steps, {num_missing} of them not computed: they count as those with other seeds.")
    print(f"All steps one after the other: {total / 3600:.2f} hours. On {options.workers} workers: "
          f"{finished / 3600:.2f} hours.")  # fmt: skip
    if options.out is not None:
        found = {
            "scale": options.scale,
            "steps": len(steps),
            "steps_not_computed": num_missing,
            "hours_one_after_the_other": round(total / 3600, 3),
            "workers": options.workers,
            "hours_on_workers": round(finished / 3600, 3),
            "kinds": {name: row._asdict() for name, row in sorted(rows.items())},
        }
        options.out.write_text(json.dumps(found, indent=2) + "\n")


def all_steps(scale: str) -> list[Step]:
    """Return the steps of all targets in the order of the command: target by target, inputs first, each once."""
    plans = (target.plan(scale) for target in paper.targets())
    return list({step.key: step for plan in plans for step in in_order(plan.values())}.values())


def seconds_of(steps: list[Step], cache: Cache) -> dict[str, float]:
    """Return how long each step took, by its key; one that is not computed, as others of its kind on average."""
    computed = {step.key: float(cache.read(step).attrs["seconds"]) for step in steps if step in cache}
    alike: dict[str, list[float]] = defaultdict(list)
    for step in steps:
        if step.key in computed:
            alike[but_for_the_seed(step)].append(computed[step.key])
    alone = [step for step in steps if but_for_the_seed(step) not in alike]
    if alone:
        raise SystemExit(
            f"{len(alone)} of {len(steps)} steps are like none that is kept in {cache.folder}, the first of them: "
            f"{alone[0]}. Run deepbf reproduce all first, at this scale; what is kept is not computed again."
        )
    return {step.key: computed.get(step.key, fmean(alike[but_for_the_seed(step)])) for step in steps}


def but_for_the_seed(step: Step) -> str:
    """Return what steps have in common that do the same with different random numbers."""
    settings = {name: value for name, value in step.settings.items() if name != "seed"}
    return json.dumps([step.function, settings], sort_keys=True)


def rows_of(steps: list[Step], seconds: dict[str, float]) -> dict[str, Row]:
    """Return the times by what was computed and by which method."""
    kinds: dict[str, list[float]] = defaultdict(list)
    for step in steps:
        module, function = step.function.replace("_", " ").rsplit(".", 1)
        kinds[", ".join(filter(None, [module, function, step.settings.get("method")]))].append(seconds[step.key])
    return {name: Row(len(times), round(sum(times), 1), round(max(times), 1)) for name, times in kinds.items()}


def finish_time(steps: list[Step], seconds: dict[str, float], workers: int) -> float:
    """Return when the last step is done if each worker, once free, takes the first one whose inputs are there."""
    waiting = {step.key: step for step in steps}
    running: list[tuple[float, str]] = []
    now = 0.0
    while waiting or running:
        under_way = waiting.keys() | {key for _, key in running}
        ready = (key for key, step in waiting.items() if not any(source.key in under_way for source in step.inputs))
        # Nothing more is ready while all that is left waits for what is running.
        following = next(ready, None) if len(running) < workers else None
        if following is None:
            now, _ = heapq.heappop(running)
        else:
            del waiting[following]
            heapq.heappush(running, (now + seconds[following], following))
    return now


if __name__ == "__main__":
    main()
