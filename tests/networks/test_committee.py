"""Committees: how far parts are believed, and that members bet on different ones."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from deepbf.networks.base import AbstractNetwork, FreeNetwork, InputLayout, NetworkKind
from deepbf.networks.ensemble import (
    DOUBT,
    Committee,
    cautious_scale,
    committee_kind,
    ensemble_log_odds,
    ensemble_parts,
    init_ensemble,
    spread_weights,
    stacking_weights,
)
from deepbf.networks.vector import ScaledMLP, plain_vector, prepare_vector
from tests.reading import read


def held_out(num_datasets: int = 4000) -> tuple[np.ndarray, ...]:
    """Return exact log odds of N(1/2, 1) against N(-1/2, 1), at data of each."""
    rng = np.random.default_rng(1)
    return tuple(rng.normal(mean, 1.0, (num_datasets, 1)) for mean in (0.5, -0.5))


def mean_loss(weights: np.ndarray, parts: list[np.ndarray]) -> float:
    first, second = (np.tensordot(weights, own, axes=1)[:, 0] for own in parts)
    return 0.5 * float(np.logaddexp(0, -first).mean() + np.logaddexp(0, second).mean())


def test_the_exact_answer_is_believed_and_blind_or_noisy_parts_are_not() -> None:
    rng = np.random.default_rng(2)
    parts = [np.stack([odds, 0 * odds, odds + 3 * rng.standard_normal(odds.shape)]) for odds in held_out()]
    weights = stacking_weights(parts)
    assert weights[0] > 0.95
    assert weights.sum() == pytest.approx(1.0)


def test_weights_have_the_least_loss_on_a_grid() -> None:
    rng = np.random.default_rng(3)
    parts = [np.stack([odds + 0.8 * rng.standard_normal(odds.shape) for _ in range(2)]) for odds in held_out()]
    found = mean_loss(stacking_weights(parts), parts)
    grid = min(mean_loss(np.array([w, 1 - w]), parts) for w in np.linspace(0, 1, 201))
    assert found < grid + 1e-7
    # Two parts with noise of their own are better together than either alone.
    assert found < min(mean_loss(np.eye(2)[k], parts) for k in range(2)) - 0.001


def test_small_differences_of_loss_decide() -> None:
    # One part is off by 2% in its scale, the other by 10%: their losses differ in the fourth digit.
    weights = stacking_weights([np.stack([1.02 * odds, 1.1 * odds]) for odds in held_out(100_000)])
    assert weights[0] > 0.6


def test_of_three_models_the_part_that_knows_is_believed() -> None:
    rng = np.random.default_rng(4)
    known = [rng.normal(np.eye(3)[label, :2] * 2, 1.0, (500, 2)) for label in range(3)]
    assert stacking_weights([np.stack([odds, -odds]) for odds in known])[0] > 0.9


def test_a_preferred_part_yields_to_more_than_chance_alone() -> None:
    rng = np.random.default_rng(5)
    exact = held_out()
    # The other part has the same loss but for chance: the preferred one is believed; a worse one is not.
    noisy = [odds + 0.02 * rng.standard_normal(odds.shape) for odds in exact]
    assert_allclose(stacking_weights([np.stack(pair) for pair in zip(noisy, exact, strict=True)], preferred=0), [1, 0])
    blind = [np.stack([0 * odds, odds]) for odds in exact]
    assert stacking_weights(blind, preferred=0)[1] > 0.95


@pytest.mark.parametrize("num_members", [2, 4, 8])
def test_members_bet_about_the_weights_with_the_spread_of_a_bet(num_members: int) -> None:
    weights = np.array([0.7, 0.3])
    spread = spread_weights(weights, num_members)
    assert_allclose(spread.mean(axis=0), weights)
    assert_allclose(spread.sum(axis=1), 1.0)
    if num_members > 2:
        doubted = (1 - DOUBT) * weights + DOUBT / 2
        assert_allclose(np.cov(spread.T), np.diag(doubted) - np.outer(doubted, doubted), atol=1e-12)


def test_a_part_that_is_not_believed_adds_little_spread_and_one_member_bets_nothing() -> None:
    spread = spread_weights(np.array([1.0, 0.0]), 4)
    assert_allclose(spread[:, 1].std(ddof=1), np.sqrt((1 - DOUBT / 2) * DOUBT / 2))
    assert_allclose(spread.mean(axis=0), [1.0, 0.0], atol=1e-12)
    assert_allclose(spread_weights(np.array([0.7, 0.3]), 1), [[0.7, 0.3]])


class Constant(AbstractNetwork):
    value: jax.Array

    def __call__(self, inputs: jax.Array) -> jax.Array:
        return jnp.full((len(inputs), 1), self.value)


def test_parts_that_disagree_show_in_the_spread_of_the_members() -> None:
    networks = Committee(
        tuple(Constant(jnp.full(4, value)) for value in (1.0, 3.0)), jnp.zeros((4, 2)), ((0, 2), (0, 2)), (1.0, 1.0)
    ).believing(spread_weights(np.array([0.5, 0.5]), 4))
    odds = np.asarray(ensemble_log_odds(networks, jnp.zeros((3, 2))))
    assert_allclose(odds.mean(axis=0), 2.0, rtol=1e-6)
    # Half of the belief on 1 and half on 3: one unit either way.
    assert_allclose(odds.std(axis=0, ddof=1), 1.0, rtol=1e-6)


def test_what_members_bet_on_leaves_their_mean_that_of_the_parts() -> None:
    rng = np.random.default_rng(6)
    values = rng.standard_normal((3, 5))
    weights = np.array([0.5, 0.3, 0.2])
    networks = Committee(
        tuple(Constant(jnp.asarray(own)) for own in values), jnp.zeros((5, 3)), ((0, 2),) * 3, (1.0,) * 3
    ).believing(spread_weights(weights, 5))
    for spread in (1.0, 1.8):
        odds = np.asarray(ensemble_log_odds(networks, jnp.zeros((2, 2)), spread))
        # Every member's errors average out, in every part, whoever bets on it.
        assert_allclose(odds.mean(axis=0)[:, 0], weights @ values.mean(axis=1), atol=1e-6)


@pytest.mark.parametrize("num_models", [2, 3])
def test_cautious_log_odds_are_found_out_and_no_others_are_changed(num_models: int) -> None:
    rng = np.random.default_rng(7)
    # Normal data about the corners of a simplex: the log odds against the last are linear.
    means = np.eye(num_models)
    exact = []
    for mean in means:
        data = mean + rng.standard_normal((4_000, num_models))
        exact.append(data[:, :-1] - data[:, -1:])
    assert cautious_scale(exact) < 1.05
    assert cautious_scale([1.5 * odds for odds in exact]) == 1.0
    found = cautious_scale([odds / 1.5 for odds in exact])
    # Less a standard error, which is below 0.05 here.
    assert 1.35 < found < 1.55


def test_a_scale_is_not_believed_beyond_its_chance_and_bounded_where_models_are_never_mistaken() -> None:
    rng = np.random.default_rng(8)
    said_little = [rng.normal(0.1 * side, 1.0, (40, 1)) for side in (1, -1)]
    assert cautious_scale([0.1 * odds for odds in said_little]) < 1.5
    assert cautious_scale([np.full((50, 1), 30.0), np.full((50, 1), -30.0)]) == 1.0
    assert 1.5 < cautious_scale([np.full((50, 1), 1.0), np.full((50, 1), -1.0)]) < 2.0
    assert cautious_scale([np.zeros((50, 1)), np.zeros((50, 1))]) == 1.0


def test_distances_from_the_mean_are_spread_out() -> None:
    layout = InputLayout(0, 5)
    networks = init_ensemble(NetworkKind(plain_vector, ScaledMLP, 1e-3), layout, 2, 3, jax.random.key(1))
    rows = jax.random.normal(jax.random.key(2), (10, 5))
    plain, wide = (np.asarray(ensemble_log_odds(networks, rows, spread)) for spread in (1.0, 2.0))
    assert_allclose(wide.mean(axis=0), plain.mean(axis=0), atol=1e-6)
    assert_allclose(wide.std(axis=0), 2 * plain.std(axis=0), rtol=1e-4)


def test_every_part_reads_its_own_columns() -> None:
    pilot = [np.random.default_rng(k).standard_normal((300, 4)).astype(np.float32) for k in range(2)]
    kind = committee_kind(NetworkKind(prepare_vector, ScaledMLP, 5e-3), NetworkKind(plain_vector, FreeNetwork, 2e-3))
    preparation = kind.fit_preparation(pilot)
    layout = preparation.layout((4,))
    rows = jnp.asarray(read(preparation, pilot[0]))
    assert rows.shape == (300, layout.width)
    assert layout.width == layout.num_summary + layout.num_beside
    networks = init_ensemble(kind, layout, 2, 2, jax.random.key(1))
    parts = np.asarray(ensemble_parts(networks, rows))
    assert parts.shape == (2, 300, 1)
    # The informed network does not see the plain view, nor the free one the summary.
    changed = rows.at[:, layout.num_summary :].add(1.0)
    np.testing.assert_array_equal(np.asarray(ensemble_parts(networks, changed))[0], parts[0])
    assert isinstance(networks, Committee)
    trained = eqx.tree_at(lambda c: c.networks[1].layers.layers[-1].weight, networks, jnp.ones((2, 1, 64)))
    before, after = (np.asarray(ensemble_parts(trained, rows.at[:, : layout.num_summary].add(k))) for k in (0.0, 1.0))
    np.testing.assert_array_equal(before[1], after[1])
    assert np.abs(before[0] - after[0]).max() > 0
