"""Metrics, recovered priors and designs against the number of observations: their values, on scales that say so."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from deepbf import plots
from deepbf.evaluation import Design, design_from
from tests.plots.reading import legend_texts, one_line, render
from tests.plots.synthetic import FIRST, results

ESTIMATORS = ["deep set", "forest"]
RNG = np.random.default_rng(2)
NAMES = ("process dissociation", "Stroop")


def evaluations(**changes) -> dict[int, xr.Dataset]:
    return {n: results(ESTIMATORS, num_datasets=20, seed=n, noise=1 / n, **changes) for n in (8, 2, 32)}


def drawn(ax: Axes) -> dict[str, np.ndarray]:
    return {str(line[0].get_label()): np.asarray(line[0].get_ydata()) for line in ax.containers}


@pytest.mark.parametrize("group", ["weighted", FIRST])
def test_values_come_in_the_order_of_num_obs(group: str) -> None:
    all_results = evaluations()
    ax = plots.metric_against_num_obs(all_results, group=group)
    lines = drawn(ax)
    assert list(lines) == ESTIMATORS
    for name, values in lines.items():
        expected = [float(all_results[n]["clipped_mse"].sel(estimator=name, group=group)) for n in (2, 8, 32)]
        np.testing.assert_array_equal(values, expected)
    for container in ax.containers:
        x = np.asarray(container[0].get_xdata())
        np.testing.assert_allclose(np.log2(x), [1, 3, 5], atol=0.2)
    bars = [artist for artist in ax.collections if isinstance(artist, LineCollection)]
    assert len(bars) == 2


def test_both_scales_are_named() -> None:
    ax = plots.metric_against_num_obs(evaluations())
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == "number of observations (log base 2)"
    assert one_line(ax.get_ylabel()) == "clipped mse over both models (log base 10)"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "8", "32"]


@pytest.mark.parametrize(
    ("metric", "has_exact", "scale"),
    [
        ("mse", False, "log"),
        ("clipped_mse", False, "log"),
        ("kl", False, "log"),
        ("surprise_mse", False, "log"),
        ("spearman", False, "linear"),
        ("agreement", False, "linear"),
        ("excess_loss", False, "linear"),
        ("loss", True, "linear"),
        ("auc", True, "linear"),
        ("calibration_error", True, "linear"),
        ("balanced_error_rate", True, "linear"),
        ("estimated_prior", True, "linear"),
    ],
)
def test_every_metric(metric: str, has_exact: bool, scale: str) -> None:
    ax = plots.metric_against_num_obs(evaluations(), metric)
    assert ("exact" in drawn(ax)) == has_exact
    assert ax.get_yscale() == scale
    assert ("log base 10" in ax.get_ylabel()) == (scale == "log")


def test_the_label_uses_the_metrics_own_words() -> None:
    all_results = evaluations()
    for found in all_results.values():
        found["loss"].attrs["long_name"] = "cross-entropy in nats"
    ax = plots.metric_against_num_obs(all_results, "loss", FIRST)
    assert one_line(ax.get_ylabel()) == f"cross-entropy in nats over data from {FIRST}"


def test_an_error_of_zero_has_a_linear_axis() -> None:
    all_results = evaluations()
    all_results[8]["mse"] = all_results[8]["mse"] * 0
    assert plots.metric_against_num_obs(all_results, "mse").get_yscale() == "linear"


def test_error_bars_below_zero_do_not_break_a_logarithmic_axis() -> None:
    all_results = evaluations()
    for found in all_results.values():
        found["mse_error"] = found["mse"] * 3
    ax = render(plots.metric_against_num_obs(all_results, "mse"))
    low, high = ax.get_ylim()
    smallest = min(values.min() for values in drawn(ax).values())
    assert smallest / 1e3 < low < smallest
    assert np.isfinite(high)


def test_infinite_and_missing_values_are_told() -> None:
    all_results = evaluations()
    all_results[8]["mse"].loc[{"estimator": "forest"}] = np.inf
    all_results[2] = all_results[2].sel(estimator=["deep set", "exact"])
    texts = legend_texts(render(plots.metric_against_num_obs(all_results, "mse")))
    assert "forest, 1 infinite, at the edge" in texts
    assert "forest, 1 nan, not drawn" in texts


def test_calibration_errors_come_with_what_to_expect() -> None:
    ax = render(plots.metric_against_num_obs(evaluations(), "calibration_error"))
    assert "95% interval if calibrated" in legend_texts(ax)
    assert "95% interval if calibrated" not in legend_texts(plots.metric_against_num_obs(evaluations(), "auc"))


def test_many_num_obs_have_ticks_that_do_not_meet() -> None:
    many = {n: results(num_datasets=5) for n in range(1, 41)}
    ax = plots.metric_against_num_obs(many)
    assert len(ax.get_xticks()) <= 10


def test_unknown_metrics_and_groups() -> None:
    all_results = evaluations()
    with pytest.raises(ValueError, match=r"metric must be one of 'mse', .*; received 'cliped_mse'.*'clipped_mse'"):
        plots.metric_against_num_obs(all_results, "cliped_mse")
    with pytest.raises(ValueError, match="metric must be one of"):
        plots.metric_against_num_obs(all_results, "mse_error")
    with pytest.raises(ValueError, match="group must be one of 'negative binomial', 'Poisson', 'weighted'"):
        plots.metric_against_num_obs(all_results, group="poisson")
    with pytest.raises(ValueError, match="group must be 'weighted' for auc"):
        plots.metric_against_num_obs(all_results, "auc", FIRST)


def test_a_metric_that_needs_the_exact_values_says_so() -> None:
    with pytest.raises(ValueError, match=r"metric 'clipped_mse' compares with the exact .* pass one of 'loss'"):
        plots.metric_against_num_obs(evaluations(exact=False))


def test_the_prior_and_its_estimates() -> None:
    all_results = evaluations(prior=0.3)
    ax = plots.prior_against_num_obs(all_results)
    lines = drawn(ax)
    assert list(lines) == [*ESTIMATORS, "exact"]
    for name, values in lines.items():
        expected = [float(all_results[n]["estimated_prior"].sel(estimator=name)) for n in (2, 8, 32)]
        np.testing.assert_array_equal(values, expected)
    [truth] = [line for line in ax.get_lines() if line.get_label() == "true prior"]
    np.testing.assert_allclose(np.asarray(truth.get_ydata()), 0.3)
    assert one_line(ax.get_ylabel()) == f"estimated prior probability of {FIRST}"
    assert ax.get_xlabel() == "number of observations (log base 2)"


def a_design(power: float = 0.8) -> Design:
    log_bf = {n: [RNG.normal(sign * n / 8, np.sqrt(n / 4), 200) for sign in (1, -1)] for n in (5, 20, 80)}
    return design_from(log_bf, names=NAMES, power=power)


def test_a_design_shows_both_models_and_the_numbers_they_need() -> None:
    axes = plots.design(a_design())
    assert "number of observations (log base 2)" in axes.get_xlabel()
    assert "10 to 1" in axes.get_ylabel()
    for name in NAMES:
        assert f"right, if {name} is true: from" in " ".join(legend_texts(axes))
        assert f"misleading, if {name} is true" in " ".join(legend_texts(axes))
    assert "wanted: 0.8" in " ".join(legend_texts(axes))


def test_a_design_that_is_not_enough_has_no_number() -> None:
    assert "from" not in " ".join(legend_texts(plots.design(a_design(power=0.9999))))
