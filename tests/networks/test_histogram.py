"""Soft histograms are means of ramps, with knots where the data are."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from deepbf.networks.histogram import FEWEST_RAMPS, MOST_RAMPS, RAMPS_IN_ALL, UNROLL, SoftHistogram, choose_knots


def ramp_means(data: NDArray[np.float32], knots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over observations of ramps between neighbouring knots, one loop at a time."""
    values = data.astype(np.float64)
    ramps = [np.clip((values - low) / (high - low), 0, 1).mean(axis=1) for low, high in itertools.pairwise(knots)]
    return np.stack(ramps, axis=1)


@pytest.mark.parametrize("num_obs", [1, UNROLL - 1, UNROLL, UNROLL + 5, 3 * UNROLL, 41])
def test_it_equals_plain_ramp_means(num_obs: int) -> None:
    rng = np.random.default_rng(1)
    data = rng.normal(size=(20, num_obs, 1)).astype(np.float32)
    pilot = rng.normal(size=(5000, 1)).astype(np.float32)
    histogram = SoftHistogram.fit(pilot)
    expected = ramp_means(data[..., 0], choose_knots(pilot[:, 0], MOST_RAMPS + 1))
    found = np.asarray(histogram(jnp.asarray(data)))
    assert found.shape == (20, histogram.num_ramps)
    assert_allclose(found[:, : expected.shape[1]], expected, atol=2e-6)
    # What fills up a SIMD register is flat.
    assert_array_equal(found[:, expected.shape[1] :], 0)


@pytest.mark.parametrize("num_obs", [UNROLL, UNROLL + 3])
def test_two_columns_have_ramps_of_their_own(num_obs: int) -> None:
    rng = np.random.default_rng(2)
    # The second column has few values, so fewer ramps than the first: the two must not be mixed up.
    columns = [rng.normal(5, 2, (20, num_obs)), rng.integers(0, 4, (20, num_obs))]
    data = np.stack(columns, axis=2).astype(np.float32)
    pilot = np.stack([rng.normal(5, 2, 4000), rng.integers(0, 4, 4000)], axis=1).astype(np.float32)
    expected = np.concatenate(
        [ramp_means(data[..., k], choose_knots(pilot[:, k], MOST_RAMPS + 1)) for k in range(2)], axis=1
    )
    found = np.asarray(SoftHistogram.fit(pilot)(jnp.asarray(data)))
    assert_allclose(found[:, : expected.shape[1]], expected, atol=2e-6)
    assert_array_equal(found[:, expected.shape[1] :], 0)


@pytest.mark.parametrize("num_columns", [1, 2, 10, 100])
def test_the_number_of_ramps_is_bounded(num_columns: int) -> None:
    pilot = np.random.default_rng(3).normal(size=(500, num_columns)).astype(np.float32)
    histogram = SoftHistogram.fit(pilot)
    each = min(MOST_RAMPS, max(FEWEST_RAMPS, RAMPS_IN_ALL // num_columns))
    assert FEWEST_RAMPS * num_columns <= histogram.num_ramps <= each * num_columns + 8
    assert histogram(jnp.zeros((2, 5, num_columns))).shape == (2, histogram.num_ramps)


def test_at_a_point_between_two_knots_the_ramps_give_the_point_back() -> None:
    # Sum of width times ramp is the distance from the first knot: piecewise-linear functions are linear in the ramps.
    pilot = np.random.default_rng(4).normal(size=(5000, 1)).astype(np.float32)
    knots = choose_knots(pilot[:, 0], MOST_RAMPS + 1)
    points = np.linspace(knots[0], knots[-1], 50).astype(np.float32)
    ramps = np.asarray(SoftHistogram.fit(pilot)(jnp.asarray(points[:, None, None])))[:, : len(knots) - 1]
    assert_allclose(knots[0] + ramps @ np.diff(knots), points, atol=1e-5)


def test_outside_the_knots_it_is_flat() -> None:
    pilot = np.random.default_rng(5).normal(size=(5000, 1)).astype(np.float32)
    histogram = SoftHistogram.fit(pilot)
    far = np.asarray(histogram(jnp.asarray([[[1e15]], [[-1e15]], [[pilot.max()]], [[pilot.min()]]], jnp.float32)))
    assert_array_equal(far[0], far[2])
    assert_allclose(far[1], far[3], atol=1e-5)


def test_observations_may_come_in_any_order() -> None:
    rng = np.random.default_rng(6)
    data = rng.normal(size=(4, 21, 2)).astype(np.float32)
    histogram = SoftHistogram.fit(data.reshape(-1, 2))
    shuffled = data[:, rng.permutation(21)]
    assert_allclose(histogram(jnp.asarray(shuffled)), histogram(jnp.asarray(data)), atol=1e-6)


def test_few_values_are_all_knots() -> None:
    values = np.float32([0, 0, 1, 5, 5, 5, 2.5])
    assert_array_equal(choose_knots(values, 49), [0, 1, 2.5, 5])
    assert_array_equal(choose_knots(np.arange(49, dtype=np.float32), 49), np.arange(49))


def test_a_constant_has_two_knots_around_it() -> None:
    knots = choose_knots(np.full(10, 3, np.float32), 49)
    assert knots[0] < 3 < knots[-1]


@pytest.mark.parametrize("most", [2, 5, 49])
@pytest.mark.parametrize("tails", ["normal", "cauchy", "one far value", "lognormal"])
def test_knots_are_increasing_values_of_the_data(tails: str, most: int) -> None:
    rng = np.random.default_rng(7)
    values = {
        "normal": rng.normal(size=20_000),
        "cauchy": rng.standard_cauchy(20_000),
        "one far value": np.append(rng.normal(size=20_000), 1e15),
        "lognormal": np.exp(5 * rng.normal(size=20_000)),
    }[tails].astype(np.float32)
    knots = choose_knots(values, most)
    assert 2 <= len(knots) <= most
    assert (np.diff(knots) > 0).all()
    assert np.isin(knots, values.astype(np.float64)).all()
    # From one end of the data to the other.
    assert knots[0] == values.min()
    assert knots[-1] == values.max()


@pytest.mark.parametrize("success", [0.02, 0.2])
def test_counts_have_a_knot_on_every_small_integer(success: float) -> None:
    rng = np.random.default_rng(8)
    counts = np.concatenate([rng.geometric(success, 20_000) - 1, rng.geometric(1e-7, 200) - 1]).astype(np.float32)
    knots = choose_knots(counts, MOST_RAMPS + 1)
    assert_array_equal(knots, np.round(knots))
    assert knots[-1] == counts.max()
    assert set(range(5)) <= set(knots.tolist())


def test_knots_are_denser_where_the_data_are() -> None:
    values = np.random.default_rng(9).normal(size=50_000).astype(np.float32)
    knots = choose_knots(values, 49)
    widths, middles = np.diff(knots), 0.5 * (knots[1:] + knots[:-1])
    assert widths[np.abs(middles) < 1].max() < widths[np.abs(middles) > 3].min()


def test_values_closer_than_float32_can_divide_by_stay_finite() -> None:
    pilot = np.float32([[0.0], [1e-40], [1.0]])
    assert np.isfinite(np.asarray(SoftHistogram.fit(pilot)(jnp.asarray(pilot[None])))).all()
