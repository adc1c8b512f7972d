"""Step: one computation whose result is kept, known by its function and its settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

import xarray as xr

# Digits of the hash that tell settings apart: no two of a million steps share them but once in 10^7 times.
KEY_DIGITS = 16


@dataclass(frozen=True, eq=False)
class Step:
    """One computation, the smallest thing that an interruption can lose.

    Two steps with the same function, settings and inputs are the same step, wherever they were written down: their
    `key` is the same, and their result is computed once.

    Parameters
    ----------
    compute
        A function at the top of its module, ``compute(*results of the inputs, **settings)``. All randomness comes from
        seeds among the settings.
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
        """The function's name with its module, without the package."""
        module = self.compute.__module__.removeprefix("deepbf_studies.paper.")
        return f"{module}.{self.compute.__qualname__}"

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
    """Return the steps and all their inputs, each once, inputs first."""
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
