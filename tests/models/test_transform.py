"""Transforms are inverted exactly, and their Jacobian makes densities integrate to 1."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import deepbf
from deepbf.models.transform import Unconstrained

INSIDE = {
    "real": np.array([-3.0, 0.0, 5.0]),
    "positive": np.array([1e-8, 1.0, 1e6]),
    "unit": np.array([1e-9, 0.3, 1 - 1e-9]),
    (-2.0, 3.0): np.array([-1.999, 0.0, 2.999]),
    (-np.inf, 4.0): np.array([-100.0, 0.0, 3.999]),
}


@pytest.mark.parametrize("transform", INSIDE)
def test_there_and_back(transform: Any) -> None:
    params = INSIDE[transform]
    space = Unconstrained.fit(params, transform)
    back, _ = space.to_params(space.to_real(space.flatten(params)))
    assert_allclose(space.unflatten(back), params, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(
    ("transform", "density"),
    [
        ("real", stats.norm(1, 2)),
        ("positive", stats.gamma(2.5)),
        ("unit", stats.beta(0.7, 2)),
        ((-2.0, 3.0), stats.uniform(-2, 5)),
        ((-np.inf, 4.0), stats.gamma(2, loc=-4)),
    ],
)
def test_densities_integrate_to_one(transform: Any, density: Any) -> None:
    space = Unconstrained.fit(np.zeros(1), transform)
    mirrored = transform == (-np.inf, 4.0)

    def integrand(real: float) -> float:
        flat, log_jacobian = space.to_params(np.array([[real]]))
        return float(density.pdf(-flat[0, 0] if mirrored else flat[0, 0]) * np.exp(log_jacobian[0]))

    assert_allclose(integrate.quad(integrand, -60, 60, points=[0.0], limit=200)[0], 1.0, atol=1e-6)


@pytest.mark.parametrize("transform", INSIDE)
def test_the_jacobian_is_the_derivative(transform: Any) -> None:
    space = Unconstrained.fit(np.zeros(1), transform)
    with jax.enable_x64(True):
        for real in (-3.0, -0.5, 0.7, 4.0):
            slope = jax.jacfwd(lambda z: space.to_params(z)[0])(jnp.array([real]))[0, 0]
            _, log_jacobian = space.to_params(jnp.array([real]))
            assert_allclose(np.log(np.abs(slope)), log_jacobian, rtol=1e-9)


def test_dicts_and_columns_keep_their_layout() -> None:
    params = {"weights": np.full((4, 2), 0.5), "rate": np.full(4, 2.0)}
    space = Unconstrained.fit(params, {"rate": "positive", "weights": ["unit", "real"]})
    assert space.num_coordinates == 3
    back, _ = space.to_params(space.to_real(space.flatten(params)))
    for name, values in space.unflatten(back).items():
        assert_allclose(values, params[name])


@pytest.mark.parametrize(
    ("params", "transform", "message"),
    [
        (np.zeros(3), "positiv", "Did you mean 'positive'"),
        (np.zeros(3), (2.0, 1.0), "low < high"),
        (np.zeros((3, 2)), ["unit"], "1 entries for 2 parameters"),
        (np.zeros(3), {"rate": "unit"}, "transform is a dict, but the parameters are one array"),
        ({"rate": np.zeros(3)}, {"rat": "unit"}, "Did you mean 'rate'"),
        ({"rate": np.zeros(3)}, ["unit"], "one name or a dict for parameters rate"),
    ],
)
def test_transforms_that_do_not_fit(params: Any, transform: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Unconstrained.fit(params, transform)


def test_one_interval_serves_all_parameters_of_a_dict() -> None:
    params = {"a": np.full(3, 0.5), 1: np.full(3, 0.25)}
    space = Unconstrained.fit(params, (0, 1))
    back, _ = space.to_params(space.to_real(space.flatten(params)))
    assert_allclose(space.unflatten(back)[1], params[1])
    assert Unconstrained.fit(params, {"a": None}).high.tolist() == [np.inf, np.inf]


def test_a_model_refuses_an_unknown_transform() -> None:
    with pytest.raises(ValueError, match="transform of model 'coin' must be one of"):
        deepbf.Model("coin", simulator=lambda rng, size: np.zeros((size, 1)), transform="unti")
