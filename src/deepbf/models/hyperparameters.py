"""Hyperparameters: numbers that a prior depends on, drawn over a range so that answers can be read at any of them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The smallest and the largest value, by name.
Ranges = dict[str, tuple[float, float]]
# Set apart from all that a simulation spawns: the values of one data set come from its seed and their name alone.
KEY = 2**31 - 3
# Values drawn from so much wider a range go to its nearer end: a network learns least there, with data on one side
# alone. Of the error at the ends of the benchmark's curves, more than half went away (benchmarks/sensitivity.py).
BEYOND_EACH_END = 0.1


def check_ranges(argument: str, hyperparameters: object) -> Ranges:
    """Return the ranges by name, in order of the alphabet."""
    if not isinstance(hyperparameters, Mapping) or not hyperparameters:
        raise TypeError(
            f"{argument} must be a dict of ranges by name, such as {{'scale': (0.1, 10)}}; received "
            f"{hyperparameters!r}."
        )
    ranges = {}
    for name, ends in hyperparameters.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise TypeError(
                f"{argument} must be named as arguments of the prior are; received {name!r}. Pass a name like 'scale'."
            )
        try:
            low, high = (float(end) for end in ends)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{argument}[{name!r}] must be a range (low, high); received {ends!r}.") from error
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(
                f"{argument}[{name!r}] must run from a smaller to a larger finite number; received {ends!r}."
            )
        ranges[name] = (low, high)
    return dict(sorted(ranges.items()))


def draw_values(ranges: Ranges, size: int, seed: np.random.SeedSequence) -> dict[str, NDArray[np.float64]]:
    """Return a value of each hyperparameter for each data set: evenly over the range, on a log scale if it is positive.

    Each end is drawn about once in twelve times. Values depend on the seed and on the name, not on what other
    hyperparameters there are.
    """
    return {name: _draw(name, ends, size, seed) for name, ends in ranges.items()}


def _draw(name: str, ends: tuple[float, float], size: int, seed: np.random.SeedSequence) -> NDArray[np.float64]:
    own = np.random.SeedSequence(
        seed.entropy, spawn_key=(*seed.spawn_key, KEY, zlib.crc32(name.encode())), pool_size=seed.pool_size
    )
    low, high = (scaled(ends, end) for end in ends)
    share = np.random.default_rng(own).uniform(-BEYOND_EACH_END, 1.0 + BEYOND_EACH_END, size)
    values = np.clip(low + (high - low) * share, low, high)
    return np.clip(np.exp(values), *ends) if ends[0] > 0 else values


def scaled(ends: tuple[float, float], value: Any) -> Any:
    """Return a value, or many, on the scale that it is drawn evenly on."""
    return np.log(value) if ends[0] > 0 else np.asarray(value, np.float64)


def as_columns(ranges: Ranges, values: Mapping[str, Any], size: int) -> NDArray[np.float64]:
    """Return (size, hyperparameters) for a network to read: a value for all, or one for each data set."""
    return np.stack([np.broadcast_to(scaled(ends, values[name]), size) for name, ends in ranges.items()], axis=1)


def check_values(argument: str, ranges: Ranges, values: Mapping[str, Any]) -> dict[str, float]:
    """Return one value of every hyperparameter, each within its range."""
    if sorted(values) != sorted(ranges):
        raise ValueError(
            f"{argument} must give every hyperparameter a value: {describe(ranges)}; received "
            f"{', '.join(map(str, values)) or 'none'}."
        )
    found = {}
    for name, (low, high) in ranges.items():
        try:
            value = float(values[name])
        except (TypeError, ValueError) as error:
            raise TypeError(f"{argument}: {name} must be one number; received {values[name]!r}.") from error
        if not low <= value <= high:
            raise ValueError(
                f"{argument}: {name} must be within the trained range, {low:g} to {high:g}; received {value:g}. "
                "Fit again with a range that includes it."
            )
        found[name] = value
    return found


def describe(ranges: Ranges) -> str:
    """Return names and ranges for a message."""
    return ", ".join(f"{name} from {low:g} to {high:g}" for name, (low, high) in ranges.items())


@dataclass(frozen=True)
class FixedPrior:
    """A prior with its hyperparameters fixed; it pickles if the prior does."""

    prior: Callable[..., Any]
    values: Mapping[str, float]

    def __call__(self, rng: np.random.Generator, size: int) -> Any:
        """Return draws of the prior at the fixed values."""
        return self.prior(rng, size, **{name: np.full(size, value) for name, value in self.values.items()})
