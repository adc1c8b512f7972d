"""Plots of criticism: 1/2 is always in sight, lines stand where they should, and degenerate results are drawn too."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from deepbf import plots
from deepbf.criticism import StatisticCheck, ZValues
from tests.plots.reading import legend_texts, one_line, render
from tests.plots.test_styles import luminance


def z(values: np.ndarray, model: str = "Poisson") -> ZValues:
    return ZValues(values, model, num_obs=128, classifier="any", refit=True)


def around(mean: float, scale: float = 0.01, size: int = 300) -> np.ndarray:
    return np.clip(np.random.default_rng(1).normal(mean, scale, size), 0, 1)


def vertical_lines(ax: Axes) -> list[float]:
    return [float(np.asarray(line.get_xdata())[0]) for line in ax.get_lines()]


def check(observed: float, draws: np.ndarray) -> StatisticCheck:
    return StatisticCheck("sd", observed, draws, "Poisson")


@pytest.mark.parametrize(
    "values",
    [around(0.5), around(0.1), around(0.9), around(0.0), np.full(50, 1e-6), np.full(50, 0.5), np.array([0.3])],
    ids=["half", "low", "high", "at 0", "constant", "all half", "one"],
)
def test_quantiles_and_one_half_are_in_sight(values: np.ndarray) -> None:
    found = z(values)
    ax = render(plots.z_values(found))
    assert vertical_lines(ax) == [found.low, found.high, 0.5]
    low, high = ax.get_xlim()
    assert low < min(0.5, found.low) <= max(0.5, found.high) < high
    grid = np.asarray(ax.collections[0].get_paths()[0].vertices)[:, 0]
    assert 0 <= grid.min() <= grid.max() <= 1
    assert ax.get_ylim()[0] == 0


def test_words_and_looks() -> None:
    ax = plots.z_values(z(around(0.42)))
    assert one_line(ax.get_xlabel()) == "Z, mean probability of being observed, at predictions of Poisson"
    area, quantiles, half = legend_texts(ax)
    assert area == "density of Z"
    assert quantiles.startswith("2.5% and 97.5% quantiles: 0.40")
    assert half == "1/2: not told apart"
    low, _, middle = ax.get_lines()
    red, _, blue = to_rgb(str(low.get_color()))
    assert red > blue
    # Without colour, they differ in their dashes and in their width.
    assert low.get_linestyle() != middle.get_linestyle()
    assert middle.get_linewidth() > low.get_linewidth()
    assert luminance(str(middle.get_color())) < 0.3


ROWS = {
    model: {data: z(around(mean), model) for data, mean in (("A data", 0.5), ("B data", 0.45), ("outliers", 0.1))}
    for model in ("A", "B")
}


def test_a_grid_has_a_panel_for_every_pair_and_one_legend() -> None:
    figure = plots.z_values_grid(ROWS)
    figure.canvas.draw()
    panels = figure.axes
    assert len(panels) == 6
    assert [ax.get_title() for ax in panels[:3]] == ["A data", "B data", "outliers"]
    assert [ax.get_ylabel() for ax in panels[::3]] == ["predictions of A", "predictions of B"]
    assert len(figure.legends) == 1
    assert all(ax.get_legend() is None for ax in panels)
    legend = figure.legends[0].get_window_extent()
    assert not any(legend.overlaps(ax.get_window_extent()) for ax in panels)
    for ax in panels:
        assert 0.5 in vertical_lines(ax)


def test_a_grid_takes_a_figure_and_any_names() -> None:
    figure = Figure(layout="constrained")
    long = "a hierarchical multinomial processing tree with guessing at $5, lapses and partial pooling"
    assert plots.z_values_grid({long: {long: z(around(0.5))}}, figure) is figure
    figure.canvas.draw()
    tight = figure.get_tightbbox()
    assert tight.x1 <= figure.get_figwidth() + 0.02
    assert tight.y1 <= figure.get_figheight() + 0.02


def test_bad_grids() -> None:
    with pytest.raises(TypeError, match="rows must map models to Z-values by data set; received list"):
        plots.z_values_grid([z(around(0.5))])  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="rows must map models"):
        plots.z_values_grid({})
    with pytest.raises(ValueError, match="A has A data, B data, outliers, C has A data"):
        plots.z_values_grid({"A": ROWS["A"], "C": {"A data": z(around(0.5))}})


@pytest.mark.parametrize(
    ("observed", "draws"),
    [
        (1.0, np.random.default_rng(2).normal(size=500)),
        (3.0, np.random.default_rng(2).poisson(2.0, 500).astype(float)),
        (5.0, np.zeros(100)),
        (0.2, np.array([0.25])),
        (1e12, np.random.default_rng(2).normal(size=500)),
        (1e-9, np.full(20, 1e9)),
    ],
    ids=["usual", "counts", "constant", "one draw", "far", "large constant"],
)
def test_the_observed_value_is_marked_among_all_predictions(observed: float, draws: np.ndarray) -> None:
    ax = render(plots.predictive_check(check(observed, draws)))
    heights = [bar.get_height() for bar in ax.patches]  # pyright: ignore[reportAttributeAccessIssue]
    assert sum(heights) == len(draws)
    assert vertical_lines(ax)[-1] == observed
    low, high = ax.get_xlim()
    assert low < observed < high
    assert legend_texts(ax)[0].startswith("observed: ")


def test_counts_have_a_bar_each() -> None:
    draws = np.array([0.0, 1.0, 1.0, 4.0])
    ax = plots.predictive_check(check(1.0, draws))
    centres = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]  # pyright: ignore[reportAttributeAccessIssue]
    assert centres == pytest.approx([0, 1, 2, 3, 4])
    assert [bar.get_height() for bar in ax.patches] == [1, 2, 0, 0, 1]  # pyright: ignore[reportAttributeAccessIssue]
