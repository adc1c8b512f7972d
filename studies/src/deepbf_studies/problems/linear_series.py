"""Time series whose Bayes factor is known exactly: AR(1) or MA(1) with Gaussian noise.

The exact answer integrates Gaussian likelihoods over the one coefficient of each model. Quadrature starts with few
nodes and doubles them, for the data sets that need it, until nothing changes: the agreement of two rules is checked,
not assumed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, roots_legendre

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.study import Array, OfSize, Study, library_of

Floats = NDArray[np.float64]
LogLikelihood = Callable[[Floats, Floats], Floats]

# Enough for most data sets of length 100, so that one doubling confirms it.
FEWEST_NODES = 64
# White noise of 30 times the models' scale needs 2,048 at length 100, and twice as many to confirm it.
MOST_NODES = 4096
# Largest change of a log evidence when the nodes are doubled; the finer rule, whose value is taken, is far closer.
TOLERANCE = 1e-9
# 512 KB for each temporary array: in cache while the recursion runs along the series.
VALUES_PER_CHUNK = 2**16

_LOG_2PI = float(np.log(2 * np.pi))


def ar_ma_study(name: str, num_obs: int) -> Study:
    """Return AR(1) or MA(1): unit Gaussian noise, and a coefficient uniform on (-1, 1).

    The first model starts from its stationary distribution. The exact answer is `ar_ma_log_bf`.
    """
    autoregression = Model(
        "AR(1)",
        prior=_uniform_prior,
        simulator=OfSize(_simulate_ar, num_obs),
        log_prior=_log_uniform,
        log_likelihood=_log_ar,
        transform=(-1.0, 1.0),
    )
    moving_average = Model(
        "MA(1)",
        prior=_uniform_prior,
        simulator=OfSize(_simulate_ma, num_obs),
        log_prior=_log_uniform,
        log_likelihood=_log_ma,
        transform=(-1.0, 1.0),
    )
    return Study(
        name=name,
        title="Time series: AR(1) or MA(1), coefficient uniform on (-1, 1), unit Gaussian noise",
        num_obs=num_obs,
        models=(autoregression, moving_average),
        structure="series",
        exact_log_bf=ar_ma_log_bf,
    )


def _uniform_prior(rng: np.random.Generator, size: int) -> Floats:
    """Return `size` coefficients, uniform on (-1, 1)."""
    # 1 - 2 u is never -1, where no stationary start exists; 1 itself, once in 2^53, is moved inside.
    return np.minimum(1.0 - 2.0 * rng.uniform(size=size), np.nextafter(1.0, 0.0))


def _simulate_ar(rng: np.random.Generator, coefficients: Floats, *, num_obs: int) -> Floats:
    """Return series x_t = phi x_(t-1) + e_t that start from their stationary distribution."""
    # Time first while the recursion runs, so that each of its steps reads and writes one stretch of memory.
    series = rng.standard_normal((num_obs, len(coefficients)))
    series[0] /= np.sqrt((1.0 - coefficients) * (1.0 + coefficients))
    for previous, current in itertools.pairwise(series):
        current += coefficients * previous
    return series.T


def _simulate_ma(rng: np.random.Generator, coefficients: Floats, *, num_obs: int) -> Floats:
    """Return series x_t = e_t + theta e_(t-1)."""
    noise = rng.standard_normal((num_obs + 1, len(coefficients)))
    return (noise[1:] + coefficients * noise[:-1]).T


# Densities: parameters carry any leading axes, the last axis of data is time, and the axes before it broadcast against
# the parameters'. Parameters and data may be NumPy or JAX arrays, traced ones too.


def _log_uniform(coefficients: ArrayLike) -> Array:
    """Return the log density of the prior."""
    xp, values = library_of(coefficients)
    return xp.where(xp.abs(values) < 1, -float(np.log(2)), -xp.inf)


def _log_ar(coefficients: ArrayLike, data: ArrayLike) -> Array:
    """Return the log likelihood of a stationary AR(1)."""
    xp, values = library_of(coefficients)
    _, series = library_of(data)
    inside = xp.abs(values) < 1
    phi = xp.where(inside, values, 0.0)
    lagged = (series[..., 1:] * series[..., :-1]).sum(axis=-1)
    first, last, total = series[..., 0] ** 2, series[..., -1] ** 2, (series**2).sum(axis=-1)
    quadratic = total - 2 * phi * lagged + phi**2 * (total - first - last)
    return xp.where(inside, 0.5 * (xp.log1p(-(phi**2)) - quadratic - series.shape[-1] * _LOG_2PI), -xp.inf)


def _log_ma(coefficients: ArrayLike, data: ArrayLike) -> Array:
    """Return the log likelihood of an MA(1), by the innovations algorithm."""
    xp, values = library_of(coefficients)
    _, series = library_of(data)
    inside = xp.abs(values) < 1
    theta = xp.where(inside, values, 0.0)
    variance = 1 + theta**2
    error = series[..., 0]
    total = error**2 / variance + xp.log(variance)
    for t in range(1, series.shape[-1]):
        error = series[..., t] - theta * error / variance
        variance = 1 + theta**2 - theta**2 / variance
        total = total + error**2 / variance + xp.log(variance)
    return xp.where(inside, -0.5 * (total + series.shape[-1] * _LOG_2PI), -xp.inf)


# The exact answer.


def ar_ma_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of AR(1) over MA(1), for each data set.

    First model: x_t = phi x_(t-1) + e_t, started from its stationary distribution. Second: x_t = e_t + theta e_(t-1).
    Both have standard normal e_t, and a coefficient that is uniform on (-1, 1).

    Examples
    --------
    >>> ar_ma_log_bf([[0.0, 0.0], [2.0, -2.0]]).round(4)
    array([-0.0706,  0.3941])
    """
    series = _checks.check_datasets("data", data)
    return _log_evidence(ar_log_likelihood, series) - _log_evidence(ma_log_likelihood, series)


