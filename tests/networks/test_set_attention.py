"""Set attention: absent observations never matter, and what observations say together can be learned."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

import deepbf
from deepbf.networks import NETWORKS, AbstractNetwork, AbstractPreparation
from deepbf.networks.ensemble import init_ensemble
from deepbf.networks.set_attention import InducedLayer

KIND = NETWORKS["exchangeable"]["set-attention"]


def built(data_shape: tuple[int, ...]) -> tuple[AbstractPreparation, AbstractNetwork]:
    """Return preparation and network for data sets of which a part is absent."""
    rng = np.random.default_rng(1)
    pilot = [(1 + k) * rng.normal(size=(200, *data_shape)).astype(np.float32) for k in range(2)]
    for data in pilot:
        data[np.arange(data_shape[0]) >= rng.integers(1, data_shape[0] + 1, (200, 1))] = np.nan
    preparation = KIND.fit_preparation(pilot)
    networks = init_ensemble(KIND, preparation.layout(data_shape), 2, 1, jax.random.key(0))
    return preparation, jax.tree.map(lambda leaf: leaf[0] if eqx.is_array(leaf) else leaf, networks)


@pytest.mark.slow
def test_absent_observations_are_never_looked_at() -> None:
    preparation, network = built((9, 2))
    answer = eqx.filter_jit(lambda data: network(preparation(data)))
    data = np.random.default_rng(3).normal(size=(4, 9, 2)).astype(np.float32)
    data[:, 5:] = np.nan
    scattered = np.full_like(data, np.nan)
    scattered[:, [1, 3, 4, 6, 8]] = data[:, :5]
    at_the_end, in_between = (answer(jnp.asarray(d)) for d in (data, scattered))
    np.testing.assert_allclose(at_the_end, in_between, rtol=1e-4, atol=1e-5)
    assert np.isfinite(at_the_end).all()


@pytest.mark.slow
def test_a_layer_lets_observations_see_each_other() -> None:
    layer = InducedLayer(key=jax.random.key(1))
    rows = jax.random.normal(jax.random.key(2), (6, 16))
    present = jnp.ones(6)
    before = layer(rows, present)[0]
    assert float(jnp.abs(layer(rows.at[5].add(1.0), present)[0] - before).max()) > 1e-4
    # But not those that are absent.
    without = present.at[5].set(0.0)
    np.testing.assert_array_equal(layer(rows.at[5].add(1.0), without)[0], layer(rows, without)[0])


# Two pairs of near twins, shuffled, against four of a kind; exact, by averaging over the three ways to pair.
TWIN_SPREAD = 0.15


def twins(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    centres = rng.normal(size=(size, 2, 1))
    return rng.permuted((centres + TWIN_SPREAD * rng.normal(size=(size, 2, 2))).reshape(size, 4), axis=1)


def strangers(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.normal(0, np.hypot(1, TWIN_SPREAD), (size, 4))


def twins_log_bf(data: NDArray[np.float64]) -> NDArray[np.float64]:
    variance = 1 + TWIN_SPREAD**2
    determinant = variance**2 - 1

    def of_pair(i: int, j: int) -> NDArray[np.float64]:
        x, y = data[:, i], data[:, j]
        square = (variance * x * x - 2 * x * y + variance * y * y) / determinant
        return -0.5 * square - 0.5 * np.log(determinant) - np.log(2 * np.pi)

    ways = [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]
    log_density = logsumexp([of_pair(*a) + of_pair(*b) for a, b in ways], axis=0) - np.log(3)
    return log_density - norm.logpdf(data, 0, np.sqrt(variance)).sum(axis=1)


def test_the_exact_answer_is_one() -> None:
    data = strangers(np.random.default_rng(4), 200_000)
    assert np.exp(twins_log_bf(data)).mean() == pytest.approx(1, abs=0.05)
    for order in itertools.permutations(range(4)):
        np.testing.assert_allclose(twins_log_bf(data[:5, order]), twins_log_bf(data[:5]))


@pytest.mark.slow
def test_it_learns_what_observations_say_together() -> None:
    models = [deepbf.Model("twins", simulator=twins), deepbf.Model("strangers", simulator=strangers)]
    bf = deepbf.fit(
        models, structure="exchangeable", network="set-attention", steps=3000, ensemble=2, seed=1, progress=False
    )
    found = bf.evaluate(4000, exact=twins_log_bf, num_replicates=20, progress=False)
    # Knowing nothing costs 0.25 nats more than the exact answer here.
    assert found.value("excess_loss") < 0.03
    assert found.value("agreement") > 0.95
