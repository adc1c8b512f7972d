"""What any right Bayes factor satisfies, checked without knowing it: prior recovery, two identities, calibration.

Prior recovery: averaged over data of all models, posterior probabilities give back the prior ones (Section 5.1 of *Deep
Bayes Factors*).

The identities: the mean of BF12 over data of M2 is 1, for it is the integral of p(Y | M1); likewise the mean of BF21
over data of M1. Yet BF12 over data of M2 is the importance weight of M1 against M2, and where the models are told apart
well, a few data sets that are never simulated carry the whole mean. The same identity, cut off at a bound, has no such
trouble: the mean of BF12 over data of M2 where BF12 <= c is the probability of BF12 <= c under M1.

Calibration: among the data sets that are given probability 0.8 for a model, that model should have made 80%.
"""

from __future__ import annotations

import warnings
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit, logsumexp
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from deepbf.evaluation.bootstrap import BATCH_ENTRIES
from deepbf.evaluation.log_bf_arrays import ByModel, posterior_log_odds

# Above it the variance is infinite or as good as that: the limit which Pareto-smoothed importance sampling uses
# (Vehtari et al., 2024, Journal of Machine Learning Research 25).
MOST_TAIL_INDEX = 0.7
FEWEST_FOR_A_MEAN_BF = 100
# Where the bounded identity is cut off: high enough to see most of what decides, low enough for a small variance.
LOG_BOUND = float(np.log(10))
# In standard errors. With some eight checks per estimator, a right one fails one of them in about fifty evaluations.
MOST_Z = 3.0
# What corresponds to MOST_Z on both sides.
LEAST_P_VALUE = 0.0027
# Below it a mean is not normal enough for MOST_Z.
FEWEST_FOR_CHECKS = 30
# A slope known no better than this says nothing.
WIDEST_SLOPE_ERROR = 0.5

NUM_BINS = 10
# Log Bayes factors beyond this all say the same about which model it was: errors of one in a million.
FARTHEST = float(np.log(1e6))
Z_95 = float(norm.ppf(0.975))
# Differences of means of probabilities below this are rounding.
MEAN_ROUNDING = 1e-9


class EstimatedPrior(NamedTuple):
    """The first model's prior probability as the estimator has it, its standard error, and its distance in errors.

    `z` is the distance of `prob` from the prior probability in units of `error`.
    """

    prob: float
    error: float
    z: float


def estimated_prior(log_odds: ByModel, prior_probs: NDArray[np.float64]) -> EstimatedPrior:
    """Return the mean posterior probability of the first model over data sets drawn from the prior predictive.

    `log_odds` are posterior log odds, first over second. As many data sets come from a model as it has prior
    probability, by weighting, so the error is that of a stratified mean. The mean equals the prior probability for the
    exact Bayes factor, and for many wrong ones too: it is necessary, not sufficient.
    """
    probs = [expit(values) for values in log_odds]
    mean = sum(weight * values.mean() for weight, values in zip(prior_probs, probs, strict=True))
    variance = sum(
        weight**2 * values.var(ddof=1) / len(values) for weight, values in zip(prior_probs, probs, strict=True)
    )
    return EstimatedPrior(float(mean), float(np.sqrt(variance)), z_score(mean - prior_probs[0], np.sqrt(variance)))


def z_score(difference: float, error: float) -> float:
    """Return the difference in units of its error; 0 for no difference, infinite for a difference without error.

    Differences and errors up to 1e-9 count as none: they are the rounding in a mean of numbers that are all the same.
    """
    if error > MEAN_ROUNDING:
        return float(difference / error)
    return 0.0 if abs(difference) <= MEAN_ROUNDING else float(np.copysign(np.inf, difference))


class Identity(NamedTuple):
    """The log of the mean Bayes factor over data of the model in its denominator, which should be 0.

    `error` is the standard error of the log mean, `z` the mean's distance from 1 in errors, `tail_index` the index of
    the Pareto tail of the Bayes factors, `effective_size` how many equal ones would give the same error, `missing` the
    part of the mean that lies beyond the largest simulated Bayes factor. Read `z` only where `usable`. `bounded_gap` is
    the left minus the right side of the bounded identity, `bounded_z` the same in errors; these can always be read.
    """

    log_mean: float
    error: float
    z: float
    tail_index: float
    effective_size: float
    missing: float
    usable: bool
    bounded_gap: float
    bounded_z: float


