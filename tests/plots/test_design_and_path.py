"""The plots of a design and of a path."""

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from deepbf import plots
from deepbf.estimator.curves import LogBfPath
from deepbf.evaluation import Design, design_from

RNG = np.random.default_rng(2)
NAMES = ("process dissociation", "Stroop")


def a_design(power: float = 0.8) -> Design:
    log_bf = {n: [RNG.normal(sign * n / 8, np.sqrt(n / 4), 200) for sign in (1, -1)] for n in (5, 20, 80)}
    return design_from(log_bf, names=NAMES, power=power)


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
    legend = axes.get_legend()
    assert legend is not None
    return " ".join(text.get_text().replace("\n", " ") for text in legend.get_texts())


def test_a_design_shows_both_models_and_the_numbers_they_need() -> None:
    axes = plots.design(a_design())
    assert "number of observations (log base 2)" in axes.get_xlabel()
    assert "10 to 1" in axes.get_ylabel()
    for name in NAMES:
        assert f"right, if {name} is true: from" in words(axes)
        assert f"misleading, if {name} is true" in words(axes)
    assert "wanted: 0.8" in words(axes)


def test_a_design_that_is_not_enough_has_no_number() -> None:
    assert "from" not in words(plots.design(a_design(power=0.9999)))


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
