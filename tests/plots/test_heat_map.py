"""A heat map has a colour for every value, a thick contour at Bayes factor 1, and a bar with base and direction."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.contour import ContourSet

from deepbf import plots
from tests.plots.reading import one_line, render

NAMES = ("dependent", "independent")
X = np.linspace(-3, 3, 13)
Y = np.linspace(-2, 2, 9)
SADDLE = 2 * np.multiply.outer(Y, X)


def mesh(ax: Axes) -> QuadMesh:
    [found] = [artist for artist in ax.collections if isinstance(artist, QuadMesh)]
    return found


def contours(ax: Axes) -> list[ContourSet]:
    return [artist for artist in ax.collections if isinstance(artist, ContourSet)]


def bar_axes(ax: Axes) -> Axes:
    [bar] = [other for other in ax.figure.axes if other is not ax]
    return bar


def test_colours_contours_and_bar() -> None:
    ax = plots.heat_map(X, Y, SADDLE, names=NAMES, labels=("reaction time", "accuracy"))
    np.testing.assert_array_equal(mesh(ax).get_array(), SADDLE)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("reaction time", "accuracy")
    assert one_line(bar_axes(ax).get_ylabel()) == "log Bayes factor (natural log), dependent over independent"
    [lines] = contours(ax)
    assert 0.0 in lines.levels
    widths = dict(zip(lines.levels, np.atleast_1d(lines.get_linewidth()), strict=True))
    assert widths[0.0] > 2 * max(width for level, width in widths.items() if level != 0)
    assert "Bayes factor 1" in [text.get_text() for text in lines.labelTexts]


@pytest.mark.parametrize("limit", [None, 4.0])
def test_no_white_areas(limit: float | None) -> None:
    values = SADDLE.copy()
    values[0, 0], values[-1, -1], values[0, -1] = np.inf, -np.inf, 1e300
    ax = render(plots.heat_map(X, Y, values, names=NAMES, limit=limit))
    image = mesh(ax)
    assert not np.ma.is_masked(image.get_array())
    colours = image.to_rgba(np.asarray(image.get_array()))
    np.testing.assert_array_equal(colours[..., 3], 1.0)
    assert (colours[..., :3].min(axis=-1) < 0.5).all()
    # The ends of the bar stand for what lies beyond.
    ends = image.norm.vmin, image.norm.vmax
    assert ends == ((-4.0, 4.0) if limit else pytest.approx((-12.0, 1e15)))


def test_the_ends_of_the_colours_are_the_values_own() -> None:
    image = mesh(plots.heat_map(X, Y, SADDLE + 4, names=NAMES))
    assert (image.norm.vmin, image.norm.vmax) == pytest.approx((-8.0, 16.0))


def test_far_values_have_a_logarithmic_bar_which_says_so() -> None:
    ax = plots.heat_map(X, Y, np.sinh(SADDLE), names=NAMES)
    assert "(linear to ±10, then log base 10)" in one_line(bar_axes(ax).get_ylabel())
    assert {-10.0, 0.0, 10.0} <= set(contours(ax)[0].levels)


def test_nan_is_hatched_and_counted() -> None:
    values = SADDLE.copy()
    values[3:5, 2] = np.nan
    ax = render(plots.heat_map(X, Y, values, names=NAMES))
    assert ax.get_title(loc="right") == "2 nan, hatched"
    assert ax.patch.get_hatch()


@pytest.mark.parametrize("value", [0.0, 2.5, np.inf, np.nan])
def test_a_flat_plane_has_no_contours(value: float) -> None:
    assert contours(render(plots.heat_map(X, Y, np.full(SADDLE.shape, value), names=NAMES))) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"log_bf": SADDLE.T},
            r"shape \(len\(y\), len\(x\)\) = \(9, 13\); received shape \(13, 9\)\. Pass log_bf\.T\.",
        ),
        ({"log_bf": SADDLE[:, :5]}, r"received shape \(9, 5\)\. Give one row per y"),
        ({"x": X[::-1]}, "x must be finite and increasing"),
        ({"y": SADDLE}, r"y must be finite and increasing.*received shape \(9, 13\)"),
        ({"x": [1.0]}, "x must be .* at least two"),
        ({"names": ("one",)}, "names must be two strings"),
        ({"labels": "ab"}, "labels must be two strings"),
        ({"limit": -1.0}, "limit must be finite and above 0"),
    ],
)
def test_bad_input(changes: dict, words: str) -> None:
    arguments = {"x": X, "y": Y, "log_bf": SADDLE, "names": NAMES} | changes
    with pytest.raises(ValueError, match=words):
        plots.heat_map(**arguments)
