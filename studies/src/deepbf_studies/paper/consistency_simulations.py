"""Estimation consistency in practice: errors of log Bayes factors against the number of simulations, T.

The paper bounds the mean absolute error of the log Bayes factor by a rate at which the classifier is learned from T
simulations of each model (its Section 3). Here that rate is measured, for tables of T simulations in all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from deepbf.evaluation.accuracy import DEFAULT_CLIP, posterior_divergence
from deepbf_studies import problems
from deepbf_studies.paper.methods import FNN, OURS, train
from deepbf_studies.paper.plots import Decay, decay
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.paper.target import Drawing, Plan, Results, Target, paragraph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

STUDIES = ("data-1-i", "data-1-ii", "data-3")
METHODS = (OURS, FNN)
NUM_OBS = 16
TEST_SEED = 1_000_003
# Evidence beyond 1,000 to 1 settles any question, and its simulations are too rare to learn it from.
LOG_MODERATE = float(np.log(1e3))
MEASURES = {
    "error": "mean absolute error of log BF, |exact| < log 1,000",
    "clipped_error": "mean absolute error of log BF, all data, clipped",
    "excess_loss": "excess loss (nats)",
}
DRAWN = ("error", "excess_loss")
# Inches: a panel with its legend.
PANEL = (6.4, 3.3)


@dataclass(frozen=True)
class Settings:
    """How many simulations are tried, how often, and where."""

    studies: tuple[str, ...]
    log2_simulations: tuple[int, ...]
    num_seeds: int
    num_datasets: int = 1500


SCALES = {
    "quick": Settings(("data-3",), (10, 12, 14), 1),
    "standard": Settings(STUDIES, (10, 12, 14, 16, 18), 3),
    "paper": Settings(STUDIES, (10, 12, 14, 16, 18, 20, 22), 10),
}


@step_function("consistency_simulations.estimate")
def estimate(
    *, study: str, num_obs: int, method: str, num_simulations: int, num_datasets: int, seed: int, test_seed: int
) -> xr.Dataset:
    """Return estimated and exact log BFs, first model over second, at fresh data sets of each model.

    A step: one training run on a table of `num_simulations` simulated data sets, half from each model.
    """
    loaded = problems.load(study, num_obs=num_obs)
    bf = train(loaded.models, str(loaded.structure), method, None, seed, num_simulations=num_simulations)
    data = [model.simulate(num_datasets, test_seed).data for model in loaded.models]
    dims = ("model", "dataset")
    return xr.Dataset(
        {
            "estimated": (dims, np.stack([bf.log_bf(part) for part in data])),
            "exact": (dims, np.stack([loaded.exact_log_bf(part) for part in data])),
        },
        coords={"model": [model.name for model in loaded.models]},
        attrs={"num_steps": bf.record.num_steps, "title": loaded.title},
    )


def measures_of(estimated: Floats, exact: Floats) -> dict[str, float]:
    """Return the errors, each the mean over both models, whose data sets are the rows.

    The excess loss is taken in expectation over which model a data set came from, given the data set: the divergence of
    the estimated from the exact posterior probabilities, which is never negative and has little noise.
    """
    # Where all data sets count, both sides are clipped, as in the evaluation toolkit: else one of a million rules.
    clipped, clipped_exact = (np.clip(part, -DEFAULT_CLIP, DEFAULT_CLIP) for part in (estimated, exact))
    moderate = np.where(np.abs(exact) < LOG_MODERATE, np.abs(clipped - exact), np.nan)
    return {
        "error": float(np.mean(np.nanmean(moderate, axis=1))),
        "clipped_error": float(np.mean(np.abs(clipped - clipped_exact))),
        "excess_loss": float(np.mean(posterior_divergence(estimated, exact))),
    }


def plan(scale: str) -> Plan:
    """Return one training run for each study, method, number of simulations and seed."""
    chosen = SCALES[scale]
    return {
        (study, method, 2**power, seed): Step(
            estimate,
            {
                "study": study,
                "num_obs": NUM_OBS,
                "method": method,
                "num_simulations": 2**power,
                "num_datasets": chosen.num_datasets,
                "seed": seed,
                "test_seed": TEST_SEED,
            },
        )
        for study in chosen.studies
        for method in METHODS
        for power in chosen.log2_simulations
        for seed in range(1, chosen.num_seeds + 1)
    }


@dataclass(frozen=True)
class LineFit:
    """A line, with the standard error of its slope.

    Parameters
    ----------
    slope, intercept
        Of the line.
    error
        Standard error of the slope; nan of two points, which say nothing about scatter.
    misfit
        Weighted sum of squared distances of the points from the line: of two lines through the same points, the one
        with the smaller misfit describes them better.
    """

    slope: float
    intercept: float
    error: float
    misfit: float

    def at(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the line's values."""
        return self.intercept + self.slope * np.asarray(x, dtype=np.float64)

    def __str__(self) -> str:
        return f"{self.slope:.2f}" if math.isnan(self.error) else f"{self.slope:.2f} ± {self.error:.2f}"


