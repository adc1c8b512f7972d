"""Networks for vectors: the paper's sizes, and batch statistics that settle."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deepbf.networks import AbstractNetwork, InputLayout
from deepbf.networks.vector import BNN, FNN, ScaledMLP

KEY = jax.random.key(1)


def layout(width: int) -> InputLayout:
    return InputLayout(num_linear=width, num_summary=width)


def shapes(network: eqx.nn.MLP) -> list[tuple[int, ...]]:
    return [layer.weight.shape for layer in network.layers]


def reference_batch(num_rows: int = 50, width: int = 7) -> jax.Array:
    return jnp.asarray(np.random.default_rng(1).normal(2, 3, (num_rows, width)), jnp.float32)


@pytest.mark.parametrize("num_models", [2, 4])
@pytest.mark.parametrize("width", [5, 128])
def test_fnn_has_the_papers_layers(width: int, num_models: int) -> None:
    network = FNN(layout(width), num_models, key=KEY)
    assert shapes(network.layers) == [(64, width), (64, 64), (64, 64), (num_models - 1, 64)]
    # ReLU: without biases the network is positively homogeneous.
    unbiased = eqx.tree_at(lambda n: [layer.bias for layer in n.layers.layers], network, replace_fn=jnp.zeros_like)
    rows = reference_batch(4, width)
    assert_allclose(unbiased(3 * rows), 3 * unbiased(rows), rtol=1e-4, atol=1e-5)


def test_the_first_layer_of_bnn_grows_with_the_input() -> None:
    first = {width: BNN(layout(width), 2, key=KEY).linears[0].weight.shape for width in (3, 32, 33, 200)}
    assert first == {3: (64, 3), 32: (64, 32), 33: (66, 33), 200: (400, 200)}


@pytest.mark.parametrize("width", [3, 200])
def test_bnn_narrows_from_layer_to_layer(width: int) -> None:
    network = BNN(layout(width), 3, key=KEY)
    widths = [linear.weight.shape[0] for linear in network.linears]
    assert len(widths) == 3
    assert widths == sorted(widths, reverse=True)
    assert network.last.weight.shape == (2, widths[-1])
    assert [norm.gain.shape for norm in network.norms] == [(width,) for width in widths]


def test_before_settling_bnn_standardises_each_batch_by_itself() -> None:
    network = BNN(layout(7), 2, key=KEY)
    rows = reference_batch()
    # A shift and a scale of the whole batch go away in the first normalisation.
    unmoved, moved = network(rows), network(10 * rows + 100)
    assert_allclose(moved, unmoved, rtol=0.01, atol=0.01)
    assert not np.allclose(network(rows[:10]), unmoved[:10], atol=1e-3)


def test_after_settling_a_row_does_not_depend_on_its_batch() -> None:
    network = BNN(layout(7), 2, key=KEY)
    rows = reference_batch()
    settled = network.settle(rows)
    together = settled(rows)
    assert_allclose(settled(rows[:10]), together[:10], rtol=1e-5, atol=1e-6)
    assert_allclose(settled(rows[3:4]), together[3:4], rtol=1e-5, atol=1e-6)
    assert_allclose(settled(rows[::-1]), together[::-1], rtol=1e-5, atol=1e-6)
    with_stranger = jnp.concatenate([rows[:3], jnp.full((1, 7), 1e4)])
    assert_allclose(settled(with_stranger)[:3], together[:3], rtol=1e-5, atol=1e-6)


def test_settled_on_a_batch_bnn_answers_as_it_did_on_that_batch() -> None:
    network = BNN(layout(7), 3, key=KEY)
    rows = reference_batch()
    assert_allclose(network.settle(rows)(rows), network(rows), rtol=1e-4, atol=1e-5)
    assert not np.allclose(network.settle(rows[:5] + 2)(rows), network(rows), atol=1e-2)


def test_settling_changes_no_weight() -> None:
    network = BNN(layout(7), 2, key=KEY)
    settled = network.settle(reference_batch())
    for before, after in zip(network.linears, settled.linears, strict=True):
        assert_array_equal(before.weight, after.weight)
    for before, after in zip(network.norms, settled.norms, strict=True):
        assert_array_equal(before.gain, after.gain)


def test_constant_columns_do_not_break_batch_normalisation() -> None:
    network = BNN(layout(7), 2, key=KEY)
    constant = jnp.full((20, 7), 3.0)
    assert np.isfinite(network(constant)).all()
    assert np.isfinite(network.settle(constant)(reference_batch())).all()


@pytest.mark.parametrize("kind", [FNN, ScaledMLP])
def test_networks_without_batch_statistics_settle_as_they_are(kind: type[AbstractNetwork]) -> None:
    network = kind(layout(7), 2, key=KEY)  # pyright: ignore[reportCallIssue]
    assert network.settle(reference_batch()) is network


@pytest.mark.parametrize("num_models", [2, 5])
@pytest.mark.parametrize("kind", [FNN, BNN, ScaledMLP])
def test_one_log_odds_a_model_but_the_last(kind: type[AbstractNetwork], num_models: int) -> None:
    network = kind(layout(7), num_models, key=KEY)  # pyright: ignore[reportCallIssue]
    assert network(reference_batch()).shape == (50, num_models - 1)
