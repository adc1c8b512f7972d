"""The optimiser: what a step makes smaller, Adam's and Muon's steps, and many steps as one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from deepbf._compilation import FITS_HELD, IN_A_HURRY, CompiledAhead, Form
from deepbf._numerics import cross_entropy, log_evidence
from deepbf.layout.data_layout import DataLayout
from deepbf.losses import Loss
from deepbf.networks.base import AbstractNetwork, NetworkKind
from deepbf.networks.ensemble import Committee, ensemble_parts, settle_ensemble

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


@dataclass(frozen=True)
class NetworkForm:
    """What networks that differ in nothing but their weights have in common: how a flat vector makes one of them.

    Equal forms are equal keys, so that fits of the same shapes share what is compiled.
    """

    form: Form

    @cached_property
    def blank(self) -> AbstractNetwork:
        """One network, with the shapes of its weights in place of weights."""
        return self.form.tree()

    def networks(self, flat: jax.Array | NDArray[np.floating]) -> AbstractNetwork:
        """Return the network with these weights, one vector; or stacked networks, from one vector per member."""
        weights, static = eqx.partition(self.blank, _is_shape)
        return eqx.combine(unflattened(weights, flat), static)

    def arrays(self, flat: jax.Array | NDArray[np.floating]) -> Any:
        """Return the weights of one vector layer by layer, without what is not learned."""
        return unflattened(eqx.filter(self.blank, _is_shape), flat)


class FlatNetworks(NamedTuple):
    """Stacked networks as what they have in common and one vector of weights per member, shape (members, weights)."""

    form: NetworkForm
    weights: NDArray[np.float32]


def flat_networks(networks: AbstractNetwork) -> FlatNetworks:
    """Return stacked networks with their weights as one vector per member."""

    def shape_of(leaf: Any) -> Any:
        return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) if eqx.is_array(leaf) else leaf

    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(networks, eqx.is_array))]
    flat = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
    return FlatNetworks(NetworkForm(Form.of(jax.tree.map(shape_of, networks))), flat)


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def num_weights(blank: Any) -> int:
    """Return how many weights a blank network has, or a part of one."""
    return sum(shape.size for shape in jax.tree.leaves(eqx.filter(blank, _is_shape)))


def unflattened(shapes: Any, flat: jax.Array | NDArray[np.floating]) -> Any:
    """Return the arrays of these shapes, in order, that a vector holds; axes before its last stay in front."""
    leaves, structure = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])
    # A vector of NumPy is cut by NumPy, without a program for each shape.
    pieces = [
        jnp.asarray(flat[..., end - leaf.size : end].reshape(*flat.shape[:-1], *leaf.shape))
        for leaf, end in zip(leaves, ends, strict=True)
    ]
    return jax.tree.unflatten(structure, pieces)


def init_state(weights: NDArray[np.float32], optimiser: optax.GradientTransformation = ADAM) -> TrainingState:
    """Return the state before the first step from these weights, shape (members, weights)."""
    return _starting(optimiser)(weights)


@lru_cache(FITS_HELD)
def _starting(optimiser: optax.GradientTransformation) -> Callable[[NDArray[np.float32]], TrainingState]:
    @partial(jax.jit, compiler_options=dict(IN_A_HURRY))
    def start(weights: jax.Array) -> TrainingState:
        memory = jax.vmap(optimiser.init)(weights)
        return TrainingState(jnp.copy(weights), jnp.copy(weights), memory, jnp.zeros((), jnp.int32))

    return start


@lru_cache(FITS_HELD)
def make_block(
    form: NetworkForm, objective: Objective, optimiser: optax.GradientTransformation = ADAM
) -> CompiledAhead:
    """Return the compiled block: up to as many steps as it is given batches, in one call.

    It takes the state, batches of shape (steps, members, models, batch, width), a learning rate per step, and how many
    of the steps to take; it returns the new state and the mean loss of each member.
    """

    def member_loss(weights: jax.Array, batch: jax.Array, number: jax.Array) -> jax.Array:
        return objective(form.networks(weights), batch, number)

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

    return CompiledAhead(block, donated=0)


# Steps of a weight matrix, in learning rates: its entries then move about as far as Adam's would.
ORTHOGONAL_RATE = 3.0
# Matrices with fewer rows or columns are read-outs, which Adam does better.
FEWEST_ORTHOGONAL = 8
# Five steps of the iteration with optax's coefficients. One row per step makes a loop of them, where a single row is
# written out five times: a quarter of the time that a block takes to compile.
NEWTON_SCHULZ = np.tile([3.4445, -4.7750, 2.0315], (5, 1))


@lru_cache(FITS_HELD)
def optimiser_of(form: NetworkForm) -> optax.GradientTransformation:
    """Return the optimiser of these networks, before the learning rate: Adam, or Muon for those that ask for it.

    The parts of a committee are trained as if each were alone: with gradients clipped apart, and rates of their own.
    """
    member = form.blank
    if not isinstance(member, Committee):
        return muon_of(form.arrays) if member.orthogonal else ADAM
    pieces, start = [], 0
    for part, rate in zip(member.networks, member.rates, strict=True):
        own = muon_of(partial(unflattened, eqx.filter(part, _is_shape))) if part.orthogonal else ADAM
        pieces.append((slice(start, start + num_weights(part)), rate, own))
        start += num_weights(part)

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


@lru_cache(FITS_HELD)
def muon_of(arrays: Callable[[jax.Array], Any]) -> optax.GradientTransformation:
    """Return Muon for the weight matrices of a network, with Adam for everything else.

    `arrays` turns its flat vector of weights into its arrays.

    Its steps go equally far in all directions of a matrix, those too that the loss hardly sees: what a network needs to
    say of rare data is learned in fewer steps.
    """
    layered = optax.chain(
        optax.clip_by_global_norm(LARGEST_GRADIENT),
        optax.contrib.muon(
            ORTHOGONAL_RATE,
            ns_coeffs=NEWTON_SCHULZ,  # pyright: ignore[reportArgumentType]
            adam_learning_rate=1.0,
            muon_weight_dimension_numbers=_matrix_axes,
        ),
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
        The optimiser of networks of this form, before the learning rate; the same one for equal forms.
    stacks
        Whether simple classifiers may join the networks where simulations are few.
    """

    kind_of: KindOf
    objective: Objective
    judge: Judge
    optimiser_of: Callable[[NetworkForm], optax.GradientTransformation] = optimiser_of
    stacks: bool = False


