"""Verdicts: what any right Bayes factor satisfies, each check held, failed or beyond these simulations."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import xarray as xr

from deepbf.evaluation.prior_recovery import z_score

# In standard errors. Some eight checks an estimator: a right one fails one of them in about fifty evaluations.
MOST_Z = 3.0
# What corresponds to MOST_Z on both sides.
LEAST_P_VALUE = 0.0027
# Below it a mean is not normal enough for MOST_Z.
FEWEST_DATASETS = 30
# A slope known no better than this says nothing.
WIDEST_SLOPE_ERROR = 0.5

Verdict = Literal["holds", "fails", "unusable"]
Found = tuple[str, Verdict, str]


class Check(NamedTuple):
    """One check of one estimator: its verdict, and the numbers behind it in words."""

    estimator: str
    name: str
    verdict: Verdict
    detail: str


def run_checks(results: xr.Dataset) -> list[Check]:
    """Return the checks of one estimator, from its part of the results."""
    estimator = str(results["estimator"].values)
    infinite, missing = (int(results[name].sum()) for name in ("num_infinite", "num_missing"))
    total = results.sizes["dataset"]
    fewest = min(int((results["source"] == name).sum()) for name in results["model"].values)
    if fewest < FEWEST_DATASETS:
        few = f"{fewest} data sets of a model; {FEWEST_DATASETS} or more would do"
        found: list[Found] = [("all that need more data sets", "unusable", few)]
    else:
        found = [
            _prior_check(results), *_identity_checks(results), _calibration_check(results), *_line_checks(results)
        ]  # fmt: skip
    if infinite or missing:
        found.append(("finite log Bayes factors", "fails", f"{infinite} infinite and {missing} nan of {total}"))
    return [Check(estimator, *check) for check in found]


def _prior_check(results: xr.Dataset) -> Found:
    prob, error, z = (float(results[f"estimated_prior{suffix}"]) for suffix in ("", "_error", "_z"))
    prior = float(results["prior_prob"][0])
    return "prior recovery", _within(z), f"{prob:.4f} +- {error:.4f} for a prior of {prior:.3g}, z = {z:.1f}"


def _identity_checks(results: xr.Dataset) -> list[Found]:
    """Each identity whole, where these simulations can show it, and up to a bound, which they always can."""
    names = [str(name) for name in results["model"].values]
    checks: list[Found] = []
    for source, over in zip(names, reversed(names), strict=True):
        found = results.sel(model=source)
        checks.append(_whole_identity(found, f"mean BF of {over} is 1 under {source}"))
        gap, z = float(found["identity_bounded_gap"]), float(found["identity_bounded_z"])
        checks.append((f"the same up to BF 10, under {source}", _within(z), f"off by {gap:.4f}, z = {z:.1f}"))
    return checks


def _whole_identity(found: xr.Dataset, name: str) -> Found:
    index, z, log_mean, error, missing = (
        float(found[f"identity_{key}"]) for key in ("tail_index", "z", "log_mean", "error", "missing")
    )
    if log_mean > -np.log(LEAST_P_VALUE):
        # Markov: positive numbers of mean 1 average to c or more with probability 1 / c at most, whatever the tail.
        return name, "fails", f"log mean {log_mean:.1f}, for 0"
    if not bool(found["identity_usable"]):
        reason = f"tail index {index:.1f}" if missing == 0 else f"tail index {index:.1f}, {missing:.1%} never simulated"
        return name, "unusable", f"carried by too few data sets, {reason}"
    return name, _within(z), f"log mean {log_mean:.3f} +- {error:.3f}, z = {z:.1f}"


def _calibration_check(results: xr.Dataset) -> Found:
    value, low, high, p_value = (
        float(results[name])
        for name in ("calibration_error", "calibration_error_low", "calibration_error_high", "calibration_p_value")
    )
    verdict: Verdict = "holds" if p_value > LEAST_P_VALUE else "fails"
    return "calibration", verdict, f"error {value:.4f}, perfect calibration gives {low:.4f} to {high:.4f}"


def _line_checks(results: xr.Dataset) -> list[Found]:
    slope_error = float(results["slope_error"])
    checks: list[Found] = []
    for name, right in (("slope", 1.0), ("intercept", 0.0)):
        value, error = float(results[name]), float(results[f"{name}_error"])
        label = f"{name} of recalibration"
        if value == -np.inf:
            checks.append((label, "fails", "the wrong model is favoured without exception"))
        elif np.isnan(value):
            reason = "log BF never varies" if results["auc"] == 0.5 else "the models are told apart without an error"
            checks.append((label, "unusable", reason))
        else:
            z = z_score(value - right, error)
            # A slope that may be anything agrees with 1, and means nothing.
            verdict = "unusable" if slope_error > WIDEST_SLOPE_ERROR and _within(z) == "holds" else _within(z)
            checks.append((label, verdict, f"{value:.3f} +- {error:.3f} for {right:g}, z = {z:.1f}"))
    return checks


def _within(z: float) -> Verdict:
    return "holds" if abs(z) <= MOST_Z else "fails"
