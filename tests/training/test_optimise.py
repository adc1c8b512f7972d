"""A block of steps: cutting it differently changes no bit, and members never see each other."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy import integrate, stats

from deepbf.losses import cross_entropy
from deepbf.networks import NETWORKS, InputLayout
from deepbf.networks.ensemble import ensemble_log_odds, init_ensemble
from deepbf.training.optimise import (
    LARGEST_GRADIENT,
    FlatNetworks,
    TrainingState,
    classifying,
    flat_networks,
    init_state,
    make_block,
)

NUM_STEPS = 12
NUM_MEMBERS = 2


@pytest.fixture(scope="module")
def networks() -> FlatNetworks:
    layout = InputLayout(num_linear=1, num_summary=1)
    return flat_networks(init_ensemble(NETWORKS["vector"]["mlp"], layout, 2, NUM_MEMBERS, jax.random.key(1)))


@pytest.fixture(scope="module")
def block(networks: FlatNetworks) -> Any:
    return make_block(networks.form, classifying(cross_entropy))


def batches(seed: int = 1, size: float = 1.0) -> NDArray[np.float32]:
    """Return batches of two normals, one at 1 and one at -1: log odds 2x."""
    centres = np.array([1.0, -1.0])[:, None, None]
    rng = np.random.default_rng(seed)
    return (size * (centres + rng.normal(size=(NUM_STEPS, NUM_MEMBERS, 2, 32, 1)))).astype(np.float32)


def run(block: Any, state: TrainingState, data: NDArray[np.float32], rate: float, num_active: int) -> Any:
    rates = np.full(NUM_STEPS, rate, np.float32)
    return block(state, jnp.asarray(data), jnp.asarray(rates), jnp.asarray(num_active, jnp.int32))


def test_flat_weights_go_back_to_the_same_networks() -> None:
    layout = InputLayout(num_linear=1, num_summary=1)
    original = init_ensemble(NETWORKS["vector"]["mlp"], layout, 2, 3, jax.random.key(2))
    flat = flat_networks(original)
    assert flat.weights.shape[0] == 3
    rows = jnp.linspace(-1, 1, 5)[:, None]
    compiled = eqx.filter_jit(ensemble_log_odds)
    assert_array_equal(compiled(flat.form.networks(flat.weights), rows), compiled(original, rows))


def test_one_block_or_two_give_the_same_bits(networks: FlatNetworks, block: Any) -> None:
    data = batches()
    whole, _ = run(block, init_state(networks.weights), data, 0.01, NUM_STEPS)
    half, _ = run(block, init_state(networks.weights), data, 0.01, 5)
    rest = np.concatenate([data[5:], data[:5]])
    both, _ = run(block, half, rest, 0.01, NUM_STEPS - 5)
    assert_array_equal(both.weights, whole.weights)
    assert_array_equal(both.averaged, whole.averaged)
    assert int(both.num_steps) == int(whole.num_steps) == NUM_STEPS


def test_only_the_active_steps_count(networks: FlatNetworks, block: Any) -> None:
    data = batches()
    spoiled = data.copy()
    spoiled[4:] = np.nan
    clean, clean_loss = run(block, init_state(networks.weights), data, 0.01, 4)
    same, same_loss = run(block, init_state(networks.weights), spoiled, 0.01, 4)
    assert_array_equal(same.weights, clean.weights)
    assert_array_equal(same_loss, clean_loss)
    assert int(same.num_steps) == 4


def test_members_do_not_see_each_others_data(networks: FlatNetworks, block: Any) -> None:
    data = batches()
    changed = data.copy()
    changed[:, 1] = batches(seed=2)[:, 1]
    plain, _ = run(block, init_state(networks.weights), data, 0.01, NUM_STEPS)
    other, _ = run(block, init_state(networks.weights), changed, 0.01, NUM_STEPS)
    assert_array_equal(other.weights[0], plain.weights[0])
    assert not np.array_equal(other.weights[1], plain.weights[1])


def test_at_rate_zero_nothing_moves(networks: FlatNetworks, block: Any) -> None:
    state, loss = run(block, init_state(networks.weights), batches(), 0.0, NUM_STEPS)
    assert_array_equal(state.weights, networks.weights)
    assert_allclose(state.averaged, networks.weights, rtol=1e-6)
    assert loss.shape == (NUM_MEMBERS,)


def test_no_step_is_longer_than_its_rate(networks: FlatNetworks, block: Any) -> None:
    # Adam's steps are about the rate in size, however wild the batch.
    state, _ = run(block, init_state(networks.weights), batches(size=1e6), 0.01, 1)
    assert np.abs(np.asarray(state.weights - networks.weights)).max() <= 0.0101
    assert LARGEST_GRADIENT == 1.0


def test_steps_make_the_loss_smaller(networks: FlatNetworks, block: Any) -> None:
    state = init_state(networks.weights)
    losses = []
    for round_number in range(20):
        state, loss = run(block, state, batches(seed=round_number), 0.01, NUM_STEPS)
        losses.append(np.asarray(loss))
    assert (losses[-1] < losses[0]).all()
    # The exact log odds are 2x; their cost is the integral of log(1 + exp(-2x)) under the normal at 1.
    exact, _ = integrate.quad(lambda x: stats.norm.pdf(x, 1) * np.logaddexp(0, -2 * x), -10, 12)
    assert_allclose(np.mean(losses[-5:]), exact, atol=0.03)


def test_averaged_weights_stay_between_those_averaged(networks: FlatNetworks, block: Any) -> None:
    state = init_state(networks.weights)
    visited = []
    for step in range(NUM_STEPS):
        state, _ = run(block, state, np.roll(batches(), -step, axis=0), 0.01, 1)
        visited.append(np.asarray(state.weights))
        if step == 0:
            # Where training started has no weight at all.
            assert_allclose(state.averaged, visited[0], rtol=1e-5, atol=1e-7)
    averaged = np.asarray(state.averaged)
    assert (averaged >= np.min(visited, axis=0) - 1e-5).all()
    assert (averaged <= np.max(visited, axis=0) + 1e-5).all()
    assert np.abs(averaged - visited[-1]).max() > 1e-3
