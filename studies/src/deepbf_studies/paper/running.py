"""All figures and tables by name, and `reproduce`: compute the steps that are missing, keep each at once, then draw."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from itertools import islice
from pathlib import Path

import jax
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from deepbf import _checks
from deepbf.estimator import StoppedEarlyWarning
from deepbf_studies.paper import (
    consistency_decisions,
    consistency_simulations,
    criticism,
    heat_maps,
    influenza_drawing,
    large_samples,
    repeated_estimates,
    size_figures,
    variant_maps,
    weapon_drawings,
)
from deepbf_studies.paper.step import Cache, Step, in_order
from deepbf_studies.paper.target import SCALES, Drawing, Plan, Results, Target

_PARTS = (
    heat_maps,
    variant_maps,
    repeated_estimates,
    size_figures,
    large_samples,
    criticism,
    weapon_drawings,
    consistency_simulations,
    consistency_decisions,
    influenza_drawing,
)


def _place(target: Target) -> tuple[int, ...]:
    """Return where a target stands: main figures, tables, the supplement's, then what the paper lacks."""
    found = re.fullmatch(r"(figure|table)-(s?)(\d+)", target.name)
    if found is None:
        return (3, 0)
    kind, supplement, number = found.groups()
    return (2 if supplement else kind == "table", int(number))


# Sorting keeps the order of what the paper lacks.
_TARGETS: tuple[Target, ...] = tuple(sorted((one for part in _PARTS for one in part.TARGETS), key=_place))

CACHE_FOLDER = "cache"
COMPILED_FOLDER = "compiled"
# Steps handed to an executor at a time, unless told otherwise: more than most have workers, but not all, for steps
# that wait for results of others are to come before those of later targets.
MOST_SUBMITTED = 32


def targets() -> tuple[Target, ...]:
    """Return all targets: figures and tables in the paper's order, then what it does not have.

    Examples
    --------
    >>> [target.name for target in targets()][:2]
    ['figure-1', 'figure-2']
    """
    return _TARGETS


def names() -> tuple[str, ...]:
    """Return the names that `find_target` and `reproduce` know, in the order of `targets`.

    Examples
    --------
    >>> "table-1" in names()
    True
    """
    return tuple(one.name for one in _TARGETS)


def find_target(name: str) -> Target:
    """Return the target called `name`; `ValueError` says which names are near one that is unknown.

    Examples
    --------
    >>> find_target("figure-s24").paper
    'Figure S24'
    """
    _checks.check_choice("target", name, names())
    return next(one for one in _TARGETS if one.name == name)


def reproduce(
    names: Sequence[str],
    *,
    scale: str = "quick",
    out: str | os.PathLike[str] = "reproduction",
    observed: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    num_submitted: int = MOST_SUBMITTED,
    progress: bool = True,
    on_drawn: Callable[[Target, Drawing, list[Path]], None] | None = None,
) -> dict[str, Drawing]:
    """Return the named figures and tables, computed where they are not kept already, and write them into a folder.

    Every step is kept on disk as soon as it is done, in the folder `cache` inside `out`, under its settings: what is
    interrupted goes on where it stopped, and what several targets share is computed once.

    Parameters
    ----------
    names
        Targets, as `deepbf_studies.paper.names` has them.
    scale
        "quick" (minutes for everything), "standard" (hours) or "paper" (its own settings, days).
    out
        A folder: drawings go into a folder of the scale's name inside it.
    observed
        A file with observed data, for targets that take them.
    executor
        Runs steps side by side; by default one after the other, here.
    num_submitted
        Steps that the executor has at a time: as many as it has workers, or more.
    progress
        Whether to show which steps run.
    on_drawn
        Called after each target, with its drawing and the files written.
    """
    _checks.check_choice("scale", scale, SCALES)
    num_submitted = _checks.check_count("num_submitted", num_submitted)
    chosen = [find_target(name) for name in names]
    plans = {one.name: plan_of(one, scale, observed) for one in chosen}
    folder = Path(out)
    cache = Cache(folder / CACHE_FOLDER)
    drawings = {}
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        disable=not progress,
        transient=True,
    ) as bar:
        for name in _computed(plans, cache, executor, num_submitted, bar):
            one = find_target(name)
            drawing = one.draw(results_of(plans[name], cache))
            files = drawing.write(folder / scale, name)
            drawings[name] = drawing
            if on_drawn is not None:
                on_drawn(one, drawing, files)
    return drawings


