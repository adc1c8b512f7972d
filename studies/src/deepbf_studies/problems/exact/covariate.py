"""The log Bayes factor of a mean that follows a covariate over one that does not: mixed data with an exact answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks


def covariate_log_bf(
    data: Mapping[str, Any], *, slope_scale: float = 2.0, mean_scale: float = 1.0
) -> NDArray[np.float64]:
    """Return the log Bayes factor of "the mean follows the age" over "the mean is free", one entry a data set.

    `data` holds "age", shape (data sets,), "pretest", shape (data sets, k), and "trials", shape (data sets, n), absent
    ones masked or nan. Given the mean, all pretests and trials are N(mean, 1). First model: mean = slope * age, slope
    ~ N(0, slope_scale^2). Second model: mean ~ N(0, mean_scale^2). Under both, the average of all N values is normal
    about 0, with variance v + 1 / N for v the variance of the mean; the rest of the values says nothing.

    Examples
    --------
    >>> covariate_log_bf({"age": [1.0], "pretest": [[0.0, 0.0]], "trials": [[0.0, 0.0]]}).round(4)
    array([-0.6119])
    """
    slope_scale = _checks.check_positive("slope_scale", slope_scale)
    mean_scale = _checks.check_positive("mean_scale", mean_scale)
    age = np.asarray(data["age"], np.float64)
    pretest = np.asarray(data["pretest"], np.float64)
    trials = np.ma.masked_invalid(np.ma.asarray(data["trials"], np.float64))
    number = pretest.shape[1] + np.asarray(trials.count(axis=1))
    mean = (pretest.sum(axis=1) + np.ma.filled(trials.sum(axis=1), 0.0)) / number
    first = _log_normal(mean, (slope_scale * age) ** 2 + 1.0 / number)
    return first - _log_normal(mean, mean_scale**2 + 1.0 / number)


def _log_normal(value: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log density of N(0, variance), up to the constant that every normal density has."""
    return -0.5 * np.log(variance) - 0.5 * value**2 / variance
