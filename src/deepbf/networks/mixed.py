"""Mixed data, arrays of several structures: the summaries that suit each, side by side, and one head on all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from deepbf.networks.base import AbstractPreparation, FitPreparation, Head, HeadAlone, InputLayout, Pilot

HEAD_WIDTH = 64
# More than for one array: what one part says often depends on another.
MOST_DIRECTIONS = 32
STRAIGHT_SCALE = 5.0


class MixedSummary(AbstractPreparation):
    """The prepared columns of every part of the data: all linear ones first, then the others.

    Data arrive packed, all parts of a data set in one row. If the number of observations of some part varies, that of
    the first such part is the size of the data set, and its share of the largest stands last.
    """

    parts: tuple[AbstractPreparation, ...]
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    @classmethod
    def fit(
        cls, pilot: Pilot, *, shapes: Sequence[tuple[int, ...]], fit_parts: Sequence[FitPreparation]
    ) -> MixedSummary:
        """Return the summary for packed data like these, given each part's shape and how to prepare it."""
        columns = _columns(shapes)
        parts = [
            fit_part([data[:, column].reshape(len(data), *shape) for data in pilot])
            for fit_part, column, shape in zip(fit_parts, columns, shapes, strict=True)
        ]
        return cls(tuple(parts), tuple(shapes))

    @property
    def _size_part(self) -> int | None:
        """Which part's number of observations is that of the data set, if it varies."""
        knowing = [k for k, layout in enumerate(self._layouts()) if layout.knows_size]
        return knowing[0] if knowing else None

    def __call__(self, data: jax.Array) -> jax.Array:
        prepared = [
            part(data[:, column].reshape(len(data), *shape))
            for part, column, shape in zip(self.parts, _columns(self.shapes), self.shapes, strict=True)
        ]
        num_linear = [layout.num_linear for layout in self._layouts()]
        linear = [rows[:, :number] for rows, number in zip(prepared, num_linear, strict=True)]
        bent = [rows[:, number:] for rows, number in zip(prepared, num_linear, strict=True)]
        size = [] if self._size_part is None else [prepared[self._size_part][:, -1:]]
        return jnp.concatenate([*linear, *bent, *size], axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        if data_shape != (sum(math.prod(shape) for shape in self.shapes),):
            raise ValueError(f"parts of shapes {self.shapes} do not make rows of shape {data_shape}")
        layouts = self._layouts()
        knows_size = self._size_part is not None
        return InputLayout(
            sum(layout.num_linear for layout in layouts),
            sum(layout.num_summary for layout in layouts) + int(knows_size),
            knows_size=knows_size,
        )

    def _layouts(self) -> list[InputLayout]:
        return [part.layout(shape) for part, shape in zip(self.parts, self.shapes, strict=True)]


class MixedHead(HeadAlone):
    """The shared head on the summaries of all parts."""

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        self.head = Head(
            layout,
            layout.num_summary,
            num_models,
            num_directions=min(layout.num_summary, MOST_DIRECTIONS),
            width=HEAD_WIDTH,
            straight_scale=STRAIGHT_SCALE,
            key=key,
        )


def _columns(shapes: Sequence[tuple[int, ...]]) -> list[slice]:
    """Return the columns of a packed row that each part takes."""
    found, start = [], 0
    for shape in shapes:
        found.append(slice(start, start + math.prod(shape)))
        start = found[-1].stop
    return found
