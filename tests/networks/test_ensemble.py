"""Ensembles: members start apart, run together, and never see each other."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deepbf.networks import NETWORKS, InputLayout
from deepbf.networks.ensemble import blank_ensemble, ensemble_log_odds, in_batches, init_ensemble, settle_ensemble
from tests.untrained import EVERY_NETWORK, untrained

LAYOUT = InputLayout(num_linear=3, num_summary=3)
MLP = NETWORKS["vector"]["mlp"]


def test_members_differ_and_the_same_key_gives_the_same_members() -> None:
    rows = jax.random.normal(jax.random.key(0), (5, 3))
    once, again, other = (
        np.asarray(ensemble_log_odds(init_ensemble(MLP, LAYOUT, 3, 4, jax.random.key(seed)), rows)) for seed in (1, 1, 2)
    )
    assert once.shape == (4, 5, 2)
    assert_array_equal(once, again)
    assert not np.allclose(once, other, atol=1e-3)
    for m in range(1, 4):
        assert not np.allclose(once[0], once[m], atol=1e-3)


def test_running_together_is_running_each_alone() -> None:
    networks = init_ensemble(MLP, LAYOUT, 2, 3, jax.random.key(1))
    rows = jax.random.normal(jax.random.key(0), (5, 3))
    together = ensemble_log_odds(networks, rows)
    for m in range(3):
        member = jax.tree.map(lambda leaf, m=m: leaf[m] if eqx.is_array(leaf) else leaf, networks)
        assert_allclose(member(rows), together[m], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("structure", "network"), EVERY_NETWORK)
def test_a_blank_ensemble_has_the_shapes_of_a_settled_one(structure: str, network: str) -> None:
    estimator = untrained(structure, network, num_members=2)
    layout = estimator.ensemble.preparation.layout((13,))
    blank = blank_ensemble(NETWORKS[structure][network], layout, 2, 2)
    assert jax.tree.structure(blank) == jax.tree.structure(estimator.ensemble.networks)
    for expected, leaf in zip(jax.tree.leaves(blank), jax.tree.leaves(estimator.ensemble.networks), strict=True):
        if eqx.is_array(leaf):
            assert (leaf.shape, leaf.dtype) == (expected.shape, expected.dtype)


def test_settling_reaches_every_member() -> None:
    networks = init_ensemble(NETWORKS["vector"]["bnn"], LAYOUT, 2, 3, jax.random.key(1))
    rows = jax.random.normal(jax.random.key(0), (20, 3))
    settled = settle_ensemble(networks, rows)
    assert_allclose(ensemble_log_odds(settled, rows), ensemble_log_odds(networks, rows), rtol=1e-3, atol=1e-4)
    assert_allclose(ensemble_log_odds(settled, rows[:4]), ensemble_log_odds(settled, rows)[:, :4], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("with_before", [False, True])
@pytest.mark.parametrize("num_rows", [1, 4, 5, 8, 11])
def test_batches_never_show_in_the_result(num_rows: int, with_before: bool) -> None:
    data = np.arange(3 * num_rows, dtype=np.float64).reshape(num_rows, 3)
    seen = []

    def double(batch: jax.Array) -> jax.Array:
        seen.append(batch.shape)
        return 2 * batch

    before = (lambda batch: (np.asarray(batch) + 1).astype(np.float32)) if with_before else None
    result = in_batches(double, data, 4, before=before)
    assert_array_equal(result, 2 * (data + with_before))
    # One shape only: the function is compiled once.
    assert set(seen) == {(4, 3)}


def test_the_batch_may_be_on_another_axis() -> None:
    data = np.arange(22, dtype=np.float32).reshape(11, 2)
    result = in_batches(lambda batch: jnp.stack([batch, -batch, 0 * batch]), data, 4, axis=1)
    assert_array_equal(result, np.stack([data, -data, 0 * data]))
