"""Ranking in strata against ranking by definition, and the identities that a Bayes factor obeys."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import deepbf
from deepbf.baselines.abc import abc_ranked
from deepbf.baselines.abc.nearest import rank
from deepbf.baselines.abc.reference import Comparison, compare
from tests.baselines.abc import problems

SIZES = {2: [300, 300], 3: [300, 180, 120]}


@pytest.mark.parametrize("distance", ["euclidean", "scaled"])
@pytest.mark.parametrize("num_models", [2, 3])
@pytest.mark.parametrize("models", [problems.NORMALS, problems.COUNTS], ids=["continuous", "ties"])
@pytest.mark.parametrize(
    ("num_strata", "per_stratum", "num_kept"), [(20, 3, 25), (60, 10, 7), (1, 50, 50), (30, 1, 30)]
)
def test_strata_equal_brute_force_to_the_last_draw(
    models: list[deepbf.Model], num_models: int, distance: str, num_strata: int, per_stratum: int, num_kept: int
) -> None:
    models = models[:num_models]
    reference = problems.draw_reference(models, SIZES[num_models], seed=10)
    observed = np.concatenate([model.simulate(7, 99 + k).data for k, model in enumerate(models)])
    draws, labels = problems.in_order(models, reference, num_strata, seed=5)
    scale = problems.naive_scale(draws, distance, pilot=len(draws) // num_strata)
    squared = problems.naive_squared(observed, draws, scale)
    expected = problems.naive_ranked(squared, num_strata, per_stratum, num_kept)

    comparison = comparison_of(models, observed, reference, num_strata, distance)
    nearest, _ = rank(comparison, per_stratum, num_kept)
    np.testing.assert_array_equal(nearest.draws, expected)
    np.testing.assert_array_equal(nearest.labels, labels[np.array(expected)])

    result = abc_ranked(
        models, observed, num_strata=num_strata, kept_per_stratum=per_stratum, num_kept=num_kept, distance=distance,
        reference=reference, seed=5,
    )  # fmt: skip
    accepted = np.array([np.bincount(labels[kept], minlength=num_models) for kept in expected])
    np.testing.assert_array_equal(problems.diagnostic(result, "accepted"), accepted)
    log_evidence = np.log(accepted + 0.5) - np.log(SIZES[num_models])
    # Several models without a draw share one evidence, which has a test of its own.
    told_apart = (accepted == 0).sum(axis=1) < 2
    np.testing.assert_allclose(result.log_evidence[told_apart], log_evidence[told_apart], rtol=1e-14)
    largest = [np.sqrt(squared[i, kept[-1]]) for i, kept in enumerate(expected)]
    np.testing.assert_allclose(problems.diagnostic(result, "largest_distance"), largest, rtol=1e-14)


def test_fresh_draws_rank_like_the_same_draws_given() -> None:
    """Unequal prior probabilities: the strata's own seeds, drawn here again, give the same accepted labels."""
    models, observed = problems.COUNTS, problems.COUNTS[0].simulate(5, 1).data
    settings: dict[str, Any] = {"num_strata": 10, "kept_per_stratum": 5, "num_kept": 20, "seed": 3}
    fresh = abc_ranked(models, observed, num_simulations=600, prior_probs=[0.5, 0.3, 0.2], **settings)
    comparison = comparison_of(models, observed, None, 10, "euclidean", prior_probs=[0.5, 0.3, 0.2], seed=3)
    strata = [comparison.reference.stratum(s) for s in range(10)]
    reference = [np.concatenate([s.values[s.labels == k] for s in strata]) for k in range(3)]
    assert [len(array) for array in reference] == [300, 180, 120]
    given = abc_ranked(models, observed, reference=reference, **settings)
    np.testing.assert_array_equal(fresh.log_evidence, given.log_evidence)


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_far_origins_and_odd_units_lose_no_draw(offset: float, unit: float) -> None:
    """Single precision alone would not see any difference at 1e9."""
    rng = np.random.default_rng(0)
    models = problems.NORMALS[:2]
    reference = [unit * (offset + np.round(2**10 * rng.standard_normal((200, 4))) / 2**10) for _ in range(2)]
    observed = unit * (offset + np.round(2**10 * rng.standard_normal((6, 4))) / 2**10)
    # Outliers on both sides, and one draw beyond the square root of the largest number.
    observed[0] = unit * 1e15
    reference[1][7] = 1e200
    draws, labels = problems.in_order(models, reference, 10, seed=0)
    with np.errstate(over="ignore"):
        squared = problems.naive_squared(observed, draws, np.ones(4))
    expected = problems.naive_ranked(squared, 10, 4, 30)
    result = abc_ranked(models, observed, num_strata=10, kept_per_stratum=4, num_kept=30, reference=reference)
    accepted = [np.bincount(labels[kept], minlength=2) for kept in expected]
    np.testing.assert_array_equal(problems.diagnostic(result, "accepted"), accepted)
    assert np.isfinite(result.log_bf).all()


