"""What a network that draws parameters is, on which scale it draws them, and the layers it is made of."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import AbstractNetwork

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


class AbstractPosteriorNetwork(AbstractNetwork):
    """A network that draws parameters given prepared data.

    Called on data beside their parameters, it returns a score of each pair, less is better, shape (batch, 1): what
    weights are judged by on simulations set aside.
    """

    @property
    @abc.abstractmethod
    def num_noise(self) -> int:
        """The number of standard normal numbers that one draw takes."""

    @abc.abstractmethod
    def draw(self, summary: jax.Array, noise: jax.Array) -> jax.Array:
        """Return draws on the networks' scale, shape (num_draws, coordinates), given one prepared data set.

        `noise` has shape (num_draws, num_noise).
        """

    @abc.abstractmethod
    def loss(self, batch: jax.Array, step: jax.Array) -> jax.Array:
        """Return what a step of training makes smaller, for a batch of shape (1, batch, width) at this step."""


def bounded(log_scale: jax.Array) -> jax.Array:
    """Return a log scale within 12 of 0: c tanh(x / c), the identity near 0 for c = 12.

    A single step of training can then not throw a scale out of reach of the next.
    """
    return LARGEST_LOG_SCALE * jnp.tanh(log_scale / LARGEST_LOG_SCALE)


def mlp(num_inputs: int, num_outputs: int, width: int, depth: int, *, key: jax.Array) -> eqx.nn.MLP:
    """Return `depth` hidden layers of `width` units with the smooth activation silu.

    Posterior densities are mostly smooth functions of the data.
    """
    return eqx.nn.MLP(num_inputs, num_outputs, width, depth, activation=jax.nn.silu, key=key)


def scaled_down(layers: eqx.nn.MLP, factor: float) -> eqx.nn.MLP:
    """Return the layers with weights and biases of the last one multiplied by `factor`.

    With a small factor, outputs start near 0, and training starts from a plain distribution.
    """
    smaller = jax.tree.map(lambda leaf: factor * leaf if eqx.is_array(leaf) else leaf, layers.layers[-1])
    return eqx.tree_at(lambda mlp: mlp.layers[-1], layers, smaller)
