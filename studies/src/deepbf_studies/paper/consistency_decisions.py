"""Model-selection consistency in practice: how often the right model is chosen, against the number of observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf.evaluation.tail_areas import binomial_interval
from deepbf.plots.axes import show_num_obs
from deepbf_studies import problems
from deepbf_studies.paper.consistency_simulations import LineFit, fit_line
from deepbf_studies.paper.methods import OURS, train
from deepbf_studies.paper.plots import Decay, decay
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.paper.target import Drawing, Plan, Results, Target, paragraph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

STUDIES = ("data-1-i", "data-1-ii", "data-3")
TEST_SEED = 1_000_003
BOTH = "both"
# Exact Bayes factors of small counts may be 1, and their logarithms not quite 0.
ROUNDING = 1e-9
# Below this many observations rates have not settled; with fewer wrong decisions a logarithm is noise.
FIRST_FITTED = 8
FEWEST_WRONG = 5
# Inches: a panel with its legend.
PANEL = (6.4, 3.3)

# What is known of the wrong decisions of exact Bayes factors as n grows.
EXPECTED = {
    "data-1-i": paragraph(
        "Both models are the same where all counts are 0. At a mean of m counts, it takes some 1 / m^2 observations to",
        "tell their shapes apart, so wrong decisions come from m below about 1 / sqrt(n). There the Gamma(4, 4) prior",
        "of Poisson has a mass of order n^-2, and the two priors alone favour the negative binomial by a factor of",
        "order n, so that both slopes go to -2, up to powers of log n: slowly, they are about -1.5 at n = 2,000.",
        indent=2,
    ),
    "data-1-ii": paragraph(
        "As for Data 1 (i), but both priors have a positive density at a mean of 0: a mass of order n^-1/2 where",
        "nothing tells the models apart, so that both slopes go to -1/2. Zeros alone have a Bayes factor of exactly 1,",
        "where one decision is as good as the other: there the estimate's and the exact one differ.",
        indent=2,
    ),
    "data-3": paragraph(
        "Nested models. If rate 3 is true, the Bayes factor favours the unknown rate when the estimated rate is off by",
        "sqrt(log n + 3) standard errors or more, a probability of order (n log n)^-1/2. If the rate is unknown, the",
        "prior mass within as many standard errors of 3 is lost, which is of order (log n / n)^1/2. Both slopes go to",
        "-1/2, slowly: by the closed form, the first is -0.78 from n = 32 to 64, -0.58 from 512 to 1,024 and -0.54 at",
        "16,384; the second -0.47, -0.45 and -0.46.",
        indent=2,
    ),
}


@dataclass(frozen=True)
class Settings:
    """One training run for each study, and the numbers of observations at which it is asked."""

    studies: tuple[str, ...]
    log2_num_obs: tuple[int, ...]
    num_steps: int
    num_datasets: int


SCALES = {
    "quick": Settings(("data-3",), (1, 2, 3, 4, 5, 6), 300, 4000),
    "standard": Settings(STUDIES, tuple(range(1, 11)), 4000, 10_000),
    "paper": Settings(STUDIES, tuple(range(1, 11)), 100_000, 20_000),
}


@step_function("consistency_decisions.decide")
def decide(
    *, study: str, numbers: list[int], num_steps: int, num_datasets: int, seed: int, test_seed: int
) -> xr.Dataset:
    """Return how often one estimator for all numbers of observations, and the exact Bayes factor, decide wrongly.

    They choose the first model at a log Bayes factor above 0, else the second. Both see the same data sets.
    """
    loaded = problems.load(study, num_obs=numbers[-1])
    bf = train(loaded.models, "exchangeable", OURS, num_steps, seed, num_obs=(numbers[0], numbers[-1]))
    wrong = np.zeros((2, len(numbers), 2), dtype=np.int32)
    differing = np.zeros((len(numbers), 2), dtype=np.int32)
    for place, number in enumerate(numbers):
        for k, model in enumerate(loaded.models):
            data = model.simulate(num_datasets, test_seed + number, number).data
            log_bf = np.stack([bf.log_bf(data), loaded.exact_log_bf(data)])
            chosen = np.where(log_bf > ROUNDING, 0, 1)
            wrong[:, place, k] = np.sum(chosen != k, axis=1)
            differing[place, k] = np.sum(chosen[0] != chosen[1])
    return xr.Dataset(
        {
            "wrong": (("estimator", "num_obs", "model"), wrong),
            "differing": (("num_obs", "model"), differing),
        },
        coords={
            "estimator": [OURS, EXACT],
            "num_obs": numbers,
            "model": [model.name for model in loaded.models],
        },
        attrs={"num_datasets": num_datasets, "num_steps": num_steps, "title": loaded.title},
    )


def plan(scale: str) -> Plan:
    """Return one training run for each study."""
    chosen = SCALES[scale]
    return {
        study: Step(
            decide,
            {
                "study": study,
                "numbers": [2**power for power in chosen.log2_num_obs],
                "num_steps": chosen.num_steps,
                "num_datasets": chosen.num_datasets,
                "seed": 1,
                "test_seed": TEST_SEED,
            },
            revision=2,
        )
        for study in chosen.studies
    }


@dataclass(frozen=True)
class WrongShares:
    """Shares of wrong decisions of one estimator against the number of observations, with 95% intervals."""

    num_obs: Floats
    num_wrong: NDArray[np.integer[Any]]
    num_datasets: int

    @property
    def share(self) -> Floats:
        """The share of data sets decided wrongly."""
        return self.num_wrong / self.num_datasets

    @property
    def interval(self) -> tuple[Floats, Floats]:
        """Its 95% interval, by Clopper and Pearson."""
        return binomial_interval(self.num_wrong, np.full_like(self.num_wrong, self.num_datasets))

    @property
    def fitted(self) -> NDArray[np.bool_]:
        """Which numbers of observations a line is fitted to."""
        return (self.num_obs >= FIRST_FITTED) & (self.num_wrong >= FEWEST_WRONG)

    def line(self, x: Floats) -> LineFit | None:
        """Return the line of the logarithm of the share against `x`; None with fewer than three points.

        Counts are binomial, so the logarithm of a share has the variance (1 - share) / count.
        """
        used = self.fitted
        if used.sum() < 3:
            return None
        share, count = self.share[used], self.num_wrong[used]
        return fit_line(x[used], np.log(share), (1 - share) / count)

    @property
    def power_law(self) -> LineFit | None:
        """The line against log n: a power law."""
        return self.line(np.log(self.num_obs))

    @property
    def exponential(self) -> LineFit | None:
        """The line against n: an exponential."""
        return self.line(self.num_obs)

    def drawn(self) -> Decay:
        """Return it for drawing, with its power law."""
        line = self.power_law
        if line is None:
            return Decay(self.num_obs, self.share, *self.interval, None, "too few wrong for a slope")
        ends = self.num_obs[self.fitted][[0, -1]]
        fitted = (ends, np.exp(line.at(np.log(ends))))
        return Decay(self.num_obs, self.share, *self.interval, fitted, f"slope {line}")


def _shares_of(result: xr.Dataset) -> dict[str, dict[str, WrongShares]]:
    """Return wrong shares by true model, then both together, and by estimator."""
    num_obs = result["num_obs"].values.astype(np.float64)
    num_datasets = int(result.attrs["num_datasets"])
    found: dict[str, dict[str, WrongShares]] = {}
    for group in [*map(str, result["model"].values), BOTH]:
        of_group = result["wrong"].sum("model") if group == BOTH else result["wrong"].sel(model=group)
        total = num_datasets * (2 if group == BOTH else 1)
        found[group] = {
            str(name): WrongShares(num_obs, of_group.sel(estimator=name).values, total)
            for name in result["estimator"].values
        }
    return found


def draw(results: Results) -> Drawing:
    """Return tables of right decisions and slopes of the wrong ones, and both as pictures."""
    shares = {study: _shares_of(result) for study, result in results.items()}
    first = next(iter(results.values()))
    parts = [_explanation(int(first.attrs["num_steps"]), int(first.attrs["num_datasets"]), first["num_obs"].values)]
    parts += [_written_study(study, results[study], shares[study]) for study in results]
    titles = {study: str(result.attrs["title"]).split(":")[0] for study, result in results.items()}
    figures = {"": _right_figure(shares, titles), "wrong": _wrong_figure(shares, titles)}
    numbers = {
        study: {group: {name: _numbers_of(one) for name, one in by_name.items()} for group, by_name in by_group.items()}
        for study, by_group in shares.items()
    }
    return Drawing("\n\n".join(parts), figures, numbers)


def _numbers_of(shares: WrongShares) -> dict[str, Any]:
    """Return counts and slopes as plain data."""
    line = shares.power_law
    return {
        "num_obs": shares.num_obs.tolist(),
        "num_wrong": shares.num_wrong.tolist(),
        "num_datasets": shares.num_datasets,
        "slope": None if line is None else line.slope,
        "slope_error": None if line is None else line.error,
    }


def _explanation(num_steps: int, num_datasets: int, num_obs: Any) -> str:
    """Return what is measured, and how."""
    asked = (
        f"One estimator a study for every n from {num_obs[0]} to {num_obs[-1]:,}, {num_steps:,} steps, against the",
        f"exact Bayes factor, at the same {num_datasets:,} fresh data sets of each model at each n. They decide for",
        "the first model at a log Bayes factor above 0, else for the second. Intervals: 95%, binomial.",
    )
    slopes = (
        "Slope: of the logarithm of the share of wrong decisions against log n, by weighted least squares, ± its",
        f"standard error, at n of {FIRST_FITTED} or more with at least {FEWEST_WRONG} wrong decisions. It is a power",
        "law if the priors put mass where the two models are as good as the same; were the models apart everywhere,",
        "the share would fall exponentially, a line against n. The smaller misfit, to the exact decisions, says which",
        "it is.",
    )
    return f"{paragraph(*asked)}\n{paragraph(*slopes)}"


def _written_study(study: str, result: xr.Dataset, shares: Mapping[str, Mapping[str, WrongShares]]) -> str:
    """Return the tables of one study, and what is known of its slopes."""
    heads = {group: "both together" if group == BOTH else f"if {group} is true" for group in shares}
    width = max(33, *map(len, heads.values()))
    differing = result["differing"].sum("model").values / (2 * int(result.attrs["num_datasets"]))
    lines = [str(result.attrs["title"]), "", "  right decisions, and decisions that differ from the exact ones"]
    # Those of both together are means of the two.
    alone = [group for group in shares if group != BOTH]
    lines.append(f"  {'':>6}" + "".join(f"  {heads[group]:>{width}}" for group in alone))
    lines.append(f"  {'n':>6}" + f"  {f'{OURS} (95% interval){EXACT:>10}':>{width}}" * len(alone) + f"{'differ':>9}")
    for place, number in enumerate(result["num_obs"].values):
        row = "".join(f"  {_cells(shares[group], place):>{width}}" for group in alone)
        lines.append(f"  {number:>6}{row}{differing[place]:>9.2%}")
    lines += [
        "",
        f"  {'slopes of wrong decisions':<{width}}{OURS:>15}{EXACT:>15}   misfit of a power law, an exponential",
    ]
    for group, by_name in shares.items():
        slopes = "".join(f"{slope_in_words(by_name[name]):>15}" for name in (OURS, EXACT))
        lines.append(f"  {heads[group]:<{width}}{slopes}   {_misfits_in_words(by_name[EXACT])}")
    return "\n".join([*lines, "", EXPECTED[study]])


def _cells(by_name: Mapping[str, WrongShares], place: int) -> str:
    """Return the share of right decisions, its interval, and that of the exact Bayes factor."""
    ours, exact = by_name[OURS], by_name[EXACT]
    low, high = (1 - end[place] for end in reversed(ours.interval))
    return f"{1 - ours.share[place]:.4f} ({low:.3f} to {high:.3f}){1 - exact.share[place]:>10.4f}"


def slope_in_words(shares: WrongShares) -> str:
    """Return the slope with its error."""
    return "too few" if shares.power_law is None else str(shares.power_law)


def _misfits_in_words(shares: WrongShares) -> str:
    """Return how well a power law and an exponential describe the shares."""
    if shares.power_law is None or shares.exponential is None:
        return "too few"
    return f"{shares.power_law.misfit:.0f}, {shares.exponential.misfit:.0f} ({shares.fitted.sum()} points)"


def _right_figure(shares: Mapping[str, Mapping[str, Mapping[str, WrongShares]]], titles: Mapping[str, str]) -> Figure:
    """Return the shares of right decisions: studies down, true models and both together across."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * 3, 3.1 * len(shares) + 0.3), layout="constrained")
    panels = figure.subplots(len(shares), 3, squeeze=False, sharey="row")
    handles: list[Any] = []
    for (study, by_group), row in zip(shares.items(), panels, strict=True):
        for (group, by_name), axes in zip(by_group.items(), row, strict=True):
            handles = [_draw_right(axes, name, one) for name, one in by_name.items()]
            show_num_obs(axes, [int(n) for n in next(iter(by_name.values())).num_obs])
            axes.tick_params(labelsize="small")
            axes.set_title(
                f"{titles[study]}: " + (f"{group} is true" if group != BOTH else "both models together"),
                fontsize="medium",
            )
        row[0].set_ylabel("share of right decisions")
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    return figure


