"""The bootstrap gives the standard errors that theory knows, and ranks under weights those of repeated data sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from deepbf.evaluation.bootstrap import (
    BATCH_ENTRIES,
    Ranking,
    Weights,
    by_model,
    mean_of,
    merge_rounding,
    rank_correlation,
    with_errors,
)

PRIOR = np.array([0.3, 0.7])
VALUES = st.lists(st.sampled_from([-np.inf, -2.0, -0.5, 0.0, 0.5, 1.0, 7.0, np.inf]), min_size=4, max_size=12)


def test_the_error_of_a_mean_is_its_standard_error() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(2, 3, 500), rng.exponential(1, 800)
    statistics = {"mean": by_model(mean_of(first), mean_of(second), PRIOR)}
    estimate, error = with_errors(statistics, (500, 800), num_replicates=4000, seed=2)["mean"]
    variances = np.array([first.var() / 500, second.var() / 800])
    np.testing.assert_allclose(estimate, [first.mean(), second.mean(), 0.3 * first.mean() + 0.7 * second.mean()])
    # The bootstrap's own relative error is 1 / sqrt(2 x 4000) = 1.1%.
    expected = np.sqrt([*variances, (PRIOR**2 * variances).sum()])
    np.testing.assert_allclose(error, expected, rtol=0.045)


def test_weights_count_every_data_set_once_on_average_and_keep_the_total() -> None:
    seen: list[Weights] = []

    def remember(weights: Weights) -> np.ndarray:
        seen.append(weights)
        return np.zeros((len(weights[0]), 1))

    with_errors({"any": remember}, (300, 7), num_replicates=5000, seed=1)
    # The last call is the estimate, in which every data set counts once.
    *batches, everything = seen
    assert [np.unique(part).tolist() for part in everything] == [[1.0], [1.0]]
    first, second = (np.concatenate([batch[k] for batch in batches]) for k in range(2))
    assert len(batches) == -(-5000 // (BATCH_ENTRIES // 300))
    assert first.shape == (5000, 300)
    assert second.shape == (5000, 7)
    assert set(first.sum(axis=1)) == {300.0}
    assert set(second.sum(axis=1)) == {7.0}
    np.testing.assert_allclose(first.mean(axis=0), 1, atol=5 / np.sqrt(5000))


def test_the_same_seed_draws_the_same_replicates() -> None:
    values = np.random.default_rng(0).normal(size=50)
    statistics = {"mean": by_model(mean_of(values), mean_of(values), PRIOR)}
    a, b, c = (with_errors(statistics, (50, 50), num_replicates=20, seed=seed)["mean"][1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert np.all(a != c)


def test_an_infinite_mean_is_infinite_without_error_and_leaves_the_other_model_alone() -> None:
    with_infinity, plain = np.array([1.0, np.inf, 3.0]), np.array([1.0, 2.0, 3.0])
    statistics = {"mean": by_model(mean_of(with_infinity), mean_of(plain), PRIOR)}
    estimate, error = with_errors(statistics, (3, 3), num_replicates=50, seed=1)["mean"]
    assert estimate.tolist() == [np.inf, 2.0, np.inf]
    assert np.isnan(error).tolist() == [True, False, True]


def test_an_infinite_value_that_is_not_drawn_does_not_count() -> None:
    statistic = mean_of(np.array([1.0, np.inf, 3.0]))
    assert statistic(np.array([[2.0, 0.0, 1.0], [1.0, 1.0, 1.0]])) == pytest.approx([5 / 3, np.inf])


@settings(deadline=None, derandomize=True)
@given(VALUES, st.integers(0, 10_000))
def test_shares_are_those_of_repeated_values(values: list[float], seed: int) -> None:
    array = np.array(values)
    counts = np.random.default_rng(seed).multinomial(len(array), np.full(len(array), 1 / len(array)))
    repeated = np.repeat(array, counts)
    ranking, weights = Ranking(array), counts[None].astype(float)
    np.testing.assert_allclose(ranking.share_below(weights, array)[0], [np.mean(repeated < v) for v in array])
    np.testing.assert_allclose(ranking.share_at_most(weights, array)[0], [np.mean(repeated <= v) for v in array])
    np.testing.assert_allclose(
        ranking.share_mid(weights, array)[0], [0.5 * (np.mean(repeated < v) + np.mean(repeated <= v)) for v in array]
    )


@settings(deadline=None, derandomize=True)
@given(VALUES, st.integers(0, 10_000))
def test_rank_correlation_is_that_of_scipy_also_for_repeated_data_sets(values: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.array(values)
    y = rng.permutation(x) if seed % 2 else rng.normal(size=len(x))
    counts = rng.multinomial(len(x), np.full(len(x), 1 / len(x)), 3)
    weights = np.concatenate([np.ones((1, len(x))), counts.astype(np.float64)])
    found = rank_correlation(x, y)(weights)
    for rho, row in zip(found, weights.astype(int), strict=True):
        repeated = np.repeat(x, row), np.repeat(y, row)
        if any(len(set(part)) == 1 for part in repeated):
            assert np.isnan(rho) or abs(rho) < 1e-6
        else:
            assert rho == pytest.approx(spearmanr(*repeated)[0], abs=1e-9)


def test_rank_correlation_by_hand() -> None:
    # Ranks 1 2 3 4 against 2 1 4 3: 1 - 6 x 4 / (4 x 15).
    assert rank_correlation(np.arange(4.0), np.array([2.0, 1.0, 4.0, 3.0]))(np.ones((1, 4))) == pytest.approx(0.6)


def test_values_that_differ_by_rounding_are_tied_and_others_are_not() -> None:
    first, second = merge_rounding((np.array([0.1 + 0.2, 1.0, 1e6, np.inf]), np.array([0.3, 1.001, 1e6 + 1, -np.inf])))
    assert first[0] == second[0]
    assert first[1] != second[1]
    assert first[2] == second[2]  # a millionth of its size
    assert first[3] == np.inf
    assert second[3] == -np.inf


def test_a_sample_that_lies_dense_is_not_merged_into_one_value() -> None:
    # Neighbours 2e-6 apart, closer than the rounding of float32, all the way from 0 to 1.
    dense = np.linspace(0, 1, 500_000)
    np.testing.assert_array_equal(
        np.concatenate(merge_rounding((dense[::2], dense[1::2]))), [*dense[::2], *dense[1::2]]
    )
