"""Figures S13, S22 and S23: Z-values of every data source under every model, by exact and by trained posteriors.

The cases are the paper's (Section S5.2): one data set of each model, and one of outliers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from deepbf import plots
from deepbf.criticism import PredictiveSource, ZValues, fit_posterior, z_values
from deepbf.plots.criticism_plot import PANEL_SIZE
from deepbf_studies import problems
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.paper.target import Drawing, Plan, Results, Target, paragraph
from deepbf_studies.problems.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT, FLOW, GAN = "exact", "flow", "gan"
SAMPLERS = (EXACT, FLOW, GAN)
# The paper's outliers, as one value of all entries.
OUTLIERS = {"data-1-i": 18.0, "data-1-ii": 18.0, "data-2": 10.0, "data-3": 2.5}
NUM_OBS = 128
OBSERVED_SEED = 1_000_003
SEED = 1
IN_WORDS = {EXACT: "exact posterior", FLOW: "flow", GAN: "GAN"}
# By model that predicts, by sampler, by data source. Models without parameters have the exact one alone.
Panels = dict[str, dict[str, dict[str, ZValues]]]


@dataclass(frozen=True)
class Settings:
    """Draws of Z, and how long each kind of posterior is trained, for which studies."""

    num_replicates: int
    num_steps: Mapping[str, int]
    trained: tuple[str, ...] = ("data-1-i", "data-1-ii", "data-2", "data-3")


SCALES = {
    # A sampler takes ten seconds to compile: here only that of the one study with a single posterior is trained.
    "quick": Settings(600, {FLOW: 600}, ("data-3",)),
    "standard": Settings(3000, {FLOW: 20_000, GAN: 20_000}),
    "paper": Settings(3000, {FLOW: 100_000, GAN: 400_000}),
}


def observed_data(study: Study) -> dict[str, NDArray[Any]]:
    """Return the criticised data sets by name: one simulated from each model, by its name, then one of outliers.

    All observations of the last have one value, which is the paper's.
    """
    observed = {model.name: model.simulate(1, OBSERVED_SEED).data[0] for model in study.models}
    value = OUTLIERS[study.name]
    return {**observed, f"outliers, all {value:g}": np.full(study.num_obs, value)}


def posterior_of(study: Study, model: int, sampler: str, **options: Any) -> PredictiveSource:
    """Return a sampler of the posterior of one model: the exact one, or one trained with options of `fit_posterior`.

    A model without parameters has nothing to learn: its predictions are its simulations.
    """
    if study.exact_posteriors is None:
        raise ValueError(f"study must come with exact posteriors; received {study.name}. Pass one of {list(OUTLIERS)}.")
    chosen = study.models[model]
    if sampler == EXACT or chosen.prior is None:
        return study.exact_posteriors[model]
    return fit_posterior(chosen, structure="exchangeable", method=sampler, progress=False, **options)


@step_function("criticism_panels.criticise_model")
def criticise_model(
    *, study: str, num_obs: int, model: int, sampler: str, num_steps: int | None, num_replicates: int, seed: int
) -> xr.Dataset:
    """Return draws of Z of one model's predictions, for every data source, by one sampler of its posterior.

    A step: at most one training run. `model` is the place of the model in its study.
    """
    loaded = problems.load(study, num_obs=num_obs)
    posterior = posterior_of(loaded, model, sampler, **({} if sampler == EXACT else {"steps": num_steps, "seed": seed}))
    found = {
        source: z_values(posterior, data, num_replicates=num_replicates, seed=seed)
        for source, data in observed_data(loaded).items()
    }
    any_of_them = next(iter(found.values()))
    return xr.Dataset(
        {
            "z": (("source", "replicate"), np.stack([values.z for values in found.values()])),
            "num_unconverged": (("source",), [values.num_unconverged for values in found.values()]),
        },
        coords={"source": list(found)},
        attrs={
            "model": any_of_them.model,
            "classifier": any_of_them.classifier,
            "num_obs": num_obs,
            "title": loaded.title,
        },
    )


def z_values_of(result: xr.Dataset) -> dict[str, ZValues]:
    """Return the Z-values by data source, as they were when they were kept."""
    return {
        str(source): ZValues(
            z=result["z"].sel(source=source).values,
            model=str(result.attrs["model"]),
            num_obs=int(result.attrs["num_obs"]),
            classifier=str(result.attrs["classifier"]),
            refit=True,
            num_unconverged=int(result["num_unconverged"].sel(source=source)),
        )
        for source in result["source"].values
    }


def plan(scale: str, *, names: tuple[str, ...]) -> Plan:
    """Return one step for each study, model and sampler."""
    chosen = SCALES[scale]
    steps: dict[tuple[str, int, str], Step] = {}
    for name in names:
        study = problems.load(name, num_obs=NUM_OBS)
        trained = chosen.num_steps if name in chosen.trained else {}
        for model, one in enumerate(study.models):
            # Without parameters there is nothing to train.
            for sampler in [EXACT, *(() if one.prior is None else trained)]:
                settings: dict[str, Any] = {
                    "study": name,
                    "num_obs": NUM_OBS,
                    "model": model,
                    "sampler": sampler,
                    "num_steps": trained.get(sampler),
                    "num_replicates": chosen.num_replicates,
                    "seed": SEED,
                }
                steps[name, model, sampler] = Step(criticise_model, settings)
    return steps


def draw(results: Results) -> Drawing:
    """Return a table and a figure for each study, the first of which is the paper's."""
    by_study: dict[str, Panels] = {}
    titles: dict[str, str] = {}
    for (study, _, sampler), result in results.items():
        model = by_study.setdefault(study, {}).setdefault(str(result.attrs["model"]), {})
        model[sampler] = z_values_of(result)
        titles[study] = str(result.attrs["title"])
    parts = [_explanation(next(iter(results.values())).sizes["replicate"])]
    parts += [_written_study(titles[study], panels) for study, panels in by_study.items()]
    figures = {"" if place == 0 else study: _figure_of(by_study[study]) for place, study in enumerate(by_study)}
    numbers = {
        study: [
            _numbers_of(sampler, source, values)
            for by_sampler in panels.values()
            for sampler, by_source in by_sampler.items()
            for source, values in by_source.items()
        ]
        for study, panels in by_study.items()
    }
    return Drawing("\n\n".join(parts), figures, numbers)


