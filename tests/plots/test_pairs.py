"""Estimators against each other."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from deepbf import plots
from tests.plots.reading import render

RNG = np.random.default_rng(2)
ONE = RNG.normal(2, 1, 30), RNG.normal(-2, 1, 30)
NAMES = ("Poisson", "negative binomial")


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


def test_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="at least two estimators"):
        plots.pairs({"a": ONE}, names=NAMES)
    with pytest.raises(ValueError, match="must be two arrays"):
        plots.pairs({"a": ONE, "b": (ONE[0],)}, names=NAMES)
    with pytest.raises(ValueError, match="same data sets"):
        plots.pairs({"a": ONE, "b": (ONE[0][:5], ONE[1])}, names=NAMES, figure=Figure())
