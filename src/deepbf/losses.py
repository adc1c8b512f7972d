"""Losses: short pure functions of log odds, for K models.

Log odds have shape (batch, K - 1): every model but the last, against the last. Labels are model indices.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from deepbf import _checks

Loss = Callable[[jax.Array, jax.Array], jax.Array]


def log_evidence(log_odds: jax.Array) -> jax.Array:
    """Return log evidences up to a constant a row, shape (batch, K): the last model's is 0."""
    return jnp.concatenate([log_odds, jnp.zeros_like(log_odds[..., :1])], axis=-1)


def cross_entropy(log_odds: jax.Array, label: jax.Array) -> jax.Array:
    """Return the negative log probability of the label, one entry a data set (Algorithm 1, equation 7).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> print(cross_entropy(jnp.array([[1e4], [0.0]]), jnp.array([0, 1])))
    [0.        0.6931472]
    """
    # logsumexp(s) - s[label], never a probability: in float32, 1 - sigmoid(17) is exactly 0.
    scores = log_evidence(log_odds)
    chosen = jnp.take_along_axis(scores, label[..., None], axis=-1)[..., 0]
    return jax.nn.logsumexp(scores, axis=-1) - chosen


LOSSES: dict[str, Loss] = {"cross_entropy": cross_entropy}


def by_name(name: str) -> Loss:
    """Return the loss called `name`."""
    return LOSSES[_checks.check_choice("loss", name, LOSSES)]
