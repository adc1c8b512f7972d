"""The built-in example: its densities, its draws and its closed form agree with each other, and it pickles."""

import pickle

import jax
import numpy as np
import pytest

from deepbf.baselines import integrate
from deepbf.example import counts_example, observed_counts
from deepbf_studies import problems


@pytest.mark.parametrize("k", [0, 1])
def test_its_simulators_draw_what_its_densities_say(k: int) -> None:
    example = counts_example(num_obs=2)
    data = example.models[k].simulate(200_000, seed=1).data
    found = integrate(example.models, [[0, 0], [0, 1], [3, 0], [2, 2]]).log_evidence[:, k]
    shares = [(data == pair).all(axis=1).mean() for pair in ([0, 0], [0, 1], [3, 0], [2, 2])]
    errors = np.sqrt(np.exp(found) / len(data))
    assert np.all(np.abs(np.array(shares) - np.exp(found)) < 5 * errors)


def test_its_closed_form_is_the_integral_of_its_densities() -> None:
    example = counts_example(num_obs=5)
    data = np.concatenate([model.simulate(3, seed=2).data for model in example.models])
    result = integrate(example.models, data)
    np.testing.assert_allclose(result.log_bf, example.exact_log_bf(data), atol=1e-7)


def test_it_is_data_1_i_of_the_studies() -> None:
    study = problems.load("data-1-i", num_obs=6)
    data = study.models[1].simulate(20, seed=3).data
    example = counts_example(num_obs=6)
    np.testing.assert_array_equal(example.exact_log_bf(data), study.exact_log_bf(data))
    for own, other in zip(example.models, study.models, strict=True):
        params = np.linspace(0.1, 0.9, 20)
        assert own.name == other.name
        assert own.log_prior is not None
        assert other.log_prior is not None
        assert own.log_likelihood is not None
        assert other.log_likelihood is not None
        np.testing.assert_allclose(own.log_prior(params), other.log_prior(params), rtol=1e-12)
        np.testing.assert_allclose(own.log_likelihood(params, data), other.log_likelihood(params, data), rtol=1e-12)


def test_its_densities_can_be_differentiated() -> None:
    for model in counts_example(num_obs=3).models:
        assert model.log_likelihood is not None
        slope = jax.grad(lambda p, fn=model.log_likelihood: fn(p, jax.numpy.asarray([[1, 0, 2]])).sum())
        assert np.isfinite(slope(jax.numpy.asarray([0.3]))).all()


def test_it_pickles_and_takes_the_number_of_counts() -> None:
    for model in pickle.loads(pickle.dumps(counts_example())).models:
        assert model.simulate(4, seed=1).data.shape == (4, 128)
        assert model.simulate(4, seed=1, num_obs=7).data.shape == (4, 7)
    assert observed_counts().shape == (128,)
