"""The log Bayes factor of Data 2: two normal components against one normal, by two independent exact routes.

First model: y ~ 1/2 N(mu1, 2^2) + 1/2 N(mu2, 2^2), mu1 ~ N(2, 1.5^2), mu2 ~ N(-2, 1.5^2).
Second model: y ~ N(mu, 2.5^2), mu ~ N(0, 1).

Enumeration sums over the 2^n ways to share n observations between the components; quadrature integrates over the two
means (`deepbf_studies.problems.exact.mixture_quadrature`). They share no step, so that each can judge the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from deepbf import _checks
from deepbf_studies.problems.exact.closed_forms import normal_mean_log_bf_from_total
from deepbf_studies.problems.exact.mixture_quadrature import COMPONENT_SCALE, PRIOR_MEAN, PRIOR_SCALE, log_evidence

NORMAL_SCALE = 2.5
NORMAL_PRIOR_SCALE = 1.0

# Beyond this, 2^n terms a data set cost more than the quadrature's grid (measured).
_MAX_OBS_ENUMERATED_BY_CHOICE = 9
# 2^20 terms a data set take about a tenth of a second.
_MAX_OBS_ENUMERATED = 20
# Beyond this, log densities are too large for float64 to resolve the differences that steer the quadrature.
_MAX_QUADRATURE_VALUE = 1e7
# Terms held at once: 8 MB for each of a few temporary arrays.
_TERMS_PER_CHUNK = 2**20


def normal_mixture_log_bf(data: ArrayLike) -> NDArray[np.float64]:
    """Return the log Bayes factor of the normal mixture over the normal, one entry a data set.

    Data 2 of *Deep Bayes Factors* (Kim and Rockova); its printed prior of the second mean has a stray 1/2. Takes the
    faster exact route: enumeration for a handful of observations, quadrature for more.

    Examples
    --------
    >>> normal_mixture_log_bf([[0.0, 0.0], [4.0, -4.0]]).round(4)
    array([-0.3747,  0.7237])
    """
    values = _checks.check_datasets("data", data)
    if values.shape[1] <= _MAX_OBS_ENUMERATED_BY_CHOICE:
        return normal_mixture_log_bf_by_enumeration(values)
    return normal_mixture_log_bf_by_quadrature(values)


def normal_mixture_log_bf_by_enumeration(data: ArrayLike) -> NDArray[np.float64]:
    """Return the log Bayes factor of the normal mixture over the normal, summing over all component assignments.

    Given an assignment, each component is a normal with a conjugate normal prior on its mean.
    """
    values = _checks.check_datasets("data", data)
    num_datasets, num_obs = values.shape
    if num_obs > _MAX_OBS_ENUMERATED:
        raise ValueError(
            f"data has {num_obs} observations a data set, and so 2^{num_obs} assignments; the limit is "
            f"{_MAX_OBS_ENUMERATED}. Use normal_mixture_log_bf_by_quadrature."
        )
    in_upper = _all_assignments(num_obs)
    size = max(1, _TERMS_PER_CHUNK // len(in_upper))
    log_mixture = np.empty(num_datasets)
    for start in range(0, num_datasets, size):
        chunk = slice(start, start + size)
        log_mixture[chunk] = logsumexp(_log_joint(values[chunk], in_upper), axis=1)
    return log_mixture - num_obs * np.log(2) - _log_normal_evidence(values)


def normal_mixture_log_bf_by_quadrature(data: ArrayLike) -> NDArray[np.float64]:
    """Return the log Bayes factor of the normal mixture over the normal, integrating over the two means.

    The relative error of the integral is below 1e-9 for any data, to which rounding adds about 1e-15 of the squares'
    sum; see `deepbf_studies.problems.exact.mixture_quadrature`.
    """
    values = _checks.check_datasets("data", data)
    largest = np.abs(values).max(initial=0.0)
    if largest > _MAX_QUADRATURE_VALUE:
        raise ValueError(
            f"data must lie within {_MAX_QUADRATURE_VALUE:g} of 0; received {largest:g}, which is millions of standard "
            "deviations out under both models. Check the unit of the data."
        )
    return log_evidence(values) - _log_normal_evidence(values)


def _all_assignments(num_obs: int) -> NDArray[np.float64]:
    """Return every row of 0s and 1s of length `num_obs`, shape (2^num_obs, num_obs)."""
    codes = np.arange(2**num_obs)[:, None]
    return (codes >> np.arange(num_obs) & 1).astype(np.float64)


def _log_joint(values: NDArray[np.float64], in_upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log density of each data set given each assignment, shape (num_datasets, num_assignments)."""
    log_joint = np.zeros((len(values), len(in_upper)))
    for members, prior_mean in ((in_upper, PRIOR_MEAN), (1 - in_upper, -PRIOR_MEAN)):
        deviations = values - prior_mean
        log_joint += _log_normal_density(deviations, COMPONENT_SCALE) @ members.T
        log_joint += normal_mean_log_bf_from_total(
            members.sum(axis=1), deviations @ members.T, prior_scale=PRIOR_SCALE, noise_scale=COMPONENT_SCALE
        )
    return log_joint


def _log_normal_evidence(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log evidence of the second model: its density at mean 0, times the Bayes factor over mean 0."""
    return _log_normal_density(values, NORMAL_SCALE).sum(axis=1) + normal_mean_log_bf_from_total(
        values.shape[1], values.sum(axis=1), prior_scale=NORMAL_PRIOR_SCALE, noise_scale=NORMAL_SCALE
    )


def _log_normal_density(deviations: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    return -0.5 * (deviations / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)
