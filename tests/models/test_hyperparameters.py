"""Hyperparameters of priors: drawn over their ranges, the same from the same seed, or fixed."""

import pickle
import re
from typing import Any

import numpy as np
import pytest
from scipy import stats

import deepbf
from deepbf import Model, ModelSet
from deepbf.models.hyperparameters import FixedPrior, as_columns, draw_values

RANGES = {"scale": (0.1, 10.0), "shift": (-1.0, 3.0)}
SEED = np.random.SeedSequence(5, spawn_key=(1, 2))


def scaled_normal(rng: np.random.Generator, size: int, scale: Any) -> Any:
    assert np.shape(scale) == (size,)
    return rng.normal(0.0, scale, size)


def repeat(rng: np.random.Generator, mean: Any) -> Any:
    return np.repeat(mean[:, None], 2, axis=1)


MODEL = Model("scaled", prior=scaled_normal, simulator=repeat, hyperparameters={"scale": (0.1, 10)})


def test_values_are_even_over_their_ranges() -> None:
    values = draw_values(RANGES, 20_000, SEED)
    logs = np.log10(values["scale"])
    for drawn, ends in ((logs, (-1.0, 1.0)), (values["shift"], (-1.0, 3.0))):
        inside = drawn[(drawn > ends[0] + 1e-12) & (drawn < ends[1] - 1e-12)]
        assert stats.kstest(inside, stats.uniform(ends[0], ends[1] - ends[0]).cdf).pvalue > 1e-6
        for end in ends:
            assert abs(np.isclose(drawn, end, atol=1e-12).mean() - 1 / 12) < 4 * np.sqrt(1 / 12 / 20_000)
    assert abs(np.corrcoef(logs, values["shift"])[0, 1]) < 0.05


def test_values_depend_on_seed_and_name_alone() -> None:
    alone = draw_values({"scale": RANGES["scale"]}, 7, SEED)["scale"]
    np.testing.assert_array_equal(draw_values(RANGES, 7, SEED)["scale"], alone)
    other = draw_values(RANGES, 7, np.random.SeedSequence(5, spawn_key=(1, 3)))["scale"]
    assert (other != alone).all()


def test_a_model_draws_and_fixes_them() -> None:
    first, again = (MODEL.simulate(5000, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.data, again.data)
    # E[scale^2] over log-uniform values from 0.1 to 10 is (100 - 0.01) / (2 log 100); each end has a twelfth besides.
    expected = 10 / 12 * 99.99 / (2 * np.log(100)) + (0.1**2 + 10**2) / 12
    assert np.mean(np.asarray(first.params) ** 2) == pytest.approx(expected, rel=0.2)
    fixed = MODEL.at(scale=2.0)
    assert fixed.hyperparameters is None
    assert np.std(np.asarray(fixed.simulate(5000, seed=3).params)) == pytest.approx(2.0, rel=0.05)
    assert MODEL.at(scale=2.0, other=5.0).prior == fixed.prior
    plain = Model("plain", simulator=lambda rng, size: rng.normal(size=(size, 2)))
    assert plain.at(scale=2.0) is plain
    assert isinstance(pickle.loads(pickle.dumps(fixed)).prior, FixedPrior)


def test_columns_are_on_the_scale_they_are_drawn_on() -> None:
    columns = as_columns(RANGES, {"scale": 1.0, "shift": np.arange(3.0)}, 3)
    np.testing.assert_array_equal(columns, [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]])


@pytest.mark.parametrize(
    ("hyperparameters", "kind", "says"),
    [
        ({}, TypeError, "must be a dict of ranges by name"),
        ([0.1, 10], TypeError, "must be a dict of ranges by name"),
        ({"prior scale": (0.1, 10)}, TypeError, "received 'prior scale'"),
        ({"scale": 3.0}, TypeError, "['scale'] must be a range (low, high); received 3.0"),
        ({"scale": (1, 2, 3)}, TypeError, "must be a range (low, high)"),
        ({"scale": (10, 0.1)}, ValueError, "from a smaller to a larger finite number; received (10, 0.1)"),
        ({"scale": (0.1, np.inf)}, ValueError, "finite"),
    ],
    ids=str,
)
def test_bad_ranges_are_refused(hyperparameters: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=re.escape(says)):
        Model("m", prior=scaled_normal, simulator=repeat, hyperparameters=hyperparameters)


def test_they_need_a_prior_and_one_range_for_all() -> None:
    with pytest.raises(ValueError, match="need a prior that takes them"):
        Model("m", simulator=lambda rng, size: rng.normal(size=(size, 2)), hyperparameters={"scale": (1, 2)})
    other = Model("other", prior=scaled_normal, simulator=repeat, hyperparameters={"scale": (0.1, 5)})
    with pytest.raises(ValueError, match=r"share the hyperparameter 'scale'.*\(0.1, 10.0\).*\(0.1, 5.0\)"):
        ModelSet.of([MODEL, other])
    twin = Model("twin", prior=scaled_normal, simulator=repeat, hyperparameters={"scale": (0.1, 10)})
    assert ModelSet.of([MODEL, twin]).hyperparameters == {"scale": (0.1, 10.0)}
    with pytest.raises(ValueError, match=r"within the trained range, 0.1 to 10; received 11"):
        MODEL.at(scale=11)


def test_simulators_may_not_take_the_name_of_the_hyperparameters() -> None:
    def named_alike(rng: np.random.Generator, mean: Any) -> Any:
        return {"trials": repeat(rng, mean), "hyperparameters": mean[:, None]}

    models = [
        Model(name, prior=scaled_normal, simulator=named_alike, hyperparameters={"scale": (0.1, 10)}) for name in "ab"
    ]
    with pytest.raises(ValueError, match=r"model 'a' returns an array 'hyperparameters'.*another name"):
        deepbf.fit(models, structure={"trials": "exchangeable"}, steps=10, progress=False)
