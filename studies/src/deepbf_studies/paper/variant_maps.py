"""Figures 2, S19 and S21: partial, posterior and intrinsic Bayes factors of two observations, exact and estimated.

The paper's way takes three networks, for one, two and four observations; ours is one fit for every number from 1 to 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf.plots import scatter
from deepbf.plots.axes import wrapped
from deepbf.variants import fit_variants
from deepbf_studies.paper.heat_maps import (
    ABOUT_THE_TABLE,
    as_numbers,
    error_table,
    has_no_log,
    map_errors,
    names_of,
    odds_in_single_precision,
    planes_of,
    shown_in,
)
from deepbf_studies.paper.methods import FNN, OURS
from deepbf_studies.paper.plots import HeatMapRow, heat_map_grid
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.paper.target import Drawing, Results, Target
from deepbf_studies.paper.toy_answers import (
    BOTH,
    FIRST,
    NARROW,
    NUM_SCATTERED,
    PARTS,
    SCALES,
    SECOND,
    STUDIES,
    TITLES,
    TWICE,
    WIDE,
    Floats,
    Planes,
    Settings,
    answers_of,
    asked_at,
    exact_step,
    first_of_each,
    network_step,
    simulated,
)
from deepbf_studies.problems import load

PARTIAL, POSTERIOR, GEOMETRIC, ARITHMETIC = "partial", "posterior", "geometric", "arithmetic"
VARIANTS = {
    PARTIAL: "partial: second given first",
    POSTERIOR: "posterior: both given both",
    GEOMETRIC: "geometric intrinsic",
    ARITHMETIC: "arithmetic intrinsic",
}
METHODS = (FNN, OURS)
# Of the paper's 3,000 data sets, those whose estimate was infinite.
PAPER_SHARE_INFINITE = {PARTIAL: 0.0035, POSTERIOR: 0.009, GEOMETRIC: 0.0023}
# Inches a scatter plot, and of the legend above.
PANEL_SIZE, LEGEND_HEIGHT = 2.9, 0.9


def plan(scale: str) -> dict[Any, Step]:
    """Return, for each study, the exact answers, the paper's three networks, and our one fit."""
    settings = SCALES[scale]
    steps: dict[Any, Step] = {}
    for study in STUDIES:
        steps[study, EXACT] = exact_step(study, settings)
        for num_obs in PARTS:
            steps[study, FNN, num_obs] = network_step(study, settings, FNN, num_obs)
        steps[study, OURS] = variants_step(study, settings)
    return steps


def variants_step(study: str, settings: Settings) -> Step:
    """Return the step of our one fit."""
    return Step(
        variant_answers,
        {
            "study": study,
            "num_steps": settings.our_range_steps,
            "seed": settings.seed,
            **asked_at(study, settings),
        },
    )


@step_function("variant_maps.variant_answers")
def variant_answers(
    study: str, num_steps: int, seed: int, planes: Planes, num_datasets: int, sample_seed: int
) -> xr.Dataset:
    """Return what one fit for 1 to 4 observations says of all variants, over planes and at simulated data sets.

    A step, laid out as `toy_answers.answers_of` does, with the variants as parts.
    """
    loaded = load(study, num_obs=2)
    variants = fit_variants(loaded.models, 2, 1, steps=num_steps, seed=seed, progress=False)

    def ask(pairs: Floats) -> dict[str, Floats]:
        found = {
            PARTIAL: variants.partial(pairs, 1),
            POSTERIOR: variants.posterior(pairs),
            GEOMETRIC: variants.geometric(pairs, 1),
            ARITHMETIC: variants.arithmetic(pairs, 1),
        }
        return {name: one.log_bf for name, one in found.items()}

    answers = answers_of(ask, planes, simulated(loaded, num_datasets, sample_seed))
    answers.attrs["training_seconds"] = variants.estimator.record.seconds
    return answers


def variants_of(parts: xr.Dataset) -> xr.Dataset:
    """Return log Bayes factors of all variants from those of the parts of two observations, x and y.

    With B the log Bayes factor of some observations: partial, B(x, y) - B(x); posterior, B(x, y, x, y) - B(x, y);
    geometric, B(x, y) - (B(x) + B(y)) / 2; arithmetic, B(x, y) + log((exp(-B(x)) + exp(-B(y))) / 2).
    """
    both, first, second, twice = (parts.sel(part=part, drop=True) for part in (BOTH, FIRST, SECOND, TWICE))
    inverse = xr.apply_ufunc(np.logaddexp, -first, -second)
    found = {
        PARTIAL: both - first,
        POSTERIOR: twice - both,
        GEOMETRIC: both - (first + second) / 2,
        ARITHMETIC: both + inverse - float(np.log(2)),
    }
    return _joined([one.expand_dims(part=[name]) for name, one in found.items()])


