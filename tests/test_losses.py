"""Losses equal their textbook formulas, and stay finite where those would not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.special import softmax

from deepbf import losses

# Compiled as one program each: op by op, the same takes seconds.
cross_entropy = jax.jit(losses.cross_entropy)
gradient_of_sum = jax.jit(jax.grad(lambda log_odds, label: losses.cross_entropy(log_odds, label).sum()))


def probabilities(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the models' probabilities the naive way, in float64: odds over the sum of odds."""
    odds = np.concatenate([np.exp(log_odds), np.ones((len(log_odds), 1))], axis=1)
    return odds / odds.sum(axis=1, keepdims=True)


def naive_cross_entropy(log_odds: NDArray[np.float64], label: NDArray[np.int64]) -> NDArray[np.float64]:
    return -np.log(probabilities(log_odds)[np.arange(len(label)), label])


def moderate(num_models: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    # Numbers that float32 holds exactly, so that only the loss itself can differ.
    log_odds = rng.uniform(-8, 8, (200, num_models - 1)).astype(np.float32).astype(np.float64)
    return log_odds, rng.integers(num_models, size=200)


@pytest.mark.parametrize("num_models", [2, 4])
def test_cross_entropy_equals_the_naive_formula(num_models: int) -> None:
    log_odds, label = moderate(num_models)
    loss = cross_entropy(jnp.asarray(log_odds, jnp.float32), jnp.asarray(label))
    assert loss.shape == (200,)
    assert_allclose(loss, naive_cross_entropy(log_odds, label), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("num_models", [2, 3, 4])
def test_equal_evidence_costs_the_log_of_the_number_of_models(num_models: int) -> None:
    loss = cross_entropy(jnp.zeros((num_models, num_models - 1)), jnp.arange(num_models))
    assert_allclose(loss, np.log(num_models), rtol=1e-6)


@pytest.mark.parametrize("num_models", [2, 4])
def test_its_gradient_is_probability_minus_truth(num_models: int) -> None:
    log_odds, label = moderate(num_models)
    gradient = gradient_of_sum(jnp.asarray(log_odds, jnp.float32), jnp.asarray(label))
    truth = np.eye(num_models)[label]
    expected = softmax(np.concatenate([log_odds, np.zeros((200, 1))], axis=1), axis=1) - truth
    assert_allclose(gradient, expected[:, :-1], atol=1e-6)


@pytest.mark.parametrize("size", [50.0, 1e4, 1e30])
def test_cross_entropy_is_stable_far_out(size: float) -> None:
    log_odds = jnp.array([[size], [-size], [size], [-size]], jnp.float32)
    label = jnp.array([0, 1, 1, 0])
    assert_allclose(cross_entropy(log_odds, label), [0, 0, size, size], rtol=1e-6)
    gradient = gradient_of_sum(log_odds, label)
    assert_allclose(gradient[:, 0], [0, 0, 1, -1], atol=1e-6)


def test_cross_entropy_is_stable_far_out_for_four_models() -> None:
    log_odds = jnp.array([[1e4, -1e4, 1e4], [-1e4, -1e4, -1e4], [1e4, 1e4, 1e4]], jnp.float32)
    label = jnp.array([1, 3, 3])
    assert_allclose(cross_entropy(log_odds, label), [2e4 + np.log(2), 0, 1e4 + np.log(3)], rtol=1e-6)
    gradient = gradient_of_sum(log_odds, label)
    assert_allclose(gradient, [[0.5, -1, 0.5], [0, 0, 0], [1 / 3, 1 / 3, 1 / 3]], atol=1e-6)


def test_the_best_constant_answer_is_the_true_log_odds() -> None:
    # Three labels of the first model to one of the second: cross-entropy is least at log 3.
    label = jnp.array([0, 0, 0, 1])

    def slope(log_odds: float) -> float:
        return float(gradient_of_sum(jnp.full((4, 1), log_odds), label).sum())

    assert slope(float(np.log(3))) == pytest.approx(0, abs=1e-6)
    assert slope(1.0) < 0 < slope(1.2)


def test_log_evidence_is_measured_against_the_last_model() -> None:
    assert_array_equal(losses.log_evidence(jnp.array([[2.0, -1.0]])), [[2.0, -1.0, 0.0]])


def test_by_name() -> None:
    assert losses.by_name("cross_entropy") is losses.cross_entropy
    with pytest.raises(ValueError, match=r"loss must be one of 'cross_entropy'.*Did you mean 'cross_entropy'"):
        losses.by_name("crossentropy")
