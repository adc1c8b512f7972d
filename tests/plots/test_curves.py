"""ROC and reliability curves: the evaluation's own numbers, with their errors, in curve and legend."""

import numpy as np

from deepbf import plots
from tests.plots.reading import legend_texts, one_line, render
from tests.plots.synthetic import results

ESTIMATORS = ["deep set", "forest"]


def test_roc_draws_every_estimator_and_the_diagonal() -> None:
    found = results(ESTIMATORS)
    ax = plots.roc(found)
    lines = ax.get_lines()
    assert len(lines) == 4
    for line, name in zip(lines, [*ESTIMATORS, "exact"], strict=False):
        np.testing.assert_array_equal(line.get_xdata(), found["false_positive_rate"].sel(estimator=name))
        np.testing.assert_array_equal(line.get_ydata(), found["true_positive_rate"].sel(estimator=name))
    np.testing.assert_array_equal(lines[-1].get_xydata(), [[0, 0], [1, 1]])
    assert one_line(ax.get_xlabel()) == "false positive rate (positive: negative binomial)"
    assert one_line(ax.get_ylabel()) == "true positive rate (positive: negative binomial)"


def test_roc_legend_gives_areas_and_errors() -> None:
    found = results(ESTIMATORS)
    one = found.sel(estimator="forest")
    expected = f"forest AUC {float(one['auc']):.3f} ± {float(one['auc_error']):.3f}"
    assert expected in legend_texts(plots.roc(found))


def test_reliability_draws_curves_error_bars_and_counts() -> None:
    found = results(ESTIMATORS)
    ax = plots.reliability(found)
    assert len(ax.containers) == 3
    for container, name in zip(ax.containers, [*ESTIMATORS, "exact"], strict=True):
        one = found.sel(estimator=name)
        curve, _, (bars,) = container  # pyright: ignore[reportGeneralTypeIssues]
        np.testing.assert_array_equal(curve.get_xdata(), one["predicted"])
        np.testing.assert_array_equal(curve.get_ydata(), one["frequency"])
        ends = np.array(bars.get_segments())[:, :, 1]
        np.testing.assert_allclose(ends, np.stack([one["frequency_low"], one["frequency_high"]], axis=1))
    [strip] = ax.child_axes
    np.testing.assert_array_equal(strip.get_lines()[1].get_ydata(), found["bin_count"].sel(estimator="forest"))
    assert "log base 10" in strip.get_ylabel()
    assert one_line(ax.get_xlabel()) == "predicted probability of negative binomial"
    assert one_line(ax.get_ylabel()) == "relative frequency of negative binomial"


def test_reliability_legend_gives_errors_and_what_to_expect() -> None:
    found = results(ESTIMATORS)
    error, low, high = (
        float(found[name].sel(estimator="forest"))
        for name in ("calibration_error", "calibration_error_low", "calibration_error_high")
    )
    expected = f"forest calibration error {error:.3f} (if calibrated {low:.3f} to {high:.3f})"
    assert expected in legend_texts(plots.reliability(found))


def test_empty_bins_are_left_out() -> None:
    found = results()
    found["bin_count"][:, :3] = 0
    for name in ("predicted", "frequency", "frequency_low", "frequency_high"):
        found[name] = found[name].where(found["bin_count"] > 0)
    ax = render(plots.reliability(found))
    curve = ax.containers[0][0]
    assert np.isfinite(curve.get_ydata()).all()
    assert len(curve.get_ydata()) == 7


def test_no_data_at_all_still_makes_a_plot() -> None:
    found = results()
    found["bin_count"] = found["bin_count"] * 0
    assert len(render(plots.reliability(found)).containers) == 2
