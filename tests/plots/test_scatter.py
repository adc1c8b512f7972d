"""Exact against estimated: every data set is drawn or counted, and the decisions are those of the evaluation."""

from itertools import pairwise

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes

from deepbf import plots
from tests.plots.reading import legend_texts, one_line, render
from tests.plots.synthetic import FIRST, SECOND, results


def with_values(found: xr.Dataset, estimator: str, values: dict[int, float]) -> xr.Dataset:
    changed = found.copy(deep=True)
    for place, value in values.items():
        changed["log_bf"].loc[{"estimator": estimator, "dataset": place}] = value
    return changed


def points(ax: Axes) -> list[np.ndarray]:
    return [np.asarray(collection.get_offsets()) for collection in ax.collections]


def test_points_stand_at_exact_and_estimated() -> None:
    found = results(num_datasets=30)
    ax = plots.scatter(found)
    for drawn, model in zip(points(ax), (FIRST, SECOND), strict=True):
        mine = found["log_bf"].where(found["source"] == model, drop=True)
        np.testing.assert_array_equal(drawn[:, 0], mine.sel(estimator="exact"))
        np.testing.assert_array_equal(drawn[:, 1], mine.sel(estimator="deep set"))
    assert ax.get_xlim() == ax.get_ylim()


def test_labels_say_base_and_direction() -> None:
    ax = plots.scatter(results())
    direction = "log Bayes factor (natural log), negative binomial over Poisson"
    assert one_line(ax.get_xlabel()) == f"exact {direction}"
    assert one_line(ax.get_ylabel()) == f"estimated {direction}"
    assert legend_texts(ax) == [
        f"data from {FIRST}",
        f"data from {SECOND}",
        "estimated = exact",
        "decision at Bayes factor 1",
        "decisions differ",
    ]


def test_agreement_is_written_where_it_is_known() -> None:
    found = results()
    share = 100 * float(found["agreement"].sel(estimator="deep set", group="weighted"))
    assert f"same decision\n{share:.1f}% ±" in plots.scatter(found).texts[0].get_text()
    assert not plots.scatter(found.drop_vars("agreement")).texts


@pytest.mark.parametrize(
    ("share", "error", "written"),
    [
        (0.9866, 0.0021, "98.7% ± 0.2%"),
        # More digits, for the error would read as none.
        (0.99967, 0.00034, "99.97% ± 0.03%"),
        (1.0, 0.0, "100.0% ± 0.0%"),
        (0.5, None, "50.0%"),
    ],
)
def test_agreement_has_the_digits_that_its_error_leaves(share: float, error: float | None, written: str) -> None:
    found = results()
    found["agreement"][:] = share
    if error is None:
        found = found.drop_vars("agreement_error")
    else:
        found["agreement_error"][:] = error
    assert plots.scatter(found).texts[0].get_text() == f"same decision\n{written}"


@pytest.mark.parametrize("prior", [0.5, 0.8])
def test_decisions_are_made_at_equal_posterior_probability(prior: float) -> None:
    ax = plots.scatter(results(prior=prior))
    threshold = np.log((1 - prior) / prior)
    lines = [line.get_xydata() for line in ax.get_lines()]
    assert any(np.allclose(np.asarray(xy)[:, 0], threshold) for xy in lines)
    assert any(np.allclose(np.asarray(xy)[:, 1], threshold) for xy in lines)
    # The shaded quadrants meet in the one point, above to the left and below to the right of it.
    (left, right) = (patch.get_path().transformed(patch.get_patch_transform()).get_extents() for patch in ax.patches)
    assert (left.x1, left.y0) == pytest.approx((threshold, threshold))
    assert (right.x0, right.y1) == pytest.approx((threshold, threshold))


def test_infinite_and_far_values_stand_at_the_edge_and_are_counted() -> None:
    found = with_values(results(num_datasets=30), "deep set", {0: np.inf, 1: 1e9, 31: -np.inf, 40: np.nan})
    found = with_values(found, "exact", {2: np.inf})
    ax = render(plots.scatter(found))
    assert "at the edge: 3 infinite, 1 too far" in legend_texts(ax)
    assert "1 nan, not drawn" in legend_texts(ax)
    first, first_edge, second, second_edge = points(ax)
    assert [len(drawn) for drawn in (first, first_edge, second, second_edge)] == [27, 3, 28, 1]
    low, high = ax.get_ylim()
    assert sorted(first_edge.max(axis=1)) == pytest.approx([high] * 3)
    assert second_edge[0, 1] == pytest.approx(low)
    # One estimate of 1e9 does not change the scale.
    assert ax.get_yscale() == "linear"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nothing_finite_still_makes_a_plot(value: float) -> None:
    found = results(num_datasets=5)
    found["log_bf"] = xr.full_like(found["log_bf"], value)
    words = "10 nan, not drawn" if np.isnan(value) else "at the edge: 10 infinite"
    assert words in legend_texts(render(plots.scatter(found)))


def test_an_axis_that_reaches_far_is_logarithmic_and_says_so() -> None:
    found = with_values(results(num_datasets=30), "exact", {0: 2e5, 40: -300.0})
    ax = render(plots.scatter(found))
    assert ax.get_xscale() == ax.get_yscale() == "symlog"
    for label in (ax.get_xlabel(), ax.get_ylabel()):
        assert "(linear to ±10, then log base 10)" in one_line(label)
    assert ax.get_xlim()[1] > 2e5
    labels = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
    assert len(labels) > 3
    assert all(one.x1 < other.x0 for one, other in pairwise(labels))


def test_needs_the_exact_values() -> None:
    with pytest.raises(ValueError, match=r"an estimator called 'exact'; received none\. .* densities\(\) instead"):
        plots.scatter(results(exact=False))