def ar_log_likelihood(coefficients: Floats, data: Floats) -> Floats:
    """Return the log density of each series under a stationary AR(1), shape (num_datasets, num_coefficients).

    It needs three sums over the series::

        -n/2 log(2 pi) + 1/2 log(1 - phi^2) - 1/2 [sum x_t^2 - 2 phi sum x_t x_(t-1) + phi^2 sum_{1<t<n} x_t^2]
    """
    phi = coefficients
    squares = data * data
    total = squares.sum(axis=1)[:, None]
    lagged = (data[:, 1:] * data[:, :-1]).sum(axis=1)[:, None]
    inner = total - (squares[:, 0] + squares[:, -1])[:, None]
    constant = 0.5 * np.log1p(-phi * phi) - 0.5 * data.shape[1] * _LOG_2PI
    return constant - 0.5 * (total - 2 * phi * lagged + phi * phi * inner)


def ma_log_likelihood(coefficients: Floats, data: Floats) -> Floats:
    """Return the log density of each series under an MA(1), shape (num_datasets, num_coefficients).

    By the innovations algorithm: the one-step prediction error u_t and its variance v_t follow::

        u_t = x_t - theta u_(t-1) / v_(t-1),   v_t = 1 + theta^2 - theta^2 / v_(t-1),   v_0 = infinity
    """
    theta = coefficients
    variance = 1 + theta * theta
    error = np.broadcast_to(data[:, :1], (len(data), len(theta))).copy()
    quadratic = error * error / variance
    log_det = np.log(variance)
    for values in data.T[1:]:
        error *= -theta / variance
        error += values[:, None]
        variance = 1 + theta * theta - theta * theta / variance
        quadratic += error * error / variance
        log_det = log_det + np.log(variance)
    return -0.5 * (quadratic + log_det + data.shape[1] * _LOG_2PI)


def _log_evidence(log_likelihood: LogLikelihood, data: Floats) -> Floats:
    """Return the log of the likelihood's mean over a coefficient uniform on (-1, 1), for each data set."""
    num_nodes = FEWEST_NODES
    evidence = _by_rule(log_likelihood, data, num_nodes)
    unsettled = np.arange(len(data))
    while len(unsettled):
        num_nodes *= 2
        if num_nodes > MOST_NODES:
            raise ValueError(
                f"data set {unsettled[0]} gives a likelihood too narrow to integrate with {MOST_NODES} nodes; its "
                f"largest value is {np.abs(data[unsettled[0]]).max():g}. Both models have noise of unit scale: divide "
                "the data by the scale of their noise."
            )
        finer = _by_rule(log_likelihood, data[unsettled], num_nodes)
        # Sums over long or far series round in proportion to their size.
        change = np.abs(finer - evidence[unsettled]) / np.maximum(1.0, 1e-5 * np.abs(finer))
        evidence[unsettled] = finer
        unsettled = unsettled[change > TOLERANCE]
    return evidence


@cache
def _rule(num_nodes: int) -> tuple[Floats, Floats]:
    """Return coefficients and log weights of a Gauss-Legendre rule in the arcsine."""
    nodes, weights = roots_legendre(num_nodes)
    angles = 0.5 * np.pi * nodes
    # The prior's density is 1/2, and the change of variable brings a cosine.
    return np.sin(angles), np.log(weights * 0.25 * np.pi * np.cos(angles))


def _by_rule(log_likelihood: LogLikelihood, data: Floats, num_nodes: int) -> Floats:
    """Return the log evidence by a Gauss-Legendre rule in the coefficient's arcsine.

    AR(1)'s likelihood goes to 0 at -1 and 1 as a square root; in the arcsine it is smooth all the way.
    """
    coefficients, log_weights = _rule(num_nodes)
    rows = max(1, VALUES_PER_CHUNK // num_nodes)
    chunks = [data[start : start + rows] for start in range(0, len(data), rows)]
    parts = [np.asarray(logsumexp(log_likelihood(coefficients, chunk) + log_weights, axis=1)) for chunk in chunks]
    return np.concatenate([np.empty(0), *parts])
