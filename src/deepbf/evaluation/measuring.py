"""measure: from log Bayes factors at simulated data to one labelled result, for one estimator or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.metrics import roc_curve

from deepbf import _checks
from deepbf._jeffreys import JEFFREYS_SCALE, jeffreys_category
from deepbf._version import __version__
from deepbf.evaluation.accuracy import DEFAULT_CLIP, METRICS, accuracy_statistics
from deepbf.evaluation.bootstrap import Statistic, by_model, mean_of, merge_rounding, with_errors
from deepbf.evaluation.decisions import (
    CONVENTIONAL_THRESHOLDS,
    DECISIONS,
    BalancedThreshold,
    area_under_roc,
    decision_rates,
)
from deepbf.evaluation.density import common_grid, density
from deepbf.evaluation.evaluation_result import Evaluation
from deepbf.evaluation.log_bf_arrays import (
    EXACT,
    WEIGHTED,
    ByModel,
    answered_by,
    check_estimates,
    check_exact,
    check_names,
    log_losses,
    posterior_log_odds,
)
from deepbf.evaluation.self_consistency import (
    calibration_error,
    estimated_prior,
    mean_bf_identity,
    recalibration,
    reliability_curve,
)
from deepbf.evaluation.tail_areas import surprise

# Fewer would leave no p-value small enough to fail by.
FEWEST_REDRAWN = 1000
# Of Jeffreys' scale, from decisive for the second model to decisive for the first.
NUM_CATEGORIES = 10

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
        The estimated log Bayes factor of observed data, or a dict of them by estimator, for its surprise.
    clip
        Where to clip log Bayes factors for the clipped MSE and the densities; a million to one by default.
    num_replicates
        The number of bootstrap replicates behind every error.
    seed
        The seed of the bootstrap; the same seed gives the same errors.

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
    if observed is not None and not isinstance(observed, Mapping):
        if len(estimates) > 1:
            raise ValueError(
                f"observed must be a dict by estimator where there are several ({', '.join(estimates)}); "
                f"received {observed!r}."
            )
        observed = dict.fromkeys(estimates, observed)
    for name in observed or {}:
        _checks.check_choice("the estimator of observed", name, estimates)
    observed_by_name = {name: float(value) for name, value in (observed or {}).items()}
    if truth is not None:
        estimates = {**estimates, EXACT: truth}
    answered = {name: _answered(name, values, truth, names) for name, values in estimates.items()}
    grid = common_grid([np.clip(part, -clip, clip) for values, _ in answered.values() for part in values])
    measured = []
    for name, (values, exact_values) in answered.items():
        variables = _with_bootstrap_errors(name, values, exact_values, prior, clip, num_replicates, seed)
        variables |= _without_bootstrap(values, exact_values, prior, num_replicates, seed)
        variables["density"] = (("model", "grid"), [density(np.clip(part, -clip, clip), grid) for part in values])
        if name in observed_by_name:
            found = surprise(observed_by_name[name], values, rounding=True)
            variables["observed_log_bf"] = ((), observed_by_name[name])
            for suffix, numbers in zip(("", "_low", "_high"), found, strict=True):
                variables[f"surprise{suffix}"] = (("model",), numbers[0])
        measured.append(variables)
    results = _side_by_side(measured, estimates, names, grid)
    results["prior_prob"] = (("model",), prior)
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


def _answered(
    name: str, values: ByModel, exact: ByModel | None, names: tuple[str, str]
) -> tuple[ByModel, ByModel | None]:
    """Return the estimated and exact log Bayes factors where the estimator gives one."""
    known = answered_by(values)
    for model, kept in zip(names, known, strict=True):
        if kept.sum() < 2:
            raise ValueError(
                f"log_bf of {name!r} is nan at {len(kept) - kept.sum()} of {len(kept)} data sets of {model}; nothing "
                "is left to measure. Use another estimator, or other settings of it."
            )
    kept_values = values[0][known[0]], values[1][known[1]]
    return kept_values, None if exact is None else (exact[0][known[0]], exact[1][known[1]])


def _with_bootstrap_errors(
    name: str,
    log_bf: ByModel,
    exact: ByModel | None,
    prior: NDArray[np.float64],
    clip: float,
    num_replicates: int,
    seed: int,
) -> Variables:
    """Return everything about the estimator `name` that comes with a bootstrap error."""
    losses = log_losses(posterior_log_odds(log_bf, prior))
    statistics: dict[str, Statistic] = {
        "loss": by_model(mean_of(losses[0]), mean_of(losses[1]), prior),
        "auc": area_under_roc(merge_rounding(log_bf)),
        "balanced": BalancedThreshold(merge_rounding(log_bf)),
    }
    if exact is not None and name != EXACT:
        statistics |= accuracy_statistics(log_bf, exact, prior, clip)
    sizes = (len(log_bf[0]), len(log_bf[1]))
    found = with_errors(statistics, sizes, num_replicates=num_replicates, seed=seed)
    variables: Variables = {}
    for metric, (estimate, error) in found.items():
        if metric == "balanced":
            variables["balanced_log_threshold"], variables["balanced_error_rate"] = (((), value) for value in estimate)
            variables["balanced_log_threshold_error"] = ((), error[0])
            variables["balanced_error_rate_error"] = ((), error[1])
        elif metric == "auc":
            variables["auc"], variables["auc_error"] = ((), estimate[0]), ((), error[0])
        else:
            variables[metric], variables[f"{metric}_error"] = (("group",), estimate), (("group",), error)
    if name == EXACT:
        # Measured against itself, it would tell nothing and take as long as the others.
        for metric in METRICS:
            variables[metric] = (("group",), [PERFECT.get(metric, 0.0)] * 3)
            variables[f"{metric}_error"] = (("group",), [0.0] * 3)
    return variables


def _without_bootstrap(
    log_bf: ByModel, exact: ByModel | None, prior: NDArray[np.float64], num_replicates: int, seed: int
) -> Variables:
    """Return what has intervals of its own, or none: self-consistency, ROC curve, decisions, Jeffreys' categories."""
    recovered = estimated_prior(posterior_log_odds(log_bf, prior), prior)
    curve = reliability_curve(log_bf, prior)
    error = calibration_error(log_bf, prior, num_replicates=max(num_replicates, FEWEST_REDRAWN), seed=seed)
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
    # At data of the first model the Bayes factor over it is the inverse.
    identities = (mean_bf_identity(-log_bf[0], -log_bf[1]), mean_bf_identity(log_bf[1], log_bf[0]))
    for field in identities[0]._fields:
        variables[f"identity_{field}"] = (("model",), [getattr(identity, field) for identity in identities])
    variables |= {name: ((), value) for name, value in recalibration(log_bf)._asdict().items()}
    # The decision is for the first model where log BF exceeds a threshold, from high to low; a tie is one step of the
    # curve. Ranks stand in for log Bayes factors, for infinite ones have ranks too.
    labels = np.repeat([1, 0], [len(part) for part in log_bf])
    false_positive_rate, true_positive_rate, _ = roc_curve(labels, rankdata(np.concatenate(merge_rounding(log_bf))))
    variables["false_positive_rate"] = (("roc_point",), false_positive_rate)
    variables["true_positive_rate"] = (("roc_point",), true_positive_rate)
    for suffix, values in zip(("", "_low", "_high"), decision_rates(log_bf), strict=True):
        variables[f"decision_rate{suffix}"] = (("model", "threshold", "decision"), values)
    categories = [jeffreys_category(part) for part in log_bf]
    counts = np.stack([np.bincount(part, minlength=NUM_CATEGORIES) for part in categories])
    variables["category_count"] = (("model", "category"), counts)
    if exact is not None:
        confusion = np.zeros((2, NUM_CATEGORIES, NUM_CATEGORIES), dtype=np.int64)
        for model in range(2):
            np.add.at(confusion[model], (jeffreys_category(exact[model]), categories[model]), 1)
        variables["category_confusion"] = (("model", "exact_category", "category"), confusion)
    return variables


