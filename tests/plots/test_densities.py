"""Densities are those of the evaluation, and every mark is on the axis or at its edge."""

import math

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, LineCollection

from deepbf import plots
from tests.plots.reading import legend_texts, one_line, render
from tests.plots.synthetic import FIRST, SECOND, results


def areas(ax: Axes) -> list[FillBetweenPolyCollection]:
    return [artist for artist in ax.collections if isinstance(artist, FillBetweenPolyCollection)]


def upright_lines(ax: Axes) -> list[float]:
    lines = [np.asarray(line.get_xdata(), dtype=float) for line in ax.get_lines()]
    return [float(x[0]) for x in lines if len(x) == 2 and x[0] == x[1]]


def test_estimated_as_areas_and_exact_as_lines() -> None:
    found = results()
    ax = plots.densities(found)
    assert len(areas(ax)) == 2
    assert len({area.get_hatch() for area in areas(ax)}) == 2
    for line, model in zip(ax.get_lines(), (FIRST, SECOND), strict=False):
        np.testing.assert_array_equal(line.get_xdata(), found["grid"])
        np.testing.assert_array_equal(line.get_ydata(), found["density"].sel(estimator="exact", model=model))
    assert upright_lines(ax) == [0.0]
    assert one_line(ax.get_xlabel()) == "log Bayes factor (natural log), negative binomial over Poisson"
    assert ax.get_ylabel() == "density"


def test_without_the_exact_ones_there_are_areas_alone() -> None:
    ax = plots.densities(results(exact=False))
    assert legend_texts(ax) == [f"{FIRST}, deep set", f"{SECOND}, deep set", "threshold: Bayes factor 1"]


def test_marks_stand_where_they_belong() -> None:
    repeats = [1.5, 1.9, 2.2]
    answered = np.array([1.8])  # as an estimator answers for one data set
    ax = plots.densities(
        results(),
        observed=answered,  # pyright: ignore[reportArgumentType]
        repeats=repeats,
        exact_observed=2.0,
        threshold=3.0,
    )
    assert sorted(upright_lines(ax)) == pytest.approx([math.log(3), 1.8, 2.0])
    [rug] = [artist for artist in ax.collections if isinstance(artist, LineCollection)]
    assert [segment[0, 0] for segment in map(np.asarray, rug.get_segments())] == repeats
    texts = legend_texts(ax)
    for words in (
        "threshold: Bayes factor 3",
        "observed, estimated: 1.80",
        "observed, 3 repeated estimates",
        "observed, exact: 2.00",
    ):
        assert words in texts


def test_marks_beyond_the_axis_stand_at_its_edge() -> None:
    found = results()
    plain = plots.densities(found)
    ax = plots.densities(found, observed=1e5, exact_observed=-np.inf, repeats=[0.5, 1e4, 2e4, -1e4, np.nan])
    render(ax)
    assert ax.get_xlim() == plain.get_xlim()
    texts = legend_texts(ax)
    for words in (
        "observed, estimated: 1e+05, beyond the axis",
        "observed, exact: -inf, beyond the axis",
        "1 repeated, beyond the axis",
        "2 repeated, beyond the axis",
        "1 repeated, nan, not drawn",
    ):
        assert words in texts
    low, high = ax.get_xlim()
    heads = [float(np.asarray(line.get_xdata())[0]) for line in ax.get_lines() if line.get_marker() in ("<", ">")]
    assert sorted(heads) == pytest.approx([low, low, high, high])


def test_clipped_ends_are_spoken_of_when_shown() -> None:
    assert "[values clipped at ±13.8]" in one_line(plots.densities(results(scale=4.0)).get_xlabel())
    assert "clipped" not in plots.densities(results(scale=1.0)).get_xlabel()


def test_the_axis_ends_where_densities_do() -> None:
    low, high = plots.densities(results(scale=1.0)).get_xlim()
    assert -6 < low < -3
    assert 3 < high < 6
    # A mark on the grid is never cut off.
    assert plots.densities(results(scale=1.0), observed=10.0).get_xlim()[1] > 10


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"threshold": 0.0}, ValueError, "threshold must be finite and above 0"),
        ({"observed": np.nan}, ValueError, "observed must not be nan"),
        ({"observed": [1.0, 2.0]}, TypeError, "observed must be one number"),
        ({"exact_observed": "2"}, TypeError, "exact_observed must be one number"),
        ({"repeats": ["a"]}, TypeError, "repeats must hold real numbers"),
    ],
)
def test_bad_marks(changes: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        plots.densities(results(), **changes)
