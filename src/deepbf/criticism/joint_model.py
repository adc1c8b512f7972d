"""A model whose simulations carry their own parameters: what a posterior sampler is trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf._mixed import DATA
from deepbf.models import Model
from deepbf.models.model import Params
from deepbf.models.transform import Unconstrained
from deepbf.networks import Structure

# What the parameters are called beside the arrays of a data set.
PARAMETERS = "parameters"


@dataclass(frozen=True)
class CheckedPrior:
    """A prior that says which parameter is not where the model's transform has it."""

    prior: Callable[..., Any]
    unconstrained: Unconstrained
    name: str

    def __call__(self, rng: np.random.Generator, size: int) -> Any:
        """Return the prior's draws."""
        params = self.prior(rng, size)
        check_continuous(self.name, params)
        if any(np.shape(array)[:1] != (size,) for array in _named(params).values()):
            # The model has a message for this.
            return params
        flat = self.unconstrained.flatten(params)
        wrong = ~np.isfinite(flat) | (flat < self.unconstrained.low) | (flat > self.unconstrained.high)
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            low, high = self.unconstrained.low[column], self.unconstrained.high[column]
            raise ValueError(
                f"it drew {flat[row, column]} for {coordinate_name(self.unconstrained, column)}, which the model's "
                f"transform keeps between {low:g} and {high:g}; correct the prior or the transform"
            )
        return params


@dataclass(frozen=True)
class JointSimulator:
    """A simulator that returns, beside the data, the parameters that it was given, flat and unconstrained."""

    simulator: Callable[..., Any]
    unconstrained: Unconstrained

    def __call__(self, rng: np.random.Generator, params: Any, *num_obs: int) -> dict[str, Any]:
        """Return the arrays of the data sets by name, with the parameters among them."""
        # Before the simulator, which may change its arguments.
        real = to_real(self.unconstrained, params)
        drawn = self.simulator(rng, params, *num_obs)
        arrays = dict(drawn) if isinstance(drawn, Mapping) else {DATA: drawn}
        return {**arrays, PARAMETERS: real}


def with_parameters(model: Model, unconstrained: Unconstrained) -> Model:
    """Return the model with its parameters among its data; the same seed draws the same as the model itself."""
    return replace(
        model,
        prior=CheckedPrior(model.prior, unconstrained, model.name) if model.prior is not None else None,
        simulator=JointSimulator(model.simulator, unconstrained),
    )


def beside_its_parameters(structure: Structure) -> dict[str, str]:
    """Return the structure of data that come with their parameters."""
    arrays = {DATA: structure} if isinstance(structure, str) else structure
    if PARAMETERS in arrays:
        raise ValueError(
            f"structure may not name an array {PARAMETERS!r}: the model's parameters have that name. Rename the array."
        )
    return dict(sorted({**arrays, PARAMETERS: "vector"}.items()))


def check_continuous(name: str, params: Params) -> None:
    """Raise if parameters are not real numbers: neither a flow nor a GAN draws from a list of values."""
    for parameter, array in _named(params).items():
        kind = np.asarray(array).dtype.kind
        if kind != "f":
            which = "the parameters" if parameter is None else f"parameter {parameter!r}"
            raise TypeError(
                f"posterior samplers need parameters that are real numbers; the prior of model {name!r} draws {which} "
                f"of dtype {np.asarray(array).dtype}. Make it continuous, or sum it out inside the simulator: draw it "
                "there, so that it is part of the data's noise."
            )


def to_real(unconstrained: Unconstrained, params: Params) -> NDArray[np.float64]:
    """Return parameters as flat unconstrained vectors, finite throughout; a draw on a bound is moved just off it."""
    return unconstrained.to_real(inside(unconstrained, unconstrained.flatten(params)))


def inside(unconstrained: Unconstrained, flat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return flat parameters within their open intervals, at most the last digit from a bound."""
    low, high = unconstrained.low, unconstrained.high
    return np.clip(flat, np.nextafter(low, high), np.nextafter(high, low))


def coordinate_name(unconstrained: Unconstrained, column: int) -> str:
    """Return what messages call a flat coordinate."""
    if unconstrained.names is None:
        return "its parameter" if unconstrained.num_coordinates == 1 else f"column {column} of its parameters"
    ends = np.cumsum([int(np.prod(shape)) for shape in unconstrained.shapes])
    return f"parameter {unconstrained.names[int(np.searchsorted(ends, column, side='right'))]!r}"


def _named(params: Params) -> dict[Any, Any]:
    return dict(params) if isinstance(params, Mapping) else {None: params}
