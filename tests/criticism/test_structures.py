"""Posterior samplers for every structure of data that `fit` knows."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import deepbf
from tests.criticism.models import normal_prior

pytestmark = pytest.mark.slow


def groups(rng: np.random.Generator, means: NDArray[Any]) -> Any:
    data = rng.normal(means[:, None, None], 1.0, (len(means), 4, 6))
    lengths = rng.integers(2, 7, (len(means), 4))
    return np.ma.masked_array(data, np.arange(6) >= lengths[:, :, None])


def series(rng: np.random.Generator, means: NDArray[Any], num_obs: int = 20) -> NDArray[Any]:
    return means[:, None] + 0.1 * rng.normal(size=(len(means), num_obs)).cumsum(axis=1)


def pairs(rng: np.random.Generator, means: NDArray[Any], num_obs: int = 10) -> NDArray[Any]:
    return rng.normal(means[:, None, None], 1.0, (len(means), num_obs, 2))


def some_of_ten(rng: np.random.Generator, means: NDArray[Any]) -> Any:
    data = rng.normal(means[:, None], 1.0, (len(means), 10))
    return np.ma.masked_array(data, np.arange(10) >= rng.integers(3, 11, (len(means), 1)))


def images(rng: np.random.Generator, means: NDArray[Any]) -> NDArray[Any]:
    return rng.normal(means[:, None, None, None], 1.0, (len(means), 5, 4, 2))


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "vector": (series, {"structure": "vector"}),
    "series": (series, {"structure": "series"}),
    "series of any length": (series, {"structure": "series", "num_obs": (10, 20)}),
    "nested": (groups, {"structure": "nested"}),
    "image": (images, {"structure": "image"}),
    "pairs": (pairs, {"structure": "exchangeable", "num_obs": (5, 10)}),
    "masked": (some_of_ten, {"structure": "exchangeable"}),
}


@pytest.mark.parametrize("method", ["flow", "gan"])
@pytest.mark.parametrize("case", CASES)
def test_every_structure_finds_the_mean(case: str, method: str) -> None:
    simulator, options = CASES[case]
    model = deepbf.Model(case, prior=normal_prior, simulator=simulator)
    sampler = deepbf.fit_posterior(model, **options, method=method, steps=600, seed=1, progress=False)
    rng = np.random.default_rng(5)
    truth = normal_prior(rng, 100)
    data = simulator(rng, truth)
    drawn = sampler.sample_many(data, 100)
    assert drawn.shape == (100, 100)
    assert np.corrcoef(drawn.mean(axis=1), truth)[0, 1] > 0.95
    predicted = sampler.predictive(data[0], 20)
    assert predicted.shape == (20, *data.shape[1:])
    # What is predicted can be asked about in its turn.
    assert sampler.sample_many(predicted, 5).shape == (20, 5)


def test_pairs_are_left_out_as_pairs() -> None:
    model = deepbf.Model("pairs", prior=normal_prior, simulator=pairs)
    options = {"structure": "exchangeable", "num_obs": (5, 10)}
    sampler = deepbf.fit_posterior(model, **options, steps=600, seed=1, progress=False)
    observed = pairs(np.random.default_rng(1), np.array([1.5]))[0]
    drawn = sampler.leave_one_out(observed, 300)
    assert drawn.shape == (10, 300, 2)
    assert abs(drawn.mean() - 1.5) < 0.7
