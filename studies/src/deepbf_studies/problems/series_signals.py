"""Signals in Gaussian noise at an unknown place, exact by conjugate regression: an event of 10 steps, and a season.

Under every model the noise is standard normal, and the level is normal about 0. Given the time of the event or the
period of the season, everything unknown is a normal coefficient, which integrates out in closed form; what is left is
a mean over all times or periods.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.normal_evidence import CovarianceGrid, covariance_grid, log_normal_evidence
from deepbf_studies.problems.study import OfSize, Study, in_blocks

Floats = NDArray[np.float64]
Params = dict[str, Floats]

LEVEL_SCALE = 1.0

EVENT_SERIES_LENGTH = 80
EVENT_STEPS = 10
EVENT_SCALE = 2.5

SEASON_SERIES_LENGTH = 60
PERIODS = np.array([5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 40.0, 60.0])
AMPLITUDE_SCALE = 0.6
SLOPE_SCALE = 0.6


# The event.


def event_study(name: str, num_obs: int) -> Study:
    """Return noise about an unknown level, with or without an event: a shift of the level that lasts 10 steps.

    The event starts at any time that lets it end within the series, all with the same probability. The exact answer is
    `event_log_bf`.
    """
    _check_room_for_an_event(num_obs)
    return Study(
        name=name,
        title=f"Time series: Gaussian noise about an unknown level, with an event of {EVENT_STEPS} steps or none",
        num_obs=num_obs,
        models=(
            Model("event", prior=_event_prior, simulator=OfSize(_simulate_event, num_obs)),
            Model("no event", prior=_level_prior, simulator=OfSize(_simulate_level, num_obs)),
        ),
        structure="series",
        exact_log_bf=event_log_bf,
    )


def _check_room_for_an_event(num_obs: int) -> None:
    if num_obs <= EVENT_STEPS:
        raise ValueError(
            f"num_obs must be above {EVENT_STEPS}, the number of steps that the event lasts; received {num_obs}."
        )


def _level_prior(rng: np.random.Generator, size: int) -> Params:
    """Return levels, normal about 0."""
    return {"level": LEVEL_SCALE * rng.standard_normal(size)}


def _event_prior(rng: np.random.Generator, size: int) -> Params:
    """Return levels, sizes of the event, and its place between the first possible one, 0, and the last, 1."""
    return {
        **_level_prior(rng, size),
        "size": EVENT_SCALE * rng.standard_normal(size),
        "place": rng.uniform(size=size),
    }


def _simulate_level(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return noise about the level, shape (data sets, num_obs)."""
    return rng.standard_normal((len(params["level"]), num_obs)) + params["level"][:, None]


