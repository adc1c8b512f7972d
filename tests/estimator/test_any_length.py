"""Series of any length, and sets whose simulators draw their sizes: what varies, varies everywhere."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepbf
from deepbf import BayesFactor
from deepbf_studies import problems

STUDY = problems.load("ar-ma", num_obs=30)


@pytest.fixture(scope="module")
def series() -> BayesFactor:
    return deepbf.fit(STUDY.models, structure="series", num_obs=(6, 30), steps=150, ensemble=2, seed=1, progress=False)


def test_series_of_different_lengths_in_one_call(series: BayesFactor) -> None:
    data = [STUDY.models[0].simulate(1, seed=n, num_obs=n).data[0] for n in (6, 30, 17)]
    together = series.log_bf(data)
    np.testing.assert_allclose(together, [series.log_bf(one)[0] for one in data], rtol=0, atol=1e-5)
    # Unlike a set, a series is another one when it runs backwards.
    backwards = series.log_bf([np.abs(one[::-1]) * np.sign(one) for one in data])
    assert (np.abs(backwards - together) > 1e-4).any()


def test_the_length_has_a_range(series: BayesFactor) -> None:
    assert series.num_obs == (6, 30)
    with pytest.raises(ValueError, match="outside the trained range, 6 to 30: the first has 31"):
        series.log_bf(np.zeros(31))
    with pytest.warns(UserWarning, match="extrapolated"):
        assert np.isfinite(series.log_bf(np.zeros(31), extrapolate=True)).all()
    with pytest.raises(ValueError, match="not finite"):
        series.log_bf(np.array([1.0, np.nan, 2.0, 0.0, 1.0, 1.0]))


def test_the_path_of_a_series(series: BayesFactor, tmp_path: Path) -> None:
    one = STUDY.models[0].simulate(1, seed=2, num_obs=20).data[0]
    path = series.path(one)
    assert path.num_obs.tolist() == list(range(6, 21))
    assert path.log_bf[4] == pytest.approx(series.log_bf(one[:10])[0], abs=1e-5)
    series.save(tmp_path / "series.deepbf")
    np.testing.assert_array_equal(deepbf.load(tmp_path / "series.deepbf").path(one).log_bf, path.log_bf)


def test_a_design_for_series(series: BayesFactor) -> None:
    found = series.design(2.0, 0.5, num_obs=[6, 30], num_datasets=40, progress=False)
    assert found.results["num_obs"].values.tolist() == [6, 30]


@pytest.mark.slow
def test_one_fit_serves_every_length() -> None:
    bf = deepbf.fit(STUDY.models, structure="series", num_obs=(6, 30), steps=4000, seed=1, progress=False)
    for number in (6, 15, 30):
        found = bf.evaluate(3000, num_obs=number, exact=STUDY.exact_log_bf, num_replicates=20, progress=False)
        assert found.value("excess_loss") < 0.015


def drawn_sizes(rng: np.random.Generator, mean: Any) -> Any:
    sizes = rng.integers(3, 9, (len(mean), 1), endpoint=True)
    return np.ma.MaskedArray(rng.normal(mean[:, None], 1.0, (len(mean), 9)), mask=np.arange(9) >= sizes)


SIZED = [
    deepbf.Model("free", prior=lambda rng, size: rng.normal(size=size), simulator=drawn_sizes),
    deepbf.Model("zero", prior=lambda rng, size: np.zeros(size), simulator=drawn_sizes),
]


@pytest.mark.slow
def test_simulators_that_draw_their_sizes_are_evaluated_as_they_are() -> None:
    """Nobody told them num_obs, so nothing may ask them for it afterwards."""
    bf = deepbf.fit(SIZED, structure="exchangeable", steps=150, ensemble=2, seed=1, progress=False)
    assert bf.num_obs == (3, 9)
    found = bf.evaluate(300, observed=[0.1, 0.2, 0.3, 0.4], num_replicates=10, progress=False)
    assert found.value("auc") > 0.5
    other = deepbf.evaluate(SIZED, {"deepbf": bf}, num_datasets=300, num_replicates=10, progress=False)
    assert other.value("auc") == found.value("auc")
    with pytest.raises(ValueError, match="design needs an estimator for a range of sample sizes"):
        bf.design(progress=False)
    with pytest.raises(ValueError, match="num_obs cannot be chosen"):
        bf.evaluate(num_obs=4, progress=False)
