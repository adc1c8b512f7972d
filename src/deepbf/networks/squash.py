"""The squashing function of all preparations."""

from __future__ import annotations

import jax
import jax.numpy as jnp

# From here on the square under the root is all there is, and it would soon overflow.
LARGE = 1e9


def squash(values: jax.Array) -> jax.Array:
    """Return the values with heavy tails pulled in: linear near 0, logarithmic far away.

    This is arcsinh to an absolute error of float32, in half the time of `jnp.arcsinh`, which spends it on relative
    accuracy near 0.
    """
    size = jnp.abs(values)
    root = jnp.where(size < LARGE, jnp.sqrt(1.0 + size * size), size)
    return jnp.copysign(jnp.log(size + root), values)
