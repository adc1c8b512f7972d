"""Step: one computation, known by its function and its settings; Cache: the results of steps, kept on disk.

Results of hours of computation must outlive changes of the code that change no result. So a step's key holds a name
that its function is given once, by `step_function`, and not where the function stands: functions may be moved and
renamed, and kept results still count.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from deepbf._files import write_whole
from deepbf._version import __version__

Compute = TypeVar("Compute", bound=Callable[..., xr.Dataset])

# Digits of the hash that tell settings apart: no two of a million steps share them but once in 10^7 times.
KEY_DIGITS = 16

_NAMES: dict[Callable[..., xr.Dataset], str] = {}


def step_function(name: str) -> Callable[[Compute], Compute]:
    """Return a decorator that gives a function the name under which the results of its steps are kept.

    The name is part of every key, so it never changes: not when the function is renamed, nor when it moves to another
    module. Where the function changes what it computes, raise the `revision` of its steps instead. A name belongs to
    one function; `ValueError` if another one has it.

    Examples
    --------
    >>> @step_function("a documentation.squares")
    ... def squares(*, upto: int) -> xr.Dataset:
    ...     return xr.Dataset({"square": ("number", np.arange(upto) ** 2)})
    >>> Step(squares, {"upto": 3}).function
    'a documentation.squares'
    """

    def register(compute: Compute) -> Compute:
        for other, taken in _NAMES.items():
            # A module that is loaded again defines the same function again.
            same = (other.__module__, other.__qualname__) == (compute.__module__, compute.__qualname__)
            if taken == name and not same:
                raise ValueError(
                    f"the name of a step function must be its own; {other.__module__}.{other.__qualname__} has "
                    f"{name!r} already. Choose another, and never change it."
                )
        _NAMES[compute] = name
        return compute

    return register


@dataclass(frozen=True, eq=False)
class Step:
    """One computation, the smallest thing that an interruption can lose.

    Two steps with the same function, settings and inputs are the same step, wherever they were written down: their
    `key` is the same, and their result is computed once.

    Parameters
    ----------
    compute
        A function at the top of its module, decorated by `step_function`, ``compute(*results of the inputs,
        **settings)``. All randomness comes from seeds among the settings.
    settings
        Numbers, words, None, and lists or dicts of those: what JSON can hold.
    inputs
        Steps whose results it takes.
    revision
        Raised when the function changes what it computes from the same settings: results kept from before no longer
        count.
    """

    compute: Callable[..., xr.Dataset]
    settings: Mapping[str, Any]
    inputs: tuple[Step, ...] = ()
    revision: int = 1

    @property
    def function(self) -> str:
        """The name that the function was given by `step_function`."""
        name = _NAMES.get(self.compute)
        if name is None:
            raise TypeError(
                f"{self.compute.__qualname__} has no name to keep its results under. Decorate it with step_function."
            )
        return name

    @cached_property
    def identity(self) -> str:
        """What makes the step the one it is, as JSON."""
        parts = {
            "function": self.function,
            "revision": self.revision,
            "settings": self.settings,
            "inputs": [step.key for step in self.inputs],
        }
        try:
            return json.dumps(parts, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TypeError(f"settings of a step must be what JSON can hold; {self.function} has {error}.") from error

    @cached_property
    def key(self) -> str:
        """The name of its result on disk."""
        digest = hashlib.sha256(self.identity.encode()).hexdigest()[:KEY_DIGITS]
        return f"{self.function}-{digest}"

    def __str__(self) -> str:
        told = ", ".join(f"{name} {_brief(value)}" for name, value in _flat(self.settings) if value is not None)
        return f"{self.compute.__name__.replace('_', ' ')} ({told})"


def in_order(steps: Iterable[Step]) -> list[Step]:
    """Return the steps and all their inputs, each once, inputs first.

    Steps with the same key are the same step, wherever they were written down.
    """
    found: dict[str, Step] = {}
    graph: dict[str, list[str]] = {}
    for step in _with_inputs(steps):
        found[step.key] = step
        graph[step.key] = [source.key for source in step.inputs]
    return [found[key] for key in TopologicalSorter(graph).static_order()]


def _with_inputs(steps: Iterable[Step]) -> Iterator[Step]:
    for step in steps:
        yield from _with_inputs(step.inputs)
        yield step


def _flat(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield settings by name, those inside other settings too."""
    for name, value in settings.items():
        yield from _flat(value) if isinstance(value, Mapping) else [(name.replace("_", " "), value)]


def _brief(value: Any) -> str:
    written = f"{value:g}" if isinstance(value, float) else str(value)
    return written if len(written) <= 24 else f"{written[:20]} ..."


class Cache:
    """A folder of results. What is in it is never computed again; deleting any file of it is safe.

    Parameters
    ----------
    folder
        Where results are kept; made when the first one is.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, step: Step) -> Path:
        """Return the file that holds, or would hold, the result of a step."""
        return self.folder / f"{step.key}.nc"

    def __contains__(self, step: Step) -> bool:
        return self.path(step).is_file()

    def read(self, step: Step) -> xr.Dataset:
        """Return the kept result of a step."""
        try:
            with xr.open_dataset(self.path(step), engine="scipy") as opened:
                return opened.load()
        except (ValueError, TypeError, OSError) as error:
            raise ValueError(
                f"{self.path(step)} cannot be read ({error}). Delete it, and its step is computed again."
            ) from error

    def compute(self, step: Step) -> None:
        """Compute a step from the kept results of its inputs, and keep its result, with how long it took."""
        self.folder.mkdir(parents=True, exist_ok=True)
        inputs = [self.read(source) for source in step.inputs]
        started = time.perf_counter()
        result = step.compute(*inputs, **step.settings)
        result.attrs.update(
            step=step.identity, seconds=np.round(time.perf_counter() - started, 3), deepbf_version=__version__
        )
        # Version 3 of netCDF needs nothing but SciPy, and every reader of netCDF knows it.
        write_whole(self.path(step), bytes(result.to_netcdf(engine="scipy")))
