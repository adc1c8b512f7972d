"""measure: from log Bayes factors at simulated data to one labelled result, for one estimator or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf._jeffreys import category_names
from deepbf._version import __version__
from deepbf.evaluation.accuracy import METRICS, accuracy_statistics
from deepbf.evaluation.arguments import (
    check_estimates,
    check_exact,
    check_names,
    check_observed_log_bfs,
    check_same_data,
    without_missing,
)
from deepbf.evaluation.bootstrap import Statistic, by_model, mean_of, with_errors
from deepbf.evaluation.calibration import calibration_error, recalibration, reliability_curve
from deepbf.evaluation.decisions import (
    CONVENTIONAL_THRESHOLDS,
    DECISIONS,
    category_confusion,
    category_counts,
    decision_rates,
)
from deepbf.evaluation.density import common_grid, density
from deepbf.evaluation.identities import mean_bf_identity
from deepbf.evaluation.labels import EXACT, WEIGHTED
from deepbf.evaluation.log_bfs import ByModel, log_losses, merge_rounding, shift
from deepbf.evaluation.prior_recovery import estimated_prior
from deepbf.evaluation.result import Evaluation
from deepbf.evaluation.roc import BalancedThreshold, area_under_roc, roc_curve
from deepbf.evaluation.tail_areas import surprise

# Beyond a Bayes factor of a million to one, no decision depends on the number (the range of the paper's figures).
DEFAULT_CLIP = float(np.log(1e6))

# Fewer would leave no p-value small enough to fail by.
FEWEST_REDRAWN = 1000

LONG_NAMES = METRICS | {
    "loss": "loss on fresh data",
    "auc": "area under ROC",
    "calibration_error": "calibration error",
    "balanced_log_threshold": "balancing log threshold",
    "balanced_error_rate": "error rate at the balancing threshold",
    "slope": "slope of recalibration",
    "intercept": "intercept of recalibration",
}

PERFECT = {"spearman": 1.0, "agreement": 1.0}

# A variable of the result: its dimensions after `estimator`, and its values for one estimator.
Variables = dict[str, tuple[tuple[str, ...], Any]]


def measure(
    log_bf: Mapping[str, Sequence[ArrayLike]] | Sequence[ArrayLike],
    *,
    exact: Sequence[ArrayLike] | None = None,
    names: Sequence[str] = ("first model", "second model"),
    prior_probs: ArrayLike | None = None,
    observed: Mapping[str, float] | float | None = None,
    clip: float = DEFAULT_CLIP,
    num_replicates: int = 1000,
    seed: int = 0,
) -> Evaluation:
    """Return the whole toolkit's verdict on estimated log Bayes factors, from whatever estimator they come.

    Parameters
    ----------
    log_bf
        Natural log Bayes factors of the first model over the second, as two arrays: at data simulated from the first
        model, and at data simulated from the second. For several estimators, a dict of such pairs by name.
        Infinite entries are kept, counted, and ranked; nan entries are left out of the metrics, and counted.
    exact
        Exact log Bayes factors at the same data sets, where they are known.
    names
        The two models.
    prior_probs
        Their prior probabilities, equal by default: the weights of averages over models, and the prior odds of
        decisions and posterior probabilities.
    observed
        The estimated log Bayes factor of observed data, or one an estimator by name, for its surprise.
    clip
        Where to clip log Bayes factors for the clipped MSE and the densities; a million to one by default.
    num_replicates
        Bootstrap replicates behind every error.
    seed
        Of the bootstrap.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> exact = rng.normal(0.5, 1, 1000), rng.normal(-0.5, 1, 1000)
    >>> evaluation = measure([1.5 * part for part in exact], exact=exact, names=("A", "B"))
    >>> round(evaluation.value("spearman"), 4)
    1.0
    >>> evaluation.value("excess_loss") > 0
    True
    """
    names = check_names(names)
    prior = _checks.check_probs("prior_probs", prior_probs, names)
    clip = _checks.check_positive("clip", clip)
    num_replicates = _checks.check_count("num_replicates", num_replicates, least=2)
    seed = _checks.check_seed("seed", seed)
    estimates = check_estimates(log_bf, names)
    truth = None if exact is None else check_exact(exact, estimates, names)
    check_same_data(estimates, names)
    observed_by_name = check_observed_log_bfs(observed, tuple(estimates))
    if truth is not None:
        estimates = {**estimates, EXACT: truth}
    answered = {name: without_missing(name, values, truth, names) for name, values in estimates.items()}
    grid = common_grid([np.clip(part, -clip, clip) for values, _ in answered.values() for part in values])
    measured = []
    for name, (values, exact_values) in answered.items():
        # The exact one measured against itself would tell nothing, and take as long as the others.
        judge = None if name == EXACT else exact_values
        variables = measured_with_errors(values, judge, prior, clip, num_replicates, seed)
        variables |= perfect_accuracy() if name == EXACT else {}
        variables |= measured_without_truth(values, prior, num_replicates, seed)
        variables |= decided(values, exact_values)
        variables["density"] = (("model", "grid"), [density(np.clip(part, -clip, clip), grid) for part in values])
        if name in observed_by_name:
            variables |= measured_surprise(observed_by_name[name], values)
        measured.append(variables)
    results = labelled(measured, tuple(estimates), names, grid)
    add_raw(results, estimates, prior, names)
    results.attrs = {
        "first": names[0],
        "second": names[1],
        "direction": f"log Bayes factors are natural logs, {names[0]} over {names[1]}",
        "clip": clip,
        "num_replicates": num_replicates,
        "bootstrap_seed": as_attribute(seed),
        "deepbf_version": __version__,
    }
    return Evaluation(results)


def measured_with_errors(
    log_bf: ByModel,
    exact: ByModel | None,
    prior: NDArray[np.float64],
    clip: float,
    num_replicates: int,
    seed: int,
) -> Variables:
    """Return everything that comes with a bootstrap error."""
    losses = log_losses(shift(log_bf, _log_odds(prior)))
    statistics: dict[str, Statistic] = {
        "loss": by_model(mean_of(losses[0]), mean_of(losses[1]), prior),
        "auc": area_under_roc(merge_rounding(log_bf)),
        "balanced": BalancedThreshold(merge_rounding(log_bf)),
    }
    if exact is not None:
        statistics |= accuracy_statistics(log_bf, exact, prior, clip)
    sizes = (len(log_bf[0]), len(log_bf[1]))
    found = with_errors(statistics, sizes, num_replicates=num_replicates, seed=seed)
    variables: Variables = {}
    for name, (estimate, error) in found.items():
        if name == "balanced":
            variables["balanced_log_threshold"], variables["balanced_error_rate"] = (((), value) for value in estimate)
            variables["balanced_log_threshold_error"] = ((), error[0])
            variables["balanced_error_rate_error"] = ((), error[1])
        elif name == "auc":
            variables["auc"], variables["auc_error"] = ((), estimate[0]), ((), error[0])
        else:
            variables[name], variables[f"{name}_error"] = (("group",), estimate), (("group",), error)
    return variables


def perfect_accuracy() -> Variables:
    """Return the metrics against the truth that the truth itself has."""
    variables: Variables = {metric: (("group",), [PERFECT.get(metric, 0.0)] * 3) for metric in METRICS}
    return variables | {f"{metric}_error": (("group",), [0.0] * 3) for metric in METRICS}


def measured_without_truth(log_bf: ByModel, prior: NDArray[np.float64], num_replicates: int, seed: int) -> Variables:
    """Return the checks that need no exact Bayes factor."""
    recovered = estimated_prior(shift(log_bf, _log_odds(prior)), prior)
    # At data of the first model the Bayes factor over it is the inverse.
    identities = (mean_bf_identity(-log_bf[0], -log_bf[1]), mean_bf_identity(log_bf[1], log_bf[0]))
    curve = reliability_curve(log_bf, prior)
    error = calibration_error(log_bf, prior, num_replicates=max(num_replicates, FEWEST_REDRAWN), seed=seed)
    line = recalibration(log_bf)
    variables: Variables = {
        "estimated_prior": ((), recovered.prob),
        "estimated_prior_error": ((), recovered.error),
        "estimated_prior_z": ((), recovered.z),
        "predicted": (("bin",), curve.predicted),
        "frequency": (("bin",), curve.frequency),
        "frequency_low": (("bin",), curve.low),
        "frequency_high": (("bin",), curve.high),
        "bin_count": (("bin",), curve.num_datasets),
        "calibration_error": ((), error.value),
        "calibration_error_low": ((), error.low),
        "calibration_error_high": ((), error.high),
        "calibration_p_value": ((), error.p_value),
    }
    for field in identities[0]._fields:
        variables[f"identity_{field}"] = (("model",), [getattr(identity, field) for identity in identities])
    return variables | {name: ((), value) for name, value in line._asdict().items()}


def decided(log_bf: ByModel, exact: ByModel | None) -> Variables:
    """Return ROC curve, rates at conventional thresholds and Jeffreys' categories."""
    curve = roc_curve(log_bf)
    rates = decision_rates(log_bf)
    dims = ("model", "threshold", "decision")
    variables: Variables = {
        "false_positive_rate": (("roc_point",), curve.false_positive_rate),
        "true_positive_rate": (("roc_point",), curve.true_positive_rate),
        "decision_rate": (dims, rates.rate),
        "decision_rate_low": (dims, rates.low),
        "decision_rate_high": (dims, rates.high),
        "category_count": (("model", "category"), category_counts(log_bf)),
    }
    if exact is not None:
        variables["category_confusion"] = (("model", "exact_category", "category"), category_confusion(log_bf, exact))
    return variables


