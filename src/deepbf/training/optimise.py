"""The optimiser: what a step makes smaller, Adam's and Muon's steps, and many steps as one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from deepbf._numerics import cross_entropy, log_evidence
from deepbf.layout.data_layout import DataLayout
from deepbf.losses import Loss
from deepbf.networks.base import AbstractNetwork, NetworkKind
from deepbf.networks.ensemble import Committee

# A single freak batch early on must not throw the weights far away.
LARGEST_GRADIENT = 1.0
# Weights are averaged over about the last 1/16 of the steps taken, however many that turn out to be.
AVERAGING = 16.0

ADAM = optax.chain(optax.clip_by_global_norm(LARGEST_GRADIENT), optax.scale_by_adam(b1=0.9, b2=0.999))


class TrainingState(NamedTuple):
    """All that changes from step to step.

    Weights are one flat vector per member, shape (members, weights): the optimiser then is a few operations on one
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
        _, self._unravel = flattening(
            jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), weights)
        )
        # One program for all layers: each operation by itself would be compiled by itself.
        self.initial: jax.Array = jax.jit(jax.vmap(lambda member: ravel_pytree(member)[0]))(weights)
        self.first: AbstractNetwork = eqx.combine(jax.jit(self._unravel)(self.initial[0]), self._static)

    def member(self, flat: jax.Array) -> AbstractNetwork:
        """Return the network with these weights, one vector."""
        return eqx.combine(self._unravel(flat), self._static)

    def arrays(self, flat: jax.Array) -> Any:
        """Return the weights of one vector layer by layer, without what is not learned."""
        return self._unravel(flat)

    def ensemble(self, flat: jax.Array) -> AbstractNetwork:
        """Return the stacked networks with these weights, one vector per member."""
        return eqx.combine(jax.jit(jax.vmap(self._unravel))(flat), self._static)


def flattening(weights: Any) -> tuple[int, Callable[[jax.Array], Any]]:
    """Return how long a vector these weights make, arrays or their shapes, and what turns it back into them."""
    turns_back = []

    def flatten(tree: Any) -> jax.Array:
        flat, unravel = ravel_pytree(tree)
        turns_back.append(unravel)
        return flat

    return jax.eval_shape(flatten, weights).size, turns_back[0]


def init_state(networks: FlatNetworks, optimiser: optax.GradientTransformation = ADAM) -> TrainingState:
    """Return the state before the first step."""

    @jax.jit
    def start(weights: jax.Array) -> TrainingState:
        memory = jax.vmap(optimiser.init)(weights)
        return TrainingState(jnp.copy(weights), jnp.copy(weights), memory, jnp.zeros((), jnp.int32))

    return start(networks.initial)


