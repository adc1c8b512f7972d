"""Figures 1, S10, S11 and S18: the log Bayes factor of two observations, exact and estimated, over a plane of them.

Every map has a table of its errors below it, here and in `variant_maps`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import spearmanr

from deepbf.evaluation.accuracy import DEFAULT_CLIP
from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf_studies.paper.criticism import OUTLIERS
from deepbf_studies.paper.methods import ABC, DEEPSET2, FNN, OURS
from deepbf_studies.paper.plots import HeatMapRow, heat_map_grid
from deepbf_studies.paper.step import Step
from deepbf_studies.paper.target import Drawing, Results, Target, paragraph
from deepbf_studies.paper.toy_answers import (
    BOTH,
    COUNTS,
    NARROW,
    SCALES,
    STUDIES,
    TITLES,
    WIDE,
    Floats,
    abc_step,
    exact_step,
    first_of_each,
    network_step,
)

RED, YELLOW = "#E3120B", "#FFE119"
STAR_WORDS = {RED: "outlier", YELLOW: "inlier: a simulated data set of either model"}
# Of the paper's 30,000 data sets, in its own wider ranges, whose ends it does not say.
PAPER_SHARE_OUTSIDE = {"data-1-ii": 0.0442, "data-2": 0.0008, "data-3": 0.0037}
# Counts are shifted at random by up to this much, so that equal ones are seen side by side.
JITTER = 0.4
JITTER_SEED = 5

ABOUT_THE_TABLE = """\
Errors are of natural logs of Bayes factors; rho is Spearman's rank correlation with the exact ones. Over planes every
pair of values counts the same, however rarely data fall there; over simulated data sets, half of either model, errors
count where data fall: RMSE and rho with both clipped at a million to one, the largest error over those that the wide
plane shows, not clipped. Not finite: log Bayes factors that are nan or infinite, anywhere. Seconds: training, and all
of ABC, on the machine as it was."""


def plan(scale: str, *, methods: Sequence[str]) -> dict[tuple[str, str], Step]:
    """Return the exact answers and those of the methods, for each study."""
    settings = SCALES[scale]
    steps = {}
    for study in STUDIES:
        steps[study, EXACT] = exact_step(study, settings)
        for method in methods:
            steps[study, method] = abc_step(study, settings) if method == ABC else network_step(study, settings, method)
    return steps


def _draw_maps(results: Results, *, methods: Sequence[str]) -> Drawing:
    """Return the maps over the narrow planes, with stars, and the table of errors."""
    rows = {}
    for study in STUDIES:
        exact = results[study, EXACT]
        outlier = np.full((1, 2), OUTLIERS[study])
        stars = {RED: outlier, YELLOW: _typical_pairs(exact)}
        rows[TITLES[study]] = _map_row({name: results[study, name] for name in (EXACT, *methods)}, NARROW, stars=stars)
    text, numbers = _tables(results, methods)
    return Drawing(text, {"": heat_map_grid(rows, star_words=STAR_WORDS)}, numbers)


def _draw_samples(results: Results, *, methods: Sequence[str]) -> Drawing:
    """Return the maps over the wide planes with simulated data sets on them, and what lies outside."""
    rows = {}
    for study in STUDIES:
        by_name = {name: results[study, name] for name in (EXACT, *methods)}
        points = np.asarray(results[study, EXACT]["data"])
        if study in COUNTS:
            points = points + np.random.default_rng(JITTER_SEED).uniform(-JITTER, JITTER, points.shape)
        rows[TITLES[study]] = _map_row(by_name, WIDE, points=points)
    shares = {study: _shares_of(results, study, methods) for study in STUDIES}
    text, numbers = _tables(results, methods)
    sentences = "\n".join(_sentences(study, shares[study], methods) for study in STUDIES)
    figures = {"": heat_map_grid(rows)}
    return Drawing(f"{sentences}\n\n{text}", figures, {"errors": numbers, "wide plane": shares})


def _map_row(by_name: dict[str, xr.Dataset], plane: str, **marks: Any) -> HeatMapRow:
    """Return one row of maps, the exact one first."""
    values = np.asarray(by_name[EXACT][f"{plane}_first"])
    log_bf = {name: np.asarray(answers[plane].sel(part=BOTH)) for name, answers in by_name.items()}
    return HeatMapRow(values, values, log_bf, names_of(by_name[EXACT]), **marks)


def names_of(exact: xr.Dataset) -> tuple[str, str]:
    """Return the names of the two models, the first over the second.

    `exact` is what `toy_answers.exact_answers` keeps.
    """
    first, second = (str(name) for name in exact["model"].values)
    return first, second


def _typical_pairs(exact: xr.Dataset) -> NDArray[np.float64]:
    """Return one data set of each model that the narrow plane shows, the first that was simulated."""
    data, inside = np.asarray(exact["data"]), shown_in(exact, NARROW)
    half = len(data) // 2
    return np.stack([data[:half][inside[:half]][0], data[half:][inside[half:]][0]])


def _tables(results: Results, methods: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return a table of errors for each study, and the same as numbers."""
    blocks, numbers = [], {}
    for study in STUDIES:
        exact = results[study, EXACT]
        inside = shown_in(exact, WIDE)
        truth, rows = exact.sel(part=BOTH), {}
        for method in methods:
            answers = results[study, method]
            seconds = float(answers.attrs["training_seconds"])
            rows[method] = map_errors(answers.sel(part=BOTH), truth, inside), seconds
        first, second = names_of(exact)
        blocks.append(f"{TITLES[study]}, n = 2: {first} over {second}\n{error_table(rows)}")
        numbers[study] = {name: {**as_numbers(found), "seconds": spent} for name, (found, spent) in rows.items()}
    return "\n\n".join([*blocks, ABOUT_THE_TABLE]), numbers


