"""What posterior samplers read and how they speak: prepared data beside parameters on a common scale."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf._mixed import MixedForm
from deepbf.criticism.joint_model import PARAMETERS
from deepbf.networks import Structure, check_network, network_kind
from deepbf.networks.base import AbstractNetwork, AbstractPreparation, FitPreparation, InputLayout

# In interquartile ranges: no normal sample of a pilot's size reaches as far, a Cauchy sample goes far beyond.
FARTHEST_STRAIGHT = 12.0
# exp(12) posteriors fit into a prior.
LARGEST_LOG_SCALE = 12.0


class ParameterScale(eqx.Module):
    """Puts standardised parameters on the scale that networks draw on: mean 0, variance 1, heavy tails bent by asinh.

    `low` and `high` are as far as networks are believed: beyond the prior's own draws by as much as they are apart.
    """

    bent: jax.Array
    mean: jax.Array
    spread: jax.Array
    low: jax.Array
    high: jax.Array

    @classmethod
    def fit(cls, params: NDArray[np.float32]) -> ParameterScale:
        """Return the scale for parameters like these, shape (draws, coordinates)."""
        bent = np.abs(params).max(axis=0) > FARTHEST_STRAIGHT
        values = np.where(bent, np.arcsinh(params), params).astype(np.float64)
        mean, spread = values.mean(axis=0), values.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        scaled = (values - mean) / spread
        low, high = scaled.min(axis=0), scaled.max(axis=0)
        margin = np.maximum(high - low, 1.0)
        numbers = (jnp.asarray(column, jnp.float32) for column in (mean, spread, low - margin, high + margin))
        return cls(jnp.asarray(bent), *numbers)

    def __call__(self, params: jax.Array) -> jax.Array:
        """Return standardised parameters on the networks' scale."""
        return (jnp.where(self.bent, jnp.arcsinh(params), params) - self.mean) / self.spread

    def inverse(self, drawn: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return drawn parameters as standardised ones, in float64."""
        low, high, mean, spread = (
            np.asarray(column, np.float64) for column in (self.low, self.high, self.mean, self.spread)
        )
        values = np.clip(drawn.astype(np.float64), low, high) * spread + mean
        bent = np.asarray(self.bent)
        return np.where(bent, np.sinh(np.where(bent, values, 0.0)), values)


class BesideParameters(AbstractPreparation):
    """Prepared data followed by the parameters that made them; takes packed rows of both."""

    data: AbstractPreparation
    scale: ParameterScale
    form: MixedForm = eqx.field(static=True)
    # The shape of data that are one array; None if they are several.
    data_shape: tuple[int, ...] | None = eqx.field(static=True)

    def __call__(self, rows: jax.Array) -> jax.Array:
        data = self._data_of(rows)
        return jnp.concatenate([self.data(data), self.scale(rows[:, self.form.columns[PARAMETERS]])], axis=1)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        """Return the data's layout, with the parameters where observations would stand."""
        columns = self.form.columns[PARAMETERS]
        num_params = columns.stop - columns.start
        inner = self.data.layout((data_shape[0] - num_params,) if self.data_shape is None else self.data_shape)
        if inner.num_obs:
            raise ValueError("posterior samplers read summaries, and this preparation leaves observations as they are")
        return InputLayout(inner.num_linear, inner.num_summary, 1, num_params, knows_size=inner.knows_size)

    @property
    def size_part(self) -> int | None:
        inner = self.data.size_part
        if self.data_shape is not None or inner is None:
            return self.form.names.index(next(name for name in self.form.names if name != PARAMETERS))
        return self.form.names.index(without_parameters(self.form).names[inner])

    def _data_of(self, rows: jax.Array) -> jax.Array:
        columns = self.form.columns[PARAMETERS]
        data = jnp.concatenate([rows[:, : columns.start], rows[:, columns.stop :]], axis=1)
        return data if self.data_shape is None else data.reshape(len(rows), *self.data_shape)


def prepare_beside(structure: Structure, form: MixedForm) -> FitPreparation:
    """Return how to fit the preparation of data of this structure, packed together with their parameters."""
    data_form = without_parameters(form)
    data_shape = data_form.parts[0].shape if isinstance(structure, str) else None
    inner = network_kind(structure, check_network("auto", structure), data_form if data_shape is None else None)

    def fit(pilot: Sequence[NDArray[np.float32]]) -> BesideParameters:
        columns = form.columns[PARAMETERS]
        data = [np.delete(rows, np.r_[columns], axis=1) for rows in pilot]
        if data_shape is not None:
            data = [rows.reshape(len(rows), *data_shape) for rows in data]
        scale = ParameterScale.fit(np.concatenate([rows[:, columns] for rows in pilot]))
        return BesideParameters(inner.fit_preparation(data), scale, form, data_shape)

    return fit


def without_parameters(form: MixedForm) -> MixedForm:
    """Return the form of the data alone."""
    return MixedForm(tuple(part for part in form.parts if part.name != PARAMETERS))


class AbstractPosteriorNetwork(AbstractNetwork):
    """A network that draws parameters given prepared data.

    Called on data beside their parameters, it returns a score of each pair, less is better, shape (batch, 1): what
    weights are judged by on simulations set aside.
    """

    @property
    @abc.abstractmethod
    def num_noise(self) -> int:
        """Standard normal numbers that one draw takes."""

    @abc.abstractmethod
    def draw(self, summary: jax.Array, noise: jax.Array) -> jax.Array:
        """Return draws on the networks' scale, shape (num_draws, coordinates), given one prepared data set.

        `noise` has shape (num_draws, num_noise).
        """


class Frame(eqx.Module):
    """A location and a log scale for each parameter given one prepared data set; a part of the location is linear."""

    straight: eqx.nn.Linear
    layers: eqx.nn.MLP
    num_linear: int = eqx.field(static=True)

    def __init__(self, layout: InputLayout, *, width: int, key: jax.Array) -> None:
        keys = jax.random.split(key)
        straight = eqx.nn.Linear(layout.num_linear, layout.obs_dim, use_bias=False, key=keys[0])
        # Starting flat: the bend, not chance, decides what the first steps look like.
        self.straight = eqx.tree_at(lambda layer: layer.weight, straight, 0.0 * straight.weight)
        self.layers = scaled_down(mlp(layout.num_summary, 2 * layout.obs_dim, width, 2, key=keys[1]), 0.1)
        self.num_linear = layout.num_linear

    def __call__(self, summary: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return location and log scale, one entry a parameter."""
        location, log_scale = jnp.split(self.layers(summary), 2)
        return location + self.straight(summary[: self.num_linear]), bounded(log_scale)


def bounded(log_scale: jax.Array) -> jax.Array:
    """Return a log scale that no step of training can throw out of reach."""
    return LARGEST_LOG_SCALE * jnp.tanh(log_scale / LARGEST_LOG_SCALE)


def mlp(num_inputs: int, num_outputs: int, width: int, depth: int, *, key: jax.Array) -> eqx.nn.MLP:
    """Return a smooth network, as posterior densities are smooth functions of the data."""
    return eqx.nn.MLP(num_inputs, num_outputs, width, depth, activation=jax.nn.silu, key=key)


def scaled_down(layers: eqx.nn.MLP, factor: float) -> eqx.nn.MLP:
    """Return layers whose last one starts small, so that training starts from a plain distribution."""
    return eqx.tree_at(lambda mlp: mlp.layers[-1], layers, replace_fn=partial(_times, factor))


def _times(factor: float, layer: eqx.nn.Linear) -> eqx.nn.Linear:
    return jax.tree.map(lambda leaf: factor * leaf if eqx.is_array(leaf) else leaf, layer)