def mean_bf_identity(log_bf: NDArray[np.float64], elsewhere: NDArray[np.float64]) -> Identity:
    """Return the identity for log Bayes factors at data of the model in their denominator.

    `elsewhere` are the same Bayes factors at data of the model in their numerator. For BF12 pass those at data of M2,
    then those at data of M1; for BF21, minus log BF at data of M1, then at data of M2.
    """
    num_datasets = len(log_bf)
    index = tail_index(log_bf)
    largest = log_bf.max()
    # Beyond the largest value the mean still gains what the other model has there.
    missing = float(np.mean(elsewhere > largest))
    # The identity cut off at c = 10: mean(BF; BF <= c) over data of the denominator, P(BF <= c) under the numerator.
    left = np.where(log_bf <= LOG_BOUND, np.exp(np.minimum(log_bf, LOG_BOUND)), 0.0)
    right = (elsewhere <= LOG_BOUND).astype(np.float64)
    bounded_gap = float(left.mean() - right.mean())
    bounded_error = float(np.sqrt(left.var(ddof=1) / len(left) + right.var(ddof=1) / len(right)))
    bounded_z = z_score(bounded_gap, bounded_error)
    if np.isinf(largest):
        # An infinite Bayes factor against the model that made the data is wrong. Zeros alone say nothing.
        return Identity(
            float(largest), np.nan, float(largest), index, np.nan, missing, bool(largest > 0), bounded_gap, bounded_z
        )
    log_mean = float(logsumexp(log_bf) - np.log(num_datasets))
    weights = np.exp(log_bf - largest)
    effective_size = float(weights.sum() ** 2 / (weights**2).sum())
    relative_error = float(weights.std(ddof=1) / weights.mean() / np.sqrt(num_datasets))
    # (mean - 1) / error, each divided by the mean, which may be too large or too small to write down.
    z = z_score(-np.expm1(np.clip(-log_mean, -700, 700)), relative_error)
    usable = index < MOST_TAIL_INDEX and num_datasets >= FEWEST_FOR_A_MEAN_BF and missing <= 0.5 * relative_error
    return Identity(log_mean, relative_error, z, index, effective_size, missing, bool(usable), bounded_gap, bounded_z)


def tail_index(log_values: NDArray[np.float64]) -> float:
    """Return Hill's estimate of the tail index of exp(log_values): the mean excess of the largest logs.

    Moments of order 1 / index and above do not exist. The tail is as long as Pareto-smoothed importance sampling takes
    it. Only differences of logs occur, so no size overflows.
    """
    num_tail = int(np.ceil(min(0.2 * len(log_values), 3 * np.sqrt(len(log_values)))))
    ordered = np.sort(log_values)
    threshold, tail = ordered[-num_tail - 1], ordered[-num_tail:]
    if np.isinf(threshold):
        return np.inf
    return float(np.mean(tail - threshold))


class Reliability(NamedTuple):
    """The reliability curve of the first model's posterior probability, one entry per bin of equal width.

    `predicted` is the mean probability in the bin, `frequency` how often the first model made the data, with Wilson's
    95% interval. Bins without data sets hold nan.
    """

    predicted: NDArray[np.float64]
    frequency: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    num_datasets: NDArray[np.int64]


class CalibrationError(NamedTuple):
    """The mean distance of the reliability curve from the diagonal, and what perfect calibration would give.

    `low` to `high` holds 95% of the values that a perfectly calibrated estimator would show on as many data sets; no
    finite number of them gives 0. `p_value` is the probability of one at least as large.
    """

    value: float
    low: float
    high: float
    p_value: float


class Recalibration(NamedTuple):
    """The line that log Bayes factors need: right log BF = intercept + slope x estimated log BF.

    A slope below 1 says that they are too extreme. nan where the simulations are told apart without an error.
    """

    slope: float
    slope_error: float
    intercept: float
    intercept_error: float


def reliability_curve(log_bf: ByModel, prior_probs: NDArray[np.float64], num_bins: int = NUM_BINS) -> Reliability:
    """Return predicted probability against frequency, in bins of equal width of the first model's probability.

    Data sets are weighted so that each model has its prior probability, whatever its number of simulations.
    """
    probs, of_first, bins = _binned(log_bf, prior_probs, num_bins)
    # They give each model its prior probability, whatever its number of simulations.
    weights = np.concatenate(
        [np.full(len(part), prob / len(part)) for prob, part in zip(prior_probs, log_bf, strict=True)]
    )

    def in_bins(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(bins, values, num_bins).astype(np.float64)

    total = in_bins(weights)
    num_datasets = np.bincount(bins, minlength=num_bins)
    # Weights go by model, so they turn shares of simulations into frequencies, and intervals of one into the other's.
    weight_ratio = (prior_probs[0] / len(log_bf[0])) / (prior_probs[1] / len(log_bf[1]))
    with np.errstate(invalid="ignore", divide="ignore"):
        predicted = in_bins(weights * probs) / total
        share = in_bins(of_first) / num_datasets
        # Wilson's interval covers 95% on average only: good enough for the bars of a curve, and narrower than that of
        # Clopper and Pearson (`tail_areas.binomial_interval`), which a bound that must hold would need.
        shrinkage = 1 + Z_95**2 / num_datasets
        centre = (share + Z_95**2 / (2 * num_datasets)) / shrinkage
        half = Z_95 / shrinkage * np.sqrt(share * (1 - share) / num_datasets + Z_95**2 / (4 * num_datasets**2))
        frequency, low, high = (
            weight_ratio * value / (weight_ratio * value + 1 - value)
            for value in (share, np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0))
        )
    return Reliability(predicted, frequency, low, high, num_datasets)