def _shares_of(results: Results, study: str, methods: Sequence[str]) -> dict[str, Any]:
    """Return what the wide plane leaves out, and what is not finite on it."""
    exact = results[study, EXACT]
    outside = ~shown_in(exact, WIDE)
    half = len(outside) // 2
    values = np.asarray(exact[f"{WIDE}_first"])
    planes = {method: np.asarray(results[study, method][WIDE].sel(part=BOTH)) for method in methods}
    truth = np.asarray(exact[WIDE].sel(part=BOTH))
    return {
        "ends": [float(values[0]), float(values[-1])],
        "num_datasets": len(outside),
        "share_outside": float(outside.mean()),
        "share_outside_by_model": dict(
            zip(names_of(exact), [float(outside[:half].mean()), float(outside[half:].mean())], strict=True)
        ),
        "num_not_finite": {method: int((~np.isfinite(plane)).sum()) for method, plane in planes.items()},
        "largest_error": {method: float(np.abs(plane - truth).max()) for method, plane in planes.items()},
        "share_white_if_probabilities": {
            method: float(has_no_log(odds_in_single_precision(plane)).mean()) for method, plane in planes.items()
        },
    }


def _sentences(study: str, found: dict[str, Any], methods: Sequence[str]) -> str:
    low, high = found["ends"]
    by_model = ", ".join(f"{share:.2%} of {name}" for name, share in found["share_outside_by_model"].items())
    lines = [
        paragraph(
            f"{TITLES[study]}: of {found['num_datasets']:,} simulated data sets, {found['share_outside']:.2%} lie",
            f"outside {low:g} to {high:g} ({by_model}); in the paper's figure, whose ends are not stated,",
            f"{PAPER_SHARE_OUTSIDE[study]:.2%}.",
        )
    ]
    for method in methods:
        lines.append(
            paragraph(
                f"{method}: {found['num_not_finite'][method]} log Bayes factors on the plane are nan or infinite, the "
                f"largest error is {found['largest_error'][method]:.3g}. Formed as D / (1 - D) in single precision, "
                f"{found['share_white_if_probabilities'][method]:.1%} of the plane would be white.",
                indent=2,
            )
        )
    return "\n".join(lines)


# How far maps are from the exact log Bayes factors: the table under every map.


@dataclass(frozen=True)
class Errors:
    """Differences between estimated and exact log Bayes factors, over the finite ones, and how many are not finite."""

    rmse: float
    largest: float
    spearman: float
    num_not_finite: int


def errors_of(estimated: Floats, exact: Floats) -> Errors:
    """Return the errors over all entries, each counting the same, whatever the shape.

    Those that are not finite, estimated or exact, are counted and left out; nan where nothing is left.

    Examples
    --------
    >>> errors_of(np.array([1.0, 2.0, np.inf]), np.array([1.0, 1.0, 1.0])).largest
    1.0
    """
    estimated, exact = np.ravel(estimated), np.ravel(exact)
    finite = np.isfinite(estimated) & np.isfinite(exact)
    error = (estimated - exact)[finite]
    if error.size == 0:
        return Errors(float("nan"), float("nan"), float("nan"), int(finite.size))
    # Of a constant there are no ranks to compare.
    varies = min(np.ptp(estimated[finite]), np.ptp(exact[finite])) > 0
    return Errors(
        rmse=float(np.sqrt(np.mean(error**2))),
        largest=float(np.abs(error).max()),
        spearman=float(np.asarray(spearmanr(estimated[finite], exact[finite]))[0]) if varies else float("nan"),
        num_not_finite=int((~finite).sum()),
    )


