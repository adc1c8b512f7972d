"""Support: under a model its tail areas are uniform; data that no model makes are atypical of all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import deepbf
from deepbf import BayesFactor
from deepbf.support import Typicality, support_of
from tests import simulators
from tests.untrained import untrained


def tail_areas(bf: BayesFactor, data: Any) -> Any:
    found = bf.support(data)
    assert found is not None
    return found.tail_area


SLOW = [pytest.param(which, marks=pytest.mark.slow) for which in ("walk_or_noise", "three_means", "pairs")]


@pytest.mark.parametrize("which", ["normal_mean", *SLOW])
def test_a_models_own_data_are_atypical_one_time_in_twenty(which: str, request: pytest.FixtureRequest) -> None:
    bf: BayesFactor = request.getfixturevalue(which)
    for k, model in enumerate(bf.models or ()):
        data = model.simulate(300, seed=77).data
        own = tail_areas(bf, data)[:, k]
        # Those set aside are a few thousand: their own error joins that of these data sets.
        assert abs((own <= 0.05).mean() - 0.05) < 4 * np.sqrt(0.05 * 0.95 * (1 / 300 + 1 / 2000))
        assert stats.kstest(own, "uniform").pvalue > 1e-4


def test_at_every_number_of_observations(any_number: BayesFactor) -> None:
    for num_obs in (2, 6, 20):
        for k, model in enumerate(any_number.models or ()):
            data = model.simulate(500, seed=78, num_obs=num_obs).data
            assert abs((tail_areas(any_number, data)[:, k] <= 0.05).mean() - 0.05) < 0.05


@pytest.mark.parametrize("strange", ["constant", "far", "wide", "narrow", "ordered"])
def test_data_that_no_model_makes(strange: str, normal_mean: BayesFactor) -> None:
    num_obs = normal_mean.layout.shape[0]
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(200, num_obs))
    data = {
        "constant": np.full((200, num_obs), 0.5),
        "far": noise + 1e6,
        "wide": 4.0 * noise,
        "narrow": 0.1 * noise,
        "ordered": np.sort(noise, axis=1),
    }[strange]
    assert (tail_areas(normal_mean, data) <= 0.05).mean() > 0.9


def test_the_answer_carries_it(normal_mean: BayesFactor) -> None:
    num_obs = normal_mean.layout.shape[0]
    strange = normal_mean.compare(np.full(num_obs, 0.5))
    assert strange.support is not None
    assert strange.verdict == "the data are atypical of every model here: read the Bayes factor with care"
    assert strange.verdict in str(strange)
    assert strange.to_dict()["support"][normal_mean.names[0]]["prob"] == strange.support[normal_mean.names[0]].prob
    usual = normal_mean.compare(np.random.default_rng(9).normal(size=num_obs))
    assert usual.verdict == "the data are typical of both models"
    assert usual.order is not None
    ordered = normal_mean.compare(np.sort(np.random.default_rng(8).normal(size=num_obs)))
    assert ordered.order is not None
    assert ordered.order <= 0.01
    assert "order of the observations is no accident" in str(ordered)


def test_nothing_is_claimed_at_sizes_that_no_simulation_has(any_number: BayesFactor) -> None:
    data = np.random.default_rng(1).normal(size=80)
    with pytest.warns(UserWarning, match="80"):
        found = any_number.support(data, extrapolate=True)
    assert found is not None
    assert np.isnan(found.tail_area).all()
    with pytest.warns(UserWarning, match="80"):
        answer = any_number.compare(data, extrapolate=True)
    assert (answer.support, answer.verdict) == (None, None)


def test_a_batch_of_none(normal_mean: BayesFactor) -> None:
    assert tail_areas(normal_mean, np.zeros((0, *normal_mean.layout.shape))).shape == (0, 2)


def test_it_travels_with_the_file(any_number: BayesFactor, tmp_path: Path) -> None:
    any_number.save(tmp_path / "saved.deepbf")
    loaded = deepbf.load(tmp_path / "saved.deepbf")
    data = simulators.ANY_NUMBER[0].simulate(20, seed=3, num_obs=9).data
    np.testing.assert_array_equal(tail_areas(any_number, data), tail_areas(loaded, data))


@pytest.mark.slow
def test_order_does_not_count_where_simulators_sort() -> None:
    models = [
        deepbf.Model(name, simulator=lambda rng, size, scale=scale: np.sort(rng.normal(0.0, scale, (size, 20)), axis=1))
        for name, scale in (("narrow", 1.0), ("wide", 2.0))
    ]
    bf = deepbf.fit(models, structure="exchangeable", steps=20, seed=1, progress=False)
    found = bf.support(models[0].simulate(300, seed=5).data)
    assert found is not None
    assert np.isnan(found.order).all()
    assert (found.tail_area[:, 0] <= 0.05).mean() < 0.12
    assert bf.compare(models[0].simulate(1, seed=5).data[0]).order is None


def test_an_estimator_that_does_not_know_says_nothing() -> None:
    bf = untrained("exchangeable", "deepset")
    data = np.random.default_rng(1).normal(size=(3, 13))
    assert bf.support(data) is None
    answer = bf.compare(data[0])
    assert (answer.support, answer.verdict) == (None, None)
    assert "support" not in str(answer)


def typicality_of_one_number(distances: Any) -> Typicality:
    """One model and one column, so that the summary sinh(z) lies at the distance z^2."""
    zero, one = np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32)
    return Typicality(zero, one, zero, one[None], np.asarray(distances, np.float32)[None])


def test_the_smaller_of_two_independent_tail_areas_is_one_again() -> None:
    rng = np.random.default_rng(2)
    typicality = typicality_of_one_number(rng.normal(size=20_000) ** 2)
    summaries = np.sinh(rng.normal(size=(2000, 1))).astype(np.float32)
    found = support_of(typicality, summaries, ordered=rng.normal(size=(2000, 12)))
    assert stats.kstest(found.order, "uniform").pvalue > 1e-3
    assert stats.kstest(found.tail_area[:, 0], "uniform").pvalue > 1e-3


def test_order_and_distance_are_joined_by_hand() -> None:
    # Half of the simulations are as far out as the first four data sets, none as the last.
    typicality = typicality_of_one_number(np.repeat([0.0, 4.0], [499, 500]))
    summaries = np.sinh([[1.0], [1.0], [1.0], [1.0], [3.0]]).astype(np.float32)
    # Sorted, one order in a thousand; constant, all of them; fewer than four observations have no order.
    few = np.where(np.arange(20) < 3, np.arange(20.0), np.nan)
    data = np.stack([np.arange(20.0), np.full(20, 7.0), few, np.full(20, np.nan), np.full(20, 7.0)])
    found, alone = support_of(typicality, summaries, ordered=data), support_of(typicality, summaries)
    np.testing.assert_allclose(alone.tail_area[:, 0], [0.501, 0.501, 0.501, 0.501, 0.001])
    np.testing.assert_array_equal(found.order, [0.001, 1.0, np.nan, np.nan, 1.0])
    expected = [1 - 0.999**2, 1 - 0.499**2, 0.501, 0.501, 1 - 0.999**2]
    np.testing.assert_allclose(found.tail_area[:, 0], expected)
    for end, end_alone in ((found.low, alone.low), (found.high, alone.high)):
        np.testing.assert_allclose(end[1], 1 - (1 - end_alone[1]) ** 2)
        np.testing.assert_array_equal(end[2:4], end_alone[2:4])
