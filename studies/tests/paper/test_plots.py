"""Pictures of the paper's figures: falling lines, rows of heat maps, and many estimators on one page."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure

from deepbf_studies.paper import plots
from deepbf_studies.paper.plots import Decay, HeatMapRow
from tests.plots.reading import legend_texts, render
from tests.plots.synthetic import FIRST, SECOND, results

RNG = np.random.default_rng(2)
ONE = RNG.normal(2, 1, 30), RNG.normal(-2, 1, 30)
NAMES = ("Poisson", "negative binomial")
SIZES = np.array([2.0, 4.0, 8.0])
X = np.linspace(-3, 3, 13)
SADDLE = 2 * np.multiply.outer(X, X)
ROW = HeatMapRow(X, X, {"exact": SADDLE, "estimated": 3 * SADDLE}, ("dependent", "independent"))


@pytest.fixture(autouse=True)
def tidy() -> Any:
    yield
    pyplot.close("all")


def test_every_pair_once_with_every_data_set() -> None:
    shown = {"a": ONE, "b": ONE, "c": tuple(2 * part for part in ONE)}
    figure = plots.pairs(shown, names=NAMES, figure=Figure(layout="constrained"))
    render(figure.axes[0])
    labels = {(ax.get_xlabel(), ax.get_ylabel()) for ax in figure.axes}
    assert len(figure.axes) == 3
    assert {("", "b"), ("a", "c"), ("b", "")} == labels
    offsets = [np.concatenate([np.asarray(points.get_offsets()) for points in ax.collections]) for ax in figure.axes]
    assert all(len(points) == 60 for points in offsets)
    assert np.allclose(offsets[0][:, 0], offsets[0][:, 1])
    assert np.allclose(2 * offsets[1][:, 0], offsets[1][:, 1])


def test_absurd_and_missing_values_do_not_spoil_the_rest() -> None:
    absurd = (np.r_[np.inf, 1e300, np.nan, ONE[0][3:]], ONE[1])
    figure = plots.pairs({"a": ONE, "b": absurd}, names=NAMES, figure=Figure())
    render(figure.axes[0])
    [ax] = figure.axes
    assert ax.get_ylim()[1] < 1e4
    assert len(np.asarray(ax.collections[0].get_offsets())) == 29


def test_pairs_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="at least two estimators"):
        plots.pairs({"a": ONE}, names=NAMES)
    with pytest.raises(ValueError, match="must be two arrays"):
        plots.pairs({"a": ONE, "b": (ONE[0],)}, names=NAMES)
    with pytest.raises(ValueError, match="same data sets"):
        plots.pairs({"a": ONE, "b": (ONE[0][:5], ONE[1])}, names=NAMES, figure=Figure())


def falling() -> Axes:
    values = np.array([0.4, 0.2, 0.1])
    curve = Decay(SIZES, values, values / 2, values * 2, (SIZES[[0, -1]], values[[0, -1]]), "slope -1.00")
    exact = Decay(SIZES, np.array([0.4, 0.1, 0.0]), np.array([0.2, 0.05, 0.0]), np.array([0.8, 0.2, 0.05]))
    figure = Figure(layout="constrained")
    return plots.decay({"deepbf": curve, "exact": exact}, figure.add_subplot(), x_label="n", y_label="share wrong")


def test_a_power_law_is_a_straight_line_between_logarithmic_axes() -> None:
    axes = falling()
    assert axes.get_xscale() == axes.get_yscale() == "log"
    fitted = [line for line in axes.lines if list(line.get_xdata()) == [2.0, 8.0]]  # pyright: ignore[reportArgumentType]
    assert list(fitted[0].get_ydata()) == [0.4, 0.1]  # pyright: ignore[reportArgumentType]
    render(axes)


def test_the_legend_gives_slopes_and_says_what_a_bound_is() -> None:
    texts = legend_texts(falling())
    assert any("slope -1.00" in text for text in texts)
    assert any("none seen: 95% bound" in text for text in texts)


def test_a_share_of_nothing_is_drawn_as_its_bound() -> None:
    bounds = [line for line in falling().lines if "downarrow" in str(line.get_marker())]
    assert np.asarray(bounds[0].get_ydata()) == pytest.approx([0.05])


def test_a_row_shares_its_colours_and_one_bar() -> None:
    figure = plots.heat_map_grid(
        {"one": ROW, "other": HeatMapRow(X, X, {"exact": X + X[:, None], "estimated": SADDLE}, ROW.names)}
    )
    panels, bars = figure.axes[:4], figure.axes[4:]
    assert len(bars) == 2
    meshes = [next(artist for artist in axes.collections if isinstance(artist, QuadMesh)) for axes in panels]
    assert [(mesh.norm.vmin, mesh.norm.vmax) for mesh in meshes] == [(-18, 18), (-18, 18), (-6, 6), (-6, 6)]
    # Beyond the colours of the exact map there is the colour at their end, and no hole.
    estimated = np.asarray(meshes[1].get_array())
    np.testing.assert_array_equal(estimated, np.clip(3 * SADDLE, -18, 18))
    assert [axes.get_title() for axes in panels] == ["exact", "estimated", "", ""]
    assert panels[2].get_ylabel().startswith("other")


def test_marks_outside_the_plane_are_left_out() -> None:
    row = HeatMapRow(X, X, {"exact": SADDLE}, ROW.names, points=[[0, 0], [9, 0]], stars={"red": [[1, 2], [2, -7]]})
    figure = plots.heat_map_grid({"one": row}, star_words={"red": "outlier"}, title="Data 1")
    marks = [artist for artist in figure.axes[0].collections if isinstance(artist, PathCollection)]
    assert [np.asarray(artist.get_offsets()).tolist() for artist in marks] == [[[0, 0]], [[1, 2]]]
    [legend] = figure.legends
    assert legend.get_title().get_text() == "Data 1"
    assert [text.get_text() for text in legend.get_texts()][1:] == ["a simulated data set", "outlier"]


def test_bad_rows() -> None:
    with pytest.raises(TypeError, match="rows must map titles to HeatMapRow"):
        plots.heat_map_grid({})
    with pytest.raises(ValueError, match="same panels, at least one; one has exact, estimated, two has exact"):
        plots.heat_map_grid({"one": ROW, "two": HeatMapRow(X, X, {"exact": SADDLE}, ROW.names)})
    with pytest.raises(ValueError, match="log_bf must have shape"):
        plots.heat_map_grid({"one": HeatMapRow(X, X, {"exact": SADDLE[1:]}, ROW.names)})


LONG = "a hierarchical multinomial processing tree with guessing, lapses and a partial pooling of participants"
ON_EVALUATIONS: dict[str, Callable[..., Axes]] = {
    "priors": lambda names=(FIRST, SECOND), ax=None: plots.priors(results(names=names), ax),
    "repeated_roc": lambda names=(FIRST, SECOND), ax=None: plots.repeated_roc(results(names=names), "again", ax),
}


@pytest.mark.parametrize("plot", ON_EVALUATIONS)
def test_draws_on_the_axes_it_is_given_or_on_a_figure_of_its_own(plot: str) -> None:
    ax = Figure().subplots()
    assert ON_EVALUATIONS[plot](ax=ax) is ax
    assert ax.has_data()
    assert pyplot.get_fignums() == []
    assert ON_EVALUATIONS[plot]().figure is not ON_EVALUATIONS[plot]().figure
    with pytest.raises(TypeError, match=r"ax must be matplotlib Axes or None; received Figure\."):
        ON_EVALUATIONS[plot](ax=Figure())


@pytest.mark.parametrize("plot", ON_EVALUATIONS)
@pytest.mark.parametrize("names", [(LONG, LONG[::-1]), ("_hidden at $5", "$x_1^$" + "x" * 150)], ids=["long", "odd"])
def test_any_names_stay_inside_the_figure_and_the_legend_hides_no_data(plot: str, names: tuple[str, str]) -> None:
    ax = render(ON_EVALUATIONS[plot](names=names))
    inside, tight, legend = ax.figure.bbox, ax.get_tightbbox(), ax.get_legend()
    assert tight is not None
    assert legend is not None
    slack = 1.0
    assert tight.x0 >= inside.x0 - slack
    assert tight.x1 <= inside.x1 + slack
    assert tight.y0 >= inside.y0 - slack
    assert tight.y1 <= inside.y1 + slack
    assert ax.get_position().width > 0.25
    assert not legend.get_window_extent().overlaps(ax.get_window_extent())