def measured_surprise(observed: float, log_bf: ByModel) -> Variables:
    """Return the observed log Bayes factor and its tail area under each model."""
    found = surprise(observed, log_bf, rounding=True)
    return {
        "observed_log_bf": ((), observed),
        "surprise": (("model",), found.tail_area[0]),
        "surprise_low": (("model",), found.low[0]),
        "surprise_high": (("model",), found.high[0]),
    }


def labelled(
    measured: Sequence[Variables], estimators: Sequence[str], names: Sequence[str], grid: NDArray[np.float64]
) -> xr.Dataset:
    """Return the estimators' variables side by side, each dimension with its labels."""
    num_points = max(len(one["false_positive_rate"][1]) for one in measured)
    for one in measured:
        for rate in ("false_positive_rate", "true_positive_rate"):
            dims, values = one[rate]
            # Curves of different lengths end at (1, 1) and stay there.
            one[rate] = (dims, np.pad(values, (0, num_points - len(values)), mode="edge"))
    categories = list(category_names(names[0], names[1]))
    variables = {}
    for name in dict.fromkeys(name for one in measured for name in one):
        dims, example = next(one[name] for one in measured if name in one)
        # The observed data have no exact Bayes factor here, so that estimator's surprise is unknown.
        unknown = np.full(np.shape(example), np.nan)
        values = np.stack([np.asarray(one.get(name, (dims, unknown))[1]) for one in measured])
        variables[name] = (("estimator", *dims), values, {"long_name": LONG_NAMES[name]} if name in LONG_NAMES else {})
    return xr.Dataset(
        variables,
        coords={
            "estimator": list(estimators),
            "model": list(names),
            "group": [*names, WEIGHTED],
            "grid": grid,
            "threshold": list(CONVENTIONAL_THRESHOLDS),
            "decision": list(DECISIONS),
            "category": categories,
            "exact_category": categories,
        },
    )


def as_attribute(number: int) -> int | str:
    """Return a whole number as netCDF can hold it, in words if it is too large."""
    return number if abs(number) < 2**31 else str(number)


def add_raw(
    results: xr.Dataset, estimates: Mapping[str, ByModel], prior: NDArray[np.float64], names: Sequence[str]
) -> None:
    """Add the log Bayes factors themselves, where they came from, and how many are infinite or missing."""
    results["log_bf"] = (("estimator", "dataset"), np.stack([np.concatenate(values) for values in estimates.values()]))
    sizes = [len(part) for part in next(iter(estimates.values()))]
    results.coords["source"] = ("dataset", np.repeat(np.array(names, dtype=object), sizes))
    results["prior_prob"] = (("model",), prior)

    def counted(test: Callable[[NDArray[np.float64]], NDArray[np.bool_]]) -> list[list[int]]:
        return [[int(test(part).sum()) for part in values] for values in estimates.values()]

    results["num_infinite"] = (("estimator", "model"), counted(np.isinf))
    results["num_missing"] = (("estimator", "model"), counted(np.isnan))


def _log_odds(prior: NDArray[np.float64]) -> float:
    return float(np.log(prior[0]) - np.log(prior[1]))
