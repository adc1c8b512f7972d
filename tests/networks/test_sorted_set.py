"""Few scalar observations in increasing order: nothing lost, any number of them, no order."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

import deepbf
from deepbf._compilation import compiled
from deepbf.networks.sets import (
    SortedSet,
    _layout_with_size,
    at_even_steps,
    at_fixed_places,
    in_increasing_order,
    sorted_features,
)
from deepbf_studies import problems
from tests.reading import read

NUM_OBS = 5


def pilot(*, counts: bool = False) -> list[NDArray[np.float32]]:
    rng = np.random.default_rng(1)
    if counts:
        return [rng.poisson(rate, (400, NUM_OBS)).astype(np.float32) for rate in (4.0, 7.0)]
    return [(spread * rng.standard_normal((400, NUM_OBS))).astype(np.float32) for spread in (1.0, 2.0)]


def with_absent(data: NDArray[np.float32], seed: int = 2) -> NDArray[np.float32]:
    """Return the data with some observations absent, none of the first."""
    absent = np.random.default_rng(seed).random(data.shape) < 0.4
    absent[:, 0] = False
    return np.where(absent, np.nan, data)


@pytest.mark.parametrize("number", [1, 2, 3, 7, 32, 33, 100])
def test_values_come_in_increasing_order_ties_and_all(number: int) -> None:
    values = np.random.default_rng(number).normal(size=(40, number)).round(1).astype(np.float32)
    values[0] = 1e30
    values[1] = -1e30
    assert_array_equal(compiled(in_increasing_order)(jnp.asarray(values)), np.sort(values, axis=1))


@pytest.mark.parametrize("num_places", [2, 5, 9, 10])
def test_places_are_even_steps_from_the_least_to_the_greatest(num_places: int) -> None:
    values = np.sort(np.random.default_rng(1).normal(size=(3, 10)), axis=1).astype(np.float32)
    expected = np.quantile(values, np.linspace(0, 1, num_places), axis=1).T
    assert_allclose(at_fixed_places(jnp.asarray(values), num_places), expected, atol=1e-6)


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("varies", [False, True])
def test_the_order_of_observations_does_not_matter(counts: bool, varies: bool) -> None:
    data = [with_absent(one) if varies else one for one in pilot(counts=counts)]
    preparation = SortedSet.fit(data)
    rows = read(preparation, data[0])
    assert rows.shape[1] == preparation.layout((NUM_OBS,)).width
    shuffled = np.random.default_rng(3).permuted(data[0], axis=1)
    assert_allclose(read(preparation, shuffled), rows, atol=1e-4)


@pytest.mark.parametrize("counts", [False, True])
def test_counts_have_logarithms_and_other_values_have_none(counts: bool) -> None:
    logs = SortedSet.fit(pilot(counts=counts)).logs
    assert (len(logs.rising), len(logs.falling)) == ((1, 1) if counts else (0, 0))


def test_observations_and_their_mean_are_what_is_seen() -> None:
    data = pilot()[0]
    seen = np.asarray(sorted_features(jnp.asarray(data), SortedSet.fit(pilot()).logs, 0))
    assert_allclose(np.sinh(seen[:, :NUM_OBS]), np.sort(data, axis=1), atol=1e-5)
    assert_allclose(np.sinh(seen[:, NUM_OBS]), data.mean(axis=1), atol=1e-5)


def test_as_many_rows_as_places_are_the_rows_themselves_and_fewer_are_interpolated() -> None:
    values = jnp.asarray(np.random.default_rng(1).standard_normal((3, 6, 2)))
    assert_allclose(at_even_steps(values, jnp.full((3, 1), 6), 6), values, rtol=1e-5)
    # Of three rows, five places: each row, and the middles between them.
    found = np.asarray(at_even_steps(values, jnp.full((3, 1), 3), 5))
    assert_allclose(found[:, ::2], values[:, :3], rtol=1e-5)
    assert_allclose(found[:, 1::2], (values[:, :2] + values[:, 1:3]) / 2, rtol=1e-5)
    assert_allclose(at_even_steps(values, jnp.ones((3, 1), int), 4), np.repeat(values[:, :1], 4, axis=1), rtol=1e-5)


def test_room_for_more_observations_changes_nothing() -> None:
    data = [with_absent(one) for one in pilot()]
    preparation = SortedSet.fit(data)
    three = pilot()[1][:50, :3]
    padded = np.concatenate([np.full((50, 1), np.nan, np.float32), three, np.full((50, 4), np.nan, np.float32)], axis=1)
    assert_allclose(read(preparation, padded), read(preparation, three), atol=1e-4)
    layout = preparation.layout((NUM_OBS,))
    assert layout == _layout_with_size(preparation.scales.num_linear, preparation.scales.num_columns)
    assert_allclose(read(preparation, three)[:, -1], 3 / NUM_OBS)
    # Counted as half of what they are, frequencies stay and the number does not.
    half = np.asarray(preparation(jnp.asarray(three), fraction=0.5))
    assert_allclose(half[:, -1], 1.5 / NUM_OBS)
    num_linear = preparation.scales.num_linear
    assert_array_equal(half[:, :num_linear], np.asarray(preparation(jnp.asarray(three)))[:, :num_linear])


@pytest.mark.parametrize("counts", [False, True])
def test_extremes_stay_finite(counts: bool) -> None:
    preparation = SortedSet.fit(pilot(counts=counts))
    extremes = np.array([[1e15] * NUM_OBS, [-1e15] * NUM_OBS, [0.0] * NUM_OBS, [1e15, -1e15, 0, 1, -1]], np.float32)
    rows = read(preparation, extremes)
    assert np.isfinite(rows).all()
    assert np.abs(rows).max() < 1e6


@pytest.fixture(scope="module")
def waiting_times() -> tuple[deepbf.BayesFactor, problems.Study]:
    study = problems.load("data-3", num_obs=2)
    return deepbf.fit(
        study.models, structure="exchangeable", network="sorted", steps=1500, ensemble=2, seed=1, progress=False
    ), study


def test_two_observations_are_near_the_exact_bayes_factor(waiting_times) -> None:
    estimator, study = waiting_times
    assert estimator.network == "sorted"
    for model in study.models:
        data = model.simulate(4000, seed=5).data
        exact = np.clip(study.exact_log_bf(data), -np.log(1e3), np.log(1e3))
        assert np.sqrt(np.mean((np.clip(estimator.log_bf(data), -np.log(1e3), np.log(1e3)) - exact) ** 2)) < 0.2
    # Between the values that were simulated nothing jumps: log Bayes factors are functions of the sum.
    sums = np.linspace(0.2, 4.0, 400)
    steps = np.diff(estimator.log_bf(np.stack([0.3 * sums, 0.7 * sums], axis=1)))
    assert np.abs(np.diff(steps)).max() < 0.02


def test_it_is_saved_and_loaded(waiting_times, tmp_path) -> None:
    estimator, study = waiting_times
    data = study.models[0].simulate(20, seed=3).data
    estimator.save(tmp_path / "small.deepbf")
    loaded = deepbf.load(tmp_path / "small.deepbf")
    assert loaded.network == "sorted"
    assert_array_equal(loaded.log_bf(data), estimator.log_bf(data))


def test_vectors_cannot_be_sorted() -> None:
    models = [
        deepbf.Model(name, simulator=lambda rng, size, mean=mean: rng.normal(mean, 1, (size, 4, 2)))
        for name, mean in (("low", 0.0), ("high", 1.0))
    ]
    with pytest.raises(ValueError, match=r"must be scalars.*\(4, 2\).*network='deepset'"):
        deepbf.fit(models, structure="exchangeable", network="sorted", steps=5, progress=False)
