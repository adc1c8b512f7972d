"""Acceptance within epsilon against brute force, and against the truth where acceptance is exact."""

import numpy as np
import pytest
from scipy.special import betaln

import deepbf
from deepbf.baselines.abc import abc_epsilon
from tests.baselines.abc import problems


@pytest.mark.parametrize("distance", ["euclidean", "scaled"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 1e4, 1e200])
@pytest.mark.parametrize("models", [problems.NORMALS, problems.COUNTS[:2]], ids=["three", "two, with ties"])
def test_acceptance_equals_brute_force(models: list[deepbf.Model], epsilon: float, distance: str) -> None:
    sizes = [1500, 900, 600][: len(models)]
    reference = problems.draw_reference(models, sizes, seed=4)
    observed = np.concatenate([model.simulate(6, 50).data for model in models])
    num_strata = -(-sum(sizes) // 1000)
    draws, labels = problems.in_order(models, reference, num_strata, seed=0)
    scale = problems.naive_scale(draws, distance, pilot=sum(sizes) // num_strata)
    distances = np.sqrt(problems.naive_squared(observed, draws, scale))
    close = distances <= epsilon
    result = abc_epsilon(models, observed, epsilon=epsilon, distance=distance, reference=reference)
    accepted = np.stack([close[:, labels == k].sum(axis=1) for k in range(len(models))], axis=1)
    np.testing.assert_array_equal(problems.diagnostic(result, "accepted"), accepted)
    largest = np.where(close.any(axis=1), np.where(close, distances, 0).max(axis=1), np.nan)
    np.testing.assert_allclose(problems.diagnostic(result, "largest_distance"), largest, rtol=1e-14)


def test_exact_rejection_finds_the_exact_bayes_factor() -> None:
    """The total of binomial counts is sufficient, for the models too: epsilon of 1/2 accepts only equal totals."""
    models = problems.COUNTS[:2]
    observed = np.array([[0, 0, 0, 0], [1, 0, 2, 0], [2, 2, 1, 1], [3, 3, 2, 3]])
    result = abc_epsilon(
        models, observed, epsilon=0.5, num_simulations=200_000, summary=lambda data: data.sum(axis=1), seed=1
    )
    total, trials = observed.sum(axis=1), 3 * problems.NUM_OBS
    exact = (betaln(1 + total, 3 + trials - total) - betaln(1, 3)) - (
        betaln(3 + total, 1 + trials - total) - betaln(3, 1)
    )
    assert (np.abs(result.log_bf - exact) < 4 * result.log_bf_error).all()
    assert result.log_bf_error.max() < 0.12
    assert (problems.diagnostic(result, "largest_distance") == 0).all()
    assert not result.warnings


def test_reported_error_is_the_spread_over_seeds() -> None:
    models, observed = problems.COUNTS[:2], np.array([1, 0, 2, 1])
    results = [
        abc_epsilon(models, observed, epsilon=0.5, num_simulations=4_000, summary=lambda d: d.sum(axis=1), seed=seed)
        for seed in range(60)
    ]
    spread = np.std([result.log_bf[0] for result in results], ddof=1)
    reported = np.mean([result.log_bf_error[0] for result in results])
    # The standard deviation of 60 values is known to 9%.
    assert 0.7 < spread / reported < 1.35


def test_nothing_accepted_is_said_and_counted() -> None:
    observed = np.array([[0.0, 0, 0, 0], [100, 100, 100, 100]])
    result = abc_epsilon(problems.NORMALS, observed, epsilon=1.0, num_simulations=5_000, prior_probs=[0.6, 0.3, 0.1])
    assert problems.diagnostic(result, "accepted")[1].sum() == 0
    assert result.log_bf[1] == 0
    assert result.log_bf_error[1] == pytest.approx(2.0)
    assert np.isnan(problems.diagnostic(result, "largest_distance")[1])
    assert problems.diagnostic(result, "bound").tolist() == [False, True]
    assert result.warnings[0].startswith("no draw was accepted for 1 of 2 data sets")


def test_many_hits_at_once_stay_exact() -> None:
    """An epsilon that accepts every draw, over several tiles of data sets."""
    observed = problems.NORMALS[0].simulate(1200, 3).data
    result = abc_epsilon(problems.NORMALS[:2], observed, epsilon=1e3, num_simulations=1_001)
    np.testing.assert_array_equal(problems.diagnostic(result, "accepted"), np.tile([500, 501], (1200, 1)))
