"""Accuracy against exact Bayes factors.

Excess loss is cross-entropy minus that of the exact Bayes factor: the expected Kullback-Leibler divergence from the
exact to the estimated model posterior, 0 for a perfect estimator.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from scipy.special import log_softmax

import deepbf
from deepbf import BayesFactor, losses
from deepbf_studies.problems import normal_mean_log_bf
from tests import simulators
from tests.simulators import NORMAL_MEAN, simulate_truth


def cross_entropy(log_evidence: NDArray[np.float64], label: NDArray[np.int64]) -> float:
    return float(-log_softmax(log_evidence, axis=1)[np.arange(len(label)), label].mean())


def of_two(log_bf: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([log_bf, np.zeros_like(log_bf)], axis=1)


def excess_loss(log_bf: NDArray[np.float64], exact: NDArray[np.float64], label: NDArray[np.int64]) -> float:
    return cross_entropy(of_two(log_bf), label) - cross_entropy(of_two(exact), label)


def test_the_mean_of_a_normal(normal_mean: BayesFactor) -> None:
    data, label = simulate_truth(NORMAL_MEAN, 2000, seed=41)
    exact = normal_mean_log_bf(data, prior_scale=1.0)
    members = normal_mean.log_bf_members(data)
    log_bf, error = members.mean(axis=0), members.std(axis=0, ddof=1)
    assert excess_loss(log_bf, exact, label) <= 2e-3
    within = np.abs(log_bf - exact) < 4 * error
    assert within.mean() > 0.8
    # Short of decisive evidence, where both models leave data to learn from, nearly everywhere; and not by vagueness.
    undecided = np.abs(exact) < np.log(100)
    assert undecided.mean() > 0.7
    assert within[undecided].mean() > 0.9
    assert np.median(error[undecided]) < 0.15


def test_far_out_the_interval_covers_the_exact_answer_or_the_answer_warns(normal_mean: BayesFactor) -> None:
    data, _ = simulate_truth(NORMAL_MEAN, 1000, seed=48)
    exact = normal_mean_log_bf(data, prior_scale=1.0)
    far = np.flatnonzero(exact > 6)[:50]
    answers = [normal_mean.compare(data[i]) for i in far]
    honest = [
        bool(answer.warnings) or (answer.interval is not None and answer.interval[0] <= truth <= answer.interval[1])
        for answer, truth in zip(answers, exact[far], strict=True)
    ]
    assert np.mean(honest) > 0.9


def test_a_walk_against_noise(walk_or_noise: BayesFactor) -> None:
    data, label = simulate_truth(simulators.WALK_OR_NOISE, 2000, seed=42)
    log_bf, exact = walk_or_noise.log_bf(data), simulators.walk_or_noise_log_bf(data)
    assert excess_loss(log_bf, exact, label) < 0.02
    undecided = np.abs(exact) < np.log(100)
    assert np.corrcoef(log_bf[undecided], exact[undecided])[0, 1] > 0.95


def test_correlated_against_independent_pairs(pairs: BayesFactor) -> None:
    data, label = simulate_truth(simulators.PAIRS, 2000, seed=43)
    log_bf, exact = pairs.log_bf(data), simulators.pairs_log_bf(data)
    assert excess_loss(log_bf, exact, label) < 0.02
    undecided = np.abs(exact) < np.log(100)
    assert np.corrcoef(log_bf[undecided], exact[undecided])[0, 1] > 0.95


def test_three_means(three_means: BayesFactor) -> None:
    data, label = simulate_truth(simulators.THREE_MEANS, 2000, seed=44)
    exact = simulators.three_means_log_evidence(data)
    log_bf = np.stack([three_means.log_bf(data, k, 2) for k in range(3)], axis=1)
    assert cross_entropy(log_bf, label) - cross_entropy(exact, label) < 0.01


def test_pairs_of_three_agree_with_each_other(three_means: BayesFactor) -> None:
    data, _ = simulate_truth(simulators.THREE_MEANS, 300, seed=47)
    pairs = {(i, j): three_means.log_bf(data, i, j) for i in range(3) for j in range(3)}
    for i, j in pairs:
        np.testing.assert_allclose(pairs[i, j], -pairs[j, i], rtol=0, atol=1e-9)
        for k in range(3):
            np.testing.assert_allclose(pairs[i, j] + pairs[j, k], pairs[i, k], rtol=0, atol=1e-9)


def test_prior_odds_afterwards_shift_the_posterior_odds_exactly(three_means: BayesFactor) -> None:
    data, _ = simulate_truth(simulators.THREE_MEANS, 50, seed=48)
    prior = np.array([0.7, 0.2, 0.1])
    probs, even = (three_means.posterior_probs(data, weights) for weights in (prior, np.full(3, 1 / 3)))
    shifted = even * prior
    np.testing.assert_allclose(probs, shifted / shifted.sum(axis=1, keepdims=True), rtol=1e-9)
    answer = three_means.compare(data[0], prior_probs=prior)
    assert answer.ranking == tuple(three_means.names[k] for k in np.argsort(-probs[0]))
    assert (answer.favours if answer.log_bf >= 0 else answer.over) == answer.model


def test_the_record_holds_an_honest_loss(normal_mean: BayesFactor) -> None:
    data, label = simulate_truth(NORMAL_MEAN, 2000, seed=45)
    losses = -log_softmax(of_two(normal_mean.log_bf(data)), axis=1)[np.arange(len(label)), label]
    # Both are means over thousands of fresh data sets.
    error = losses.std() / np.sqrt(2000)
    assert abs(normal_mean.record.held_out_loss - losses.mean()) < 4 * error
    assert error < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("loss", losses.LOSSES)
def test_every_loss_finds_the_bayes_factor(loss: str, tmp_path: Path) -> None:
    data, label = simulate_truth(NORMAL_MEAN, 5000, seed=49)
    exact = normal_mean_log_bf(data, prior_scale=1.0)
    estimator = deepbf.fit(NORMAL_MEAN, structure="exchangeable", loss=loss, steps=2000, seed=3, progress=False)
    assert excess_loss(estimator.log_bf(data), exact, label) < 5e-3
    estimator.save(tmp_path / "estimator.deepbf")
    assert_array_equal(deepbf.load(tmp_path / "estimator.deepbf").log_bf_members(data), estimator.log_bf_members(data))


@pytest.mark.slow
@pytest.mark.parametrize("loss", losses.LOSSES)
def test_every_loss_finds_the_bayes_factors_of_three_models(loss: str) -> None:
    data, label = simulate_truth(simulators.THREE_MEANS, 5000, seed=50)
    exact = simulators.three_means_log_evidence(data)
    estimator = deepbf.fit(
        simulators.THREE_MEANS, structure="exchangeable", loss=loss, steps=2000, ensemble=2, seed=3, progress=False
    )
    log_bf = np.stack([estimator.log_bf(data, k, 2) for k in range(3)], axis=1)
    assert cross_entropy(log_bf, label) - cross_entropy(exact, label) < 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["cross_entropy", "squared_hellinger"])
def test_any_mixture_to_train_at_gives_the_same_bayes_factor(loss: str) -> None:
    data, label = simulate_truth(NORMAL_MEAN, 10_000, seed=51)
    exact = normal_mean_log_bf(data, prior_scale=1.0)
    for probs in (None, [0.9, 0.1], [0.1, 0.9]):
        estimator = deepbf.fit(
            NORMAL_MEAN, structure="exchangeable", loss=loss, training_probs=probs, steps=2000, seed=3, progress=False
        )
        log_bf = estimator.log_bf(data)
        assert excess_loss(log_bf, exact, label) < 2e-3
        # Log prior odds left in would be 2.2.
        undecided = np.abs(exact) < np.log(100)
        assert abs(np.mean(log_bf[undecided] - exact[undecided])) < 0.1


@pytest.mark.slow
def test_more_steps_come_closer() -> None:
    data, label = simulate_truth(NORMAL_MEAN, 10_000, seed=46)
    exact = normal_mean_log_bf(data, prior_scale=1.0)
    excess = [
        excess_loss(
            deepbf.fit(NORMAL_MEAN, structure="exchangeable", steps=steps, seed=3, progress=False).log_bf(data),
            exact,
            label,
        )
        for steps in (100, 1000, 10_000)
    ]
    assert excess[0] > 2 * excess[1] > 4 * excess[2]
    assert excess[2] < 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("network", ["fnn", "bnn", "deepset2"])
def test_the_papers_networks_learn(network: str) -> None:
    data, label = simulate_truth(NORMAL_MEAN, 2000, seed=47)
    exact = normal_mean_log_bf(data, prior_scale=1.0)
    estimator = deepbf.fit(
        NORMAL_MEAN, structure="exchangeable", network=network, steps=2000, ensemble=1, seed=3, progress=False
    )
    assert excess_loss(estimator.log_bf(data), exact, label) < 0.02


def slow_draws(rng: np.random.Generator, size: int) -> Any:
    time.sleep(0.001 * size)
    return rng.normal(size=(size, 10))


@pytest.mark.slow
@pytest.mark.parametrize("simulator", [simulators.around_zero, slow_draws], ids=["fast", "slow"])
def test_seconds_are_the_wall_time_of_the_call(simulator: Any) -> None:
    models = [simulators.FREE_MEAN, deepbf.Model("zero mean", simulator=simulator)]
    start = time.monotonic()
    estimator = deepbf.fit(models, structure="exchangeable", seconds=12, seed=1, progress=False)
    wall = time.monotonic() - start
    # A tenth either way; and a second for what a first call loads.
    assert 0.9 * 12 <= wall <= 1.1 * 12 + 1
    assert estimator.record.seconds == pytest.approx(wall, abs=0.5)
    assert estimator.record.stopped == "budget"