def plan_of(wanted: Target, scale: str, observed: str | os.PathLike[str] | None) -> Plan:
    """Return the steps of a target at a scale.

    Given a file of observed data, those of a target that takes them; `ValueError` if it takes none.
    """
    if observed is None:
        return wanted.plan(scale)
    if wanted.read is None:
        raise ValueError(f"observed data were given, but {wanted.name} takes none. Leave them out.")
    return wanted.plan(scale, wanted.read(Path(observed)))


def results_of(plan: Plan, cache: Cache) -> Results:
    """Return the results of a plan under its labels, as a target draws them.

    What is not kept is computed first, here, one step after the other, and kept.
    """
    for step in _missing_steps(plan, cache):
        run(step, cache)
    return {label: cache.read(step) for label, step in plan.items()}


def _missing_steps(plan: Plan, cache: Cache) -> list[Step]:
    """Return the steps of a plan that are not kept, inputs first."""
    return [step for step in in_order(plan.values()) if step not in cache]


def _computed(
    plans: Mapping[str, Plan], cache: Cache, executor: Executor | None, num_submitted: int, bar: Progress
) -> Iterator[str]:
    """Compute and keep what plans lack; yield each plan's name, in their order, as soon as nothing of it is missing.

    Steps of later plans run while one is drawn, and while the last steps of one are waited for.
    """
    missing = {name: {step.key: step for step in _missing_steps(plan, cache)} for name, plan in plans.items()}
    # What several plans lack stands where the first of them has it.
    steps = {key: step for by_key in missing.values() for key, step in by_key.items()}
    task = bar.add_task("", total=len(steps))
    done: set[str] = set()
    if executor is None:
        finished = _run_here(steps.values(), cache, lambda step: bar.update(task, description=str(step)))
    else:
        finished = _run_side_by_side(steps.values(), cache, executor, num_submitted)
    for name, by_key in missing.items():
        bar.update(task, description=name)
        while not done.issuperset(by_key):
            done.add(next(finished).key)
            bar.advance(task)
        yield name


def _run_here(steps: Iterable[Step], cache: Cache, tell: Callable[[Step], None]) -> Iterator[Step]:
    """Compute steps, which come inputs first, one after the other, telling each before; yield those done."""
    for step in steps:
        tell(step)
        run(step, cache)
        yield step


def _run_side_by_side(steps: Iterable[Step], cache: Cache, executor: Executor, num_submitted: int) -> Iterator[Step]:
    """Compute steps on an executor, the first ones first, each once its inputs are kept; yield those done."""
    waiting = {step.key: step for step in steps}
    running: dict[Future[None], Step] = {}
    try:
        while waiting or running:
            under_way = waiting.keys() | {step.key for step in running.values()}
            ready = (step for step in waiting.values() if not any(source.key in under_way for source in step.inputs))
            for step in list(islice(ready, num_submitted - len(running))):
                running[executor.submit(run, step, cache)] = waiting.pop(step.key)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                step = running.pop(future)
                future.result()
                yield step
    finally:
        for future in running:
            future.cancel()


def _keep_compiled(folder: Path) -> None:
    """Let JAX keep what it compiles: repetitions of a fit run the same programs, which may take longer to build.

    A folder that the user has named already, by JAX's own settings, is left as it is.
    """
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def run(step: Step, cache: Cache) -> None:
    """Compute and keep one step, from the kept results of its inputs.

    What an interrupted fit has so far is not its result: `KeyboardInterrupt`, and nothing is kept.
    """
    _keep_compiled(cache.folder / COMPILED_FOLDER)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StoppedEarlyWarning)
        try:
            cache.compute(step)
        except StoppedEarlyWarning as stopped:
            raise KeyboardInterrupt from stopped
