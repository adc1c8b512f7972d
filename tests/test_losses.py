"""Losses equal their textbook formulas, are least at the log ratio, and stay finite where the formulas would not."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.special import softmax

from deepbf import losses

Floats = NDArray[np.float64]

FUNCTIONS: dict[str, losses.Loss] = {
    name: kind.of_log_odds for name, kind in losses.LOSSES.items() if kind.link is None
}
SYMMETRIC = ["balanced", "cross_entropy", "jensen_shannon", "squared_hellinger", "exponential"]

# Each divergence as E2 f(p1 / p2): f, its derivative, and the log ratio up to which the loss is the formula.
DIVERGENCES: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats], float]] = {
    "kl": (lambda r: r * np.log(r), lambda r: np.log(r) + 1, losses.FAR_FOR_RATIOS),
    "reverse_kl": (lambda r: -np.log(r), lambda r: -1 / r, losses.FAR_FOR_RATIOS),
    "jensen_shannon": (
        lambda r: r * np.log(r) - (r + 1) * np.log((r + 1) / 2),
        lambda r: np.log(2 * r / (r + 1)),
        np.inf,
    ),
    "squared_hellinger": (lambda r: (np.sqrt(r) - 1) ** 2, lambda r: 1 - 1 / np.sqrt(r), losses.FAR_FOR_ROOTS),
    "pearson": (lambda r: (r - 1) ** 2, lambda r: 2 * (r - 1), losses.FAR_FOR_SQUARES),
}

# Five outcomes under three models; log ratios reach from -7.6 to 6.9, beyond where most exponentials end.
OUTCOMES = np.array(
    [[0.5, 0.2, 0.1999, 0.1, 0.0001], [0.05, 0.15, 0.2, 0.4, 0.2], [0.0005, 0.2995, 0.4, 0.1, 0.2]], dtype=np.float64
)


# Rows that a compiled program takes; fewer are filled up, so that one compilation serves every test of a loss.
NUM_ROWS = 256


@cache
def compiled(name: str, probs: tuple[float, ...] | None) -> Any:
    """The loss, one entry per data set, and the gradient of its sum, as one program: op by op, it takes seconds."""
    loss = FUNCTIONS[name] if probs is None else losses.at_mixture(FUNCTIONS[name], np.array(probs))

    def value_and_gradient(log_odds: jax.Array, label: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, pull_back = jax.vjp(lambda log_odds: loss(log_odds, label), log_odds)
        return value, pull_back(jnp.ones_like(value))[0]

    # Run a few times, so compiled in a hurry.
    return jax.jit(value_and_gradient, compiler_options={"xla_backend_optimization_level": 0})


def run(
    name: str, log_odds: Any, label: Any, probs: tuple[float, ...] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the loss of each data set and its gradient, at a mixture of models if there is one."""
    rows, labels = np.asarray(log_odds, np.float32), np.asarray(label, np.int32)
    missing = NUM_ROWS - len(rows)
    outputs = compiled(name, probs)(np.pad(rows, ((0, missing), (0, 0))), np.pad(labels, (0, missing)))
    value, slope = (np.asarray(output)[: len(rows)] for output in outputs)
    return value, slope


def loss_of(name: str, log_odds: Any, label: Any) -> NDArray[np.float32]:
    return run(name, log_odds, label)[0]


def gradient_of(name: str, log_odds: Any, label: Any) -> NDArray[np.float32]:
    return run(name, log_odds, label)[1]


def probabilities(log_odds: Floats) -> Floats:
    """Return the models' probabilities the naive way, in float64: odds over the sum of odds."""
    odds = np.concatenate([np.exp(log_odds), np.ones((len(log_odds), 1))], axis=1)
    return odds / odds.sum(axis=1, keepdims=True)


def naive_cross_entropy(log_odds: Floats, label: NDArray[np.int64]) -> Floats:
    return -np.log(probabilities(log_odds)[np.arange(len(label)), label])


