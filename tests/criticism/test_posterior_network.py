import jax.numpy as jnp
import numpy as np

from deepbf.criticism.posterior_network import ParameterScale


def test_parameters_come_back_from_the_scale() -> None:
    rng = np.random.default_rng(1)
    params = np.column_stack([rng.normal(1, 2, 4000), rng.standard_cauchy(4000)]).astype(np.float32)
    scale = ParameterScale.fit(params)
    assert np.asarray(scale.bent).tolist() == [False, True]
    scaled = np.asarray(scale(jnp.asarray(params)))
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose(scaled.std(axis=0), 1.0, rtol=1e-3)
    np.testing.assert_allclose(scale.inverse(scaled), params, rtol=1e-4, atol=1e-4)


def test_draws_beyond_belief_are_brought_back() -> None:
    params = np.random.default_rng(1).normal(size=(1000, 1)).astype(np.float32)
    scale = ParameterScale.fit(params)
    far = scale.inverse(np.array([[1e30], [-1e30]], np.float32))
    assert np.abs(far).max() < 4 * np.abs(params).max()


def test_a_constant_parameter_has_a_scale() -> None:
    scale = ParameterScale.fit(np.full((100, 1), 3.0, np.float32))
    np.testing.assert_allclose(scale.inverse(np.asarray(scale(jnp.full((2, 1), 3.0)))), 3.0)