def fit_line(x: ArrayLike, y: ArrayLike, variances: ArrayLike | None = None) -> LineFit:
    """Return the line through points (x, y) by least squares.

    Parameters
    ----------
    x, y
        At least two points, at two places or more.
    variances
        Of each y, where they are known: points then count by their precision, and the slope's error is at least what
        these variances make of it, more where the points scatter about the line by more than that. Otherwise all
        points count the same, and their scatter alone gives the error.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(np.unique(x)) < 2:
        raise ValueError(f"a line needs points at two places or more; received {len(x)} at x = {np.unique(x)}.")
    weights = np.ones_like(x) if variances is None else 1 / np.asarray(variances, dtype=np.float64)
    centre = np.average(x, weights=weights)
    spread = np.sum(weights * (x - centre) ** 2)
    slope = float(np.sum(weights * (x - centre) * y) / spread)
    intercept = float(np.average(y, weights=weights) - slope * centre)
    misfit = float(np.sum(weights * (y - intercept - slope * x) ** 2))
    free = len(x) - 2
    scatter = misfit / free if free else math.nan
    if variances is not None:
        scatter = max(1.0, scatter) if free else 1.0
    return LineFit(slope, intercept, math.sqrt(scatter / spread), misfit)


@dataclass(frozen=True)
class Rate:
    """One measure of one method against the number of simulations, and the line through its logarithms."""

    num_simulations: Floats
    by_seed: Floats
    line: LineFit

    @classmethod
    def of(cls, by_num_simulations: Mapping[int, Sequence[float]]) -> Rate:
        """Return the rate of values by number of simulations, one for each seed."""
        numbers = np.array(sorted(by_num_simulations), dtype=np.float64)
        by_seed = np.array([by_num_simulations[int(number)] for number in numbers])
        return cls(numbers, by_seed, fit_line(np.repeat(np.log(numbers), by_seed.shape[1]), np.log(by_seed).ravel()))

    @property
    def values(self) -> Floats:
        """Geometric means over seeds, as the line through logarithms sees them."""
        return np.exp(np.log(self.by_seed).mean(axis=1))

    def drawn(self) -> Decay:
        """Return it for drawing: error bars reach over all seeds."""
        ends = self.num_simulations[[0, -1]]
        fitted = (ends, np.exp(self.line.at(np.log(ends))))
        low, high = self.by_seed.min(axis=1), self.by_seed.max(axis=1)
        return Decay(self.num_simulations, self.values, low, high, fitted, f"slope {self.line}")


def _rates_of(results: Results) -> dict[str, dict[str, dict[str, Rate]]]:
    """Return the rates by study, measure and method."""
    found: dict[Any, dict[int, list[float]]] = {}
    for (study, method, num_simulations, _), result in results.items():
        measured = measures_of(result["estimated"].values, result["exact"].values)
        for measure, value in measured.items():
            found.setdefault((study, measure, method), {}).setdefault(num_simulations, []).append(value)
    rates: dict[str, dict[str, dict[str, Rate]]] = {}
    for (study, measure, method), values in found.items():
        rates.setdefault(study, {}).setdefault(measure, {})[method] = Rate.of(values)
    return rates


def draw(results: Results) -> Drawing:
    """Return tables of errors against the number of simulations with their slopes, and both as pictures."""
    rates = _rates_of(results)
    titles = {key[0]: str(result.attrs["title"]) for key, result in results.items()}
    num_datasets = next(iter(results.values())).sizes["dataset"]
    num_seeds = len({seed for *_, seed in results})
    parts = [_explanation(num_datasets, num_seeds)]
    parts += [_written_study(titles[study], by_measure) for study, by_measure in rates.items()]
    numbers = {
        study: {
            measure: {
                method: {
                    "num_simulations": rate.num_simulations.tolist(),
                    "by_seed": rate.by_seed.tolist(),
                    "slope": rate.line.slope,
                    "slope_error": None if np.isnan(rate.line.error) else rate.line.error,
                }
                for method, rate in by_method.items()
            }
            for measure, by_method in by_measure.items()
        }
        for study, by_measure in rates.items()
    }
    return Drawing("\n\n".join(parts), {"": _figure_of(rates, titles)}, numbers)


def _explanation(num_datasets: int, num_seeds: int) -> str:
    """Return what is measured, and how."""
    trained = (
        f"Estimators trained on a table of T simulated data sets, half from each model, n = {NUM_OBS}. The table is",
        "used again and again, up to 40 times, and a part of it judges which weights are best: T is all that an",
        "estimator knows. The paper's network and optimiser get the same table, where the paper takes fresh",
        "simulations each step.",
    )
    measured = (
        f"Errors at {num_datasets:,} fresh data sets of each model, {num_seeds} seed{'' if num_seeds == 1 else 's'},",
        "in natural logarithms: where |exact log BF| < log 1,000, and at all data with both sides clipped at",
        "log 1,000,000, for data sets with evidence in the millions would rule any mean. Excess loss: divergence of",
        "the estimated from the exact posterior probabilities, at all data, nothing clipped.",
    )
    slopes = (
        "Slope: of the logarithm of the error against log T, by least squares over all seeds, ± its standard error.",
        "For a right family with a fixed number of weights it would be -0.5, and that of the excess loss -1.",
    )
    return "\n".join(paragraph(*sentences) for sentences in (trained, measured, slopes))


def _written_study(title: str, by_measure: Mapping[str, Mapping[str, Rate]]) -> str:
    """Return the tables of one study."""
    lines = [title]
    for measure, by_method in by_measure.items():
        numbers = next(iter(by_method.values())).num_simulations
        lines += [
            "",
            f"  {MEASURES[measure]}",
            f"  {'T =':<12}" + "".join(f"{f'{n:,.0f}':>11}" for n in numbers) + "    slope",
        ]
        lines += [
            f"  {method:<12}" + "".join(f"{f'{value:.2g}':>11}" for value in rate.values) + f"    {rate.line}"
            for method, rate in by_method.items()
        ]
    return "\n".join(lines)


def _figure_of(rates: Mapping[str, Mapping[str, Mapping[str, Rate]]], titles: Mapping[str, str]) -> Figure:
    """Return panels: studies down, measures across."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PANEL[0] * len(DRAWN), PANEL[1] * len(rates)), layout="constrained")
    panels = figure.subplots(len(rates), len(DRAWN), squeeze=False)
    for (study, by_measure), row in zip(rates.items(), panels, strict=True):
        for measure, axes in zip(DRAWN, row, strict=True):
            curves = {method: rate.drawn() for method, rate in by_measure[measure].items()}
            label = MEASURES[measure].replace(", ", ",\n", 1)
            decay(curves, axes, x_label="simulated data sets, T", y_label=label)
            axes.set_title(titles[study].split(":")[0])
    return figure


TARGETS = (
    Target(
        name="consistency-simulations",
        title="Errors of log Bayes factors against the number of simulations, with slopes",
        paper="",
        plan=plan,
        draw=draw,
    ),
)
