"""Quadratic logistic regression: right where the truth is quadratic, finite everywhere, arrays of known shapes."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.stats import norm

from deepbf.networks import InputLayout
from deepbf.networks.log_linear import LogLinear

# Few enough that products of all directions are there, so that the exact answer can be learned.
WIDTH = 12


def simulate(num_rows: int, num_models: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return normal rows, correlated, at any scale; models differ in the mean of one and the spread of another."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(num_rows) % num_models)
    rows = rng.normal(size=(num_rows, WIDTH))
    rows[:, 0] += 0.5 * labels
    rows[:, 1] *= 1.0 + labels
    rows[:, 2] += 2 * rows[:, 1]
    return (100.0 + 3.0 * rows).astype(np.float32), labels


def exact_log_odds(rows: NDArray[np.float32], num_models: int) -> NDArray[np.float64]:
    values = (rows.astype(np.float64) - 100.0) / 3.0
    log_evidence = np.stack(
        [norm.logpdf(values[:, 0], 0.5 * k) + norm.logpdf(values[:, 1], scale=1.0 + k) for k in range(num_models)], 1
    )
    return log_evidence[:, :-1] - log_evidence[:, -1:]


@cache
def fitted(num_models: int) -> LogLinear:
    return LogLinear.fit(*simulate(20_000, num_models, seed=1), num_models, seed=1)


def log_odds(network: LogLinear, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(eqx.filter_jit(lambda one, inputs: one(inputs))(network, jnp.asarray(rows)))


@pytest.mark.parametrize("num_models", [2, 3])
def test_normal_models_are_told_apart_as_they_should(num_models: int) -> None:
    rows, _ = simulate(3000, num_models, seed=2)
    exact = exact_log_odds(rows, num_models)
    estimated = log_odds(fitted(num_models), rows)
    assert estimated.shape == (3000, num_models - 1)
    near = np.abs(exact).max(axis=1) < 3
    # 90 weights from 20,000 labels with a variance of about 0.15 leave sqrt(90 / 3000) = 0.17, tails a little more.
    assert np.sqrt(np.mean((estimated - exact)[near] ** 2)) < 0.25
    assert np.std(exact[near]) > 0.7


def test_identical_models_give_about_0() -> None:
    rows = np.random.default_rng(3).normal(size=(2000, WIDTH)).astype(np.float32)
    network = LogLinear.fit(rows, np.arange(2000) % 2, 2, seed=1)
    assert np.abs(log_odds(network, rows)).mean() < 0.1


def test_how_often_a_model_was_simulated_is_divided_out() -> None:
    rows, labels = simulate(16_000, 2, seed=4)
    kept = (labels == 0) | (np.arange(len(labels)) % 4 == 0)
    network = LogLinear.fit(rows[kept], labels[kept], 2, seed=1)
    test_rows, _ = simulate(3000, 2, seed=5)
    difference = log_odds(network, test_rows) - exact_log_odds(test_rows, 2)
    assert abs(np.median(difference)) < 0.15


@pytest.mark.parametrize("num_models", [2, 3])
def test_extreme_rows_have_finite_log_odds(num_models: int) -> None:
    largest = np.finfo(np.float32).max
    rng = np.random.default_rng(6)
    rows = rng.choice(np.array([-largest, -1e30, -1e7, 0, 1e-38, 100, 1e7, 1e30, largest], np.float32), (500, WIDTH))
    rows[:2] = [[largest], [-largest]]
    assert np.isfinite(log_odds(fitted(num_models), rows)).all()


def test_columns_that_never_vary_are_left_out() -> None:
    rows, labels = simulate(1000, 2, seed=7)
    rows[:, 5:9], rows[:, 11] = 1e6, rows[:, 10]
    network = LogLinear.fit(rows, labels, 2, seed=1)
    moved = rows.copy()
    moved[:, 5:9] = -3e6
    assert np.isfinite(log_odds(network, rows)).all()
    assert_array_equal(log_odds(network, moved), log_odds(network, rows))


@pytest.mark.parametrize("width", [1, 3])
def test_narrow_rows_will_do(width: int) -> None:
    rows, labels = simulate(1000, 2, seed=8)
    assert np.isfinite(log_odds(LogLinear.fit(rows[:, :width], labels, 2, seed=1), rows[:, :width])).all()


def test_the_same_seed_gives_the_same_regression() -> None:
    rows, labels = simulate(500, 2, seed=9)
    once, again = (LogLinear.fit(rows, labels, 2, seed=3) for _ in range(2))
    assert_array_equal(once.weights, again.weights)


@pytest.mark.parametrize("num_models", [2, 3])
def test_a_blank_one_has_the_shapes_of_a_fitted_one_and_no_opinion(num_models: int) -> None:
    blank = LogLinear(InputLayout(WIDTH, WIDTH), num_models, key=jax.random.key(1))
    described = [
        [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(network)] for network in (blank, fitted(num_models))
    ]
    assert described[0] == described[1]
    assert jax.tree.structure(blank) == jax.tree.structure(fitted(num_models))
    assert_array_equal(log_odds(blank, simulate(10, 2, seed=1)[0]), 0.0)


def test_stacked_regressions_answer_as_each_alone() -> None:
    rows, labels = simulate(500, 2, seed=10)
    members = [LogLinear.fit(rows[half], labels[half], 2, seed=1) for half in (slice(250), slice(250, 500))]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
    together = eqx.filter_jit(eqx.filter_vmap(lambda one: one(jnp.asarray(rows))))(stacked)
    for member, answer in zip(members, together, strict=True):
        assert_allclose(answer, log_odds(member, rows), rtol=1e-4, atol=1e-4)
