"""Whitening: unit variances and no correlation, over the pooled models and again for each."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from deepbf.networks.features import DIRECTIONS_TOGETHER, MOST_PER_MODEL, MultiScale
from tests.reading import read


def correlated(spread: float, num_columns: int = 4, num_rows: int = 600) -> NDArray[np.float32]:
    rng = np.random.default_rng(int(1000 * spread))
    mixing = np.eye(num_columns) + 0.8 * rng.uniform(size=(num_columns, num_columns))
    return (spread * rng.normal(size=(num_rows, num_columns)) @ mixing + 3.0).astype(np.float32)


def assert_white(columns: NDArray[np.generic]) -> None:
    covariance = np.cov(np.asarray(columns, np.float64), rowvar=False)
    assert_allclose(covariance, np.eye(len(covariance)), atol=2e-3)
    assert_allclose(np.asarray(columns, np.float64).mean(axis=0), 0, atol=2e-3)


def test_the_linear_columns_are_white_over_all_models() -> None:
    features = [correlated(1.0), correlated(2.0)]
    scales = MultiScale.fit(features, smallest_spread=1e-3)
    assert scales.num_linear == DIRECTIONS_TOGETHER
    columns = read(scales, np.concatenate(features))
    assert_white(columns[:, :4])
    # What fills up is the same for all data.
    assert_array_equal(columns[:, 4 : scales.num_linear], 0.0)


def test_the_other_columns_are_white_for_each_model_before_squashing() -> None:
    # A thousandfold difference in spread: the pool alone would leave the narrow model in one corner.
    features = [correlated(0.002), correlated(2.0)]
    scales = MultiScale.fit(features, smallest_spread=1e-3)
    for k, own in enumerate(features):
        start = scales.num_linear + DIRECTIONS_TOGETHER * k
        assert_white(np.sinh(read(scales, own)[:, start : start + 4]))
    pooled_view = read(scales, features[0])[:, : scales.num_linear]
    assert pooled_view.std(axis=0).max() < 0.01


def test_the_linear_columns_are_linear() -> None:
    scales = MultiScale.fit([correlated(1.0), correlated(2.0)], smallest_spread=1e-3)
    first, second = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
    linear = [read(scales, rows)[:, :4] for rows in (first, second, (first + second) / 2)]
    assert_allclose(linear[2], (linear[0] + linear[1]) / 2, atol=1e-4)


def test_directions_that_carry_only_rounding_are_left_out() -> None:
    rng = np.random.default_rng(2)
    wide = rng.normal(size=(500, 2))
    noise = 1e-6 * rng.normal(size=(500, 1))
    features = np.concatenate([wide, wide.sum(axis=1, keepdims=True) + noise], axis=1).astype(np.float32)
    scales = MultiScale.fit([features, features], smallest_spread=1e-3)
    columns = read(scales, features)
    assert_white(columns[:, :2])
    assert_array_equal(columns[:, 2 : scales.num_linear], 0.0)


def test_a_model_adds_only_so_many_columns() -> None:
    features = [correlated(1.0, num_columns=20), correlated(2.0, num_columns=20), correlated(3.0, num_columns=20)]
    scales = MultiScale.fit(features, smallest_spread=1e-3)
    assert scales.num_linear == 24
    assert scales.num_columns == 24 + 3 * MOST_PER_MODEL


@pytest.mark.parametrize(("number", "filled"), [(1, 8), (8, 8), (63, 64), (65, 96), (130, 160)])
def test_numbers_of_directions_that_are_about_the_same_are_the_same(number: int, filled: int) -> None:
    features = [correlated(1.0, num_columns=number, num_rows=6000)]
    assert MultiScale.fit(features, smallest_spread=1e-6).num_linear == filled


def test_zeros_give_rows_of_the_right_width() -> None:
    scales = MultiScale.fit([correlated(1.0, num_columns=20)] * 3, smallest_spread=1e-3)
    assert scales(jnp.zeros((5, 20))).shape == (5, scales.num_columns)


@pytest.mark.parametrize("num_rows", [1, 50])
def test_features_that_never_vary_become_zeros(num_rows: int) -> None:
    constant = np.full((num_rows, 3), 2.0, np.float32)
    scales = MultiScale.fit([constant, constant], smallest_spread=1e-3)
    assert scales.num_linear >= 1
    assert_array_equal(read(scales, constant), np.zeros((num_rows, scales.num_columns)))
    assert np.isfinite(np.asarray(scales(jnp.full((2, 3), 1e15)))).all()


def test_more_columns_than_data_sets() -> None:
    features = [correlated(1.0, num_columns=30, num_rows=10), correlated(2.0, num_columns=30, num_rows=10)]
    scales = MultiScale.fit(features, smallest_spread=1e-3)
    assert scales.num_linear == DIRECTIONS_TOGETHER
    columns = read(scales, np.concatenate(features))
    assert_white(columns[:, columns.std(axis=0) > 0][:, :2])
