"""Parameters on an unconstrained scale: flat real vectors, and the log Jacobian of the way back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks

# What a user writes, and the interval that it means.
INTERVALS = {"real": (-math.inf, math.inf), "positive": (0.0, math.inf), "unit": (0.0, 1.0)}

Array = Any
"""A NumPy or a JAX array; results are of the same library."""


def check_transform(argument: str, transform: object) -> None:
    """Raise unless `transform` is None, a name, an interval, or a dict or list of these, one per parameter."""
    if isinstance(transform, Mapping):
        for name, entry in transform.items():
            check_transform(f"{argument}[{name!r}]", entry)
    elif isinstance(transform, list):
        for position, entry in enumerate(transform):
            _interval_of(f"{argument}[{position}]", entry)
    elif transform is not None:
        _interval_of(argument, transform)


def _interval_of(argument: str, entry: object) -> tuple[float, float]:
    """Return the open interval that an entry means: 'real', 'positive', 'unit' or (low, high)."""
    if isinstance(entry, tuple):
        if len(entry) != 2 or not all(isinstance(end, int | float) for end in entry) or not entry[0] < entry[1]:
            raise ValueError(f"{argument} must be (low, high) with low < high; received {entry!r}.")
        return float(entry[0]), float(entry[1])
    return INTERVALS[_checks.check_choice(argument, entry, INTERVALS)]


@dataclass(frozen=True)
class Unconstrained:
    """Maps parameters, arrays or dicts of them, to flat real vectors and back.

    Parameters
    ----------
    names
        Keys of a dict of parameters, in order; None for a plain array.
    shapes
        The shape of each parameter, without the leading axis.
    low, high
        The interval of each flat coordinate, open; infinite where there is no bound.
    """

    names: tuple[Any, ...] | None
    shapes: tuple[tuple[int, ...], ...]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def fit(cls, params: object, transform: object) -> Unconstrained:
        """Return the map for parameters laid out like `params`, an array or dict with a leading axis."""
        check_transform("transform", transform)
        if isinstance(params, Mapping):
            names = tuple(params)
            if isinstance(transform, list):
                raise ValueError(
                    f"transform must be one name or a dict for parameters {', '.join(map(str, names))}; received "
                    f"{transform!r}."
                )
            arrays = [np.asarray(params[name]) for name in names]
            if isinstance(transform, Mapping):
                for name in transform:
                    if name not in names:
                        _checks.check_choice("a key of transform", name, map(str, names))
                entries = [transform.get(name) for name in names]
            else:
                entries = [transform] * len(names)
        else:
            names, arrays = None, [np.asarray(params)]
            if isinstance(transform, Mapping):
                raise ValueError(f"transform is a dict, but the parameters are one array; received {transform!r}.")
            entries = [transform]
        shapes = tuple(array.shape[1:] for array in arrays)
        intervals: list[tuple[float, float]] = []
        for entry, shape in zip(entries, shapes, strict=True):
            num_coordinates = math.prod(shape)
            if not isinstance(entry, list):
                intervals += [_interval_of("transform", "real" if entry is None else entry)] * num_coordinates
                continue
            if len(entry) != num_coordinates:
                raise ValueError(
                    f"transform lists {len(entry)} entries for {num_coordinates} parameters; pass one per parameter, "
                    "or a single name for all."
                )
            intervals += [_interval_of(f"transform[{position}]", one) for position, one in enumerate(entry)]
        bounds = np.array(intervals, dtype=np.float64).reshape(-1, 2)
        return cls(names, shapes, bounds[:, 0], bounds[:, 1])

    @property
    def num_coordinates(self) -> int:
        """Length of a flat vector."""
        return len(self.low)

    def flatten(self, params: Any) -> Array:
        """Return parameters as one flat vector each, shape (size, coordinates), on their own scale."""
        arrays = [params] if self.names is None else [params[name] for name in self.names]
        return np.concatenate([np.asarray(a, np.float64).reshape(len(a), -1) for a in arrays], axis=1)

    def unflatten(self, flat: Array) -> Any:
        """Return parameters in the layout that the model's functions take, from shape (size, coordinates)."""
        parts, start = [], 0
        for shape in self.shapes:
            end = start + math.prod(shape)
            parts.append(flat[:, start:end].reshape(flat.shape[0], *shape))
            start = end
        return parts[0] if self.names is None else dict(zip(self.names, parts, strict=True))

    def to_real(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return flat parameters on the unconstrained scale; infinite or nan for those outside their interval."""
        low, high = self.low, self.high
        with np.errstate(divide="ignore", invalid="ignore"):
            above, below = np.log(flat - low), np.log(high - flat)
            bounded_below, bounded_above = np.isfinite(low), np.isfinite(high)
            both = np.where(bounded_below & bounded_above, above - below, np.where(bounded_above, -below, above))
        return np.where(bounded_below | bounded_above, both, flat)

    def to_params(self, real: Array) -> tuple[Array, Array]:
        """Return flat parameters and the log Jacobian, summed over coordinates, from unconstrained vectors."""
        xp = real.__array_namespace__()
        bounded_below, bounded_above = np.isfinite(self.low), np.isfinite(self.high)
        inside, half = bounded_below & bounded_above, bounded_below ^ bounded_above
        low, high = np.where(bounded_below, self.low, 0.0), np.where(bounded_above, self.high, 1.0)
        # Each branch is fed only what it can digest, so that no gradient of a branch not taken is nan.
        log_above = -xp.logaddexp(0.0, -xp.where(inside, real, 0.0))
        log_below = -xp.logaddexp(0.0, xp.where(inside, real, 0.0))
        width = np.where(inside, high - low, 1.0)
        exponent = xp.where(half, xp.where(bounded_above, -real, real), 0.0)
        # From the nearer end, to keep the digits of a parameter close to either.
        middle = xp.where(real < 0, low + width * xp.exp(log_above), high - width * xp.exp(log_below))
        one_sided = xp.where(bounded_above, high - xp.exp(exponent), low + xp.exp(exponent))
        flat = xp.where(inside, middle, xp.where(half, one_sided, real))
        log_jacobian = xp.where(inside, np.log(width) + log_above + log_below, xp.where(half, exponent, 0.0))
        return flat, log_jacobian.sum(axis=-1)