def _draw_right(axes: Any, name: str, shares: WrongShares) -> Any:
    """Draw one estimator's shares of right decisions, with intervals."""
    from deepbf.plots.num_obs_plot import draw_line, side_by_side
    from deepbf.plots.styles import estimator_styles

    names = [OURS, EXACT]
    x = side_by_side(shares.num_obs.tolist(), names.index(name), len(names))
    low, high = shares.interval
    errors = np.stack([high - shares.share, shares.share - low])
    return draw_line(axes, x, 1 - shares.share, errors, name, estimator_styles(names)[name])[0]


def _wrong_figure(shares: Mapping[str, Mapping[str, Mapping[str, WrongShares]]], titles: Mapping[str, str]) -> Figure:
    """Return the shares of wrong decisions with their slopes: studies down, true models across."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PANEL[0] * 2, PANEL[1] * len(shares)), layout="constrained")
    panels = figure.subplots(len(shares), 2, squeeze=False)
    for (study, by_group), row in zip(shares.items(), panels, strict=True):
        groups = [group for group in by_group if group != BOTH]
        for group, axes in zip(groups, row, strict=True):
            curves = {name: one.drawn() for name, one in by_group[group].items()}
            decay(curves, axes, x_label="number of observations, n", y_label="share of wrong decisions")
            axes.set_title(f"{titles[study]}: {group} is true", fontsize="medium")
    return figure


TARGETS = (
    Target(
        name="consistency-decisions",
        title="Right decisions against the number of observations, with the slopes of the wrong ones",
        paper="",
        plan=plan,
        draw=draw,
    ),
)