def calibration_error(
    log_bf: ByModel,
    prior_probs: NDArray[np.float64],
    *,
    num_bins: int = NUM_BINS,
    num_replicates: int = 1000,
    seed: int = 0,
) -> CalibrationError:
    """Return the expected calibration error and its distribution under perfect calibration.

    The error is the mean over data sets of the distance between predicted probability and frequency in their bin. For
    the distribution under perfect calibration, which model made each data set is drawn anew from the estimated
    probabilities (Broecker and Smith, 2007): whatever distance from the diagonal remains then is noise.
    """
    probs, of_first, bins = _binned(log_bf, prior_probs, num_bins)
    # As likely as the simulations have it, which may be in other proportions than the prior probabilities.
    as_simulated = expit(np.concatenate(log_bf) + float(np.log(len(log_bf[0]) / len(log_bf[1]))))
    membership = np.eye(num_bins)[bins]
    weight_of = (prior_probs[1] / len(log_bf[1]), prior_probs[0] / len(log_bf[0]))

    def errors(labels: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.where(labels > 0, weight_of[1], weight_of[0])
        gaps = np.abs((weights * (labels - probs)) @ membership).sum(axis=1)
        return gaps / weights.sum(axis=1)

    value = float(errors(of_first[None])[0])
    rng = np.random.default_rng(seed)
    batch = max(1, BATCH_ENTRIES // len(probs))
    under_calibration = np.concatenate(
        [
            errors((rng.uniform(size=(min(batch, num_replicates - start), len(probs))) < as_simulated).astype(float))
            for start in range(0, num_replicates, batch)
        ]
    )
    low, high = np.quantile(under_calibration, [0.025, 0.975])
    p_value = (1 + np.sum(under_calibration >= value)) / (1 + num_replicates)
    return CalibrationError(value, float(low), float(high), float(p_value))


def recalibration(log_bf: ByModel) -> Recalibration:
    """Return slope and intercept of the logistic regression of the true model on the log Bayes factor.

    All four numbers are nan where the models are told apart without an error or log BF never varies; a slope of minus
    infinity says that the order is reversed without exception.
    """
    first, second = (np.clip(part, -FARTHEST, FARTHEST) for part in log_bf)
    values = np.concatenate([first, second])
    if first.min() >= second.max() or np.ptp(values) < 1e-9:
        return Recalibration(np.nan, np.nan, np.nan, np.nan)
    if first.max() <= second.min():
        return Recalibration(-np.inf, np.nan, -np.inf, np.nan)
    labels = np.repeat([1, 0], [len(part) for part in log_bf])
    scale = values.std()
    with warnings.catch_warnings():
        # Models that are told apart almost without an error have no finite slope; its error then says so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8).fit(values[:, None] / scale, labels)
    slope, constant = fitted.coef_[0, 0] / scale, fitted.intercept_[0]
    fitted_probs = expit(constant + slope * values)
    columns = np.stack([np.ones_like(values), values], axis=1)
    information = columns.T @ (columns * (fitted_probs * expit(-constant - slope * values))[:, None])
    intercept_variance, slope_variance = np.diag(np.linalg.pinv(information))
    # The regression takes the models' shares among the simulations for chance, but they are given (Prentice and Pyke,
    # 1979): they shift the intercept, and add nothing to its error.
    fixed_shares = 1 / len(log_bf[0]) + 1 / len(log_bf[1])
    intercept_error, slope_error = np.sqrt(max(intercept_variance - fixed_shares, 0.0)), np.sqrt(slope_variance)
    intercept = constant - np.log(len(log_bf[0]) / len(log_bf[1]))
    return Recalibration(float(slope), float(slope_error), float(intercept), float(intercept_error))


def _binned(
    log_bf: ByModel, prior_probs: NDArray[np.float64], num_bins: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """Return the first model's probability per data set, 1 or 0 for whether it made the data, and the bin."""
    probs = expit(np.concatenate(posterior_log_odds(log_bf, prior_probs)))
    bins = np.minimum((probs * num_bins).astype(np.intp), num_bins - 1)
    return probs, np.repeat([1.0, 0.0], [len(part) for part in log_bf]), bins


class Verdict(StrEnum):
    """What a check says: each value prints as its word."""

    HOLDS = "holds"
    FAILS = "fails"
    # These simulations are too few, or of the wrong kind, to say either.
    UNUSABLE = "unusable"


# The name of a check, its verdict, and the numbers behind it in words.
Found = tuple[str, Verdict, str]


class Check(NamedTuple):
    """One check of one estimator: its verdict, and the numbers behind it in words."""

    estimator: str
    name: str
    verdict: Verdict
    detail: str


def run_checks(results: xr.Dataset) -> list[Check]:
    """Return the checks of one estimator, from its part of the results of `measure`.

    With fewer than 30 data sets of either model, one check stands for all and says that they are unusable. That all log
    Bayes factors are finite is listed only if it fails.
    """
    estimator = str(results["estimator"].values)
    infinite, missing = (int(results[name].sum()) for name in ("num_infinite", "num_missing"))
    total = results.sizes["dataset"]
    fewest = min(int((results["source"] == name).sum()) for name in results["model"].values)
    if fewest < FEWEST_FOR_CHECKS:
        few = f"{fewest} data sets of a model; {FEWEST_FOR_CHECKS} or more would do"
        found: list[Found] = [("all that need more data sets", Verdict.UNUSABLE, few)]
    else:
        prob, error, z = (float(results[f"estimated_prior{suffix}"]) for suffix in ("", "_error", "_z"))
        prior = float(results["prior_prob"][0])
        recovery = f"{prob:.4f} +- {error:.4f} for a prior of {prior:.3g}, z = {z:.1f}"
        value, low, high = (float(results[f"calibration_error{suffix}"]) for suffix in ("", "_low", "_high"))
        calibrated = Verdict.HOLDS if float(results["calibration_p_value"]) > LEAST_P_VALUE else Verdict.FAILS
        distance = f"error {value:.4f}, perfect calibration gives {low:.4f} to {high:.4f}"
        found = [
            ("prior recovery", _within(z), recovery),
            *_identity_checks(results),
            ("calibration", calibrated, distance),
            *_line_checks(results),
        ]
    if infinite or missing:
        found.append(("finite log Bayes factors", Verdict.FAILS, f"{infinite} infinite and {missing} nan of {total}"))
    return [Check(estimator, *check) for check in found]


def _identity_checks(results: xr.Dataset) -> list[Found]:
    """Each identity whole, where these simulations can show it, and up to a bound, which they always can."""
    names = [str(name) for name in results["model"].values]
    checks: list[Found] = []
    for source, over in zip(names, reversed(names), strict=True):
        found = results.sel(model=source)
        index, z, log_mean, error, missing = (
            float(found[f"identity_{key}"]) for key in ("tail_index", "z", "log_mean", "error", "missing")
        )
        if log_mean > -np.log(LEAST_P_VALUE):
            # Markov: positive numbers of mean 1 average to c or more with probability 1 / c at most, whatever the tail.
            verdict, detail = Verdict.FAILS, f"log mean {log_mean:.1f}, for 0"
        elif not bool(found["identity_usable"]):
            unseen = "" if missing == 0 else f", {missing:.1%} never simulated"
            verdict, detail = Verdict.UNUSABLE, f"carried by too few data sets, tail index {index:.1f}{unseen}"
        else:
            verdict, detail = _within(z), f"log mean {log_mean:.3f} +- {error:.3f}, z = {z:.1f}"
        checks.append((f"mean BF of {over} is 1 under {source}", verdict, detail))
        gap, bounded_z = float(found["identity_bounded_gap"]), float(found["identity_bounded_z"])
        bounded_detail = f"off by {gap:.4f}, z = {bounded_z:.1f}"
        checks.append((f"the same up to BF 10, under {source}", _within(bounded_z), bounded_detail))
    return checks


def _line_checks(results: xr.Dataset) -> list[Found]:
    slope_error = float(results["slope_error"])
    checks: list[Found] = []
    for name, right in (("slope", 1.0), ("intercept", 0.0)):
        value, error = float(results[name]), float(results[f"{name}_error"])
        label = f"{name} of recalibration"
        if value == -np.inf:
            checks.append((label, Verdict.FAILS, "the wrong model is favoured without exception"))
        elif np.isnan(value):
            reason = "log BF never varies" if results["auc"] == 0.5 else "the models are told apart without an error"
            checks.append((label, Verdict.UNUSABLE, reason))
        else:
            z = z_score(value - right, error)
            # A slope that may be anything agrees with 1, and means nothing.
            verdict = (
                Verdict.UNUSABLE if slope_error > WIDEST_SLOPE_ERROR and _within(z) == Verdict.HOLDS else _within(z)
            )
            checks.append((label, verdict, f"{value:.3f} +- {error:.3f} for {right:g}, z = {z:.1f}"))
    return checks


def _within(z: float) -> Verdict:
    return Verdict.HOLDS if abs(z) <= MOST_Z else Verdict.FAILS
