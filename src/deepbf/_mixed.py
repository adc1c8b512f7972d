"""Mixed data, a dict of arrays: packed into one row of numbers a data set, and taken apart again.

Only the edges know of dicts. Simulation, training and files carry rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
# Where models have hyperparameters, data that are one array travel under this name, beside them.
DATA = "data"
HYPERPARAMETERS = "hyperparameters"


@dataclass(frozen=True)
class Part:
    """One array of the dict: its name, its shape in one data set, and whether axis 0 runs over `num_obs`.

    Where it does, the shape is that of the most observations.
    """

    name: str
    shape: Shape
    grows: bool = False

    @property
    def width(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class MixedForm:
    """The arrays of a data set, in order, as columns of one row."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, data: Mapping[str, NDArray[Any]], fewest: Mapping[str, NDArray[Any]] | None = None) -> MixedForm:
        """Return the form of simulated data; with a range of `num_obs`, of those with the most and the fewest."""
        shapes = shapes_of(data)
        smallest = shapes if fewest is None else shapes_of(fewest)
        return cls(tuple(Part(name, shape, grows=smallest.get(name) != shape) for name, shape in shapes.items()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts)

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of each array in one data set."""
        return {part.name: part.shape for part in self.parts}

    @cached_property
    def width(self) -> int:
        """Columns of a packed row."""
        return sum(part.width for part in self.parts)

    @cached_property
    def columns(self) -> dict[str, slice]:
        """Which columns of a packed row each array takes."""
        ends = np.cumsum([part.width for part in self.parts]).tolist()
        return {part.name: slice(end - part.width, end) for part, end in zip(self.parts, ends, strict=True)}

    def pack(self, data: Mapping[str, NDArray[Any]], num_obs: int | None = None) -> NDArray[np.float64]:
        """Return (data sets, width); arrays that grow end in nan beyond `num_obs` observations.

        Raises ValueError if the data have other arrays or shapes than the form.
        """
        wanted = {part.name: _at(part, num_obs) for part in self.parts}
        if shapes_of(data) != wanted:
            raise ValueError(f"{describe(shapes_of(data))} instead of {describe(wanted)}")
        size = len(data[self.parts[0].name])
        packed = np.full((size, self.width), np.nan)
        for part, columns in zip(self.parts, self.columns.values(), strict=True):
            values = np.asarray(data[part.name], np.float64).reshape(size, -1)
            packed[:, columns.start : columns.start + values.shape[1]] = values
        return packed

    def unpack(self, packed: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, views of the packed ones."""
        return {
            part.name: packed[:, columns].reshape(len(packed), *part.shape)
            for part, columns in zip(self.parts, self.columns.values(), strict=True)
        }


def shapes_of(data: Mapping[str, NDArray[Any]]) -> dict[str, Shape]:
    """Return the shape of one data set's arrays, by name in order of the alphabet."""
    return {name: np.shape(data[name])[1:] for name in sorted(data)}


def describe(shapes: Mapping[str, Shape]) -> str:
    """Return names and shapes for a message."""
    return ", ".join(f"{name!r} of shape {shape}" for name, shape in shapes.items())


def _at(part: Part, num_obs: int | None) -> Shape:
    return part.shape if num_obs is None or not part.grows else (num_obs, *part.shape[1:])
