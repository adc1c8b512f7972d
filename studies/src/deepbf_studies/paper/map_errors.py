"""How far maps are from the exact log Bayes factors: the table under every heat map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import spearmanr

from deepbf.evaluation.accuracy import DEFAULT_CLIP
from deepbf_studies.paper.toy_answers import NARROW, WIDE, first_of_each

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Errors:
    """Differences between estimated and exact log Bayes factors, over the finite ones, and how many are not finite."""

    rmse: float
    largest: float
    spearman: float
    num_not_finite: int


def errors_of(estimated: Floats, exact: Floats) -> Errors:
    """Return the errors over all entries, each counting the same."""
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
    """Return which data sets have both observations inside a plane."""
    values = np.asarray(exact[f"{plane}_first"])
    data = np.asarray(exact["data"])
    # A cell reaches half a step beyond the value in its middle.
    half = 0.5 * float(values[1] - values[0])
    return np.all((data >= values[0] - half) & (data <= values[-1] + half), axis=1)


def error_table(rows: Mapping[str, tuple[Mapping[str, Errors], float]]) -> str:
    """Return a table with a line for each estimator: its errors, what is not finite, and seconds of training."""
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


ABOUT_THE_TABLE = """\
Errors are of natural logs of Bayes factors; rho is Spearman's rank correlation with the exact ones. Over planes every
pair of values counts the same, however rarely data fall there; over simulated data sets, half of either model, errors
count where data fall: RMSE and rho with both clipped at a million to one, the largest error over those that the wide
plane shows, not clipped. Not finite: log Bayes factors that are nan or infinite, anywhere. Seconds: training, and all
of ABC, on the machine as it was."""


def as_numbers(found: Mapping[str, Errors]) -> dict[str, dict[str, float | None]]:
    """Return the errors as JSON has them: what is nan is null."""
    return {
        place: {name: None if np.isnan(value) else value for name, value in asdict(errors).items()}
        for place, errors in found.items()
    }


def odds_in_single_precision(log_odds: Floats) -> Floats:
    """Return D / (1 - D) with the probability D formed first, in float32: infinite from log odds of 17 on."""
    with np.errstate(over="ignore", divide="ignore"):
        probability = (1 / (1 + np.exp(-np.asarray(log_odds, dtype=np.float32)))).astype(np.float32)
        return (probability / (1 - probability)).astype(np.float64)


def has_no_log(odds: Floats) -> NDArray[np.bool_]:
    """Return where odds are 0, infinite or nan: a white area, on a map of their logarithms."""
    return ~(np.isfinite(odds) & (odds > 0))


def _cells(errors: Errors | None) -> str:
    if errors is None:
        return f"{'-':>7}{'-':>8}{'-':>7}  "
    return f"{_written(errors.rmse)}{_written(errors.largest, 8)}{errors.spearman:>7.3f}  "


def _written(value: float, width: int = 7) -> str:
    return f"{value:>{width}.3f}" if value < 100 else f"{value:>{width}.1f}"
