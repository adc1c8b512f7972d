"""Ensembles: members start apart, run together, and never see each other."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from deepbf._compilation import in_batches
from deepbf.networks import NETWORKS, AbstractNetwork, InputLayout, network_kind
from deepbf.networks.ensemble import blank_ensemble, ensemble_log_odds, init_ensemble, settle_ensemble
from tests.untrained import EVERY_NETWORK, untrained

LAYOUT = InputLayout(num_linear=3, num_summary=3)
ROWS = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)


@cache
def ensemble(network: str, seed: int) -> AbstractNetwork:
    return init_ensemble(NETWORKS["vector"][network], LAYOUT, 3, 4, jax.random.key(seed))


compiled = eqx.filter_jit(ensemble_log_odds)


def run(networks: AbstractNetwork, rows: Any) -> NDArray[np.float32]:
    return np.asarray(compiled(networks, jnp.asarray(rows)))


def test_members_differ() -> None:
    log_odds = run(ensemble("mlp", 1), ROWS)
    assert log_odds.shape == (4, 20, 2)
    for m in range(1, 4):
        assert not np.allclose(log_odds[0], log_odds[m], atol=1e-3)


def test_the_same_key_gives_the_same_members() -> None:
    again = init_ensemble(NETWORKS["vector"]["mlp"], LAYOUT, 3, 4, jax.random.key(1))
    other = ensemble("mlp", 2)
    assert_array_equal(run(again, ROWS), run(ensemble("mlp", 1), ROWS))
    assert not np.allclose(run(other, ROWS), run(ensemble("mlp", 1), ROWS), atol=1e-3)


def test_running_together_is_running_each_alone() -> None:
    networks = ensemble("mlp", 1)
    together = run(networks, ROWS)
    alone = eqx.filter_jit(lambda network, rows: network(rows))
    for m in range(4):
        member = jax.tree.map(lambda leaf, m=m: leaf[m] if eqx.is_array(leaf) else leaf, networks)
        assert_allclose(alone(member, jnp.asarray(ROWS)), together[m], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("structure", "network"), EVERY_NETWORK)
def test_a_blank_ensemble_has_the_shapes_of_a_settled_one(structure: str, network: str) -> None:
    estimator = untrained(structure, network)
    layout = estimator.ensemble.preparation.layout(estimator.layout.shape)
    blank = blank_ensemble(network_kind(estimator.layout, network), layout, 2, 2)
    assert jax.tree.structure(blank) == jax.tree.structure(estimator.ensemble.networks)
    for expected, leaf in zip(jax.tree.leaves(blank), jax.tree.leaves(estimator.ensemble.networks), strict=True):
        if eqx.is_array(leaf):
            assert (leaf.shape, leaf.dtype) == (expected.shape, expected.dtype)


def test_settling_reaches_every_member() -> None:
    settled = settle_ensemble(ensemble("bnn", 1), jnp.asarray(ROWS))
    assert_allclose(run(settled, ROWS), run(ensemble("bnn", 1), ROWS), rtol=1e-3, atol=1e-4)
    in_other_company = np.concatenate([ROWS[:4], 5 * ROWS[4:]])
    assert_allclose(run(settled, in_other_company)[:, :4], run(settled, ROWS)[:, :4], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("with_before", [False, True])
@pytest.mark.parametrize("num_rows", [1, 4, 5, 8, 11])
def test_batches_never_show_in_the_result(num_rows: int, with_before: bool) -> None:
    data = np.arange(3 * num_rows, dtype=np.float64).reshape(num_rows, 3)
    seen = []

    def double(batch: jax.Array) -> jax.Array:
        seen.append(batch.shape)
        return 2 * batch

    before = (lambda batch: (np.asarray(batch, np.float64) + 1).astype(np.float32)) if with_before else None
    result = in_batches(double, data, 4, before=before)
    assert_array_equal(result, 2 * (data + with_before))
    # One shape only: the function is compiled once.
    assert set(seen) == {(4, 3)}


def test_the_batch_may_be_on_another_axis() -> None:
    data = np.arange(22, dtype=np.float32).reshape(11, 2)
    result = in_batches(lambda batch: jnp.stack([batch, -batch, 0 * batch]), data, 4, axis=1)
    assert_array_equal(result, np.stack([data, -data, 0 * data]))