def _joined(answers: Sequence[xr.Dataset]) -> xr.Dataset:
    """Return answers about several parts as one."""
    return cast("xr.Dataset", xr.concat(list(answers), dim="part"))


def odds_of_variants(parts: xr.Dataset) -> dict[str, NDArray[np.float64]]:
    """Return the variants at the data sets as products of odds in single precision, the way that overflows.

    By the same formulas as `variants_of`, but on Bayes factors D / (1 - D) whose probability D was formed first.
    """
    both, first, second, twice = (
        odds_in_single_precision(np.asarray(parts["samples"].sel(part=part))) for part in (BOTH, FIRST, SECOND, TWICE)
    )
    with np.errstate(all="ignore"):
        return {
            PARTIAL: both * (1 / first),
            POSTERIOR: twice * (1 / both),
            GEOMETRIC: np.sqrt((both * (1 / first)) * (both * (1 / second))),
            ARITHMETIC: (both * (1 / first) + both * (1 / second)) / 2,
        }


def _parts_of_paper(results: Results, study: str) -> xr.Dataset:
    """Return what the paper's networks say of all parts, with the seconds that training all of them took."""
    answers = [results[study, FNN, num_obs] for num_obs in PARTS]
    asked = [*planes_of(answers[0]), "samples"]
    parts = _joined([one[asked] for one in answers])
    parts.attrs["training_seconds"] = sum(float(one.attrs["training_seconds"]) for one in answers)
    return parts


def _variants_by_name(results: Results, study: str) -> dict[str, xr.Dataset]:
    """Return all variants: exact, by the paper's networks, by ours."""
    exact = results[study, EXACT]
    paper = _parts_of_paper(results, study)
    found = {EXACT: variants_of(exact[[NARROW, WIDE, "samples"]]), FNN: variants_of(paper), OURS: results[study, OURS]}
    found[FNN].attrs.update(paper.attrs)
    return found


def _draw_maps(results: Results, *, plane: str) -> Drawing:
    """Return one figure for each study: a row for each variant, with the exact map and the estimated ones."""
    figures = {}
    for study in STUDIES:
        by_name = _variants_by_name(results, study)
        values = np.asarray(results[study, EXACT][f"{plane}_first"])
        names = names_of(results[study, EXACT])
        rows = {}
        for variant, words in VARIANTS.items():
            maps = {name: np.asarray(answers[plane].sel(part=variant)) for name, answers in by_name.items()}
            rows[words] = HeatMapRow(values, values, maps, names)
        figures[_figure_name(study)] = heat_map_grid(rows, title=TITLES[study])
    text, numbers = _tables(results)
    return Drawing(text, figures, numbers)


def _figure_name(study: str) -> str:
    """Return what is added to a target's name for the figure of a study."""
    return TITLES[study].lower().replace(" ", "-")


def _draw_scatters(results: Results) -> Drawing:
    """Return one figure for each study with estimated against exact variants, and the shares that are not finite."""
    figures = {_figure_name(study): _scatter_grid(results, study) for study in STUDIES}
    lines, shares = [], {}
    for study in STUDIES:
        shares[study] = _shares_not_finite(results, study)
        lines.append(f"{TITLES[study]}: not finite, of {2 * NUM_SCATTERED:,} simulated data sets")
        lines.append(f"{'':<30}{FNN:>12}{OURS:>12}{f'{FNN} by D / (1 - D), float32':>36}")
        for variant, words in VARIANTS.items():
            found = shares[study][variant]
            lines.append(f"  {words:<28}{found[FNN]:>12.2%}{found[OURS]:>12.2%}{found['as probabilities']:>36.2%}")
    paper = ", ".join(f"{share:.2%} of {variant}" for variant, share in PAPER_SHARE_INFINITE.items())
    about = f"In the paper, of 3,000 data sets: {paper} estimates were infinite."
    text, numbers = _tables(results)
    return Drawing(
        "\n\n".join(["\n".join(lines), about, text]), figures, {"errors": numbers, "share not finite": shares}
    )