def test_swapping_models_flips_the_sign_exactly() -> None:
    models, observed = problems.COUNTS[:2], problems.COUNTS[2].simulate(20, 1).data
    reference = problems.draw_reference(models, [165, 135], seed=2)
    settings: dict[str, Any] = {"num_strata": 20, "kept_per_stratum": 4, "num_kept": 40}
    forward = abc_ranked(models, observed, reference=reference, **settings)
    backward = abc_ranked(models[::-1], observed, reference=reference[::-1], **settings)
    np.testing.assert_array_equal(forward.log_bf, -backward.log_bf)
    np.testing.assert_array_equal(forward.log_bf_error, backward.log_bf_error)
    assert np.abs(forward.log_bf).max() > 0.5


def test_ties_favour_no_model() -> None:
    """All draws at the same distance: what is accepted is a random sample of the labels."""
    models = problems.NORMALS[:2]
    reference = [np.zeros((5000, 4)), np.zeros((15000, 4))]
    for seed in range(3):
        result = abc_ranked(
            models, np.ones(4), reference=reference, num_strata=200, kept_per_stratum=10, num_kept=1500, seed=seed
        )
        assert abs(result.log_bf[0]) < 3 * result.log_bf_error[0]
        assert result.log_bf_error[0] < 0.1


def test_identical_models_give_zero_within_error() -> None:
    models = [problems.normal("one", 2.0), problems.normal("other", 2.0)]
    observed = models[0].simulate(30, 1).data
    result = abc_ranked(models, observed, num_simulations=50_000, num_strata=50, kept_per_stratum=20, num_kept=800)
    assert (np.abs(result.log_bf) < 4 * result.log_bf_error).all()
    assert result.log_bf_error.max() < 0.08


def test_prior_odds_are_divided_out() -> None:
    models, observed = problems.COUNTS[:2], problems.COUNTS[2].simulate(20, 1).data
    results = [
        abc_ranked(
            models, observed, num_simulations=60_000, num_strata=60, kept_per_stratum=20, num_kept=600,
            prior_probs=probs, summary=lambda data: data.sum(axis=1), seed=seed,
        )
        for seed, probs in enumerate([[0.5, 0.5], [0.8, 0.2], [0.25, 0.75]])
    ]  # fmt: skip
    for other in results[1:]:
        error = np.hypot(results[0].log_bf_error, other.log_bf_error)
        assert (np.abs(results[0].log_bf - other.log_bf) < 4 * error).all()
        assert np.median(error) < 0.3


def test_a_seed_gives_the_same_answer_and_another_seed_another() -> None:
    models, observed = problems.NORMALS, problems.NORMALS[0].simulate(5, 1).data
    settings: dict[str, Any] = {"num_simulations": 3_000, "num_strata": 10, "kept_per_stratum": 20, "num_kept": 100}
    first, again, other = (abc_ranked(models, observed, seed=seed, **settings) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.log_evidence, again.log_evidence)
    np.testing.assert_array_equal(
        problems.diagnostic(first, "largest_distance"), problems.diagnostic(again, "largest_distance")
    )
    assert (problems.diagnostic(first, "largest_distance") != problems.diagnostic(other, "largest_distance")).all()


def test_estimates_stay_in_the_stated_range() -> None:
    observed = np.full((1, problems.NUM_OBS), 8.0)
    result = abc_ranked(problems.NORMALS[:2], observed, num_simulations=10_000, num_strata=10, kept_per_stratum=20)
    assert problems.diagnostic(result, "accepted").tolist() == [[120, 0]]
    assert result.log_bf[0] == pytest.approx(np.log(2 * 120 + 1))
    assert problems.diagnostic(result, "bound").tolist() == [True]
    assert "bound" in result.warnings[0]


def test_simulators_are_never_asked_for_more_than_their_share_of_a_stratum() -> None:
    largest = [0, 0]

    def counting(k: int) -> deepbf.Model:
        def simulator(rng: np.random.Generator, size: int) -> np.ndarray:
            largest[k] = max(largest[k], size)
            return rng.standard_normal((size, 4))

        return deepbf.Model(f"counting {k}", simulator=simulator)

    abc_ranked(
        [counting(0), counting(1)], np.zeros(4), num_simulations=40_000, num_strata=400, prior_probs=[0.75, 0.25]
    )
    assert largest == [75, 25]


def comparison_of(
    models: Sequence[deepbf.Model],
    observed: np.ndarray,
    reference: Sequence[np.ndarray] | None,
    num_strata: int,
    distance: str,
    prior_probs: list[float] | None = None,
    seed: int = 5,
) -> Comparison:
    return compare(
        models, observed, num_simulations=600, num_strata=num_strata, summary=None, distance=distance,
        prior_probs=prior_probs, reference=reference, seed=seed,
    )  # fmt: skip