def _numbers_of(sampler: str, source: str, values: ZValues) -> dict[str, Any]:
    """Return one case as plain data, without the draws."""
    case = {name: value for name, value in values.to_dict().items() if name != "z"}
    return {"sampler": sampler, "source": source, **case}


def _explanation(num_replicates: int) -> str:
    """Return what is shown, and what the paper found."""
    shown = (
        "Z: the mean probability of being observed that a classifier gives to fresh predictions of a model, given the",
        f"observed data; {num_replicates:,} draws, n = {NUM_OBS}, one fixed data set of each model and one of",
        "outliers. At 1/2 predictions are not told from the observed data. A model's data set is drawn with its",
        "parameters from the prior: what the other model makes of it depends on that draw.",
    )
    found = (
        "The paper, on Data 1: predictions of the model that made the data have Z about 1/2; those of the other model",
        "barely include 1/2 between the 2.5% and the 97.5% quantile; for outliers Z is far from 1/2, whichever model",
        "predicts.",
    )
    return f"{paragraph(*shown)}\n{paragraph(*found)}"


def _written_study(title: str, panels: Panels) -> str:
    """Return the table of one study, samplers side by side, and whether it agrees with the paper."""
    # All that any of the models has.
    samplers = list(dict.fromkeys(sampler for by_sampler in panels.values() for sampler in by_sampler))
    widest = max(len(name) for by_sampler in panels.values() for name in [*panels, *next(iter(by_sampler.values()))])
    heads = f"{'data':<{widest}}  {'predictions':<{widest}}"
    lines = [title, "", f"  {'':<{2 * widest + 2}}" + "".join(f"   {IN_WORDS[name]:^26}" for name in samplers)]
    lines += [f"  {heads}" + f"   {'2.5%':>6}{'mean':>7}{'97.5%':>7} {'1/2?':>5}" * len(samplers)]
    for source in next(iter(next(iter(panels.values())).values())):
        for model, by_sampler in panels.items():
            cells = "".join(f"   {_cells_of(by_sampler.get(name, by_sampler[EXACT])[source])}" for name in samplers)
            lines.append(f"  {source:<{widest}}  {model:<{widest}}{cells}")
    lines.append("")
    for name in samplers:
        lines.append(paragraph(f"{IN_WORDS[name][0].upper()}{IN_WORDS[name][1:]}:", finding(panels, name), indent=2))
    return "\n".join(lines)


