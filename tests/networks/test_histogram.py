"""Soft histograms are means of ramps, with knots where the data are."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from deepbf.networks.features import (
    FEWEST_RAMPS,
    MOST_RAMPS,
    RAMPS_IN_ALL,
    SIMD_WIDTH,
    UNROLL,
    SoftHistogram,
    choose_directions,
    choose_knots,
)


def pool(histogram: SoftHistogram, data: NDArray[np.float32]) -> NDArray[np.float32]:
    # Compiled as one program: op by op, the same takes seconds.
    return np.asarray(jax.jit(histogram.__call__)(jnp.asarray(data)))


def ramp_means(values: NDArray[np.generic], knots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over observations of ramps between neighbouring knots, one loop at a time."""
    values = np.asarray(values, np.float64)
    ramps = [np.clip((values - low) / (high - low), 0, 1).mean(axis=1) for low, high in itertools.pairwise(knots)]
    return np.stack(ramps, axis=1)


@pytest.mark.parametrize("num_obs", [1, UNROLL - 1, UNROLL, 2 * UNROLL + 5])
def test_it_equals_plain_ramp_means(num_obs: int) -> None:
    rng = np.random.default_rng(1)
    data = rng.normal(size=(20, num_obs, 1)).astype(np.float32)
    pilot = rng.normal(size=(5000, 1)).astype(np.float32)
    histogram = SoftHistogram.fit(pilot)
    expected = ramp_means(data[..., 0], choose_knots(pilot[:, 0], MOST_RAMPS + 1))
    found = pool(histogram, data)
    assert found.shape == (20, histogram.num_ramps)
    assert_allclose(found[:, : expected.shape[1]], expected, atol=2e-6)
    # What fills up a SIMD register is flat.
    assert_array_equal(found[:, expected.shape[1] :], 0)


@pytest.mark.parametrize("num_columns", [2, 3])
@pytest.mark.parametrize("num_obs", [UNROLL, UNROLL + 3])
def test_columns_are_seen_along_directions_each_with_its_own_ramps(num_obs: int, num_columns: int) -> None:
    rng = np.random.default_rng(2)

    def draw(num_rows: int) -> NDArray[np.float32]:
        # The first column has few values, so fewer ramps than the others: they must not be mixed up.
        columns = [rng.integers(0, 4, num_rows), *rng.normal(5, 2, (num_columns - 1, num_rows))]
        return np.stack(columns, axis=1).astype(np.float32)

    pilot, data = draw(4000), draw(20 * num_obs).reshape(20, num_obs, num_columns)
    directions = choose_directions(num_columns)
    most = RAMPS_IN_ALL // directions.shape[1]
    expected = np.concatenate(
        [ramp_means(data @ along, choose_knots(pilot @ along, most + 1)) for along in directions.T], axis=1
    )
    found = pool(SoftHistogram.fit(pilot), data)
    assert_allclose(found[:, : expected.shape[1]], expected, atol=1e-5)
    assert_array_equal(found[:, expected.shape[1] :], 0)


@pytest.mark.parametrize("num_columns", [2, 3, 7, 40])
def test_directions_have_unit_length_and_start_from_the_columns(num_columns: int) -> None:
    directions = choose_directions(num_columns)
    assert_allclose(np.linalg.norm(directions, axis=0), 1)
    assert np.linalg.matrix_rank(directions) == num_columns
    # No two look along the same line.
    alike = np.abs(directions.T @ directions)
    assert (alike[~np.eye(len(alike), dtype=bool)] < 0.999).all()
    for column in np.eye(num_columns):
        assert np.isclose(np.abs(directions.T @ column), 1).any()


@pytest.mark.parametrize("num_columns", [1, 2, 10, 100])
def test_the_number_of_ramps_is_bounded(num_columns: int) -> None:
    pilot = np.random.default_rng(3).normal(size=(500, num_columns)).astype(np.float32)
    histogram = SoftHistogram.fit(pilot)
    num_directions = choose_directions(num_columns).shape[1]
    each = min(MOST_RAMPS, max(FEWEST_RAMPS, RAMPS_IN_ALL // num_directions))
    assert FEWEST_RAMPS * num_columns <= histogram.num_ramps < each * num_directions + SIMD_WIDTH
    assert histogram.num_ramps % SIMD_WIDTH == 0


def test_between_two_knots_the_ramps_give_the_value_back() -> None:
    # Sum of width times ramp is the distance from the first knot: piecewise-linear functions are linear in the ramps.
    pilot = np.random.default_rng(4).normal(size=(5000, 1)).astype(np.float32)
    knots = choose_knots(pilot[:, 0], MOST_RAMPS + 1)
    points = np.linspace(knots[0], knots[-1], 50).astype(np.float32)
    ramps = pool(SoftHistogram.fit(pilot), points[:, None, None])[:, : len(knots) - 1]
    assert_allclose(knots[0] + ramps @ np.diff(knots), points, atol=1e-5)


def test_outside_the_knots_it_is_flat() -> None:
    pilot = np.random.default_rng(5).normal(size=(5000, 1)).astype(np.float32)
    far = pool(SoftHistogram.fit(pilot), np.array([[[1e15]], [[-1e15]], [[pilot.max()]], [[pilot.min()]]], np.float32))
    assert_allclose(far[0], far[2], atol=1e-5)
    assert_allclose(far[1], far[3], atol=1e-5)


def test_observations_may_come_in_any_order() -> None:
    rng = np.random.default_rng(6)
    data = rng.normal(size=(4, 21, 2)).astype(np.float32)
    histogram = SoftHistogram.fit(data.reshape(-1, 2))
    assert_allclose(pool(histogram, data[:, rng.permutation(21)]), pool(histogram, data), atol=1e-6)


def test_few_values_are_all_knots() -> None:
    values = np.array([0, 0, 1, 5, 5, 5, 2.5], np.float32)
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


def test_counts_have_a_knot_on_every_small_integer() -> None:
    rng = np.random.default_rng(8)
    # Data 1 (ii): counts in the millions, and most of them small.
    success = np.append(rng.beta(1, 1, 20_000), np.full(20, 1e-7))
    counts = (rng.geometric(success) - 1).astype(np.float32)
    knots = choose_knots(counts, MOST_RAMPS + 1)
    assert counts.max() > 1e6
    assert_array_equal(knots, np.round(knots))
    assert knots[-1] == counts.max()
    assert set(range(6)) <= set(knots.tolist())


def test_knots_are_denser_where_the_data_are() -> None:
    values = np.random.default_rng(9).normal(size=50_000).astype(np.float32)
    knots = choose_knots(values, 49)
    widths, middles = np.diff(knots), 0.5 * (knots[1:] + knots[:-1])
    assert widths[np.abs(middles) < 1].max() < widths[np.abs(middles) > 3].min()


def test_values_closer_than_float32_can_divide_by_stay_finite() -> None:
    pilot = np.array([[0.0], [1e-40], [1.0]], np.float32)
    assert np.isfinite(pool(SoftHistogram.fit(pilot), pilot[None])).all()
