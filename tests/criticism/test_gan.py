from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deepbf.criticism.gan import CRITIC_RATE, GENERATOR_RATE, BayesianGan, three_rates
from deepbf.networks.base import InputLayout
from deepbf.training.optimise import flat_networks

NUM_SUMMARY = 4
LOSS = eqx.filter_jit(lambda gan, batch, step: gan.loss(batch, step))
GRADIENT = eqx.filter_jit(eqx.filter_grad(lambda gan, batch, step: gan.loss(batch, step)))
BATCH = jax.random.normal(jax.random.key(3), (1, 64, NUM_SUMMARY + 2))


@cache
def make_gan(seed: int = 1) -> BayesianGan:
    layout = InputLayout(3, NUM_SUMMARY, 1, 2)
    return eqx.filter_jit(lambda key: BayesianGan(layout, 1, key=key))(jax.random.key(seed))


def norm_of(part: object) -> float:
    return float(sum(jnp.abs(leaf).sum() for leaf in jax.tree.leaves(eqx.filter(part, eqx.is_array))))


@pytest.mark.slow
def test_each_part_follows_its_own_loss() -> None:
    gan = make_gan()
    gradient = GRADIENT(gan, BATCH, jnp.asarray(0))
    assert all(norm_of(part) > 0 for part in (gradient.frame, gradient.generator, gradient.critic))
    # The frame is regression: another critic changes nothing for it, and neither does another generator.
    other = make_gan(2)
    swapped = eqx.tree_at(lambda one: (one.generator, one.critic), gan, (other.generator, other.critic))
    again = GRADIENT(swapped, BATCH, jnp.asarray(0))
    for first, second in zip(jax.tree.leaves(gradient.frame), jax.tree.leaves(again.frame), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-7)


def test_noise_changes_with_the_step() -> None:
    gan = make_gan()
    values = [float(LOSS(gan, BATCH, jnp.asarray(step))) for step in (0, 0, 1)]
    assert values[0] == values[1] != values[2]


def test_the_parts_move_at_their_rates() -> None:
    stacked = jax.tree.map(lambda leaf: leaf[None] if eqx.is_array(leaf) else leaf, make_gan())
    networks = flat_networks(stacked)
    optimiser = three_rates(networks.form)
    weights = networks.weights[0]
    update, _ = optimiser.update(jnp.ones_like(weights), optimiser.init(weights), weights)
    moved = networks.form.networks(jnp.asarray(update))
    assert isinstance(moved, BayesianGan)
    size = float(jnp.abs(moved.frame.straight.weight).mean())
    for part, rate in ((moved.generator, GENERATOR_RATE), (moved.critic, CRITIC_RATE)):
        for leaf in jax.tree.leaves(eqx.filter(part, eqx.is_array)):
            np.testing.assert_allclose(leaf, rate * size, rtol=1e-4)


def test_the_score_is_least_for_the_right_draws() -> None:
    gan = make_gan()
    rows = jnp.concatenate([jnp.zeros((2000, NUM_SUMMARY)), jax.random.normal(jax.random.key(5), (2000, 2))], axis=1)
    location, _ = gan.frame(jnp.zeros(NUM_SUMMARY))
    shifted = rows.at[:, NUM_SUMMARY:].add(location + 2.0)
    centred = rows.at[:, NUM_SUMMARY:].add(location)
    assert float(gan(centred).mean()) < float(gan(shifted).mean())
