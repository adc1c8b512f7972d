"""What falls: marks where the values are, bounds where they are 0, fitted lines, and words about them."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from deepbf import plots
from deepbf.plots import Decay
from tests.plots.reading import legend_texts, render

X = np.array([2.0, 4.0, 8.0])


def drawn(**changes: object):
    values = np.array([0.4, 0.2, 0.1])
    curve = Decay(X, values, values / 2, values * 2, (X[[0, -1]], values[[0, -1]]), "slope -1.00")
    exact = Decay(X, np.array([0.4, 0.1, 0.0]), np.array([0.2, 0.05, 0.0]), np.array([0.8, 0.2, 0.05]))
    figure = Figure(layout="constrained")
    return plots.decay({"deepbf": curve, "exact": exact}, figure.add_subplot(), x_label="n", y_label="share wrong")


def test_a_power_law_is_a_straight_line_between_logarithmic_axes() -> None:
    axes = drawn()
    assert axes.get_xscale() == axes.get_yscale() == "log"
    fitted = [line for line in axes.lines if list(line.get_xdata()) == [2.0, 8.0]]  # pyright: ignore[reportArgumentType]
    assert list(fitted[0].get_ydata()) == [0.4, 0.1]  # pyright: ignore[reportArgumentType]
    render(axes)


def test_the_legend_gives_slopes_and_says_what_a_bound_is() -> None:
    texts = legend_texts(drawn())
    assert any("slope -1.00" in text for text in texts)
    assert any("none seen: 95% bound" in text for text in texts)


def test_a_share_of_nothing_is_drawn_as_its_bound() -> None:
    bounds = [line for line in drawn().lines if "downarrow" in str(line.get_marker())]
    assert np.asarray(bounds[0].get_ydata()) == pytest.approx([0.05])
