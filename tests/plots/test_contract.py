"""What every plot keeps to: axes in, the same axes out; a new figure otherwise; any names; nothing hidden or cut."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deepbf import plots
from deepbf.criticism import StatisticCheck, ZValues
from tests.plots.reading import legend_texts, render
from tests.plots.synthetic import FIRST, SECOND, Evaluation, results

Draw = Callable[..., Axes]
MANY = [f"estimator {number}" for number in range(9)]


def over_num_obs(*args: Any, **changes: Any) -> dict[int, Evaluation]:
    return {n: Evaluation(results(*args, num_datasets=20, seed=n, **changes)) for n in (8, 2, 32)}


def draw_heat_map(names: tuple[str, str] = (FIRST, SECOND), ax: Axes | None = None) -> Axes:
    x = np.linspace(-2, 2, 9)
    return plots.heat_map(x, x[:7], np.add.outer(x[:7], x) * 3, names=names, ax=ax)


def draw_z_values(names: tuple[str, str] = (FIRST, SECOND), ax: Axes | None = None) -> Axes:
    z = np.random.default_rng(0).normal(0.48, 0.01, 200)
    return plots.z_values(ZValues(z, names[0], num_obs=128, classifier="any", refit=True), ax)


def draw_predictive_check(names: tuple[str, str] = (FIRST, SECOND), ax: Axes | None = None) -> Axes:
    draws = np.random.default_rng(0).normal(size=200)
    return plots.predictive_check(StatisticCheck(names[1], 1.0, draws, names[0]), ax)


# Each with an estimator of its own, for models of any names.
PLOTS: dict[str, Draw] = {
    "scatter": lambda names=(FIRST, SECOND), ax=None: plots.scatter(results(names=names), ax=ax),
    "densities": lambda names=(FIRST, SECOND), ax=None: plots.densities(results(names=names), observed=1.0, ax=ax),
    "heat_map": draw_heat_map,
    "roc": lambda names=(FIRST, SECOND), ax=None: plots.roc(results(names=names), ax),
    "reliability": lambda names=(FIRST, SECOND), ax=None: plots.reliability(results(names=names), ax),
    "metric_against_num_obs": lambda names=(FIRST, SECOND), ax=None: plots.metric_against_num_obs(
        over_num_obs(names=names), group=names[0], ax=ax
    ),
    "prior_against_num_obs": lambda names=(FIRST, SECOND), ax=None: plots.prior_against_num_obs(
        over_num_obs(names=names), ax=ax
    ),
    "z_values": draw_z_values,
    "predictive_check": draw_predictive_check,
}
ON_EVALUATIONS = {
    "scatter": lambda evaluation: plots.scatter(evaluation),
    "densities": lambda evaluation: plots.densities(evaluation),
    "roc": lambda evaluation: plots.roc(evaluation),
    "reliability": lambda evaluation: plots.reliability(evaluation),
    "metric_against_num_obs": lambda evaluation: plots.metric_against_num_obs({8: evaluation}),
    "prior_against_num_obs": lambda evaluation: plots.prior_against_num_obs({8: evaluation}),
}


def test_every_plot_is_here() -> None:
    # Those of a design, a path and curves read other results, a grid makes a figure; they have tests of their own.
    others = {"design", "path", "sensitivity", "z_values_grid"}
    assert set(PLOTS) | others == set(plots.__all__)


@pytest.mark.parametrize("plot", PLOTS)
def test_draws_on_the_axes_it_is_given(plot: str) -> None:
    ax = Figure().subplots()
    assert PLOTS[plot](ax=ax) is ax
    assert ax.has_data()
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("plot", PLOTS)
def test_makes_a_figure_of_its_own_otherwise(plot: str) -> None:
    first, second = PLOTS[plot](), PLOTS[plot]()
    assert first.figure is not second.figure
    assert len(pyplot.get_fignums()) == 2


@pytest.mark.parametrize("plot", PLOTS)
def test_refuses_what_is_no_axes(plot: str) -> None:
    with pytest.raises(TypeError, match=r"ax must be matplotlib Axes or None; received Figure\."):
        PLOTS[plot](ax=Figure())


LONG = "a hierarchical multinomial processing tree with guessing, lapses and a partial pooling of participants"


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("names", [(LONG, LONG[::-1]), ("_hidden at $5", "$x_1^$" + "x" * 150)], ids=["long", "odd"])
def test_any_names_stay_inside_the_figure(plot: str, names: tuple[str, str]) -> None:
    ax = render(PLOTS[plot](names=names))
    inside = ax.figure.bbox
    tight = ax.get_tightbbox()
    assert tight is not None
    slack = 1.0
    assert tight.x0 >= inside.x0 - slack
    assert tight.x1 <= inside.x1 + slack
    assert tight.y0 >= inside.y0 - slack
    assert tight.y1 <= inside.y1 + slack
    assert ax.get_position().width > 0.25


@pytest.mark.parametrize("plot", [plot for plot in PLOTS if plot != "heat_map"])
def test_the_legend_hides_no_data(plot: str) -> None:
    ax = render(PLOTS[plot]())
    legend = ax.get_legend()
    assert legend is not None
    assert not legend.get_window_extent().overlaps(ax.get_window_extent())


@pytest.mark.parametrize("plot", ON_EVALUATIONS)
def test_takes_an_evaluation_or_its_results(plot: str) -> None:
    found = results()
    from_results, from_evaluation = ON_EVALUATIONS[plot](found), ON_EVALUATIONS[plot](Evaluation(found))
    assert legend_texts(from_results) == legend_texts(from_evaluation)


@pytest.mark.parametrize("plot", ON_EVALUATIONS)
def test_refuses_anything_else(plot: str) -> None:
    with pytest.raises(TypeError, match=r"evaluation must be an Evaluation or its results.*received dict\."):
        ON_EVALUATIONS[plot]({"log_bf": [1.0]})


@pytest.mark.parametrize("plot", ON_EVALUATIONS)
def test_leaves_the_results_as_they_were(plot: str) -> None:
    found = results()
    ON_EVALUATIONS[plot](found)
    assert found.identical(results())


@pytest.mark.parametrize("plot", ["scatter", "densities", "roc", "reliability", "prior_against_num_obs"])
def test_names_what_the_results_are_without(plot: str) -> None:
    bare = results()[["log_bf"]].drop_vars("source")
    with pytest.raises(ValueError, match=r"evaluation must hold .* for this plot; received the variables log_bf"):
        ON_EVALUATIONS[plot](bare)


@pytest.mark.parametrize("plot", ["scatter", "densities"])
def test_one_of_several_estimators_must_be_named(plot: str) -> None:
    draw = getattr(plots, plot)
    several = results(["deep set", "forest"])
    with pytest.raises(ValueError, match=r"received None for 'deep set', 'forest'.*estimator='deep set'"):
        draw(several)
    with pytest.raises(
        ValueError, match=r"estimator must be one of 'deep set', 'forest'; received 'forrest'.*'forest'"
    ):
        draw(several, "forrest")
    with pytest.raises(ValueError, match=r"an estimator besides 'exact'"):
        draw(results([]))
    assert draw(several, "forest").has_data()


@pytest.mark.parametrize("plot", ["roc", "reliability", "metric_against_num_obs", "prior_against_num_obs"])
def test_more_estimators_than_colours_all_look_different(plot: str) -> None:
    ax = ON_EVALUATIONS[plot](results(MANY))
    texts = legend_texts(ax)
    assert all(any(text.startswith(name) for text in texts) for name in MANY)
    looks = {
        (line.get_color(), str(line.get_linestyle()), line._dash_pattern[1] and tuple(line._dash_pattern[1]))  # pyright: ignore[reportAttributeAccessIssue]
        for line in ax.get_lines()
        if len(line.get_xdata()) and line.get_linestyle() != "None"  # pyright: ignore[reportArgumentType]
    }
    assert len(looks) >= len(MANY)


@pytest.mark.parametrize("plot", ["metric_against_num_obs", "prior_against_num_obs"])
def test_mappings_are_checked(plot: str) -> None:
    draw = getattr(plots, plot)
    one, other = results(), results(names=(SECOND, FIRST))
    with pytest.raises(ValueError, match="evaluations must hold at least one evaluation; received an empty mapping"):
        draw({})
    with pytest.raises(TypeError, match="evaluations must map numbers of observations to evaluations; received list"):
        draw([one])
    with pytest.raises(ValueError, match="number of observations, must be at least 1; received 0"):
        draw({0: one})
    with pytest.raises(TypeError, match="number of observations, must be a whole number"):
        draw({"8": one})
    with pytest.raises(ValueError, match=r"the same two models in the same order; received negative binomial over"):
        draw({8: one, 16: other})
