"""An event or a season in noise: against sums over a fine grid of all coefficients, and identities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.special import logsumexp

from deepbf_studies.problems import event_log_bf, season_log_bf
from deepbf_studies.problems.series_signals import PERIODS

Floats = NDArray[np.float64]


def log_evidence(series: Floats, columns: NDArray[np.floating], scales: list[float], step: float) -> float:
    """Return the log of the sum, over a fine grid of coefficients, of prior times likelihood.

    For Gaussian integrands, the trapezoidal rule is exact to rounding at steps below their standard deviation.
    """
    axes = [np.arange(-6.5 * scale, 6.5 * scale, step) for scale in scales]
    coefficients = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(axes))
    standardised = np.concatenate([coefficients / scales, series - coefficients @ columns], axis=1)
    log_joint = -0.5 * (standardised**2).sum(axis=1)
    log_constant = len(axes) * np.log(step) - np.log(scales).sum() - 0.5 * standardised.shape[1] * np.log(2 * np.pi)
    return float(logsumexp(log_joint) + log_constant)


@pytest.mark.parametrize("length", [11, 13])
def test_the_event_by_sums_over_level_and_size(length: int) -> None:
    rng = np.random.default_rng(length)
    series = rng.standard_normal((3, length))
    series[1, 1:11] += 2.0
    series[2] += 1.5
    ones, times = np.ones(length), np.arange(length)
    for row, found in zip(series, event_log_bf(series), strict=True):
        with_event = [
            log_evidence(row, np.stack([ones, 1.0 * ((times >= start) & (times < start + 10))]), [1.0, 2.5], 0.15)
            for start in range(length - 9)
        ]
        expected = logsumexp(with_event) - np.log(len(with_event)) - log_evidence(row, ones[None], [1.0], 0.1)
        assert found == pytest.approx(expected, abs=1e-8)


def test_the_season_by_sums_over_level_and_amplitudes() -> None:
    length = 4
    series = 1.5 * np.random.default_rng(1).standard_normal((2, length))
    times, ones = np.arange(length), np.ones(length)
    for row, found in zip(series, season_log_bf(series), strict=True):
        seasons = [
            log_evidence(
                row,
                np.stack([ones, np.cos(2 * np.pi * times / period), np.sin(2 * np.pi * times / period)]),
                [1.0, 0.6, 0.6],
                0.3,
            )
            for period in PERIODS
        ]
        trend = log_evidence(row, np.stack([ones, np.linspace(-1, 1, length)]), [1.0, 0.6], 0.1)
        assert found == pytest.approx(logsumexp(seasons) - np.log(len(PERIODS)) - trend, abs=1e-8)


@pytest.mark.parametrize("log_bf_fn", [event_log_bf, season_log_bf])
def test_time_and_sign_have_no_direction(log_bf_fn) -> None:
    series = 2 * np.random.default_rng(2).standard_normal((5, 40))
    log_bf = log_bf_fn(series)
    assert_allclose(log_bf_fn(-series), log_bf, atol=1e-9)
    # The amplitudes of cosine and sine have one scale, so that no phase is special.
    assert_allclose(log_bf_fn(series[:, ::-1]), log_bf, atol=1e-9)


def test_a_plain_event_season_or_trend_is_found() -> None:
    times = np.arange(60)
    event = 3.0 * ((times >= 20) & (times < 30))
    assert event_log_bf(event[None])[0] > 10
    assert season_log_bf(2.0 * np.sin(2 * np.pi * times / 12)[None])[0] > 10
    assert season_log_bf(np.linspace(-1.5, 1.5, 60)[None])[0] < -5
