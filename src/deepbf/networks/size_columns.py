"""Rows of data sets that differ in the number of their observations: the same columns, and what the number adds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from deepbf.networks.base import InputLayout


def with_size(columns: jax.Array, num_linear: int, number: jax.Array, largest: int) -> jax.Array:
    """Return the columns of a summary with the number of observations, and what grows in proportion to it.

    The leading linear columns appear a second time in proportion to the number, as the log evidence of independent
    observations is. The logarithm of the number runs from about -2 at one observation to 2 at the most; its share of
    the most stands last.
    """
    share = number / largest
    log_size = 4.0 * jnp.log(number) / np.log(max(largest, 2)) - 2.0
    linear, others = columns[:, :num_linear], columns[:, num_linear:]
    return jnp.concatenate([linear, share * linear, others, log_size, share], axis=1)


def layout_with_size(num_linear: int, num_columns: int) -> InputLayout:
    """Return what the columns are that `with_size` makes of so many."""
    return InputLayout(2 * num_linear, num_columns + num_linear + 2, knows_size=True)
