"""Boosted trees as arrays: the same answers as scikit-learn's own, finite everywhere, arrays of known shapes."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from deepbf.networks import InputLayout
from deepbf.networks.boosted_trees import DEPTH, MOST_ROUNDS, BoostedTrees

WIDTH = 6
LAYOUT = InputLayout(WIDTH, WIDTH)


def simulate(num_rows: int, num_models: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return rows of which two are counts, so that many values lie between the same thresholds."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(num_rows) % num_models)
    rows = rng.normal(size=(num_rows, WIDTH))
    rows[:, 0] += labels
    rows[:, 1] = rng.poisson(3 + labels)
    rows[:, 2] = 0.1 * rng.poisson(3 + labels)
    return rows.astype(np.float32), labels


@cache
def fitted(num_models: int) -> BoostedTrees:
    return BoostedTrees.fit(*simulate(1000, num_models, seed=1), num_models, seed=1)


def log_odds(network: BoostedTrees, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(eqx.filter_jit(lambda one, inputs: one(inputs))(network, jnp.asarray(rows)))


@pytest.mark.parametrize("num_rounds", [1, MOST_ROUNDS])
@pytest.mark.parametrize("num_models", [2, 3])
def test_the_arrays_answer_as_scikit_learn_does(num_models: int, num_rounds: int) -> None:
    rows, labels = simulate(900, num_models, seed=1)
    grown = HistGradientBoostingClassifier(max_iter=num_rounds, max_depth=DEPTH, min_samples_leaf=5, random_state=1)
    grown.fit(rows, labels)
    # Equal shares leave nothing to take out.
    shares = np.full(num_models, 1 / num_models)
    network = BoostedTrees(LAYOUT, num_models).filled_from(grown, shares)
    # Rows of the fit, others, and values as near to thresholds as float32 comes.
    thresholds = np.asarray(network.threshold)
    finite = np.repeat(thresholds[np.isfinite(thresholds)][:500, None], WIDTH, axis=1)
    asked = np.concatenate([rows, simulate(900, num_models, seed=2)[0], finite, np.nextafter(finite, np.float32(9e9))])
    scores = grown.decision_function(asked)
    expected = -scores[:, None] if num_models == 2 else scores[:, :-1] - scores[:, -1:]
    assert_allclose(log_odds(network, asked), expected, atol=1e-4)
    assert np.std(expected) > 0.05


@pytest.mark.parametrize("num_models", [2, 3])
def test_trees_are_of_use_on_fresh_rows(num_models: int) -> None:
    rows, labels = simulate(3000, num_models, seed=3)
    scores = np.pad(log_odds(fitted(num_models), rows), ((0, 0), (0, 1)))
    loss = np.mean(np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(rows)), labels])
    assert loss < np.log(num_models) - 0.1


def test_identical_models_give_about_0() -> None:
    rows = np.random.default_rng(3).normal(size=(1000, WIDTH)).astype(np.float32)
    network = BoostedTrees.fit(rows, np.arange(1000) % 2, 2, seed=1)
    assert np.abs(log_odds(network, rows)).mean() < 0.15


def test_how_often_a_model_was_simulated_is_divided_out() -> None:
    rows, labels = simulate(4000, 2, seed=4)
    kept = (labels == 0) | (np.arange(len(labels)) % 4 == 0)
    network = BoostedTrees.fit(rows[kept], labels[kept], 2, seed=1)
    test_rows, _ = simulate(3000, 2, seed=5)
    # 1 / (1 + odds) has a mean of 1/2 over rows of which half come from each model, whatever the fit's mixture was.
    assert abs(np.mean(1 / (1 + np.exp(log_odds(network, test_rows)))) - 0.5) < 0.05


@pytest.mark.parametrize("num_models", [2, 3])
def test_extreme_rows_have_finite_log_odds_and_nothing_new(num_models: int) -> None:
    largest = np.finfo(np.float32).max
    rng = np.random.default_rng(6)
    rows = rng.choice(np.array([-largest, -1e30, -1e7, 0, 1e-38, 1e7, 1e30, largest], np.float32), (500, WIDTH))
    answers = log_odds(fitted(num_models), rows)
    assert np.isfinite(answers).all()
    assert_array_equal(answers, log_odds(fitted(num_models), np.clip(rows, -1e6, 1e6)))


def test_the_same_seed_gives_the_same_trees() -> None:
    rows, labels = simulate(300, 2, seed=9)
    once, again = (BoostedTrees.fit(rows, labels, 2, seed=3) for _ in range(2))
    for first, second in zip(jax.tree.leaves(once), jax.tree.leaves(again), strict=True):
        assert_array_equal(first, second)


@pytest.mark.parametrize("num_models", [2, 3])
def test_a_blank_one_has_the_shapes_of_a_fitted_one_and_no_opinion(num_models: int) -> None:
    blank = BoostedTrees(LAYOUT, num_models, key=jax.random.key(1))
    described = [
        [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(network)] for network in (blank, fitted(num_models))
    ]
    assert described[0] == described[1]
    assert jax.tree.structure(blank) == jax.tree.structure(fitted(num_models))
    assert_array_equal(log_odds(blank, simulate(10, 2, seed=1)[0]), 0.0)


def test_stacked_trees_answer_as_each_alone() -> None:
    rows, labels = simulate(400, 2, seed=10)
    members = [BoostedTrees.fit(rows[half], labels[half], 2, seed=1) for half in (slice(200), slice(200, 400))]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
    together = eqx.filter_jit(eqx.filter_vmap(lambda one: one(jnp.asarray(rows))))(stacked)
    for member, answer in zip(members, together, strict=True):
        assert_allclose(answer, log_odds(member, rows), atol=1e-5)