def naive_divergence(name: str, log_odds: Floats, label: NDArray[np.int64]) -> Floats:
    """Return minus f' for the first of each pair, the conjugate of f at f' for the second, from f alone."""
    f, slope, _ = DIVERGENCES[name]
    evidence = np.exp(np.concatenate([log_odds, np.zeros((len(log_odds), 1))], axis=1))
    costs = np.zeros(len(label))
    for i, own in enumerate(label):
        for other in range(evidence.shape[1]):
            first, second = min(own, other), max(own, other)
            ratio = evidence[i, first] / evidence[i, second]
            if first != second:
                costs[i] += -slope(ratio) if own == first else ratio * slope(ratio) - f(ratio)
    return costs


def moderate(num_models: int, size: float = 8.0) -> tuple[Floats, NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    # Numbers that float32 holds exactly, so that only the loss itself can differ.
    log_odds = rng.uniform(-size, size, (200, num_models - 1)).astype(np.float32).astype(np.float64)
    return log_odds, rng.integers(num_models, size=200)


@pytest.mark.parametrize("num_models", [2, 4])
def test_cross_entropy_equals_the_naive_formula(num_models: int) -> None:
    log_odds, label = moderate(num_models)
    loss = loss_of("cross_entropy", log_odds, label)
    assert loss.shape == (200,)
    assert_allclose(loss, naive_cross_entropy(log_odds, label), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("num_models", [2, 3, 4])
def test_equal_evidence_costs_the_log_of_the_number_of_models(num_models: int) -> None:
    loss = loss_of("cross_entropy", jnp.zeros((num_models, num_models - 1)), jnp.arange(num_models))
    assert_allclose(loss, np.log(num_models), rtol=1e-6)


@pytest.mark.parametrize("num_models", [2, 4])
def test_the_gradient_of_cross_entropy_is_probability_minus_truth(num_models: int) -> None:
    log_odds, label = moderate(num_models)
    found = gradient_of("cross_entropy", log_odds, label)
    truth = np.eye(num_models)[label]
    expected = softmax(np.concatenate([log_odds, np.zeros((200, 1))], axis=1), axis=1) - truth
    assert_allclose(found, expected[:, :-1], atol=1e-6)


@pytest.mark.parametrize("size", [50.0, 1e4, 1e30])
def test_cross_entropy_is_stable_far_out(size: float) -> None:
    log_odds = jnp.array([[size], [-size], [size], [-size]], jnp.float32)
    label = jnp.array([0, 1, 1, 0])
    assert_allclose(loss_of("cross_entropy", log_odds, label), [0, 0, size, size], rtol=1e-6)
    assert_allclose(gradient_of("cross_entropy", log_odds, label)[:, 0], [0, 0, 1, -1], atol=1e-6)


def test_cross_entropy_is_stable_far_out_for_four_models() -> None:
    log_odds = jnp.array([[1e4, -1e4, 1e4], [-1e4, -1e4, -1e4], [1e4, 1e4, 1e4]], jnp.float32)
    label = jnp.array([1, 3, 3])
    assert_allclose(loss_of("cross_entropy", log_odds, label), [2e4 + np.log(2), 0, 1e4 + np.log(3)], rtol=1e-6)
    found = gradient_of("cross_entropy", log_odds, label)
    assert_allclose(found, [[0.5, -1, 0.5], [0, 0, 0], [1 / 3, 1 / 3, 1 / 3]], atol=1e-6)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_the_derivatives_of_this_test_are_derivatives(name: str) -> None:
    f, slope, _ = DIVERGENCES[name]
    ratio = np.geomspace(0.1, 10, 20)
    assert_allclose((f(ratio + 1e-6) - f(ratio - 1e-6)) / 2e-6, slope(ratio), rtol=1e-6, atol=1e-8)
    assert f(np.ones(1)) == 0


@pytest.mark.parametrize("name", DIVERGENCES)
def test_divergences_equal_the_naive_formula(name: str) -> None:
    # Halved, so that the difference of two is in the formula's range, too.
    log_odds, label = moderate(3, min(8.0, DIVERGENCES[name][2]) / 2)
    loss = loss_of(name, log_odds, label)
    assert loss.shape == (200,)
    assert_allclose(loss, naive_divergence(name, log_odds, label), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_at_the_log_ratio_the_loss_is_minus_the_divergence(name: str) -> None:
    f, _, far = DIVERGENCES[name]
    first, last = np.array([0.3, 0.3, 0.2, 0.15, 0.05]), np.array([0.1, 0.3, 0.25, 0.2, 0.15])
    log_ratio = np.log(first / last)
    assert np.abs(log_ratio).max() < far
    costs = [loss_of(name, log_ratio[:, None], np.full(5, k)) for k in (0, 1)]
    assert_allclose(first @ costs[0] + last @ costs[1], -(last @ f(first / last)), rtol=1e-4)


def test_the_exponential_loss_is_the_root_of_the_odds_on_the_wrong_model() -> None:
    log_odds, label = moderate(2)
    loss = loss_of("exponential", log_odds, label)
    assert_allclose(loss, np.exp(np.where(label == 0, -0.5, 0.5) * log_odds[:, 0]), rtol=1e-5)


@pytest.mark.parametrize(("name", "other", "constant"), [
    ("jensen_shannon", "cross_entropy", np.log(2)), ("squared_hellinger", "exponential", 1.0)
])  # fmt: skip
def test_of_two_models_some_losses_are_the_same_up_to_a_constant(name: str, other: str, constant: float) -> None:
    log_odds, label = moderate(2, 30.0)
    values = [loss_of(loss, log_odds, label) for loss in (name, other)]
    assert_allclose(values[0] + constant, values[1], rtol=1e-5, atol=1e-6)


def expected_slope(name: str, log_odds: Floats, probs: Floats) -> Floats:
    """Return the gradient of the loss at each outcome, over the outcome's probabilities under each model."""
    slopes = [gradient_of(name, log_odds, np.full(len(log_odds), k)) for k in range(len(probs))]
    return np.sum([p[:, None] * np.asarray(slope, np.float64) for p, slope in zip(probs, slopes, strict=True)], axis=0)


@pytest.mark.parametrize("models", [[0, 2], [2, 0], [0, 1, 2], [2, 1, 0]], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_loss_is_least_at_the_log_ratio_alone(name: str, models: list[int]) -> None:
    probs = OUTCOMES[models]
    exact = np.log(probs[:-1] / probs[-1]).T
    # Relative to what the two models' slopes are that must cancel.
    assert_allclose(expected_slope(name, exact, probs), 0, atol=2e-5)
    # From wherever one starts, downhill leads to it, however far out one started.
    rng = np.random.default_rng(2)
    for size in (0.3, 3.0, 30.0, 300.0):
        start = exact + size * rng.choice([-1, 1], exact.shape) * rng.uniform(0.5, 1, exact.shape)
        uphill = (expected_slope(name, start, probs) * (start - exact)).sum(axis=1)
        assert (uphill > 0).all(), (size, uphill)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_finite_for_all_log_odds(name: str) -> None:
    sizes = [0.0, 1.0, 30.0, 100.0, 1e4, 1e30, 1e37]
    one = jnp.array([sign * size for size in sizes for sign in (1, -1)], jnp.float32)
    # Three models: every size with the same and with the other sign of the other.
    rows = jnp.concatenate([jnp.stack([one, one], axis=1), jnp.stack([one, -one], axis=1)])
    log_odds, label = jnp.concatenate([rows] * 3), jnp.repeat(jnp.arange(3), len(rows))
    assert np.isfinite(loss_of(name, log_odds, label)).all()
    assert np.isfinite(gradient_of(name, log_odds, label)).all()


@pytest.mark.parametrize("name", [name for name, (_, _, far) in DIVERGENCES.items() if np.isfinite(far)])
def test_beyond_the_formula_the_loss_goes_on_without_a_kink(name: str) -> None:
    far = DIVERGENCES[name][2]
    # At either end for either model: a little before, at the end, a little after.
    log_odds = np.array([end + step for end in (-far, far) for _ in range(2) for step in (-1e-3, 0, 1e-3)])
    arguments = jnp.asarray(log_odds[:, None], jnp.float32), jnp.tile(jnp.repeat(jnp.arange(2), 3), 2)
    values = np.asarray(loss_of(name, *arguments)).reshape(4, 3)
    slopes = np.asarray(gradient_of(name, *arguments)).reshape(4, 3)
    scale = np.maximum(1.0, np.abs(slopes).max(axis=1, keepdims=True))
    assert (np.abs(np.diff(values)) < 2e-3 * scale).all()
    assert (np.abs(np.diff(slopes)) < 4e-3 * scale).all()


@pytest.mark.parametrize(("name", "swapped"), [(name, name) for name in SYMMETRIC] + [("kl", "reverse_kl")])
def test_swapping_two_models_flips_the_sign(name: str, swapped: str) -> None:
    log_odds, label = moderate(2, 30.0)
    there = loss_of(name, log_odds, label)
    back = loss_of(swapped, -log_odds, 1 - label)
    assert_allclose(there, back, rtol=1e-5, atol=1e-6)


def test_the_leaky_power_is_odd_increasing_and_finite() -> None:
    output = np.array([0.0, 0.1, 1.0, 3.0, 1e4, 1e18, 1e30, np.finfo(np.float32).max], np.float32)
    log_odds = np.asarray(losses.leaky_power(jnp.asarray(output)))
    assert_allclose(log_odds[:5], [0, 0.11, 2, 12, 1e8 + 1e4], rtol=1e-6)
    assert np.isfinite(log_odds).all()
    assert (np.diff(log_odds) >= 0).all()
    assert_array_equal(losses.leaky_power(jnp.asarray(-output)), -log_odds)
    # Leaky: without the linear part, a network whose output is 0 would not learn.
    assert float(jax.grad(losses.leaky_power)(0.0)) == 1.0


MIXTURE = (0.2, 0.7, 0.1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_a_mixture_the_loss_is_that_of_shifted_log_odds_weighed(name: str) -> None:
    log_odds, label = moderate(3, 5.0)
    probs = np.array(MIXTURE)
    shifted = log_odds.astype(np.float32) + np.log(probs[:-1] / probs[-1]).astype(np.float32)
    weights = (3 * probs).astype(np.float32)[label]
    assert_allclose(run(name, log_odds, label, MIXTURE)[0], weights * loss_of(name, shifted, label), rtol=2e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_a_mixture_too_every_loss_is_least_at_the_log_ratio(name: str) -> None:
    exact = np.log(OUTCOMES[:-1] / OUTCOMES[-1]).T
    slopes = [p[:, None] * run(name, exact, np.full(5, k), MIXTURE)[1] for k, p in enumerate(OUTCOMES)]
    assert_allclose(np.sum(slopes, axis=0), 0, atol=5e-5)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("kl", 0.6),
        ("reverse_kl", 0.4),
        ("squared_hellinger", np.sqrt(0.24)),
        ("exponential", np.sqrt(0.24)),
        ("pearson", 0.9),
    ],
)
def test_for_powers_of_the_ratio_a_mixture_only_weighs_both_models_alike(name: str, factor: float) -> None:
    # Within the formula even after the shift of log 1.5.
    log_odds, label = moderate(2, 1.0)
    assert_allclose(
        run(name, log_odds, label, (0.6, 0.4))[1], 2 * factor * gradient_of(name, log_odds, label), rtol=1e-5
    )


def test_log_evidence_is_measured_against_the_last_model() -> None:
    assert_array_equal(losses.log_evidence(jnp.array([[2.0, -1.0]])), [[2.0, -1.0, 0.0]])


def test_by_name() -> None:
    assert losses.by_name(losses.DEFAULT).of_log_odds is losses.balanced
    assert losses.by_name("leaky_pop").link is losses.leaky_power


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("crossentropy", "cross_entropy"),
        ("hellinger", "squared_hellinger"),
        ("jensen-shannon", "jensen_shannon"),
        ("l-pop", "leaky_pop"),
        ("reversed_kl", "reverse_kl"),
        ("pearsons", "pearson"),
    ],
)
def test_a_wrong_name_gets_the_nearest_right_one(typed: str, meant: str) -> None:
    says = rf"loss must be one of 'balanced', 'cross_entropy', 'kl'.*Did you mean '{meant}'"
    with pytest.raises(ValueError, match=says):
        losses.by_name(typed)
