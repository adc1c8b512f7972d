"""Ensembles: networks stacked along a leading axis of their weights and run together."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf.networks.base import AbstractNetwork, InputLayout
from deepbf.networks.registry import NetworkKind


def init_ensemble(
    kind: NetworkKind, layout: InputLayout, num_models: int, num_members: int, key: jax.Array
) -> AbstractNetwork:
    """Return `num_members` networks with independent random weights, stacked."""

    @eqx.filter_jit  # one compilation rather than one for each small operation of each layer
    def init(keys: jax.Array) -> AbstractNetwork:
        return eqx.filter_vmap(lambda member_key: kind.init(layout, num_models, key=member_key))(keys)

    return init(jax.random.split(key, num_members))


@eqx.filter_jit
def settle_ensemble(networks: AbstractNetwork, reference: jax.Array) -> AbstractNetwork:
    """Return the networks with all that depends on the batch fixed by one reference batch of inputs."""
    return eqx.filter_vmap(lambda network: network.settle(reference))(networks)


def ensemble_log_odds(networks: AbstractNetwork, inputs: jax.Array) -> jax.Array:
    """Return each member's log odds, shape (members, batch, K - 1), from inputs of shape (batch, width)."""
    return eqx.filter_vmap(lambda network: network(inputs))(networks)


def in_batches(
    function: Callable[[jax.Array], jax.Array], data: NDArray[np.float32], batch_size: int, *, axis: int = 0
) -> NDArray[np.float32]:
    """Return `function` of the data, computed in batches of one fixed size, so that it compiles once.

    `axis` is where the batch is in the function's output. The last batch is padded with copies of its last row.
    """
    outputs = []
    for start in range(0, len(data), batch_size):
        batch = data[start : start + batch_size]
        missing = batch_size - len(batch)
        if missing:
            batch = np.concatenate([batch, np.repeat(batch[-1:], missing, axis=0)])
        # Dispatched without waiting, so that the next batch is cut while this one is computed.
        outputs.append(function(jnp.asarray(batch)))
    joined = np.concatenate([np.asarray(output) for output in outputs], axis=axis)
    return np.take(joined, range(len(data)), axis=axis) if joined.shape[axis] != len(data) else joined
