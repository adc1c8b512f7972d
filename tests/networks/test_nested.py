"""The network for nested data: order and absence never show, groups do, and no finite data break it."""

from functools import cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from deepbf.networks.nested import NestedSummary
from deepbf.standardise import LARGEST
from tests.untrained import untrained

# Scalars, and observations of more columns than moments are taken of.
SHAPES = [(6, 9), (4, 3, 5)]


def with_absent(data: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """Return data sets with groups of any size, and a fifth of the groups absent, but never the first."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, data.shape[2], data.shape[:2], endpoint=True)
    sizes[:, 1:][rng.uniform(size=sizes[:, 1:].shape) < 0.2] = 0
    gone = np.arange(data.shape[2]) >= sizes[:, :, None]
    absent = data.copy()
    absent[gone] = np.nan
    return absent


@cache
def pilot(data_shape: tuple[int, ...]) -> list[NDArray[np.float32]]:
    rng = np.random.default_rng(1)
    draws = [rng.normal(size=(200, *data_shape)) for _ in range(2)]
    draws[1] += rng.normal(size=(200, data_shape[0], *[1] * (len(data_shape) - 1)))
    return [with_absent(data.astype(np.float32), k) for k, data in enumerate(draws)]


@cache
def fitted(data_shape: tuple[int, ...]) -> NestedSummary:
    return NestedSummary.fit(pilot(data_shape))


compiled = eqx.filter_jit(lambda preparation, data: preparation(data))


def prepare(data_shape: tuple[int, ...], data: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(compiled(fitted(data_shape), jnp.asarray(data, jnp.float32)))


def few(data_shape: tuple[int, ...]) -> NDArray[np.float32]:
    return np.concatenate([data[:10] for data in pilot(data_shape)])


@pytest.mark.parametrize("data_shape", SHAPES, ids=str)
@pytest.mark.slow
def test_the_layout_says_what_comes_out_and_it_is_moderate(data_shape: tuple[int, ...]) -> None:
    layout = fitted(data_shape).layout(data_shape)
    prepared = prepare(data_shape, few(data_shape))
    assert prepared.shape == (20, layout.width)
    assert 0 < layout.num_linear < layout.num_summary == layout.width
    assert np.abs(prepared).max() < 50
    assert np.abs(prepared - prepared[:1]).max() > 1


@pytest.mark.parametrize("data_shape", SHAPES, ids=str)
def test_neither_the_order_of_groups_nor_that_within_them_matters(data_shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    data = few(data_shape)
    expected = prepare(data_shape, data)
    for _ in range(2):
        shuffled = data[:, rng.permutation(data.shape[1])]
        shuffled = np.stack([[group[rng.permutation(len(group))] for group in one] for one in shuffled])
        assert_allclose(prepare(data_shape, shuffled), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("data_shape", SHAPES, ids=str)
def test_padding_never_changes_what_is_prepared(data_shape: tuple[int, ...]) -> None:
    data = few(data_shape)
    wider = np.full((len(data), 11, 20, *data_shape[2:]), np.nan, np.float32)
    wider[:, : data_shape[0], : data_shape[1]] = data
    # Sums over arrays of another shape round differently; at the public edge there is one shape, and nothing changes.
    assert_allclose(prepare(data_shape, wider), prepare(data_shape, data), rtol=1e-5, atol=1e-5)


def test_which_group_an_observation_is_in_does_matter() -> None:
    data = np.random.default_rng(3).normal(size=(20, 6, 9)) + 3 * np.arange(6)[:, None]
    regrouped = np.swapaxes(data.reshape(20, 9, 6), 1, 2)
    before, after = prepare((6, 9), data), prepare((6, 9), regrouped)
    assert np.abs(before - after).max(axis=1).min() > 1


EXTREMES = [0.0, 1.0, -1.0, 1e7, LARGEST, -LARGEST]


@pytest.mark.parametrize("data_shape", SHAPES, ids=str)
def test_no_finite_data_make_anything_but_finite_numbers(data_shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    mixed = rng.choice(EXTREMES, (8, *data_shape))
    constant = np.stack([np.full(data_shape, value) for value in EXTREMES])
    by_group = np.resize(EXTREMES, data_shape[:1]).reshape(1, -1, *[1] * (len(data_shape) - 1)) + 0 * constant
    data = np.concatenate([mixed, constant, by_group]).astype(np.float32)
    single = np.full_like(data, np.nan)
    single[:, 0, 0] = data[:, 0, 0]
    ones = np.full_like(data, np.nan)
    ones[:, :, 0] = data[:, :, 0]
    for values in (data, with_absent(data, 5), single, ones):
        assert np.isfinite(prepare(data_shape, values)).all()


def test_a_simulated_data_set_without_observations_does_not_spread_nan() -> None:
    assert np.isfinite(prepare((6, 9), np.full((20, 6, 9), np.nan))).all()


def test_one_group_of_one_observation_that_never_varies_is_prepared_all_the_same() -> None:
    preparation = NestedSummary.fit([np.zeros((50, 1, 1), np.float32)] * 2)
    assert np.isfinite(compiled(preparation, jnp.asarray([[[0.0]], [[3.0]]]))).all()


def test_an_estimator_gives_the_same_answer_in_any_order() -> None:
    estimator = untrained("nested", "deepset")
    rng = np.random.default_rng(6)
    data = rng.normal(size=(16, 5, 13)) * rng.gamma(1, 1, (16, 1, 1))
    data[:, 2, 4:] = np.nan
    data[:8, 4] = np.nan
    expected = estimator.log_bf(data)
    shuffled = data[:, rng.permutation(5)][:, :, rng.permutation(13)]
    assert_allclose(estimator.log_bf(shuffled), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    assert np.abs(estimator.log_bf(data[::-1]) - expected).max() > 1e-3 * np.abs(expected).max()
