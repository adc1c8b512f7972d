"""Data 2 of *Deep Bayes Factors* (Kim and Rockova): an equal mixture of two normals, or one wider normal.

First model: y ~ 1/2 N(mu1, 2^2) + 1/2 N(mu2, 2^2), mu1 ~ N(2, 1.5^2), mu2 ~ N(-2, 1.5^2).
Second model: y ~ N(mu, 2.5^2), mu ~ N(0, 1).

The Bayes factor is exact by two independent routes. Enumeration sums over the 2^n ways to share n observations between
the components; quadrature integrates over the two means (`deepbf_studies.problems.mixture_quadrature`). They share no
step, so that each can judge the other.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from deepbf import _checks
from deepbf.criticism import ExactPosterior
from deepbf.models import Model
from deepbf_studies.problems.mixture_quadrature import (
    COMPONENT_SCALE,
    PRIOR_MEAN,
    PRIOR_SCALE,
    draw_mixture_means,
    mixture_log_evidence,
)
from deepbf_studies.problems.study import Array, OfSize, Study, library_of
from deepbf_studies.problems.toy import total_given

Floats = NDArray[np.float64]

NORMAL_SCALE = 2.5
NORMAL_PRIOR_SCALE = 1.0

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)
# Beyond this, 2^n terms for each data set cost more than the quadrature's grid (measured).
_MAX_OBS_ENUMERATED_BY_CHOICE = 9
# 2^20 terms for a data set take about a tenth of a second.
_MAX_OBS_ENUMERATED = 20
# Beyond this, log densities are too large for float64 to resolve the differences that steer the quadrature.
_MAX_QUADRATURE_VALUE = 1e7
# Terms held at once: 8 MB for each of a few temporary arrays.
_TERMS_PER_CHUNK = 2**20


def mixture_study(name: str, num_obs: int) -> Study:
    """Return Data 2: measurements, an equal mixture of two normals or one wider normal.

    The mixture's parameters are an array of shape (size, 2): the mean that the prior puts at 2, then the one at -2.
    """
    prior_means = (PRIOR_MEAN, -PRIOR_MEAN)
    two_normals = Model(
        "normal mixture",
        prior=partial(_normal_prior, means=prior_means, scale=PRIOR_SCALE),
        simulator=OfSize(partial(_normal_mixture, scale=COMPONENT_SCALE), num_obs),
        log_prior=partial(_log_normal_pair, means=prior_means, scale=PRIOR_SCALE),
        log_likelihood=partial(_log_normal_mixture, scale=COMPONENT_SCALE),
    )
    one_normal = Model(
        "normal",
        prior=partial(_normal_prior, means=0.0, scale=NORMAL_PRIOR_SCALE),
        simulator=OfSize(partial(_normal, scale=NORMAL_SCALE), num_obs),
        log_prior=partial(_log_normal, mean=0.0, scale=NORMAL_PRIOR_SCALE),
        log_likelihood=partial(_log_normal_sample, scale=NORMAL_SCALE),
    )
    one_mean = partial(_draw_normal_mean, prior_scale=NORMAL_PRIOR_SCALE, noise_scale=NORMAL_SCALE)
    return Study(
        name=name,
        title="Data 2: an equal mixture of two normals or one normal",
        num_obs=num_obs,
        models=(two_normals, one_normal),
        structure="exchangeable",
        exact_log_bf=normal_mixture_log_bf,
        exact_posteriors=(ExactPosterior(two_normals, draw_mixture_means), ExactPosterior(one_normal, one_mean)),
    )


# Priors and simulators: means have shape (size,), or (size, 2) for the mixture, and data (size, num_obs).


def _normal_prior(rng: np.random.Generator, size: int, *, means: ArrayLike, scale: float) -> Floats:
    return np.asarray(means) + scale * rng.standard_normal((size, *np.shape(means)))


def _normal_mixture(rng: np.random.Generator, means: Floats, *, num_obs: int, scale: float) -> Floats:
    first = rng.integers(0, 2, (len(means), num_obs), dtype=np.bool_)
    # In place: on small simulators, memory that is new to the process costs as much as the random numbers.
    data = rng.standard_normal((len(means), num_obs))
    data *= scale
    data += np.where(first, means[:, :1], means[:, 1:])
    return data


def _normal(rng: np.random.Generator, means: Floats, *, num_obs: int, scale: float) -> Floats:
    data = rng.standard_normal((len(means), num_obs))
    data *= scale
    data += means[:, None]
    return data


# Densities, for NumPy and for JAX arrays: the last axis of data is the observations, and the axes before it broadcast
# against the leading axes of the parameters.


def _log_normal(values: Array, *, mean: float, scale: float) -> Array:
    _, values = library_of(values)
    return -0.5 * ((values - mean) / scale) ** 2 - float(np.log(scale) + _LOG_SQRT_2PI)


def _log_normal_pair(values: Array, *, means: tuple[float, float], scale: float) -> Array:
    _, values = library_of(values)
    first, second = means
    return _log_normal(values[..., 0], mean=first, scale=scale) + _log_normal(values[..., 1], mean=second, scale=scale)


def _log_normal_mixture(means: Array, data: ArrayLike, *, scale: float) -> Array:
    xp, means = library_of(means)
    _, values = library_of(data)
    first = _log_normal(values - means[..., :1], mean=0.0, scale=scale)
    second = _log_normal(values - means[..., 1:], mean=0.0, scale=scale)
    return (xp.logaddexp(first, second) - float(np.log(2))).sum(axis=-1)


def _log_normal_sample(means: Array, data: ArrayLike, *, scale: float) -> Array:
    _, means = library_of(means)
    _, values = library_of(data)
    return _log_normal(values - means[..., None], mean=0.0, scale=scale).sum(axis=-1)


# The exact answer, by either route.


def normal_mixture_log_bf(data: ArrayLike) -> NDArray[np.float64]:
    """Return the log Bayes factor of the normal mixture over the normal, for each data set.

    `data` has shape (num_datasets, num_obs), and the result (num_datasets,). The models are Data 2 of *Deep Bayes
    Factors* (Kim and Rockova); its printed prior of the second mean has a stray 1/2. Takes the faster exact route:
    enumeration for a handful of observations, quadrature for more.

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

    Given an assignment, each component is a normal with a conjugate normal prior on its mean. `data` has shape
    (num_datasets, num_obs), with at most 20 observations: the 2^n assignments are all held in memory.

    Examples
    --------
    >>> normal_mixture_log_bf_by_enumeration([[4.0, -4.0]]).round(4)
    array([0.7237])
    """
    values = _checks.check_datasets("data", data)
    num_datasets, num_obs = values.shape
    if num_obs > _MAX_OBS_ENUMERATED:
        raise ValueError(
            f"data has {num_obs} observations per data set, and so 2^{num_obs} assignments; the limit is "
            f"{_MAX_OBS_ENUMERATED}. Use normal_mixture_log_bf_by_quadrature."
        )
    # Every row of 0s and 1s of length `num_obs`: which observations the upper component made.
    in_upper = (np.arange(2**num_obs)[:, None] >> np.arange(num_obs) & 1).astype(np.float64)
    size = max(1, _TERMS_PER_CHUNK // len(in_upper))
    log_mixture = np.empty(num_datasets)
    for start in range(0, num_datasets, size):
        chunk = slice(start, start + size)
        log_mixture[chunk] = logsumexp(_log_joint(values[chunk], in_upper), axis=1)
    return log_mixture - num_obs * np.log(2) - _log_normal_evidence(values)


def normal_mixture_log_bf_by_quadrature(data: ArrayLike) -> NDArray[np.float64]:
    """Return the log Bayes factor of the normal mixture over the normal, integrating over the two means.

    `data` has shape (num_datasets, num_obs), with values within 1e7 of 0. The relative error of the integral is below
    1e-9 for any data, to which rounding adds about 1e-15 of the squares' sum; see
    `deepbf_studies.problems.mixture_quadrature`.

    Examples
    --------
    >>> normal_mixture_log_bf_by_quadrature([[4.0, -4.0]]).round(4)
    array([0.7237])
    """
    values = _checks.check_datasets("data", data)
    largest = np.abs(values).max(initial=0.0)
    if largest > _MAX_QUADRATURE_VALUE:
        raise ValueError(
            f"data must lie within {_MAX_QUADRATURE_VALUE:g} of 0; received {largest:g}, which is millions of standard "
            "deviations out under both models. Check the unit of the data."
        )
    return mixture_log_evidence(values) - _log_normal_evidence(values)


def _log_joint(values: Floats, in_upper: Floats) -> Floats:
    """Return the log density of each data set given each assignment, shape (num_datasets, num_assignments)."""
    log_joint = np.zeros((len(values), len(in_upper)))
    for members, prior_mean in ((in_upper, PRIOR_MEAN), (1 - in_upper, -PRIOR_MEAN)):
        deviations = values - prior_mean
        log_joint += _log_normal_density(deviations, COMPONENT_SCALE) @ members.T
        log_joint += _log_bf_from_total(
            members.sum(axis=1), deviations @ members.T, prior_scale=PRIOR_SCALE, noise_scale=COMPONENT_SCALE
        )
    return log_joint


def _log_normal_evidence(values: Floats) -> Floats:
    """Return the log evidence of the second model: its density at mean 0, times the Bayes factor over mean 0."""
    return _log_normal_density(values, NORMAL_SCALE).sum(axis=1) + _log_bf_from_total(
        values.shape[1], values.sum(axis=1), prior_scale=NORMAL_PRIOR_SCALE, noise_scale=NORMAL_SCALE
    )


def _log_normal_density(deviations: Floats, scale: float) -> Floats:
    return -0.5 * (deviations / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)


# One normal with an unknown mean: its Bayes factor over mean 0, and its posterior.


def normal_mean_log_bf(data: ArrayLike, *, prior_scale: float, noise_scale: float = 1.0) -> NDArray[np.float64]:
    """Return the log Bayes factor of a normal with unknown mean over one with mean 0, for each data set.

    `data` has shape (num_datasets, num_obs), and the result (num_datasets,). First model: y ~ N(mu, noise_scale^2),
    mu ~ N(0, prior_scale^2). Second model: mu = 0. With S the sum of the n observations, t = `prior_scale` and s =
    `noise_scale`::

        -1/2 log(1 + n t^2 / s^2) + t^2 S^2 / (2 s^2 (s^2 + n t^2))

    Examples
    --------
    >>> normal_mean_log_bf([[0.0], [3.0]], prior_scale=1.0).round(4)
    array([-0.3466,  1.9034])
    """
    values = _checks.check_datasets("data", data)
    return _log_bf_from_total(
        values.shape[1],
        values.sum(axis=1),
        prior_scale=_checks.check_positive("prior_scale", prior_scale),
        noise_scale=_checks.check_positive("noise_scale", noise_scale),
    )


def _log_bf_from_total(num_obs: int | Floats, total: Floats, *, prior_scale: float, noise_scale: float) -> Floats:
    """Return `normal_mean_log_bf` from the sum of the observations, which is all that it needs."""
    noise_var, prior_var = noise_scale**2, prior_scale**2
    shrunk = prior_var * total**2 / (2 * noise_var * (noise_var + num_obs * prior_var))
    return shrunk - 0.5 * np.log1p(num_obs * prior_var / noise_var)


def _draw_normal_mean(
    rng: np.random.Generator,
    observed: Floats,
    num_draws: int,
    left_out: bool,
    *,
    prior_scale: float,
    noise_scale: float,
) -> Floats:
    """Draw the mean from its posterior, given the prior N(0, prior_scale^2)."""
    total, num_obs = total_given(observed, left_out)
    precision = 1 / prior_scale**2 + num_obs / noise_scale**2
    noise = rng.standard_normal((len(total), num_draws)) / np.sqrt(precision)
    return total / noise_scale**2 / precision + noise
