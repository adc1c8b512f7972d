"""Calibration: among data sets given probability 0.8 for a model, that model should have made 80%."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from deepbf.evaluation.bootstrap import BATCH_ENTRIES
from deepbf.evaluation.log_bfs import ByModel, shift

NUM_BINS = 10
# Log Bayes factors beyond this all say the same about which model it was: errors of one in a million.
FARTHEST = float(np.log(1e6))
Z_95 = float(norm.ppf(0.975))


class Reliability(NamedTuple):
    """The reliability curve of the first model's posterior probability, one entry a bin of equal width.

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
    """Return predicted probability against frequency, in bins of equal width."""
    probs, of_first = _probs_and_labels(log_bf, prior_probs)
    weights = _dataset_weights(log_bf, prior_probs)
    bins = _bin_of(probs, num_bins)

    def in_bins(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(bins, values, num_bins).astype(np.float64)

    total = in_bins(weights)
    num_datasets = np.bincount(bins, minlength=num_bins)
    # Weights go by model, so they turn shares of simulations into frequencies, and intervals of one into the other's.
    weight_ratio = (prior_probs[0] / len(log_bf[0])) / (prior_probs[1] / len(log_bf[1]))
    with np.errstate(invalid="ignore", divide="ignore"):
        predicted = in_bins(weights * probs) / total
        share = in_bins(of_first) / num_datasets
        frequency, low, high = (
            weight_ratio * value / (weight_ratio * value + 1 - value)
            for value in (share, *wilson_interval(share, num_datasets))
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

    The latter by drawing anew, from the estimated probabilities, which model made each data set (Broecker and Smith,
    2007): whatever distance from the diagonal remains then is noise.
    """
    probs, of_first = _probs_and_labels(log_bf, prior_probs)
    # As likely as the simulations have it, which may be in other proportions than the prior probabilities.
    as_simulated = expit(np.concatenate(shift(log_bf, float(np.log(len(log_bf[0]) / len(log_bf[1]))))))
    membership = np.eye(num_bins)[_bin_of(probs, num_bins)]
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

    A slope of minus infinity says that the order is reversed without exception.
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


def wilson_interval(
    frequency: NDArray[np.float64], count: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Wilson's 95% interval of a probability from a frequency among `count` trials."""
    centre = (frequency + Z_95**2 / (2 * count)) / (1 + Z_95**2 / count)
    half = Z_95 / (1 + Z_95**2 / count) * np.sqrt(frequency * (1 - frequency) / count + Z_95**2 / (4 * count**2))
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def _probs_and_labels(
    log_bf: ByModel, prior_probs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    log_prior_odds = float(np.log(prior_probs[0]) - np.log(prior_probs[1]))
    probs = expit(np.concatenate(shift(log_bf, log_prior_odds)))
    return probs, np.repeat([1.0, 0.0], [len(part) for part in log_bf])


def _dataset_weights(log_bf: ByModel, prior_probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights that give each model its prior probability, whatever its number of simulations."""
    return np.concatenate(
        [np.full(len(part), prob / len(part)) for prob, part in zip(prior_probs, log_bf, strict=True)]
    )


def _bin_of(probs: NDArray[np.float64], num_bins: int) -> NDArray[np.intp]:
    return np.minimum((probs * num_bins).astype(np.intp), num_bins - 1)
