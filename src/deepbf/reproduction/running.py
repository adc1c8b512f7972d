"""reproduce: compute the steps that are missing, each kept as soon as it is done, then draw."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path

import jax
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from deepbf import _checks
from deepbf.fitting import StoppedEarlyWarning
from deepbf.reproduction.cache import Cache
from deepbf.reproduction.catalogue import find_target
from deepbf.reproduction.step import Step, in_order
from deepbf.reproduction.target import SCALES, Drawing, Plan, Results, Target

CACHE_FOLDER = "cache"
COMPILED_FOLDER = "compiled"


def reproduce(
    names: Sequence[str],
    *,
    scale: str = "quick",
    out: str | os.PathLike[str] = "reproduction",
    observed: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    progress: bool = True,
    on_drawn: Callable[[Target, Drawing, list[Path]], None] | None = None,
) -> dict[str, Drawing]:
    """Return the named figures and tables, computed where they are not kept already, and write them into a folder.

    Every step is kept on disk as soon as it is done, in the folder `cache` inside `out`, under its settings: what is
    interrupted goes on where it stopped, and what several targets share is computed once.

    Parameters
    ----------
    names
        Targets, as `deepbf.reproduction.names` has them.
    scale
        "quick" (minutes for everything), "standard" (hours) or "paper" (its own settings, days).
    out
        A folder: drawings go into a folder of the scale's name inside it.
    observed
        A file with observed data, for targets that take them.
    executor
        Runs steps side by side; by default one after the other, here.
    progress
        Whether to show which steps run.
    on_drawn
        Called after each target, with its drawing and the files written.
    """
    _checks.check_choice("scale", scale, SCALES)
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
        for one in chosen:
            drawing = one.draw(results_of(plans[one.name], cache, executor, bar, one.name))
            files = drawing.write(folder / scale, one.name)
            drawings[one.name] = drawing
            if on_drawn is not None:
                on_drawn(one, drawing, files)
    return drawings


def plan_of(wanted: Target, scale: str, observed: str | os.PathLike[str] | None) -> Plan:
    """Return the steps of a target; of observed data, if they are given and it takes any."""
    if observed is None:
        return wanted.plan(scale)
    if wanted.read is None:
        raise ValueError(f"observed data were given, but {wanted.name} takes none. Leave them out.")
    return wanted.plan(scale, wanted.read(Path(observed)))


def results_of(
    plan: Plan, cache: Cache, executor: Executor | None = None, bar: Progress | None = None, name: str = ""
) -> Results:
    """Return the results of a plan under its labels; those that are not kept are computed first, and kept."""
    missing = [step for step in in_order(plan.values()) if step not in cache]
    run_all(missing, cache, executor, Progress(disable=True) if bar is None else bar, name)
    return {label: cache.read(step) for label, step in plan.items()}


def run_all(steps: Sequence[Step], cache: Cache, executor: Executor | None, bar: Progress, name: str) -> None:
    """Compute and keep all steps, which come inputs first; inputs that are not among them are kept already."""
    task = bar.add_task(name, total=len(steps))
    if executor is None:
        for step in steps:
            bar.update(task, description=f"{name}: {step}")
            run(step, cache)
            bar.advance(task)
    else:
        bar.update(task, description=name)
        for _ in run_side_by_side(steps, cache, executor):
            bar.advance(task)
    bar.remove_task(task)


def run_side_by_side(steps: Iterable[Step], cache: Cache, executor: Executor) -> Iterable[Step]:
    """Compute steps on an executor, each as soon as its inputs are kept; yield those done."""
    waiting = {step.key: step for step in steps}
    running: dict[Future[None], Step] = {}
    try:
        while waiting or running:
            under_way = waiting.keys() | {step.key for step in running.values()}
            for step in [s for s in waiting.values() if not any(source.key in under_way for source in s.inputs)]:
                running[executor.submit(run, step, cache)] = waiting.pop(step.key)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                step = running.pop(future)
                future.result()
                yield step
    finally:
        for future in running:
            future.cancel()


def keep_compiled(folder: Path) -> None:
    """Let JAX keep what it compiles: repetitions of a fit run the same programs, which may take longer to build.

    A folder that the user has named already, by JAX's own settings, is left as it is.
    """
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def run(step: Step, cache: Cache) -> None:
    """Compute and keep one step; what an interrupted fit has so far is not its result."""
    keep_compiled(cache.folder / COMPILED_FOLDER)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StoppedEarlyWarning)
        try:
            cache.compute(step)
        except StoppedEarlyWarning as stopped:
            raise KeyboardInterrupt from stopped
