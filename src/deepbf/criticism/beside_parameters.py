"""Data beside the parameters that made them: what a posterior sampler is trained on.

A model is wrapped so that its simulations carry their own parameters, flat and unconstrained, as one more array of
mixed data. Training then is that of `deepbf.fit`; observed data come without parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.criticism.posterior_network import ParameterScale
from deepbf.layout.data_layout import DATA, DataLayout
from deepbf.layout.structure import Shape, Structure
from deepbf.models.model import Params
from deepbf.models.transform import Unconstrained
from deepbf.networks.base import AbstractPreparation, InputLayout

# What the parameters are called beside the arrays of a data set.
PARAMETERS = "parameters"


def layout_of_data(beside: DataLayout, structure: Structure | Mapping[str, Structure]) -> DataLayout:
    """Return the layout of the data alone, given that of data beside their parameters.

    `structure` is what the user passed: one structure for data that are one array, or one for each of several by name.
    """
    return beside.without(PARAMETERS, alone=isinstance(structure, Structure))


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
            if self.unconstrained.names is not None:
                ends = np.cumsum([int(np.prod(shape)) for shape in self.unconstrained.shapes])
                which = f"parameter {self.unconstrained.names[int(np.searchsorted(ends, column, side='right'))]!r}"
            else:
                alone = self.unconstrained.num_coordinates == 1
                which = "its parameter" if alone else f"column {column} of its parameters"
            raise ValueError(
                f"it drew {flat[row, column]} for {which}, which the model's transform keeps between {low:g} and "
                f"{high:g}; correct the prior or the transform"
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


def _named(params: Params) -> dict[Any, Any]:
    return dict(params) if isinstance(params, Mapping) else {None: params}


class BesideParameters(AbstractPreparation):
    """Prepared data followed by the parameters that made them; takes packed rows of both."""

    data: AbstractPreparation
    scale: ParameterScale
    # Where the parameters stand in a row, and the shape of a data set without them.
    first: int = eqx.field(static=True)
    last: int = eqx.field(static=True)
    data_shape: Shape = eqx.field(static=True)

    def __call__(self, rows: jax.Array) -> jax.Array:
        """Return prepared data with the parameters on the networks' scale behind them, shape (batch, width)."""
        data = jnp.concatenate([rows[:, : self.first], rows[:, self.last :]], axis=1)
        prepared = self.data(data.reshape(len(rows), *self.data_shape))
        return jnp.concatenate([prepared, self.scale(rows[:, self.first : self.last])], axis=1)

    def layout(self, data_shape: Shape) -> InputLayout:
        """Return the data's layout, with the parameters where observations would stand."""
        del data_shape
        inner = self.data.layout(self.data_shape)
        if inner.num_obs:
            raise ValueError("posterior samplers read summaries, and this preparation leaves observations as they are")
        num_params = self.last - self.first
        return InputLayout(inner.num_linear, inner.num_summary, 1, num_params, knows_size=inner.knows_size)
