"""The flow is a distribution: its density integrates to 1, and its draws have that density."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deepbf.criticism.flow import ConditionalFlow
from deepbf.networks.base import InputLayout

NUM_SUMMARY = 5


@cache
def random_flow(num_params: int) -> ConditionalFlow:
    """Return a flow far from its plain start."""
    layout = InputLayout(3, NUM_SUMMARY, 1, num_params)
    flow = eqx.filter_jit(lambda key: ConditionalFlow(layout, 1, key=key))(jax.random.key(1))
    return jax.tree.map(lambda leaf: 2.0 * leaf if eqx.is_array(leaf) else leaf, flow)


SUMMARY = jnp.linspace(-1, 1, NUM_SUMMARY)


@eqx.filter_jit
def density_on(flow: ConditionalFlow, grid: jax.Array) -> jax.Array:
    return jnp.exp(jax.vmap(lambda value: flow.log_density(SUMMARY, value[None]))(grid))


def test_the_density_of_one_parameter_integrates_to_one() -> None:
    flow = random_flow(1)
    grid = jnp.linspace(-15, 15, 6001)
    density = density_on(flow, grid)
    assert float(jnp.trapezoid(density, grid)) == pytest.approx(1.0, abs=1e-3)


def test_draws_of_one_parameter_follow_the_density() -> None:
    flow = random_flow(1)
    noise = jax.random.normal(jax.random.key(2), (20_000, 1))
    draws = np.asarray(eqx.filter_jit(flow.draw)(SUMMARY, noise))[:, 0]
    grid = jnp.linspace(-15, 15, 6001)
    density = density_on(flow, grid)
    mean = float(jnp.trapezoid(grid * density, grid))
    spread = float(jnp.sqrt(jnp.trapezoid((grid - mean) ** 2 * density, grid)))
    assert abs(draws.mean() - mean) < 4 * spread / np.sqrt(len(draws))
    assert draws.std() == pytest.approx(spread, rel=0.03)


@pytest.mark.slow
def test_the_density_of_draws_is_that_of_their_noise_over_the_volume() -> None:
    flow = random_flow(3)
    noise = jax.random.normal(jax.random.key(2), (3,))
    draw = eqx.filter_jit(flow.draw)(SUMMARY, noise[None])[0]
    jacobian = eqx.filter_jit(jax.jacfwd(lambda one: flow.draw(SUMMARY, one[None])[0]))(noise)
    expected = jax.scipy.stats.norm.logpdf(noise).sum() - jnp.linalg.slogdet(jacobian)[1]
    assert float(eqx.filter_jit(flow.log_density)(SUMMARY, draw)) == pytest.approx(float(expected), abs=1e-3)
    # Each parameter depends on the ones before it alone.
    np.testing.assert_allclose(np.triu(jacobian, 1), 0.0, atol=1e-6)
