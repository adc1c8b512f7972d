"""A local level or a stationary AR(1) about a mean: exact, as each has one parameter on a small grid.

Given that parameter, a series is normal with a known covariance matrix.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.normal_evidence import CovarianceGrid, covariance_grid, log_normal_evidence
from deepbf_studies.problems.study import OfSize, Study

Floats = NDArray[np.float64]
Params = dict[str, Floats]

LENGTH = 60
# Of the level at the first time, and of the mean.
START_SCALE = 2.0
# Standard deviations of the steps of the level, in units of the noise about it.
STEP_SCALES = np.array([0.1, 0.2, 0.3, 0.4])
COEFFICIENTS = np.array([0.1, 0.2, 0.4, 0.6])


def local_level_study(name: str, num_obs: int) -> Study:
    """Return a random walk plus noise, or a stationary AR(1) about an unknown mean.

    The exact answer is `local_level_log_bf`.
    """
    return Study(
        name=name,
        title="Time series: a random walk plus noise, or a stationary AR(1) about an unknown mean",
        num_obs=num_obs,
        models=(
            Model("local level", prior=_local_level_prior, simulator=OfSize(_simulate_local_level, num_obs)),
            Model("AR(1)", prior=_autoregression_prior, simulator=OfSize(_simulate_autoregression, num_obs)),
        ),
        structure="series",
        exact_log_bf=local_level_log_bf,
    )


def _local_level_prior(rng: np.random.Generator, size: int) -> Params:
    """Return first levels, normal about 0, and scales of the level's steps from the list of possible ones."""
    return {"start": START_SCALE * rng.standard_normal(size), "step_scale": rng.choice(STEP_SCALES, size)}


def _autoregression_prior(rng: np.random.Generator, size: int) -> Params:
    """Return means, normal about 0, and coefficients from the list of possible ones."""
    return {"mean": START_SCALE * rng.standard_normal(size), "coefficient": rng.choice(COEFFICIENTS, size)}


def _simulate_local_level(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return a random walk plus standard normal noise, shape (data sets, num_obs)."""
    size = len(params["start"])
    level = params["step_scale"][:, None] * rng.standard_normal((size, num_obs))
    level[:, 0] = params["start"]
    return np.cumsum(level, axis=1) + rng.standard_normal((size, num_obs))


def _simulate_autoregression(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return an AR(1) of standard normal innovations about its mean, shape (data sets, num_obs)."""
    coefficient = params["coefficient"]
    # Time first while the recursion runs, so that each of its steps reads and writes one stretch of memory.
    series = rng.standard_normal((num_obs, len(coefficient)))
    series[0] /= np.sqrt(1.0 - coefficient**2)
    for previous, current in itertools.pairwise(series):
        current += coefficient * previous
    return (series + params["mean"]).T


def local_level_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of a local level over an AR(1), per data set; `data` has shape (data sets, n).

    First model: y_t = l_t + e_t and l_t = l_(t-1) + s u_t, with l_1 ~ N(0, 2^2), standard normal e_t and u_t, and s
    uniform on `STEP_SCALES`. Second model: y_t = m + x_t and x_t = c x_(t-1) + e_t, with m ~ N(0, 2^2), x_1 from its
    stationary distribution, and c uniform on `COEFFICIENTS`. The covariances of y_t and y_r, for t at most r, are::

        2^2 + s^2 (t - 1) + [t = r]          and          2^2 + c^(r - t) / (1 - c^2)

    Examples
    --------
    >>> local_level_log_bf([np.linspace(-4.0, 4.0, 40), np.tile([1.0, 1.0, 0.0, -1.0, -1.0], 8)]).round(4)
    array([ 9.5756, -2.9479])
    """
    series = _checks.check_datasets("data", data)
    local_level, autoregression = _grids(series.shape[1])
    return log_normal_evidence(series, local_level) - log_normal_evidence(series, autoregression)


@lru_cache(maxsize=8)
def _grids(num_obs: int) -> tuple[CovarianceGrid, CovarianceGrid]:
    """Return the covariance matrices of the local level, one for each scale of steps, and of the AR(1)."""
    times = np.arange(num_obs)
    num_shared_steps = np.minimum.outer(times, times)
    lags = np.abs(np.subtract.outer(times, times))
    steps, coefficients = STEP_SCALES[:, None, None], COEFFICIENTS[:, None, None]
    local_level = START_SCALE**2 + steps**2 * num_shared_steps + np.eye(num_obs)
    autoregression = START_SCALE**2 + coefficients**lags / (1.0 - coefficients**2)
    return covariance_grid(local_level), covariance_grid(autoregression)
