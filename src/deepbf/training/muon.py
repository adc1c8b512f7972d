"""Muon: steps of weight matrices made orthogonal, for what Adam is slow to learn."""

from __future__ import annotations

from typing import Any

import jax
import optax
import optax.contrib
from jax.flatten_util import ravel_pytree

from deepbf.training.optimise import LARGEST_GRADIENT, FlatNetworks

# Steps of a weight matrix, in learning rates: its entries then move about as far as Adam's would.
ORTHOGONAL_RATE = 3.0
# Matrices with fewer rows or columns are read-outs, which Adam does better.
FEWEST_ORTHOGONAL = 8


def muon_of(networks: FlatNetworks) -> optax.GradientTransformation:
    """Return Muon for the weight matrices of these networks, with Adam for everything else.

    Its steps go equally far in all directions of a matrix, those too that the loss hardly sees: what a network needs to
    say of rare data is learned in fewer steps.
    """
    layered = optax.chain(
        optax.clip_by_global_norm(LARGEST_GRADIENT),
        optax.contrib.muon(ORTHOGONAL_RATE, adam_learning_rate=1.0, muon_weight_dimension_numbers=matrix_axes),
    )

    def init(params: Any) -> Any:
        return layered.init(networks.arrays(params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        step, state = layered.update(networks.arrays(updates), state, networks.arrays(params))
        # Optimisers of optax point downhill; training walks against what it is given.
        return -ravel_pytree(step)[0], state

    return optax.GradientTransformation(init, update)


def matrix_axes(weights: Any) -> Any:
    """Return, for each array of weights, which axes make it a matrix, or None for those that Adam moves."""
    # Layers are written (outputs, inputs).
    axes = optax.contrib.MuonDimensionNumbers(reduction_axis=1, output_axis=0)

    def axes_of(array: jax.Array) -> optax.contrib.MuonDimensionNumbers | None:
        return axes if array.ndim == 2 and min(array.shape) >= FEWEST_ORTHOGONAL else None

    return jax.tree.map(axes_of, weights)