def map_errors(answers: xr.Dataset, exact: xr.Dataset, inside: NDArray[np.bool_]) -> dict[str, Errors]:
    """Return the errors over every plane that was asked about, and over data sets, which count where data fall.

    Parameters
    ----------
    answers, exact
        Estimated and exact log Bayes factors: planes by name, and `samples`, maybe of fewer data sets than the exact.
    inside
        Which data sets the wide plane shows.

    Returns
    -------
    By plane; "samples": both clipped at a Bayes factor of a million to one; "shown": the data sets that the wide plane
    shows, not clipped.
    """
    found = {name: errors_of(np.asarray(answers[name]), np.asarray(exact[name])) for name in planes_of(answers)}
    estimated = np.asarray(answers["samples"])
    truth, shown = np.asarray(exact["samples"]), inside
    if len(estimated) < len(truth):
        truth, shown = first_of_each(truth, len(estimated) // 2), first_of_each(shown, len(estimated) // 2)
    found["samples"] = errors_of(*(np.clip(part, -DEFAULT_CLIP, DEFAULT_CLIP) for part in (estimated, truth)))
    found["shown"] = errors_of(estimated[shown], truth[shown])
    return found


def planes_of(answers: xr.Dataset) -> list[str]:
    """Return the planes that were asked about, the narrow one first."""
    return [name for name in (NARROW, WIDE) if name in answers]


def shown_in(exact: xr.Dataset, plane: str) -> NDArray[np.bool_]:
    """Return which data sets have both observations inside a plane, up to the edges of its outermost cells.

    `exact` is what `toy_answers.exact_answers` keeps, and `plane` the name of one of its planes.
    """
    values = np.asarray(exact[f"{plane}_first"])
    data = np.asarray(exact["data"])
    # A cell reaches half a step beyond the value in its middle.
    half = 0.5 * float(values[1] - values[0])
    return np.all((data >= values[0] - half) & (data <= values[-1] + half), axis=1)


def error_table(rows: Mapping[str, tuple[Mapping[str, Errors], float]]) -> str:
    """Return a table with a line for each estimator: its errors, what is not finite, and seconds of training.

    `rows` holds errors, as `map_errors` returns them, and seconds. `ABOUT_THE_TABLE` says how to read it.
    """
    head = f"{'':<16}{'narrow plane':^24}{'wide plane':^24}{'simulated data sets':^24}{'not':>8}"
    under = f"{'':<16}{'   RMSE largest    rho  ' * 3}{'finite':>8}{'seconds':>9}"
    lines = [head, under]
    for name, (found, seconds) in rows.items():
        cells = "".join(_cells(found.get(plane)) for plane in (NARROW, WIDE))
        samples = found["samples"]
        cells += _cells(Errors(samples.rmse, found["shown"].largest, samples.spearman, 0))
        num_not_finite = sum(found[place].num_not_finite for place in found if place != "shown")
        lines.append(f"{name:<16}{cells}{num_not_finite:>8}{seconds:>9.1f}")
    return "\n".join(lines)


def as_numbers(found: Mapping[str, Errors]) -> dict[str, dict[str, float | None]]:
    """Return the errors as JSON has them: what is nan is null."""
    return {
        place: {name: None if np.isnan(value) else value for name, value in asdict(errors).items()}
        for place, errors in found.items()
    }


def odds_in_single_precision(log_odds: Floats) -> Floats:
    """Return D / (1 - D) with the probability D formed first, in float32: infinite from log odds of 17 on.

    What a map would show of an estimator that forms probabilities; ours keep to log odds throughout.

    Examples
    --------
    >>> odds_in_single_precision(np.array([0.0, 20.0]))
    array([ 1., inf])
    """
    with np.errstate(over="ignore", divide="ignore"):
        probability = (1 / (1 + np.exp(-np.asarray(log_odds, dtype=np.float32)))).astype(np.float32)
        return (probability / (1 - probability)).astype(np.float64)


def has_no_log(odds: Floats) -> NDArray[np.bool_]:
    """Return where odds are 0, infinite or nan: a white area, on a map of their logarithms.

    Examples
    --------
    >>> has_no_log(np.array([0.0, 1.0, np.inf]))
    array([ True, False,  True])
    """
    return ~(np.isfinite(odds) & (odds > 0))


def _cells(errors: Errors | None) -> str:
    if errors is None:
        return f"{'-':>7}{'-':>8}{'-':>7}  "
    return f"{_written(errors.rmse)}{_written(errors.largest, 8)}{errors.spearman:>7.3f}  "


def _written(value: float, width: int = 7) -> str:
    return f"{value:>{width}.3f}" if value < 100 else f"{value:>{width}.1f}"


def _target(name: str, title: str, paper: str, draw: Any, methods: Sequence[str]) -> Target:
    return Target(name, title, paper, partial(plan, methods=methods), partial(draw, methods=methods))


TARGETS = (
    _target(
        "figure-1",
        "Log Bayes factors of two observations: exact, DeepBF-FNN, ABC and deepbf",
        "Figure 1",
        _draw_maps,
        (FNN, ABC, OURS),
    ),
    _target(
        "figure-s10",
        "Log Bayes factors of two observations: exact, the paper's DeepSet and deepbf",
        "Figure S10",
        _draw_maps,
        (DEEPSET2, OURS),
    ),
    _target(
        "figure-s11",
        "30,000 data sets of two observations on wider maps: exact, the paper's DeepSet and deepbf",
        "Figure S11",
        _draw_samples,
        (DEEPSET2, OURS),
    ),
    _target(
        "figure-s18",
        "30,000 data sets of two observations on wider maps: exact, DeepBF-FNN and deepbf",
        "Figure S18",
        _draw_samples,
        (FNN, OURS),
    ),
)
