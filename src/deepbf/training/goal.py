"""The goal of training: which network learns what, and how it is judged on simulations set aside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from deepbf._mixed import MixedForm
from deepbf._numerics import cross_entropy, log_evidence
from deepbf.losses import Loss
from deepbf.networks import AbstractNetwork, NetworkKind
from deepbf.training.optimise import ADAM, FlatNetworks, Objective

# From a network's outputs at simulations set aside, shape (models, data sets, columns), to one number: less is better.
Judge = Callable[[NDArray[np.float32]], float]
KindOf = Callable[[MixedForm | None, tuple[int, ...]], NetworkKind]


@dataclass(frozen=True)
class Goal:
    """What training aims at.

    Parameters
    ----------
    kind_of
        The kind of network, given how data are packed, or None if they are one array, and the shape of a data set.
    objective
        What every step makes smaller.
    judge
        What decides between weights.
    optimiser_of
        The optimiser of these networks, before the learning rate.
    """

    kind_of: KindOf
    objective: Objective
    judge: Judge
    optimiser_of: Callable[[FlatNetworks], optax.GradientTransformation] = lambda networks: ADAM


def classification(kind_of: KindOf, loss: Loss, *, weighted: bool = False) -> Goal:
    """Return the goal of telling models apart: networks that give log odds, from rows that may end with a weight."""
    return Goal(kind_of, weighing(loss) if weighted else classifying(loss), held_out_cross_entropy)


def classifying(loss: Loss) -> Objective:
    """Return the mean loss of the network's log odds on a mini-batch of shape (models, batch, width)."""

    def objective(network: AbstractNetwork, batch: jax.Array, step: jax.Array) -> jax.Array:
        del step
        num_models, batch_size, width = batch.shape
        log_odds = network(batch.reshape(num_models * batch_size, width))
        return loss(log_odds, jnp.repeat(jnp.arange(num_models), batch_size)).mean()

    return objective


def weighing(loss: Loss) -> Objective:
    """Return the weighted mean loss on a mini-batch whose last column holds the weights."""

    def objective(network: AbstractNetwork, batch: jax.Array, step: jax.Array) -> jax.Array:
        del step
        num_models, batch_size, width = batch.shape
        rows = batch.reshape(num_models * batch_size, width)
        losses = loss(network(rows[:, :-1]), jnp.repeat(jnp.arange(num_models), batch_size))
        return (rows[:, -1] * losses).mean()

    return objective


def held_out_cross_entropy(log_odds: NDArray[np.float32]) -> float:
    """Return the cross-entropy of log odds, averaged over the models that the data sets came from.

    It judges whatever the loss and the mixture trained at: log odds mean the same under all of them, and
    cross-entropy, too, is least at the exact ones. Held-out powers of the ratio would hang on a few data sets.
    """
    return float(np.mean([cross_entropy(log_evidence(odds), label).mean() for label, odds in enumerate(log_odds)]))
