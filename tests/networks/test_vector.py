"""Networks for vectors: the paper's sizes, and batch statistics that settle."""

from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from deepbf.networks import NETWORKS, InputLayout
from deepbf.networks.ensemble import init_ensemble
from deepbf.networks.paper_networks import BNN, FNN
from deepbf.networks.vector import ScaledMLP

KEY = jax.random.key(1)
ROWS = np.random.default_rng(1).normal(2, 3, (50, 7)).astype(np.float32)


def layout(width: int) -> InputLayout:
    return InputLayout(num_linear=width, num_summary=width)


def shapes_of(kind: Any, width: int, num_models: int = 2) -> Any:
    """Return the network with shapes in place of weights, which takes no time."""
    return eqx.filter_eval_shape(partial(kind, layout(width), num_models), key=KEY)


@cache
def network(name: str) -> Any:
    alone = init_ensemble(NETWORKS["vector"][name], layout(7), 3, 1, KEY)
    return jax.tree.map(lambda leaf: leaf[0] if eqx.is_array(leaf) else leaf, alone)


# Compiled as one program each, and once: op by op, the same takes seconds.
compiled = eqx.filter_jit(lambda chosen, rows: chosen(rows))
compiled_settle = eqx.filter_jit(lambda chosen, rows: chosen.settle(rows))


def run(chosen: Any, rows: Any) -> NDArray[np.float32]:
    assert len(rows) == len(ROWS)
    return np.asarray(compiled(chosen, jnp.asarray(rows, jnp.float32)))


def settle_on(rows: Any) -> Any:
    assert len(rows) == len(ROWS)
    return compiled_settle(network("bnn"), jnp.asarray(rows, jnp.float32))


@cache
def settled() -> Any:
    return settle_on(ROWS)


@pytest.mark.parametrize("num_models", [2, 4])
@pytest.mark.parametrize("width", [5, 128])
def test_fnn_has_the_papers_layers(width: int, num_models: int) -> None:
    layers = shapes_of(FNN, width, num_models).layers.layers
    assert [layer.weight.shape for layer in layers] == [(64, width), (64, 64), (64, 64), (num_models - 1, 64)]


def test_fnn_bends_by_relu() -> None:
    unbiased = eqx.tree_at(
        lambda n: [layer.bias for layer in n.layers.layers], network("fnn"), replace_fn=jnp.zeros_like
    )
    # Without biases a ReLU network scales with its input, and no smooth one does.
    once, thrice = run(unbiased, ROWS), run(unbiased, 3 * ROWS)
    assert_allclose(thrice, 3 * once, rtol=1e-3, atol=1e-4)
    assert not np.allclose(run(unbiased, -ROWS), -once, atol=0.1 * np.abs(once).max())


def test_the_first_layer_of_bnn_grows_with_the_input() -> None:
    first = {width: shapes_of(BNN, width).linears[0].weight.shape for width in (3, 32, 33, 200)}
    assert first == {3: (64, 3), 32: (64, 32), 33: (66, 33), 200: (400, 200)}


@pytest.mark.parametrize("width", [3, 200])
def test_bnn_narrows_from_layer_to_layer(width: int) -> None:
    chosen = shapes_of(BNN, width, 3)
    widths = [linear.weight.shape[0] for linear in chosen.linears]
    assert len(widths) == 3
    assert widths == sorted(widths, reverse=True)
    assert chosen.last.weight.shape == (2, widths[-1])
    assert [norm.gain.shape for norm in chosen.norms] == [(width,) for width in widths]


def test_before_settling_bnn_standardises_each_batch_by_itself() -> None:
    # A shift and a scale of the whole batch go away in the first normalisation.
    unmoved = run(network("bnn"), ROWS)
    assert_allclose(run(network("bnn"), 10 * ROWS + 100), unmoved, rtol=0.01, atol=0.01)
    in_other_company = np.concatenate([ROWS[:10], 5 * ROWS[10:]])
    assert not np.allclose(run(network("bnn"), in_other_company)[:10], unmoved[:10], atol=1e-2)


def test_after_settling_a_row_does_not_depend_on_its_batch() -> None:
    together = run(settled(), ROWS)
    assert_allclose(run(settled(), ROWS[::-1]), together[::-1], rtol=1e-4, atol=1e-5)
    assert_allclose(run(settled(), np.repeat(ROWS[:1], 50, axis=0))[7], together[0], rtol=1e-4, atol=1e-5)
    with_strangers = np.concatenate([ROWS[:9], np.full((41, 7), 1e4)])
    assert_allclose(run(settled(), with_strangers)[:9], together[:9], rtol=1e-4, atol=1e-5)


def test_settled_on_a_batch_bnn_answers_as_it_did_on_that_batch() -> None:
    by_batch = run(network("bnn"), ROWS)
    assert_allclose(run(settled(), ROWS), by_batch, rtol=1e-4, atol=1e-5)
    assert not np.allclose(run(settle_on(2 * ROWS + 2), ROWS), by_batch, atol=1e-2)


def test_settling_changes_no_weight() -> None:
    for before, after in zip(network("bnn").linears, settled().linears, strict=True):
        assert_array_equal(before.weight, after.weight)
        assert_array_equal(before.bias, after.bias)
    for before, after in zip(network("bnn").norms, settled().norms, strict=True):
        assert_array_equal(before.gain, after.gain)
        assert_array_equal(before.shift, after.shift)


def test_constant_columns_do_not_break_batch_normalisation() -> None:
    constant = np.full((50, 7), 3.0)
    assert np.isfinite(run(network("bnn"), constant)).all()
    assert np.isfinite(run(settle_on(constant), ROWS)).all()


def test_a_network_without_batch_statistics_settles_as_it_is() -> None:
    assert network("fnn").settle(jnp.asarray(ROWS)) is network("fnn")


@pytest.mark.parametrize("num_models", [2, 5])
@pytest.mark.parametrize("kind", [FNN, BNN, ScaledMLP])
def test_one_log_odds_a_model_but_the_last(kind: Any, num_models: int) -> None:
    odds = jax.eval_shape(lambda rows: kind(layout(7), num_models, key=KEY)(rows), jnp.asarray(ROWS))
    assert odds.shape == (50, num_models - 1)
