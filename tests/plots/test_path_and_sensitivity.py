"""The log Bayes factor as a line: its label names direction and base, its legend the threshold and the error."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from deepbf import plots
from deepbf.estimator.curves import LogBfPath
from tests.plots.reading import legend_texts, one_line, render

RNG = np.random.default_rng(2)
NAMES = ("process dissociation", "Stroop")


def a_path(num_obs: int = 30, *, error: bool = True) -> LogBfPath:
    log_bf = np.cumsum(RNG.normal(0.1, 0.5, num_obs))
    return LogBfPath(
        num_obs=np.arange(1, num_obs + 1),
        log_bf=log_bf,
        error=np.full(num_obs, 0.1) if error else None,
        model=NAMES[0],
        against=NAMES[1],
    )


def words(axes: Axes) -> str:
    return " ".join(legend_texts(axes))


@pytest.mark.parametrize("num_obs", [1, 30, 200])
def test_a_path_names_direction_base_and_threshold(num_obs: int) -> None:
    axes = plots.path(a_path(num_obs), threshold=3)
    assert "natural log" in axes.get_ylabel()
    assert "process dissociation over Stroop" in axes.get_ylabel().replace("\n", " ")
    assert "3 to 1" in words(axes)
    assert "errors" in words(axes)


def test_a_path_without_error_or_threshold() -> None:
    _, ax = pyplot.subplots()
    axes = plots.path(a_path(error=False), threshold=None, ax=ax)
    assert axes is ax
    assert words(axes) == "log Bayes factor"
    with pytest.raises(ValueError, match="threshold must be finite and above 0"):
        plots.path(a_path(), threshold=-1)


@pytest.mark.parametrize("on_log_scale", [True, False])
def test_a_curve_names_its_hyperparameter_and_keeps_its_scale(on_log_scale: bool) -> None:
    values = np.geomspace(0.5, 2.0, 50)
    curve: Any = SimpleNamespace(
        hyperparameter="scale",
        values=values,
        log_bf=np.log(values),
        error=np.full(50, 0.1),
        on_log_scale=on_log_scale,
        model=NAMES[0],
        against=NAMES[1],
    )
    axes = render(plots.sensitivity(curve))
    assert axes.get_xlabel() == "scale, hyperparameter of the prior"
    assert axes.get_xscale() == ("log" if on_log_scale else "linear")
    assert one_line(axes.get_ylabel()) == "log Bayes factor (natural log), process dissociation over Stroop"
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), curve.log_bf)
    assert "10 to 1" in words(axes)
