"""A study of time series whose Bayes factor is known exactly: AR(1) or MA(1) with Gaussian noise."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf.models import Model
from deepbf_studies.problems.array_library import Array, library_of
from deepbf_studies.problems.exact.linear_series import ar_ma_log_bf
from deepbf_studies.problems.study import Study
from deepbf_studies.problems.toy_simulators import OfSize

_LOG_2PI = float(np.log(2 * np.pi))


def ar_ma_study(name: str, num_obs: int) -> Study:
    """Return AR(1) or MA(1): unit Gaussian noise, and a coefficient uniform on (-1, 1)."""
    autoregression = Model(
        "AR(1)",
        prior=uniform_prior,
        simulator=OfSize(simulate_ar, num_obs),
        log_prior=log_uniform,
        log_likelihood=log_ar,
        transform=(-1.0, 1.0),
    )
    moving_average = Model(
        "MA(1)",
        prior=uniform_prior,
        simulator=OfSize(simulate_ma, num_obs),
        log_prior=log_uniform,
        log_likelihood=log_ma,
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


def uniform_prior(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Return `size` coefficients, uniform on (-1, 1)."""
    # 1 - 2 u is never -1, where no stationary start exists; 1 itself, once in 2^53, is moved inside.
    return np.minimum(1.0 - 2.0 * rng.uniform(size=size), np.nextafter(1.0, 0.0))


def simulate_ar(rng: np.random.Generator, coefficients: NDArray[np.float64], *, num_obs: int) -> NDArray[np.float64]:
    """Return series x_t = phi x_(t-1) + e_t that start from their stationary distribution."""
    # Time first while the recursion runs, so that each of its steps reads and writes one stretch of memory.
    series = rng.standard_normal((num_obs, len(coefficients)))
    series[0] /= np.sqrt((1.0 - coefficients) * (1.0 + coefficients))
    for previous, current in itertools.pairwise(series):
        current += coefficients * previous
    return series.T


def simulate_ma(rng: np.random.Generator, coefficients: NDArray[np.float64], *, num_obs: int) -> NDArray[np.float64]:
    """Return series x_t = e_t + theta e_(t-1)."""
    noise = rng.standard_normal((num_obs + 1, len(coefficients)))
    return (noise[1:] + coefficients * noise[:-1]).T


# Densities: parameters carry any leading axes, the last axis of data is time, and the axes before it broadcast against
# the parameters'. Parameters and data may be NumPy or JAX arrays, traced ones too.


def log_uniform(coefficients: ArrayLike) -> Array:
    """Return the log density of the prior."""
    xp, values = library_of(coefficients)
    return xp.where(xp.abs(values) < 1, -float(np.log(2)), -xp.inf)


def log_ar(coefficients: ArrayLike, data: ArrayLike) -> Array:
    """Return the log likelihood of a stationary AR(1)."""
    xp, values = library_of(coefficients)
    _, series = library_of(data)
    inside = xp.abs(values) < 1
    phi = xp.where(inside, values, 0.0)
    lagged = (series[..., 1:] * series[..., :-1]).sum(axis=-1)
    first, last, total = series[..., 0] ** 2, series[..., -1] ** 2, (series**2).sum(axis=-1)
    quadratic = total - 2 * phi * lagged + phi**2 * (total - first - last)
    return xp.where(inside, 0.5 * (xp.log1p(-(phi**2)) - quadratic - series.shape[-1] * _LOG_2PI), -xp.inf)


def log_ma(coefficients: ArrayLike, data: ArrayLike) -> Array:
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
