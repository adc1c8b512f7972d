"""Ranks under weights are the ranks of the data sets so repeated, ties and infinities included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from deepbf.evaluation.ranking import Ranking, rank_correlation

VALUES = st.lists(st.sampled_from([-np.inf, -2.0, -0.5, 0.0, 0.5, 1.0, 7.0, np.inf]), min_size=4, max_size=12)


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
    found = rank_correlation(x, y, weights)
    for rho, row in zip(found, weights.astype(int), strict=True):
        repeated = np.repeat(x, row), np.repeat(y, row)
        if any(len(set(part)) == 1 for part in repeated):
            assert np.isnan(rho) or abs(rho) < 1e-6
        else:
            assert rho == pytest.approx(spearmanr(*repeated)[0], abs=1e-9)


def test_by_hand() -> None:
    # Ranks 1 2 3 4 against 2 1 4 3: 1 - 6 x 4 / (4 x 15).
    assert rank_correlation(np.arange(4.0), np.array([2.0, 1.0, 4.0, 3.0]), np.ones((1, 4))) == pytest.approx(0.6)