def classification(kind_of: KindOf, loss: Loss, *, weighted: bool = False, stacks: bool = False) -> Goal:
    """Return the goal of telling models apart: networks that give log odds, from rows that may end with a weight.

    With `stacks`, simple classifiers may join the networks where simulations are few.
    """
    return Goal(kind_of, classifying(loss, weighted=weighted), held_out_cross_entropy, stacks=stacks)


@lru_cache(FITS_HELD)
def classifying(loss: Loss, *, weighted: bool = False) -> Objective:
    """Return the mean loss of the network's log odds on a mini-batch of shape (models, batch, width).

    With `weighted`, the last column holds how much each row counts.
    """

    def objective(network: AbstractNetwork, batch: jax.Array, step: jax.Array) -> jax.Array:
        del step
        num_models, batch_size, width = batch.shape
        rows = batch.reshape(num_models * batch_size, width)
        labels = jnp.repeat(jnp.arange(num_models), batch_size)
        counts = rows[:, -1] if weighted else 1.0
        # Parts share no weights, so the sum of their losses trains each as if it were alone.
        parts = network.parts(rows[:, :-1] if weighted else rows)
        return sum((counts * loss(log_odds, labels)).mean() for log_odds in parts)  # pyright: ignore[reportReturnType]

    return objective


@lru_cache(FITS_HELD)
def make_judge(form: NetworkForm) -> CompiledAhead:
    """Return the compiled map from weights, a batch to settle by, and rows to what the parts say of the rows.

    These are log odds, the mean over the ensemble, shape (parts, batch, K - 1).
    """

    def judge(weights: jax.Array, reference: jax.Array, rows: jax.Array) -> jax.Array:
        return ensemble_parts(settle_ensemble(form.networks(weights), reference), rows)

    return CompiledAhead(judge)


def held_out_cross_entropy(log_odds: Sequence[NDArray[np.floating]] | NDArray[np.floating]) -> float:
    """Return the cross-entropy of log odds, averaged over the models that the data sets came from.

    `log_odds` has one array of shape (data sets, K - 1) per model that they came from.

    It judges whatever the loss and the mixture trained at: log odds mean the same under all of them, and
    cross-entropy, too, is least at the exact ones. Held-out powers of the ratio would hang on a few data sets.
    """
    return float(np.mean([cross_entropy(log_evidence(odds), label).mean() for label, odds in enumerate(log_odds)]))
