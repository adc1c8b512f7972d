"""Thinning: few simulations stand for all, whichever way they came."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.special import log_softmax

from deepbf.training.intake import EVEN_SHARE, KEPT_SHARE, Thinning, _slope_for, _with_weights

SLOPE = 6.0


def rows_of(num_rows: int, num_models: int = 2, seed: int = 1) -> list[NDArray[np.float32]]:
    """Return normal rows of one column, a unit apart from model to model; most are told apart with ease."""
    rng = np.random.default_rng(seed)
    return [(k + 0.4 * rng.normal(size=(num_rows, 1))).astype(np.float32) for k in range(num_models)]


def score(num_models: int):
    def log_probs(rows: NDArray[np.float32]) -> NDArray[np.float64]:
        centres = np.arange(num_models)
        return log_softmax(-SLOPE / 2 * (rows.astype(np.float64) - centres) ** 2, axis=1)

    return log_probs


def thinning_of(num_models: int = 2, seed: int = 3, **options: float) -> Thinning:
    thinning = Thinning(num_models, seed, **options)
    thinning.set_up(score(num_models), rows_of(8192, num_models, seed=9))
    return thinning


@pytest.mark.parametrize("num_models", [2, 3])
def test_weighted_rows_stand_for_all(num_models: int) -> None:
    rows = rows_of(200_000, num_models)
    for kept, everything in zip(thinning_of(num_models)(rows), rows, strict=True):
        values, weights = kept[:, 0].astype(np.float64), kept[:, 1].astype(np.float64)
        error = weights.std() / np.sqrt(len(weights))
        assert_allclose(weights.mean(), 1.0, atol=5 * error)
        for function in (np.asarray, np.square, lambda x: x > 1.0):
            terms = weights * function(values)
            assert_allclose(terms.mean(), function(everything).mean(), atol=5 * terms.std() / np.sqrt(len(terms)))


def test_the_wanted_share_is_kept_the_same_number_of_each_model() -> None:
    kept = thinning_of()(rows_of(100_000))
    assert len(kept[0]) == len(kept[1])
    assert_allclose(len(kept[0]) / 100_000, KEPT_SHARE, rtol=0.03)


def test_surprising_rows_are_kept_more_often_than_others() -> None:
    rows = rows_of(100_000)
    kept = thinning_of()(rows)
    shares = [(kept[0][:, 0] > limit).sum() / (rows[0] > limit).sum() for limit in (-9.0, 0.5, 1.0)]
    assert shares == sorted(shares)
    assert shares[-1] > 4 * KEPT_SHARE


def test_no_weight_is_large() -> None:
    kept = np.concatenate(thinning_of()(rows_of(100_000)))
    assert 0 < kept[:, 1].min() < 1 < kept[:, 1].max() < 1.1 / EVEN_SHARE


def test_however_the_rows_were_cut_the_same_are_kept() -> None:
    rows = rows_of(10_000)
    whole, parts = thinning_of(), thinning_of()
    together = whole(rows)
    ends = [0, 256, 257, 4000, 10_000]
    apart = [parts([one[a:b] for one in rows]) for a, b in pairwise(ends)]
    for model_index in (0, 1):
        assert_array_equal(np.concatenate([part[model_index] for part in apart]), together[model_index])


def test_another_seed_keeps_others() -> None:
    first, second = (thinning_of(seed=seed)(rows_of(1000))[0] for seed in (3, 4))
    assert first.shape != second.shape or (first != second).any()


def test_what_is_too_much_of_one_model_waits_for_the_other() -> None:
    rows = rows_of(10_000)
    thinning = thinning_of()
    assert [len(one) for one in thinning([rows[0], rows[1][:0]])] == [0, 0]
    late = thinning([rows[0][:0], rows[1]])
    for one, other in zip(late, thinning_of()(rows), strict=True):
        assert_array_equal(one, other)


def test_where_nothing_is_left_to_learn_few_are_kept_and_weigh_the_same() -> None:
    thinning = Thinning(2, seed=1)
    rows = [np.full((10_000, 1), model_index, np.float32) for model_index in (0, 1)]
    certain = np.log([[1.0, 1e-300], [1e-300, 1.0]])
    thinning.set_up(lambda rows: certain[rows[:, 0].astype(int)], [one[:99] for one in rows])
    kept = thinning(rows)
    assert_allclose(len(kept[0]) / 10_000, KEPT_SHARE * EVEN_SHARE, rtol=0.2)
    assert_allclose(kept[0][:, 1], 1.0, rtol=1e-6)


def test_slopes_keep_what_was_wanted() -> None:
    gradients = np.random.default_rng(1).beta(0.2, 3.0, 10_000)
    slope = _slope_for(gradients, 0.3)
    assert_allclose(np.minimum(1.0, 0.3 * (EVEN_SHARE + slope * gradients)).mean(), 0.3, rtol=1e-6)


def test_without_a_guess_there_is_nothing_to_choose_by() -> None:
    thinning = Thinning(2, seed=1)
    assert not thinning.is_set
    with pytest.raises(RuntimeError, match="set_up first"):
        thinning(rows_of(10))
    assert thinning_of().is_set


def test_rows_weigh_one_unless_told() -> None:
    rows = rows_of(3)[0]
    assert_array_equal(_with_weights(rows), np.concatenate([rows, np.ones((3, 1))], axis=1))
