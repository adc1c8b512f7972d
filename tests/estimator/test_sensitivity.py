"""Prior sensitivity: one fit, the Bayes factor at every value of a hyperparameter."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import deepbf
from deepbf import BayesFactor
from deepbf_studies.problems import normal_mean_log_bf
from tests.simulators import around_mean, around_zero

mpl.use("Agg")

RNG = np.random.default_rng(4)
NOISE = RNG.normal(size=(3, 10))
# Means of exactly these, where a short fit is near the exact answer.
DATA = NOISE - NOISE.mean(axis=1, keepdims=True) + np.array([[0.0], [0.3], [-0.5]])


def scaled_normal(rng: np.random.Generator, size: int, scale: Any) -> Any:
    return rng.normal(0.0, scale, size)


MODELS = [
    deepbf.Model("free mean", prior=scaled_normal, simulator=around_mean, hyperparameters={"scale": (0.2, 5.0)}),
    deepbf.Model("zero mean", simulator=around_zero),
]


@pytest.fixture(scope="module")
def over_scales() -> BayesFactor:
    return deepbf.fit(MODELS, structure="exchangeable", steps=1200, ensemble=2, seed=1, progress=False)


def exact(data: Any, scale: float) -> Any:
    return normal_mean_log_bf(data, prior_scale=scale)


def test_the_curve_follows_the_closed_form(over_scales: BayesFactor) -> None:
    for one in DATA:
        curve = over_scales.sensitivity(one)
        assert (curve.hyperparameter, len(curve.values), curve.on_log_scale) == ("scale", 50, True)
        assert (curve.values[0], curve.values[-1]) == (0.2, 5.0)
        expected = np.array([float(exact(one[None], scale)[0]) for scale in curve.values])
        np.testing.assert_allclose(curve.log_bf, expected, atol=0.35)
        assert curve.range == (curve.log_bf.min(), curve.log_bf.max())
        # The choice matters by more than the estimator errs.
        assert curve.range[1] - curve.range[0] > 1.0


def test_one_point_of_the_curve_is_an_answer(over_scales: BayesFactor) -> None:
    curve = over_scales.sensitivity(DATA[1], num_values=5)
    for value, log_bf in zip(curve.values.tolist(), curve.log_bf, strict=True):
        there = over_scales.at(scale=value)
        assert there.log_bf(DATA[1])[0] == pytest.approx(log_bf, abs=1e-5)
        answer = there.compare(DATA[1])
        assert answer.log_bf == pytest.approx(log_bf, abs=1e-5)
        assert answer.surprise is None
    turned = over_scales.sensitivity(DATA[1], num_values=5, model="zero mean", over="free mean")
    np.testing.assert_allclose(turned.log_bf, -curve.log_bf)
    np.testing.assert_array_equal(over_scales.at(scale=1.0).log_bf(DATA).shape, (3,))


def test_evaluating_simulates_at_the_fixed_value(over_scales: BayesFactor) -> None:
    there = over_scales.at(scale=2.0)
    found = there.evaluate(1500, exact=lambda data: exact(data, 2.0), num_replicates=20, progress=False)
    assert found.value("excess_loss") < 0.01
    # At another value the exact answer is another one.
    wrong = there.evaluate(1500, exact=lambda data: exact(data, 0.3), num_replicates=20, progress=False)
    assert wrong.value("clipped_mse") > 2 * found.value("clipped_mse")


def test_it_is_saved_and_loaded(over_scales: BayesFactor, tmp_path: Path) -> None:
    over_scales.save(tmp_path / "a.deepbf")
    over_scales.at(scale=0.5).save(tmp_path / "b.deepbf")
    loaded, fixed = deepbf.load(tmp_path / "a.deepbf"), deepbf.load(tmp_path / "b.deepbf")
    assert repr(loaded) == repr(over_scales)
    assert "scale from 0.2 to 5" in repr(loaded)
    assert loaded.data_shape == (10,)
    np.testing.assert_array_equal(loaded.sensitivity(DATA[0]).log_bf, over_scales.sensitivity(DATA[0]).log_bf)
    np.testing.assert_array_equal(fixed.log_bf(DATA), over_scales.at(scale=0.5).log_bf(DATA))


def test_it_prints_and_draws_itself(over_scales: BayesFactor) -> None:
    curve = over_scales.sensitivity(DATA[0])
    assert str(curve).startswith("Log Bayes factor (natural log) of free mean over zero mean, by scale\n")
    axes = deepbf.plots.sensitivity(curve)
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == "scale, hyperparameter of the prior"
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), curve.log_bf)


def test_bad_input_is_refused(over_scales: BayesFactor, normal_mean: BayesFactor) -> None:
    with pytest.raises(ValueError, match=r"hyperparameters, scale from 0.2 to 5. Say which, bf.at"):
        over_scales.log_bf(DATA)
    with pytest.raises(ValueError, match=r"scale must be within the trained range, 0.2 to 5; received 6"):
        over_scales.at(scale=6.0)
    with pytest.raises(ValueError, match=r"every hyperparameter a value: scale from 0.2 to 5; received none"):
        over_scales.at()
    with pytest.raises(TypeError, match="scale must be one number"):
        over_scales.at(scale=[1.0, 2.0])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="hyperparameter must be one of 'scale'"):
        over_scales.sensitivity(DATA[0], "rate")
    with pytest.raises(ValueError, match=r"observed must be one data set of shape .*; received 3"):
        over_scales.sensitivity(DATA)
    with pytest.raises(ValueError, match="this estimator's have none"):
        normal_mean.sensitivity(DATA[0])
    with pytest.raises(ValueError, match="no hyperparameters; leave `at` out"):
        normal_mean.at(scale=1.0)
    with pytest.raises(ValueError, match="network for mixed data must be one of 'auto', 'committee', 'mixed'"):
        deepbf.fit(MODELS, structure="exchangeable", network="deepset2", progress=False)


@pytest.mark.slow
def test_two_hyperparameters_one_of_them_shared() -> None:
    def shifted(rng: np.random.Generator, size: int, scale: Any, shift: Any) -> Any:
        return rng.normal(shift, scale, size)

    models = [
        deepbf.Model(
            "shifted", prior=shifted, simulator=around_mean, hyperparameters={"scale": (0.2, 5), "shift": (-1, 1)}
        ),
        deepbf.Model("centred", prior=scaled_normal, simulator=around_mean, hyperparameters={"scale": (0.2, 5)}),
    ]
    bf = deepbf.fit(models, structure="exchangeable", steps=20, ensemble=2, seed=1, progress=False)
    with pytest.raises(ValueError, match="hyperparameter must name one of scale, shift; received None"):
        bf.sensitivity(DATA[0])
    with pytest.raises(ValueError, match="every hyperparameter a value"):
        bf.sensitivity(DATA[0], "shift")
    curve = bf.sensitivity(DATA[0], "shift", scale=1.0, num_values=7)
    assert not curve.on_log_scale
    np.testing.assert_allclose(curve.values, np.linspace(-1, 1, 7))
