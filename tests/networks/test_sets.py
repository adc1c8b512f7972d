"""Networks for sets: the order of the observations never matters, the observations do."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from deepbf.networks import InputLayout
from deepbf.networks.paper_networks import OBSERVATIONS_AT_ONCE, DeepSet2, mean_over_observations
from deepbf.networks.sets import DeepSet
from tests.untrained import SET_NETWORKS, pilot_data, untrained

KEY = jax.random.key(1)


def shapes(network: Any) -> list[tuple[int, ...]]:
    return [layer.weight.shape for layer in network.layers]


@pytest.mark.parametrize(("network", "data_shape"), SET_NETWORKS)
def test_the_order_of_observations_does_not_matter(network: str, data_shape: tuple[int, ...]) -> None:
    estimator = untrained("exchangeable", network, data_shape)
    data = np.concatenate(pilot_data(data_shape))[300 - 8 : 300 + 8]
    log_bf = estimator.log_bf(data)
    rng = np.random.default_rng(2)
    for _ in range(3):
        shuffled = estimator.log_bf(data[:, rng.permutation(data_shape[0])])
        assert_allclose(shuffled, log_bf, rtol=1e-5, atol=1e-5 * np.abs(log_bf).max())
    # The same numbers in other data sets, or in other columns of an observation, are another matter.
    assert np.abs(estimator.log_bf(data[::-1]) - log_bf).max() > 1e-3 * np.abs(log_bf).max()
    if len(data_shape) == 2:
        assert np.abs(estimator.log_bf(data[:, :, ::-1]) - log_bf).max() > 1e-3 * np.abs(log_bf).max()


def test_the_papers_vector_network_does_see_the_order() -> None:
    estimator = untrained("exchangeable", "fnn")
    data = pilot_data((13,))[0][:16]
    assert not np.allclose(estimator.log_bf(data[:, ::-1]), estimator.log_bf(data), rtol=1e-2)


@pytest.mark.parametrize("num_models", [2, 4])
@pytest.mark.parametrize("obs_dim", [1, 3])
def test_deepset2_has_the_papers_layers(obs_dim: int, num_models: int) -> None:
    layout = InputLayout(num_linear=0, num_summary=0, num_obs=20, obs_dim=obs_dim)
    network = eqx.filter_eval_shape(partial(DeepSet2, layout, num_models), key=KEY)
    assert shapes(network.first) == [(64, obs_dim), (64, 64), (64, 64), (16, 64)]
    assert shapes(network.second) == [(64, 1), (64, 64), (64, 64), (2, 64)]
    assert shapes(network.classifier) == [(64, 2), (64, 64), (64, 64), (num_models - 1, 64)]


# One block, blocks that do not come out even, and sets larger than a block.
@pytest.mark.parametrize(("num_sets", "num_obs"), [(5, 3), (23, 100), (3, OBSERVATIONS_AT_ONCE + 7)])
def test_blocks_change_neither_means_nor_gradients(num_sets: int, num_obs: int) -> None:
    network = eqx.nn.MLP(2, 4, 8, 3, key=KEY)
    observations = jax.random.normal(KEY, (num_sets, num_obs, 2))

    def one_by_one(network: eqx.nn.MLP, observations: jax.Array) -> jax.Array:
        return jax.vmap(jax.vmap(network))(observations).mean(axis=1)

    def gradient(means: Any) -> list[jax.Array]:
        found = eqx.filter_grad(lambda network: (means(network, observations) ** 2).sum())(network)
        return jax.tree.leaves(eqx.filter(found, eqx.is_array))

    expected = one_by_one(network, observations)
    assert_allclose(mean_over_observations(network, observations), expected, rtol=1e-5, atol=1e-6)
    for ours, theirs in zip(gradient(mean_over_observations), gradient(one_by_one), strict=True):
        assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max())


@pytest.mark.parametrize("num_models", [2, 3])
def test_one_log_odds_a_model_but_the_last(num_models: int) -> None:
    observations = InputLayout(num_linear=0, num_summary=0, num_obs=5, obs_dim=2)
    summary = InputLayout(num_linear=4, num_summary=10)

    def run(kind: type[DeepSet], layout: InputLayout) -> Any:
        return jax.eval_shape(lambda key: kind(layout, num_models, key=key)(jax.random.normal(key, (6, 10))), KEY)

    assert run(DeepSet, summary).shape == (6, num_models - 1)
    assert run(DeepSet2, observations).shape == (6, num_models - 1)  # pyright: ignore[reportArgumentType]
