"""Muon: matrices turn by the same amount in all directions, everything else moves as Adam has it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpy.testing import assert_allclose, assert_array_equal

from deepbf.losses import cross_entropy
from deepbf.networks import NETWORKS, InputLayout
from deepbf.networks.ensemble import init_ensemble
from deepbf.training.optimise import (
    ADAM,
    ORTHOGONAL_RATE,
    FlatNetworks,
    _matrix_axes,
    classifying,
    flat_networks,
    init_state,
    make_block,
    muon_of,
)

LAYOUT = InputLayout(num_linear=3, num_summary=9)


@pytest.fixture(scope="module")
def networks() -> FlatNetworks:
    return flat_networks(init_ensemble(NETWORKS["vector"]["gated"], LAYOUT, 2, 2, jax.random.key(1)))


def first_steps(networks: FlatNetworks):
    """Return the first step that Muon and Adam take on one made-up gradient, layer by layer."""
    weights = networks.weights[0]
    gradient = jnp.asarray(np.random.default_rng(1).normal(size=weights.shape), jnp.float32)
    steps = []
    for optimiser in (muon_of(networks.form.arrays), ADAM):
        step, _ = optimiser.update(gradient, optimiser.init(weights), weights)
        steps.append(networks.form.arrays(jnp.asarray(step)))
    return steps


def test_only_wide_matrices_are_made_orthogonal(networks: FlatNetworks) -> None:
    axes = _matrix_axes(networks.form.arrays(networks.weights[0]))
    assert axes.first.weight is not None
    assert all(layer.gate.weight is not None and layer.gate.bias is None for layer in axes.layers)
    assert axes.straight.weight is None
    assert axes.last.weight is None


def test_a_step_of_a_matrix_goes_as_far_in_all_directions(networks: FlatNetworks) -> None:
    muon, adam = first_steps(networks)
    spread = np.linalg.svd(np.asarray(muon.layers[0].gate.weight), compute_uv=False)
    # Five iterations leave singular values between 0.7 and 1.2; those of a random matrix spread over a thousandfold.
    assert spread.max() < 1.3 * ORTHOGONAL_RATE
    assert np.quantile(spread, 0.05) > 0.4 * ORTHOGONAL_RATE
    of_adam = np.linalg.svd(np.asarray(adam.layers[0].gate.weight), compute_uv=False)
    assert np.quantile(of_adam, 0.05) < 0.2 * of_adam.max()


def test_everything_else_moves_as_adam_has_it(networks: FlatNetworks) -> None:
    muon, adam = first_steps(networks)
    # Its Adam looks one step ahead, as Nesterov has it.
    adam = jax.tree.map(lambda step: (1 + 0.9 / 1.9) * step, adam)
    for name in ("straight", "last"):
        assert_allclose(getattr(muon, name).weight, getattr(adam, name).weight, rtol=1e-4)
    assert_allclose(muon.first.bias, adam.first.bias, rtol=1e-4)


def test_arrays_are_the_weights_layer_by_layer(networks: FlatNetworks) -> None:
    assert_array_equal(ravel_pytree(networks.form.arrays(networks.weights[1]))[0], networks.weights[1])


def test_it_learns(networks: FlatNetworks) -> None:
    optimiser = muon_of(networks.form.arrays)
    block = make_block(networks.form, classifying(cross_entropy), optimiser)
    centres = np.array([1.0, -1.0])[:, None, None]
    data = centres + np.random.default_rng(1).normal(size=(40, 2, 2, 64, LAYOUT.width))
    batches, rates = jnp.asarray(data, jnp.float32), jnp.full(40, 2e-3)
    state, early = block(init_state(networks.weights, optimiser), batches, rates, jnp.asarray(5, jnp.int32))
    _, late = block(state, batches, rates, jnp.asarray(40, jnp.int32))
    assert (np.asarray(late) < 0.3 * np.asarray(early)).all()
