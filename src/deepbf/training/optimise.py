"""The optimiser: many steps of the whole ensemble as one compiled program."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from deepbf.networks import AbstractNetwork

# A single freak batch early on must not throw the weights far away.
LARGEST_GRADIENT = 1.0
# Weights are averaged over about the last 1/16 of the steps taken, however many that turn out to be.
AVERAGING = 16.0

ADAM = optax.chain(optax.clip_by_global_norm(LARGEST_GRADIENT), optax.scale_by_adam(b1=0.9, b2=0.999))


class TrainingState(NamedTuple):
    """All that changes from step to step.

    Weights are one flat vector a member, shape (members, weights): the optimiser then is a few operations on one
    array rather than a few on each layer, which for small networks is a third of the time of a step.
    """

    weights: jax.Array
    averaged: jax.Array
    optimiser: optax.OptState
    num_steps: jax.Array


# The mean loss of a network on a mini-batch of shape (models, batch, width), at the step of this number.
Objective = Callable[[AbstractNetwork, jax.Array, jax.Array], jax.Array]
Block = Callable[[TrainingState, jax.Array, jax.Array, jax.Array], tuple[TrainingState, jax.Array]]


class FlatNetworks:
    """Turns stacked networks into flat weight vectors and back."""

    def __init__(self, networks: AbstractNetwork) -> None:
        weights, self._static = eqx.partition(networks, eqx.is_array)
        first = jax.tree.map(lambda leaf: leaf[0], weights)
        _, self._unravel = ravel_pytree(first)
        self.initial: jax.Array = jax.vmap(lambda member: ravel_pytree(member)[0])(weights)

    def member(self, flat: jax.Array) -> AbstractNetwork:
        """Return the network with these weights, one vector."""
        return eqx.combine(self._unravel(flat), self._static)

    def arrays(self, flat: jax.Array) -> Any:
        """Return the weights of one vector layer by layer, without what is not learned."""
        return self._unravel(flat)

    def ensemble(self, flat: jax.Array) -> AbstractNetwork:
        """Return the stacked networks with these weights, one vector a member."""
        return eqx.combine(jax.vmap(self._unravel)(flat), self._static)


def init_state(networks: FlatNetworks, optimiser: optax.GradientTransformation = ADAM) -> TrainingState:
    """Return the state before the first step."""
    weights = jnp.copy(networks.initial)
    return TrainingState(weights, jnp.copy(weights), jax.vmap(optimiser.init)(weights), jnp.zeros((), jnp.int32))


def make_block(networks: FlatNetworks, objective: Objective, optimiser: optax.GradientTransformation = ADAM) -> Block:
    """Return the compiled block: up to as many steps as it is given batches, in one call.

    It takes the state, batches of shape (steps, members, models, batch, width), a learning rate a step, and how many
    of the steps to take; it returns the new state and the mean loss of each member.
    """

    def member_loss(weights: jax.Array, batch: jax.Array, number: jax.Array) -> jax.Array:
        return objective(networks.member(weights), batch, number)

    def member_step(
        weights: jax.Array, memory: optax.OptState, batch: jax.Array, rate: jax.Array, number: jax.Array
    ) -> tuple[jax.Array, optax.OptState, jax.Array]:
        value, gradient = jax.value_and_grad(member_loss)(weights, batch, number)
        update, memory = optimiser.update(gradient, memory, weights)
        return weights - rate * cast(jax.Array, update), memory, value

    def step(state: TrainingState, batch: jax.Array, rate: jax.Array) -> tuple[TrainingState, jax.Array]:
        weights, memory, value = jax.vmap(member_step, (0, 0, 0, None, None))(
            state.weights, state.optimiser, batch, rate, state.num_steps
        )
        share = (AVERAGING + 1.0) / (state.num_steps + AVERAGING + 1.0)
        averaged = state.averaged + share * (weights - state.averaged)
        return TrainingState(weights, averaged, memory, state.num_steps + 1), value

    @partial(jax.jit, donate_argnums=0)
    def block(
        state: TrainingState, batches: jax.Array, rates: jax.Array, num_active: jax.Array
    ) -> tuple[TrainingState, jax.Array]:
        def body(i: jax.Array, carry: tuple[TrainingState, jax.Array]) -> tuple[TrainingState, jax.Array]:
            state, total = carry
            state, value = step(state, batches[i], rates[i])
            return state, total + value

        start = (state, jnp.zeros(batches.shape[1]))
        # A traced bound: one compilation serves full blocks and the short last one.
        state, total = jax.lax.fori_loop(0, num_active, body, start)
        return state, total / num_active

    return block
