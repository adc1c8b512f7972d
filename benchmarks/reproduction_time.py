"""How long a whole reproduction takes, told from a small part of it.

Of steps that differ in their seed alone one is run, and of sample sizes every third; what trains is trained for two
small numbers of steps, and the line through their times is followed up. Sizes in between count as the next larger one,
so the sum errs to the long side. Times are processor time: a worker of `deepbf reproduce` keeps to cores of its own, so
that with one core each this is what it would take on a machine that does nothing else. Drawing is left out.

Run: python benchmarks/reproduction_time.py                    standard, on two workers
     python benchmarks/reproduction_time.py --scale quick
     python benchmarks/reproduction_time.py --out times.json   and write the numbers
"""

import argparse
import json
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from deepbf import reproduction
from deepbf.cli.workers import pool_of
from deepbf.reproduction.catalogue import find_target
from deepbf.reproduction.running import keep_compiled
from deepbf.reproduction.step import Step, in_order

# Settings that a training is shortened by, to this share and to three times that.
LENGTHS = ("num_steps", "num_simulations")
SHORTENED = 1 / 50
FEWEST = {"num_steps": 4, "num_simulations": 4096}
# Of sample sizes, those are run that are at least so many times smaller than the last one.
BETWEEN_SIZES = 8


class Sample(NamedTuple):
    """What a shortened step returned, and what the whole one would take."""

    result: xr.Dataset
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", default="standard", choices=("quick", "standard"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the times as JSON")
    options = parser.parse_args()
    steps = in_order(step for name in reproduction.names() for step in find_target(name).plan(options.scale).values())
    stand_in = representatives(steps)
    sampled = sample_all([step for step in steps if stand_in[step.key] is step], stand_in, options.workers)
    rows = table_of(steps, stand_in, sampled)
    print(f"{'':<34}{'steps':>7}{'run':>6}{'hours':>8}")
    for name, (number, number_run, seconds) in rows.items():
        print(f"{name:<34}{number:>7}{number_run:>6}{seconds / 3600:>8.2f}")
    total = sum(seconds for _, _, seconds in rows.values())
    longest = max(sample.seconds for sample in sampled.values())
    print(f"\nAll steps one after the other: {total / 3600:.2f} hours; on {options.workers} workers "
          f"{total / options.workers / 3600:.2f}. The longest step takes {longest / 60:.0f} minutes.")  # fmt: skip
    if options.out is not None:
        found = {name: dict(zip(("steps", "run", "seconds"), row, strict=True)) for name, row in rows.items()}
        options.out.write_text(json.dumps({"scale": options.scale, "seconds": total, "steps": found}, indent=2) + "\n")


def representatives(steps: list[Step]) -> dict[str, Step]:
    """Return, for the key of every step, the step that is run in its place."""
    families: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        families[family_of(step)].append(step)
    stand_in = {}
    for members in families.values():
        members.sort(key=size_of, reverse=True)
        chosen = members[0]
        for step in members:
            if BETWEEN_SIZES * size_of(step) <= size_of(chosen):
                chosen = step
            stand_in[step.key] = chosen
    return stand_in


def family_of(step: Step) -> str:
    """Return what steps have in common that differ in seed and sample size alone."""
    settings = dict(step.settings)
    for name in ("seed", "num_obs"):
        settings.pop(name, None)
    if "questions" in settings:
        settings["questions"] = {name: value for name, value in settings["questions"].items() if name != "num_obs"}
    return json.dumps([step.function, settings], sort_keys=True)


def size_of(step: Step) -> int:
    """Return the number of observations, or 1 where there is none among the settings."""
    return int(step.settings.get("questions", step.settings).get("num_obs") or 1)


def sample_all(chosen: list[Step], stand_in: dict[str, Step], workers: int) -> dict[str, Sample]:
    """Run the chosen steps, shortened; those with inputs take what stands in for these."""
    sampled: dict[str, Sample] = {}
    with tempfile.TemporaryDirectory() as folder, pool_of(workers) as executor:
        first = [step for step in chosen if not step.inputs]
        arguments = (first, [()] * len(first), [folder] * len(first))
        found = map(sample, *arguments) if executor is None else executor.map(sample, *arguments)
        for number, (step, result) in enumerate(zip(first, found, strict=True), 1):
            sampled[step.key] = result
            print(f"{number} of {len(first)}: {result.seconds:.0f} s, {step}"[:118], flush=True)
        for step in chosen:
            if step.inputs:
                inputs = tuple(sampled[stand_in[source.key].key].result for source in step.inputs)
                sampled[step.key] = sample(step, inputs, folder)
    return sampled


def sample(step: Step, inputs: tuple[xr.Dataset, ...], folder: str) -> Sample:
    """Run one step, shortened if it can be, and return what the whole one would take."""
    keep_compiled(Path(folder))
    length = length_of(step)
    whole = step.settings.get(length) if length else None
    short = 0 if whole is None else max(FEWEST[str(length)], round(SHORTENED * whole))
    if length is None or whole is None or 3 * short >= whole:
        return timed(step, inputs, {})
    # The first run compiles, as every worker does once; the others tell what a step costs.
    first, again, longer = (timed(step, inputs, {length: number}) for number in (short, short, 3 * short))
    each = (longer.seconds - again.seconds) / (2 * short)
    return Sample(first.result, first.seconds + each * (whole - short))


def length_of(step: Step) -> str | None:
    """Return the setting that says how long a step trains, if it does; simulations of ABC are no such thing."""
    if step.settings.get("num_steps") is not None:
        return "num_steps"
    return "num_simulations" if step.function.endswith("consistency_simulations.estimate") else None


def timed(step: Step, inputs: tuple[xr.Dataset, ...], changes: dict[str, Any]) -> Sample:
    """Run a step with some settings changed, and take its processor time."""
    begin = time.process_time()
    result = step.compute(*inputs, **{**step.settings, **changes})
    return Sample(result, time.process_time() - begin)


def table_of(
    steps: list[Step], stand_in: dict[str, Step], sampled: dict[str, Sample]
) -> dict[str, tuple[int, int, float]]:
    """Return, by function and method, how many steps there are, how many were run, and the seconds of all."""
    rows: dict[str, tuple[int, int, float]] = {}
    for step in steps:
        name = " ".join(
            [step.function.replace(".", " ").replace("_", " "), str(step.settings.get("method", ""))]
        ).strip()
        number, number_run, seconds = rows.get(name, (0, 0, 0.0))
        is_run = step.key in sampled
        rows[name] = (number + 1, number_run + is_run, seconds + sampled[stand_in[step.key].key].seconds)
    return rows


if __name__ == "__main__":
    main()