def make_block(networks: FlatNetworks, objective: Objective, optimiser: optax.GradientTransformation = ADAM) -> Block:
    """Return the compiled block: up to as many steps as it is given batches, in one call.

    It takes the state, batches of shape (steps, members, models, batch, width), a learning rate per step, and how many
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


# Steps of a weight matrix, in learning rates: its entries then move about as far as Adam's would.
ORTHOGONAL_RATE = 3.0
# Matrices with fewer rows or columns are read-outs, which Adam does better.
FEWEST_ORTHOGONAL = 8


def optimiser_of(networks: FlatNetworks) -> optax.GradientTransformation:
    """Return the optimiser of these networks, before the learning rate: Adam, or Muon for those that ask for it.

    The parts of a committee are trained as if each were alone: with gradients clipped apart, and rates of their own.
    """
    member = networks.first
    if not isinstance(member, Committee):
        return muon_of(networks.arrays) if member.orthogonal else ADAM
    pieces, start = [], 0
    for part, rate in zip(member.networks, member.rates, strict=True):
        size, unravel = flattening(eqx.filter(part, eqx.is_array))
        pieces.append((slice(start, start + size), rate, muon_of(unravel) if part.orthogonal else ADAM))
        start += size

    def init(params: Any) -> Any:
        return tuple(optimiser.init(params[piece]) for piece, _, optimiser in pieces)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        stepped = [
            optimiser.update(updates[piece], memory, params[piece])
            for (piece, _, optimiser), memory in zip(pieces, state, strict=True)
        ]
        steps = [rate * cast(jax.Array, step) for (_, rate, _), (step, _) in zip(pieces, stepped, strict=True)]
        # How far each part is believed, at the end of the vector, is not learned by these steps.
        believed = jnp.zeros(updates.shape[0] - start)
        return jnp.concatenate([*steps, believed]), tuple(memory for _, memory in stepped)

    return optax.GradientTransformation(init, update)


def muon_of(arrays: Callable[[jax.Array], Any]) -> optax.GradientTransformation:
    """Return Muon for the weight matrices of a network, with Adam for everything else.

    `arrays` turns its flat vector of weights into its arrays.

    Its steps go equally far in all directions of a matrix, those too that the loss hardly sees: what a network needs to
    say of rare data is learned in fewer steps.
    """
    layered = optax.chain(
        optax.clip_by_global_norm(LARGEST_GRADIENT),
        optax.contrib.muon(ORTHOGONAL_RATE, adam_learning_rate=1.0, muon_weight_dimension_numbers=_matrix_axes),
    )

    def init(params: Any) -> Any:
        return layered.init(arrays(params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        step, state = layered.update(arrays(updates), state, arrays(params))
        # Optimisers of optax point downhill; training walks against what it is given.
        return -ravel_pytree(step)[0], state

    return optax.GradientTransformation(init, update)


def _matrix_axes(weights: Any) -> Any:
    """Return, for each array of weights, which axes make it a matrix, or None for those that Adam moves."""
    # Layers are written (outputs, inputs).
    axes = optax.contrib.MuonDimensionNumbers(reduction_axis=1, output_axis=0)

    def axes_of(array: jax.Array) -> optax.contrib.MuonDimensionNumbers | None:
        return axes if array.ndim == 2 and min(array.shape) >= FEWEST_ORTHOGONAL else None

    return jax.tree.map(axes_of, weights)


# From a network's outputs at simulations set aside, shape (models, data sets, columns), to one number: less is better.
Judge = Callable[[NDArray[np.floating]], float]
KindOf = Callable[[DataLayout], NetworkKind]


@dataclass(frozen=True)
class Goal:
    """What training aims at.

    Parameters
    ----------
    kind_of
        The kind of network for data of a layout that knows their shape.
    objective
        What every step makes smaller.
    judge
        What decides between weights.
    optimiser_of
        The optimiser of these networks, before the learning rate.
    stacks
        Whether simple classifiers may join the networks where simulations are few.
    """

    kind_of: KindOf
    objective: Objective
    judge: Judge
    optimiser_of: Callable[[FlatNetworks], optax.GradientTransformation] = optimiser_of
    stacks: bool = False


def classification(kind_of: KindOf, loss: Loss, *, weighted: bool = False, stacks: bool = False) -> Goal:
    """Return the goal of telling models apart: networks that give log odds, from rows that may end with a weight.

    With `stacks`, simple classifiers may join the networks where simulations are few.
    """
    objective = _weighing(loss) if weighted else classifying(loss)
    return Goal(kind_of, objective, held_out_cross_entropy, stacks=stacks)


def classifying(loss: Loss) -> Objective:
    """Return the mean loss of the network's log odds on a mini-batch of shape (models, batch, width)."""

    def objective(network: AbstractNetwork, batch: jax.Array, step: jax.Array) -> jax.Array:
        del step
        num_models, batch_size, width = batch.shape
        labels = jnp.repeat(jnp.arange(num_models), batch_size)
        # Parts share no weights, so the sum of their losses trains each as if it were alone.
        parts = network.parts(batch.reshape(num_models * batch_size, width))
        return sum(loss(log_odds, labels).mean() for log_odds in parts)  # pyright: ignore[reportReturnType]

    return objective


def _weighing(loss: Loss) -> Objective:
    """Return the weighted mean loss on a mini-batch whose last column holds the weights."""

    def objective(network: AbstractNetwork, batch: jax.Array, step: jax.Array) -> jax.Array:
        del step
        num_models, batch_size, width = batch.shape
        rows = batch.reshape(num_models * batch_size, width)
        labels = jnp.repeat(jnp.arange(num_models), batch_size)
        parts = network.parts(rows[:, :-1])
        return sum((rows[:, -1] * loss(log_odds, labels)).mean() for log_odds in parts)  # pyright: ignore[reportReturnType]

    return objective


def held_out_cross_entropy(log_odds: Sequence[NDArray[np.floating]] | NDArray[np.floating]) -> float:
    """Return the cross-entropy of log odds, averaged over the models that the data sets came from.

    `log_odds` has one array of shape (data sets, K - 1) per model that they came from.

    It judges whatever the loss and the mixture trained at: log odds mean the same under all of them, and
    cross-entropy, too, is least at the exact ones. Held-out powers of the ratio would hang on a few data sets.
    """
    return float(np.mean([cross_entropy(log_evidence(odds), label).mean() for label, odds in enumerate(log_odds)]))
