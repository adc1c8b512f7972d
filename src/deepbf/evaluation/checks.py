"""Verdicts: what any right Bayes factor satisfies, each check held, failed or beyond these simulations."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import xarray as xr

# In standard errors. Some six checks an estimator: a right one fails one of them in about a hundred evaluations.
MOST_Z = 3.0
# What corresponds to MOST_Z on both sides.
LEAST_P_VALUE = 0.0027

Verdict = Literal["holds", "fails", "unusable"]


class Check(NamedTuple):
    """One check of one estimator: its verdict, and the numbers behind it in words."""

    estimator: str
    name: str
    verdict: Verdict
    detail: str


def run_checks(results: xr.Dataset) -> list[Check]:
    """Return the checks of one estimator, from its part of the results."""
    estimator = str(results["estimator"].values)
    found = [_prior_check(results), *_identity_checks(results), _calibration_check(results), *_line_checks(results)]
    infinite, missing = (int(results[name].sum()) for name in ("num_infinite", "num_missing"))
    total = results.sizes["dataset"]
    if infinite or missing:
        found.append(("finite log Bayes factors", "fails", f"{infinite} infinite and {missing} nan of {total}"))
    return [Check(estimator, *check) for check in found]


def _prior_check(results: xr.Dataset) -> tuple[str, Verdict, str]:
    prob, error, z = (float(results[f"estimated_prior{suffix}"]) for suffix in ("", "_error", "_z"))
    prior = float(results["prior_prob"][0])
    return "prior recovery", _within(z), f"{prob:.4f} +- {error:.4f} for a prior of {prior:.3g}, z = {z:.1f}"


def _identity_checks(results: xr.Dataset) -> list[tuple[str, Verdict, str]]:
    checks: list[tuple[str, Verdict, str]] = []
    names = [str(name) for name in results["model"].values]
    for source, over in zip(names, reversed(names), strict=True):
        found = results.sel(model=source)
        index, z = float(found["identity_tail_index"]), float(found["identity_z"])
        name = f"mean BF of {over} is 1 under {source}"
        log_mean, error = float(found["identity_log_mean"]), float(found["identity_error"])
        if log_mean > -np.log(LEAST_P_VALUE):
            # Markov: positive numbers of mean 1 average to c or more with probability 1 / c at most, whatever the tail.
            checks.append((name, "fails", f"log mean {log_mean:.1f}, for 0"))
            continue
        if not bool(found["identity_usable"]):
            checks.append((name, "unusable", f"carried by too few data sets, tail index {index:.1f}"))
            continue
        checks.append((name, _within(z), f"log mean {log_mean:.3f} +- {error:.3f}, z = {z:.1f}"))
    return checks


def _calibration_check(results: xr.Dataset) -> tuple[str, Verdict, str]:
    value, low, high, p_value = (
        float(results[name])
        for name in ("calibration_error", "calibration_error_low", "calibration_error_high", "calibration_p_value")
    )
    verdict: Verdict = "holds" if p_value > LEAST_P_VALUE else "fails"
    return "calibration", verdict, f"error {value:.4f}, perfect calibration gives {low:.4f} to {high:.4f}"


def _line_checks(results: xr.Dataset) -> list[tuple[str, Verdict, str]]:
    checks: list[tuple[str, Verdict, str]] = []
    for name, right in (("slope", 1.0), ("intercept", 0.0)):
        value, error = float(results[name]), float(results[f"{name}_error"])
        label = f"{name} of recalibration"
        if np.isnan(value):
            reason = "log BF never varies" if results["auc"] == 0.5 else "the models are told apart without an error"
            checks.append((label, "unusable", reason))
            continue
        z = (value - right) / error
        checks.append((label, _within(z), f"{value:.3f} +- {error:.3f} for {right:g}, z = {z:.1f}"))
    return checks


def _within(z: float) -> Verdict:
    return "holds" if abs(z) <= MOST_Z else "fails"
