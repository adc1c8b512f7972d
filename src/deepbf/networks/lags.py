"""Lagged products: sums over time of one column times another some steps earlier, in one pass along the series."""

from __future__ import annotations

import jax
import jax.numpy as jnp

# Points in time in one fused step of the loop: fewer passes over the running totals.
UNROLL = 8
# A constant or perfectly predictable series leaves no variance to explain; below this share it is rounding.
SMALLEST_VARIANCE = 1e-3


def lagged_sums(first: jax.Array, second: jax.Array, num_lags: int) -> jax.Array:
    """Return sums over t of first_t times second_(t-k), shape (num_lags + 1, columns, batch), for k = 0, 1, ...

    Both have time as their leading axis: (length, columns, batch). Values before the start count as 0.
    """
    length, *rest = first.shape
    short = -length % UNROLL
    padded = jnp.pad(second, ((num_lags, short), (0, 0), (0, 0)))
    groups = jnp.pad(first, ((0, short), (0, 0), (0, 0))).reshape(-1, UNROLL, *rest)

    def add(total: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        start, group = step
        window = jax.lax.dynamic_slice_in_dim(padded, start, num_lags + UNROLL)
        for i, current in enumerate(group):
            total = total + current * window[i : i + num_lags + 1]
        return total, None

    start = jnp.zeros((num_lags + 1, *rest), jnp.float32)
    total, _ = jax.lax.scan(add, start, (UNROLL * jnp.arange(len(groups)), groups))
    # A window runs from the past to the present: its last entry is lag 0.
    return total[::-1]


def partial_autocorrelations(correlations: jax.Array) -> jax.Array:
    """Return partial autocorrelations from autocorrelations at lags 1, 2, ..., same shape, lags first.

    By the Durbin-Levinson recursion: entry k is what lag k adds to the best linear prediction from the lags below it.
    """
    num_lags = len(correlations)
    flipped = correlations[::-1]

    def step(carry: tuple[jax.Array, jax.Array], k: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        # Entries from k on are 0, so that rolling the whole flipped array flips the first k in place. A loop rather
        # than an expression for each lag: those take the compiler longer.
        coefficients, variance = carry
        predicted = (coefficients * jnp.roll(flipped, k, axis=0)).sum(axis=0)
        partial = jnp.clip((correlations[k] - predicted) / jnp.maximum(variance, SMALLEST_VARIANCE), -1.0, 1.0)
        coefficients = coefficients - partial * jnp.roll(coefficients[::-1], k, axis=0)
        return (coefficients.at[k].set(partial), variance * (1.0 - partial * partial)), partial

    start = (jnp.zeros_like(correlations), jnp.ones_like(correlations[0]))
    return jax.lax.scan(step, start, jnp.arange(num_lags))[1]
