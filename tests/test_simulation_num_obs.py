"""Sample sizes that vary: the same for all models, spread evenly on a log scale, and never a hint at the model."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import deepbf
from deepbf.layout import NumObsRange
from deepbf.models import SimulationError
from deepbf.simulation import GROUP_SIZE, SimulationStream, Source, draw_num_obs
from tests.simulators import ANY_NUMBER, any_zero_mean


def count(data: np.ndarray) -> np.ndarray:
    return (~np.isnan(data)).sum(axis=1)


def test_every_number_occurs_about_as_often_as_its_share_of_the_log_scale() -> None:
    numbers = [number for chunk in range(2000) for _, number in draw_num_obs(NumObsRange(2, 9), 1, chunk, 128)]
    shares = np.bincount(numbers, minlength=10)[2:] / len(numbers)
    expected = np.log(np.arange(3, 11) / np.arange(2, 10)) / np.log(10 / 2)
    np.testing.assert_allclose(shares, expected, atol=0.01)


def test_each_chunk_covers_the_range() -> None:
    for chunk in range(50):
        numbers = [number for _, number in draw_num_obs(NumObsRange(2, 256), 3, chunk, 128)]
        octaves = np.floor(8 * np.log(np.array(numbers) / 2) / np.log(257 / 2))
        assert len(set(octaves)) >= 6


@pytest.mark.parametrize("size", [1, 15, 16, 17, 128])
def test_groups_make_up_the_chunk(size: int) -> None:
    groups = draw_num_obs(NumObsRange(5, 6), 1, 0, size)
    assert sum(number for number, _ in groups) == size
    assert all(0 < number <= GROUP_SIZE for number, _ in groups)


def test_all_models_get_the_same_numbers_and_the_rest_is_nan() -> None:
    first, second = Source.of(ANY_NUMBER, 7, num_obs=NumObsRange(1, 12)).simulate([(0, 128), (1, 40)])
    assert first.shape == second.shape == (168, 12)
    np.testing.assert_array_equal(count(first), count(second))
    assert len(set(count(first))) > 4
    # Nothing but the end is absent.
    assert np.all(np.diff(np.isnan(first).astype(int), axis=1) >= 0)


def test_a_group_is_what_the_model_simulates_with_its_seed() -> None:
    [data, _] = Source.of(ANY_NUMBER, 7, num_obs=NumObsRange(1, 12)).simulate([(3, 20)])
    (size, number), *_ = draw_num_obs(NumObsRange(1, 12), 7, 3, 20)
    alone = ANY_NUMBER[0].simulate(size, np.random.SeedSequence(7, spawn_key=(0, 3, 0)), num_obs=number).data
    np.testing.assert_array_equal(data[:size, :number], alone)


def test_workers_do_not_matter() -> None:
    source = Source.of(ANY_NUMBER, 5, num_obs=NumObsRange(2, 9))

    def first_data(executor: Any) -> list[np.ndarray]:
        with SimulationStream(source, num_datasets=256, executor=executor) as stream:
            return stream.take() + stream.take()

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for here, there in zip(first_data(None), first_data(pool), strict=True):
            np.testing.assert_array_equal(here, there)


def test_a_simulator_that_ignores_the_number_is_named_with_a_line_that_reproduces_it() -> None:
    stubborn = deepbf.Model("stubborn", simulator=lambda rng, size, num_obs: rng.normal(size=(size, 5)))
    with pytest.raises(SimulationError) as caught:
        Source.of([stubborn], 1, num_obs=NumObsRange(2, 4)).simulate([(0, 16)])
    message = str(caught.value)
    assert "Model 'stubborn' failed" in message
    assert "axis 1 must be" in message
    call = message.split("Reproduce it with: model.")[1]
    with pytest.raises(SimulationError, match="stubborn"):
        eval(f"stubborn.{call}", {"stubborn": stubborn, "np": np})


def test_observations_that_change_their_shape_are_refused() -> None:
    changing = deepbf.Model(
        "changing", simulator=lambda rng, size, num_obs: rng.normal(size=(size, num_obs, 1 + num_obs % 2))
    )
    with pytest.raises(SimulationError, match="every call must return the same shape"):
        Source.of([changing], 1, num_obs=NumObsRange(2, 9)).simulate([(0, 128)])


@pytest.mark.parametrize(
    ("num_obs", "error", "says"),
    [
        (5, TypeError, "smallest and the largest"),
        ("2,9", TypeError, "smallest and the largest"),
        ((2, 9, 10), TypeError, "smallest and the largest"),
        ((9, 2), ValueError, "from a smaller to a larger"),
        ((3, 3), ValueError, "from a smaller to a larger"),
        ((0, 3), ValueError, "at least 1"),
        ((1.5, 3), TypeError, "whole number"),
    ],
)
def test_ranges_are_checked(num_obs: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        deepbf.fit(ANY_NUMBER, structure="exchangeable", num_obs=num_obs)


def test_what_cannot_vary_says_so_before_simulating() -> None:
    fixed = deepbf.Model("fixed", simulator=lambda rng, size: rng.normal(size=(size, 3)))
    drawn = deepbf.Model("any", simulator=any_zero_mean)
    for arguments, says in (
        ({"models": [fixed, drawn], "structure": "exchangeable"}, "simulator of model 'fixed' must be a function of"),
        ({"models": ANY_NUMBER, "structure": "vector"}, "structure='exchangeable' or 'series'"),
        ({"models": ANY_NUMBER, "structure": "exchangeable", "network": "fnn"}, "Pass network='deepset'"),
    ):
        with pytest.raises((TypeError, ValueError), match=says):
            deepbf.fit(num_obs=(2, 5), **arguments)