def _side_by_side(
    measured: Sequence[Variables], estimates: Mapping[str, ByModel], names: Sequence[str], grid: NDArray[np.float64]
) -> xr.Dataset:
    """Return the estimators' variables and log Bayes factors side by side, each dimension with its labels."""
    num_points = max(len(one["false_positive_rate"][1]) for one in measured)
    for one in measured:
        for rate in ("false_positive_rate", "true_positive_rate"):
            dims, values = one[rate]
            # Curves of different lengths end at (1, 1) and stay there.
            one[rate] = (dims, np.pad(values, (0, num_points - len(values)), mode="edge"))
    words = [strength for _, strength in JEFFREYS_SCALE]
    categories = [f"{word} for {names[1]}" for word in reversed(words)] + [f"{word} for {names[0]}" for word in words]
    variables = {}
    for name in dict.fromkeys(name for one in measured for name in one):
        dims, example = next(one[name] for one in measured if name in one)
        # The observed data have no exact Bayes factor here, so that estimator's surprise is unknown.
        unknown = np.full(np.shape(example), np.nan)
        values = np.stack([np.asarray(one.get(name, (dims, unknown))[1]) for one in measured])
        variables[name] = (("estimator", *dims), values, {"long_name": LONG_NAMES[name]} if name in LONG_NAMES else {})
    results = xr.Dataset(
        variables,
        coords={
            "estimator": list(estimates),
            "model": list(names),
            "group": [*names, WEIGHTED],
            "grid": grid,
            "threshold": list(CONVENTIONAL_THRESHOLDS),
            "decision": list(DECISIONS),
            "category": categories,
            "exact_category": categories,
        },
    )
    results["log_bf"] = (("estimator", "dataset"), np.stack([np.concatenate(values) for values in estimates.values()]))
    sizes = [len(part) for part in next(iter(estimates.values()))]
    results.coords["source"] = ("dataset", np.repeat(np.array(names, dtype=object), sizes))
    for name, test in (("num_infinite", np.isinf), ("num_missing", np.isnan)):
        counts = [[int(test(part).sum()) for part in values] for values in estimates.values()]
        results[name] = (("estimator", "model"), counts)
    return results


def as_attribute(number: int) -> int | str:
    """Return a whole number as the attributes of a netCDF file can hold it.

    Attributes are 32-bit integers in version 3 of netCDF, so a larger number, such as a long seed, becomes text.
    """
    return number if abs(number) < 2**31 else str(number)
