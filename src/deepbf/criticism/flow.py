"""The conditional flow: normal noise, bent by splines and moved to where the data say that parameters are."""

from __future__ import annotations

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax.bijections import RationalQuadraticSpline
from flowjax.utils import get_ravelled_pytree_constructor
from paramax import NonTrainable, unwrap

from deepbf.criticism.posterior_network import AbstractPosteriorNetwork, bounded, mlp, scaled_down
from deepbf.networks.base import InputLayout

NUM_CONTEXT = 32
WIDTH = 64
NUM_KNOTS = 8
# In standard deviations of the part before the spline; beyond it the spline is straight.
SPLINE_REACH = 4.0
LOG_SQRT_2PI = 0.9189385332046727


@cache
def _spline_constructor() -> tuple[Any, int]:
    """Return the function from a vector of numbers to a spline, straight at 0, and how many numbers it takes."""
    # Evaluated at once, for this may first be called while a program is being compiled.
    with jax.ensure_compile_time_eval():
        return get_ravelled_pytree_constructor(
            RationalQuadraticSpline(knots=NUM_KNOTS, interval=SPLINE_REACH),
            filter_spec=eqx.is_inexact_array,
            is_leaf=lambda leaf: isinstance(leaf, NonTrainable),
        )


def _make_spline(numbers: jax.Array) -> Any:
    """Return the spline that these numbers stand for."""
    return unwrap(_spline_constructor()[0](numbers))


class ConditionalFlow(AbstractPosteriorNetwork):
    """An autoregressive flow: each parameter given the data and the parameters before it.

    A parameter, less a location and divided by a scale, goes through a monotone rational-quadratic spline (Durkan and
    others, 2019, https://arxiv.org/abs/1906.04032) to a standard normal. Location, scale and spline come from a network
    of the data's context and the earlier parameters, so one such layer can take the form of any density.
    """

    context: eqx.nn.MLP
    straight: eqx.nn.Linear
    coordinates: eqx.nn.MLP
    num_linear: int = eqx.field(static=True)
    num_summary: int = eqx.field(static=True)
    num_params: int = eqx.field(static=True)

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array) -> None:
        del num_models
        keys = jax.random.split(key, 3)
        self.num_linear, self.num_summary, self.num_params = layout.num_linear, layout.num_summary, layout.obs_dim
        self.context = mlp(layout.num_summary, NUM_CONTEXT, WIDTH, 2, key=keys[0])
        straight = eqx.nn.Linear(layout.num_linear, layout.obs_dim, use_bias=False, key=keys[1])
        self.straight = eqx.tree_at(lambda layer: layer.weight, straight, 0.0 * straight.weight)

        def coordinate(key: jax.Array) -> eqx.nn.MLP:
            num_inputs, num_outputs = NUM_CONTEXT + layout.obs_dim, 2 + _spline_constructor()[1]
            return scaled_down(mlp(num_inputs, num_outputs, WIDTH, 1, key=key), 0.1)

        self.coordinates = eqx.filter_vmap(coordinate)(jax.random.split(keys[2], layout.obs_dim))

    @property
    def num_noise(self) -> int:
        return self.num_params

    def __call__(self, inputs: jax.Array) -> jax.Array:
        """Return the negative log density of the parameters, shape (batch, 1)."""
        return -jax.vmap(self.log_density)(inputs[:, : self.num_summary], inputs[:, self.num_summary :])[:, None]

    def log_density(self, summary: jax.Array, params: jax.Array) -> jax.Array:
        """Return the log density of parameters given one prepared data set."""
        context, straight = self._read(summary)
        earlier = jnp.tril(jnp.broadcast_to(params, (self.num_params, self.num_params)), -1)

        def one(layers: eqx.nn.MLP, earlier: jax.Array, straight: jax.Array, value: jax.Array) -> jax.Array:
            location, log_scale, numbers = self._split(layers, context, earlier, straight)
            residual = (value - location) * jnp.exp(-log_scale)
            normal, log_slope = _make_spline(numbers).transform_and_log_det(residual)
            return -0.5 * normal**2 - LOG_SQRT_2PI + log_slope - log_scale

        return eqx.filter_vmap(one)(self.coordinates, earlier, straight, params).sum()

    def draw(self, summary: jax.Array, noise: jax.Array) -> jax.Array:
        context, straight = self._read(summary)

        def one(noise: jax.Array) -> jax.Array:
            def fill(i: jax.Array, params: jax.Array) -> jax.Array:
                layers = jax.tree.map(lambda leaf: leaf[i] if eqx.is_array(leaf) else leaf, self.coordinates)
                # Later parameters are still 0 here, as the triangle has them in training.
                location, log_scale, numbers = self._split(layers, context, params, straight[i])
                residual = _make_spline(numbers).inverse(noise[i])
                return params.at[i].set(location + jnp.exp(log_scale) * residual)

            return jax.lax.fori_loop(0, self.num_params, fill, jnp.zeros(self.num_params))

        return jax.vmap(one)(noise)

    def loss(self, batch: jax.Array, step: jax.Array) -> jax.Array:
        """Return the mean negative log density of parameters given their data."""
        del step
        return self(batch[0]).mean()

    def _read(self, summary: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.context(summary), self.straight(summary[: self.num_linear])

    def _split(
        self, layers: eqx.nn.MLP, context: jax.Array, earlier: jax.Array, straight: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        outputs = layers(jnp.concatenate([context, earlier]))
        return outputs[0] + straight, bounded(outputs[1]), outputs[2:]