def _cells_of(values: ZValues) -> str:
    """Return the quantiles and the mean of one case, and whether 1/2 lies inside."""
    inside = "in" if values.covers_half else "out"
    return f"{values.low:>6.3f}{values.mean:>7.3f}{values.high:>7.3f} {inside:>5}"


def finding(panels: Panels, sampler: str) -> str:
    """Return in how many cases of each kind 1/2 lies inside, and whether the paper says so too."""
    kinds: dict[str, list[bool]] = {"same": [], "other": [], "outliers": []}
    for model, by_sampler in panels.items():
        for source, values in by_sampler.get(sampler, by_sampler[EXACT]).items():
            kind = "same" if source == model else "other" if source in panels else "outliers"
            kinds[kind].append(values.covers_half)
    same, other, outliers = kinds.values()
    agrees = "as in the paper" if all(same) and not any(outliers) else "unlike the paper"
    own = f"1/2 lies inside for {sum(same)} of {len(same)} models at their own data"
    far = f"{sum(outliers)} of {len(outliers)} at outliers"
    others = f"for {sum(other)} of {len(other)} at the other model's data (the paper, on Data 1: barely, in both)"
    return f"{own} and {far}, {agrees}; {others}."


def _figure_of(panels: Panels) -> Figure:
    """Return the panels of one study: a row for each model and sampler, a column for each data source."""
    from matplotlib.figure import Figure

    rows, models = {}, []
    for model, by_sampler in panels.items():
        for sampler, by_source in by_sampler.items():
            label = f"{model}, {IN_WORDS[sampler]}" if len(by_sampler) > 1 else model
            rows[label] = {f"data: {source}": values for source, values in by_source.items()}
            models.append(model)
    num_columns = len(next(iter(rows.values())))
    size = (PANEL_SIZE[0] * num_columns + 0.6, PANEL_SIZE[1] * len(rows) + 0.6)
    figure = plots.z_values_grid(rows, Figure(figsize=size, layout="constrained"))
    grid = np.array(figure.axes).reshape(len(rows), num_columns)
    # The same model at the same data on the same scale, so that samplers can be compared by eye.
    for model in panels:
        for same in grid[np.array(models) == model].T:
            ends = [axes.get_xlim() for axes in same]
            for axes in same:
                axes.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
    return figure


def _target(name: str, paper: str, title: str, *names: str) -> Target:
    return Target(name, title, paper, partial(plan, names=names), draw)


TARGETS = (
    _target(
        "figure-s13", "Figure S13", "Model criticism on Data 1, counts: Z-values by panel", "data-1-ii", "data-1-i"
    ),
    _target("figure-s22", "Figure S22", "Model criticism on Data 2, mixture or normal: Z-values by panel", "data-2"),
    _target("figure-s23", "Figure S23", "Model criticism on Data 3, waiting times: Z-values by panel", "data-3"),
)
