"""A set of trials, a short vector and a covariate: the study of mixed data whose answer is known."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.study import OfSize, Study

NUM_TRIALS = 40
NUM_PRETESTS = 2
# Standardised: uniform within this distance of 0, the same under both models, so that age alone says nothing.
OLDEST = 1.5
SLOPE_SCALE = 2.0
MEAN_SCALE = 1.0

Floats = NDArray[np.float64]


def covariate_study(name: str, num_obs: int) -> Study:
    """Return normal trials and pretests of one person about a mean: in proportion to age, or free of it.

    Neither part decides alone: how far the mean may be from 0 under the first model depends on the age.
    """
    follows_age = Model(
        "mean follows age",
        prior=partial(_normal_prior, scale=SLOPE_SCALE),
        simulator=OfSize(partial(_person, follows_age=True), num_obs),
    )
    free_mean = Model(
        "free mean",
        prior=partial(_normal_prior, scale=MEAN_SCALE),
        simulator=OfSize(partial(_person, follows_age=False), num_obs),
    )
    return Study(
        name=name,
        title=f"A mean that follows age, or a free one: {num_obs} normal trials, {NUM_PRETESTS} pretests, and the age",
        num_obs=num_obs,
        models=(follows_age, free_mean),
        structure={"age": "vector", "pretest": "vector", "trials": "exchangeable"},
        exact_log_bf=partial(covariate_log_bf, slope_scale=SLOPE_SCALE, mean_scale=MEAN_SCALE),
    )


def _normal_prior(rng: np.random.Generator, size: int, *, scale: float) -> Floats:
    """Return the slope or the mean, normal about 0."""
    return scale * rng.standard_normal(size)


def _person(rng: np.random.Generator, params: Floats, *, num_obs: int, follows_age: bool) -> dict[str, Floats]:
    """Return age, pretests and trials of one person for each parameter."""
    age = rng.uniform(-OLDEST, OLDEST, len(params))
    means = params * age if follows_age else params
    pretest = rng.standard_normal((len(params), NUM_PRETESTS)) + means[:, None]
    trials = rng.standard_normal((len(params), num_obs)) + means[:, None]
    return {"age": age, "pretest": pretest, "trials": trials}


def covariate_log_bf(data: Mapping[str, Any], *, slope_scale: float = 2.0, mean_scale: float = 1.0) -> Floats:
    """Return the log Bayes factor of "the mean follows the age" over "the mean is free", for each data set.

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


def _log_normal(value: Floats, variance: Floats) -> Floats:
    """Return the log density of N(0, variance), up to the constant that every normal density has."""
    return -0.5 * np.log(variance) - 0.5 * value**2 / variance
