"""The order of exchangeable observations: every order is as probable as every other, whatever the values."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from deepbf.layout.data_layout import WHOLE, ArrayLayout, DataLayout
from deepbf.layout.structure import STRUCTURES
from deepbf.support import _centred_ranks, order_statistic, order_tail_area, simulated_in_any_order


def correlated(rng: np.random.Generator, size: int, num_obs: int, correlation: float) -> Any:
    values = rng.normal(size=(size, num_obs))
    for i in range(1, num_obs):
        values[:, i] = correlation * values[:, i - 1] + np.sqrt(1 - correlation**2) * values[:, i]
    return values


@pytest.mark.parametrize("draw", ["counts", "normals", "pairs"])
def test_tail_areas_of_independent_observations_are_uniform(draw: str) -> None:
    rng = np.random.default_rng(1)
    data = {
        "counts": lambda: rng.poisson(1.0, (300, 20)),
        "normals": lambda: rng.standard_cauchy((300, 20)),
        "pairs": lambda: rng.normal(size=(300, 20, 2)),
    }[draw]()
    found = np.array([order_tail_area(one) for one in data])
    assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_shuffles_agree_with_all_orders_of_a_few_observations() -> None:
    observed = np.array([0.0, 1.0, 2.0, 2.0, 5.0, 4.0])
    every = np.array([order_statistic(_centred_ranks(np.array(p))[None])[0] for p in itertools.permutations(observed)])
    exact = np.mean(every >= order_statistic(_centred_ranks(observed)[None])[0] - 1e-9)
    found = order_tail_area(observed)
    assert found is not None
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / 999) + 1e-3


def test_the_statistic_is_chi_squared_for_many_observations() -> None:
    ranks = np.stack([_centred_ranks(one) for one in np.random.default_rng(2).normal(size=(2000, 300))])
    assert stats.kstest(order_statistic(ranks), stats.chi2(2).cdf).pvalue > 1e-3


@pytest.mark.parametrize("order", ["sorted", "trend", "neighbours", "alternating"])
def test_an_order_that_is_no_accident_is_found(order: str) -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(size=100)
    observed = {
        "sorted": np.sort(noise),
        "trend": noise + np.linspace(0, 2, 100),
        "neighbours": correlated(rng, 1, 100, 0.6)[0],
        "alternating": correlated(rng, 1, 100, -0.6)[0],
    }[order]
    found = order_tail_area(observed)
    assert found is not None
    assert found <= 0.01


def test_what_has_no_order_is_not_unusual() -> None:
    assert order_tail_area(np.full(30, 7)) == 1.0
    assert order_tail_area(np.arange(3)) is None


def layout_of(structure: str) -> DataLayout:
    return DataLayout((ArrayLayout(WHOLE, STRUCTURES[structure]),))


def test_sorted_simulations_are_noticed() -> None:
    rng = np.random.default_rng(4)
    exchangeable = layout_of("exchangeable")
    counts, normals = rng.poisson(2.0, (300, 12)), rng.normal(size=(300, 12, 2))
    assert simulated_in_any_order(exchangeable, [counts, counts])
    assert simulated_in_any_order(exchangeable, [normals])
    assert not simulated_in_any_order(exchangeable, [counts, np.sort(counts, axis=1)])
    absent = np.where(np.arange(12) < rng.integers(1, 13, (300, 1)), np.sort(normals[:, :, 0], axis=1), np.nan)
    assert not simulated_in_any_order(exchangeable, [absent])
    assert simulated_in_any_order(exchangeable, [np.zeros((300, 3))])


@pytest.mark.parametrize("structure", ["vector", "series"])
def test_the_order_of_what_is_not_exchangeable_always_means_something(structure: str) -> None:
    assert not simulated_in_any_order(layout_of(structure), [np.random.default_rng(5).normal(size=(300, 12))])