def _scatter_grid(results: Results, study: str) -> Figure:
    """Return estimated against exact variants: a row for each method, a column for each variant."""
    by_name = _variants_by_name(results, study)
    size = (PANEL_SIZE * len(VARIANTS), PANEL_SIZE * len(METHODS) + LEGEND_HEIGHT)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(METHODS), len(VARIANTS), squeeze=False)
    names = names_of(results[study, EXACT])
    for method, line in zip(METHODS, panels, strict=True):
        for variant, axes in zip(VARIANTS, line, strict=True):
            pair = {
                name: first_of_each(np.asarray(by_name[name]["samples"].sel(part=variant)), NUM_SCATTERED)
                for name in (method, EXACT)
            }
            scatter(_scatter_results(pair, names), ax=axes)
            axes.tick_params(labelsize="small")
            axes.set(xlabel="", ylabel="")
        line[0].set_ylabel(f"{method}\n\nestimated")
    for words, top, bottom in zip(VARIANTS.values(), panels[0], panels[-1], strict=True):
        top.set_title(wrapped(words, 30), fontsize="medium")
        bottom.set_xlabel("exact")
    figure.legend(
        handles=_shared_handles(list(panels.ravel())),
        title=f"{TITLES[study]}: log Bayes factors (natural log), {names[0]} over {names[1]}",
        title_fontsize="large",
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize="small",
    )
    for axes in panels.ravel():
        axes.get_legend().remove()
    return figure


def _scatter_results(log_bf: Mapping[str, Floats], names: tuple[str, str]) -> xr.Dataset:
    """Return log Bayes factors by estimator as the plots of evaluations read them, half of the data of either model."""
    number = len(log_bf[EXACT])
    return xr.Dataset(
        {
            "log_bf": (("estimator", "dataset"), np.stack(list(log_bf.values()))),
            "source": ("dataset", np.repeat(names, number // 2)),
            "prior_prob": ("model", [0.5, 0.5]),
        },
        coords={"estimator": list(log_bf)},
        attrs={"first": names[0], "second": names[1]},
    )


def _shares_not_finite(results: Results, study: str) -> dict[str, dict[str, float]]:
    """Return the share of the scattered data sets whose variant is not finite, ours and by forming probabilities."""
    by_name = _variants_by_name(results, study)
    odds = odds_of_variants(_parts_of_paper(results, study))
    shares: dict[str, dict[str, float]] = {}
    for variant in VARIANTS:
        shares[variant] = {}
        for method in METHODS:
            found = first_of_each(np.asarray(by_name[method]["samples"].sel(part=variant)), NUM_SCATTERED)
            shares[variant][method] = float(np.mean(~np.isfinite(found)))
        shares[variant]["as probabilities"] = float(np.mean(has_no_log(first_of_each(odds[variant], NUM_SCATTERED))))
    return shares


def _tables(results: Results) -> tuple[str, dict[str, Any]]:
    """Return a table of errors for each study and variant, and the same as numbers."""
    blocks: list[str] = []
    numbers: dict[str, Any] = {}
    for study in STUDIES:
        exact = results[study, EXACT]
        by_name, inside = _variants_by_name(results, study), shown_in(exact, WIDE)
        first, second = names_of(exact)
        numbers[study] = {}
        for variant, words in VARIANTS.items():
            rows = {}
            for method in METHODS:
                answers = by_name[method]
                found = map_errors(answers.sel(part=variant), by_name[EXACT].sel(part=variant), inside)
                rows[method] = found, float(answers.attrs["training_seconds"])
            blocks.append(f"{TITLES[study]}, n = 2, {words}: {first} over {second}\n{error_table(rows)}")
            numbers[study][variant] = {name: as_numbers(found) for name, (found, _) in rows.items()}
    return "\n\n".join([*blocks, ABOUT_THE_TABLE]), numbers


def _shared_handles(panels: Sequence[Axes]) -> list[Any]:
    """Return every entry of the panels' legends once; how many points stand at the edge differs between panels."""
    found: dict[str, Any] = {}
    for axes in panels:
        legend = axes.get_legend()
        if legend is None:
            continue
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            words = text.get_text().replace("\n", " ")
            words = "at the edge: beyond the axes" if words.startswith("at the edge") else words
            if handle is not None:
                handle.set_label(words)
                found.setdefault(words, handle)
    return list(found.values())


TARGETS = (
    Target(
        "figure-2",
        "Partial, posterior and intrinsic Bayes factors of two observations: exact, DeepBF-FNN and deepbf",
        "Figure 2",
        plan,
        partial(_draw_maps, plane=NARROW),
    ),
    Target(
        "figure-s19",
        "Partial, posterior and intrinsic Bayes factors of two observations over wider planes",
        "Figure S19",
        plan,
        partial(_draw_maps, plane=WIDE),
    ),
    Target(
        "figure-s21",
        "Estimated against exact partial, posterior and intrinsic Bayes factors of two observations",
        "Figure S21",
        plan,
        _draw_scatters,
    ),
)