def _simulate_event(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return noise about a level that is shifted for the steps of the event, shape (data sets, num_obs)."""
    series = _simulate_level(rng, params, num_obs=num_obs)
    starts = np.floor(params["place"] * (num_obs - EVENT_STEPS + 1)).astype(int)
    steps = starts[:, None] + np.arange(EVENT_STEPS)
    series[np.arange(len(series))[:, None], steps] += params["size"][:, None]
    return series


def event_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of an event over none, per data set; `data` has shape (data sets, n), n > 10.

    First model: y_t = m + d [s <= t < s + 10] + e_t, with m ~ N(0, 1), d ~ N(0, 2.5^2), standard normal e_t, and the
    start s uniform on 1, ..., n - 9. Second model: the same with d = 0, so that y ~ N(0, C) with C = I + 1 1'. Given s,
    with w the indicator of the event, A = w' C^-1 w and B = w' C^-1 y, the Bayes factor is::

        (1 + 2.5^2 A)^(-1/2) exp(2.5^2 B^2 / (2 (1 + 2.5^2 A)))

    and the first model's is the mean of these over all starts.

    Examples
    --------
    >>> event_log_bf([[0.0] * 20, [0.0] * 10 + [2.0] * 10]).round(4)
    array([-1.7593,  6.2003])
    """
    series = _checks.check_datasets("data", data)
    num_obs = series.shape[1]
    _check_room_for_an_event(num_obs)
    # C^-1 = I - shrinkage 1 1', by the formula of Sherman and Morrison.
    shrinkage = LEVEL_SCALE**2 / (1.0 + num_obs * LEVEL_SCALE**2)
    inflation = 1.0 + EVENT_SCALE**2 * (EVENT_STEPS - shrinkage * EVENT_STEPS**2)

    def of_block(block: Floats) -> Floats:
        deviations = block - shrinkage * block.sum(axis=1, keepdims=True)
        sums = np.cumsum(np.pad(deviations, ((0, 0), (1, 0))), axis=1)
        products = EVENT_SCALE * (sums[:, EVENT_STEPS:] - sums[:, :-EVENT_STEPS])
        log_bf = 0.5 * (products**2 / inflation - np.log(inflation))
        return np.asarray(logsumexp(log_bf, axis=1)) - np.log(log_bf.shape[1])

    return in_blocks(of_block, series)


# The season.


def season_study(name: str, num_obs: int) -> Study:
    """Return noise about an unknown level, with a season of unknown period or with a linear trend.

    The exact answer is `season_log_bf`.
    """
    return Study(
        name=name,
        title="Time series: Gaussian noise about an unknown level, with a season of unknown period or a linear trend",
        num_obs=num_obs,
        models=(
            Model("season", prior=_season_prior, simulator=OfSize(_simulate_season, num_obs)),
            Model("trend", prior=_trend_prior, simulator=OfSize(_simulate_trend, num_obs)),
        ),
        structure="series",
        exact_log_bf=season_log_bf,
    )


def _season_prior(rng: np.random.Generator, size: int) -> Params:
    """Return levels, amplitudes of the cosine and the sine, and periods from the list of possible ones."""
    return {
        **_level_prior(rng, size),
        "cosine": AMPLITUDE_SCALE * rng.standard_normal(size),
        "sine": AMPLITUDE_SCALE * rng.standard_normal(size),
        "period": rng.choice(PERIODS, size),
    }


def _trend_prior(rng: np.random.Generator, size: int) -> Params:
    """Return levels, and slopes: half the change of the mean from the beginning to the end."""
    return {**_level_prior(rng, size), "slope": SLOPE_SCALE * rng.standard_normal(size)}


def _simulate_season(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return noise about the level and the season, shape (data sets, num_obs)."""
    angles = 2 * np.pi * np.arange(num_obs) / PERIODS[:, None]
    which = np.searchsorted(PERIODS, params["period"])
    series = _simulate_level(rng, params, num_obs=num_obs)
    series += params["cosine"][:, None] * np.cos(angles)[which]
    series += params["sine"][:, None] * np.sin(angles)[which]
    return series


def _simulate_trend(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return noise about a line, shape (data sets, num_obs)."""
    return _simulate_level(rng, params, num_obs=num_obs) + params["slope"][:, None] * np.linspace(-1, 1, num_obs)


def season_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of a season over a trend, per data set; `data` has shape (data sets, n).

    First model: y_t = m + a cos(2 pi t / p) + b sin(2 pi t / p) + e_t, with m ~ N(0, 1), a and b ~ N(0, 0.6^2),
    standard normal e_t, and the period p uniform on `PERIODS`. Second model: y_t = m + c x_t + e_t, with
    c ~ N(0, 0.6^2) and x_t equally spaced from -1 to 1. Given p, y is normal about 0, and its season has the covariance
    0.6^2 cos(2 pi (t - s) / p); the first evidence is the mean of these densities over the periods.

    Examples
    --------
    >>> season_log_bf([[1.0, 1.0, -1.0, -1.0, 0.0] * 6, np.linspace(-2, 2, 30)]).round(4)
    array([ 6.12  , -1.7963])
    """
    series = _checks.check_datasets("data", data)
    season, trend = _season_grids(series.shape[1])
    return log_normal_evidence(series, season) - log_normal_evidence(series, trend)


@lru_cache(maxsize=8)
def _season_grids(num_obs: int) -> tuple[CovarianceGrid, CovarianceGrid]:
    """Return the covariance matrices with a season, one for each period, and the one with a trend."""
    lags = np.subtract.outer(np.arange(num_obs), np.arange(num_obs))
    line = np.linspace(-1, 1, num_obs)
    noise = np.eye(num_obs) + LEVEL_SCALE**2
    seasons = AMPLITUDE_SCALE**2 * np.cos(2 * np.pi * lags / PERIODS[:, None, None])
    return covariance_grid(noise + seasons), covariance_grid((noise + SLOPE_SCALE**2 * np.outer(line, line))[None])
