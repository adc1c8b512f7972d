"""Schedules: how the learning rate moves through the budget."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deepbf.training.schedule import PAPER, PAPER_STEPS, Schedule, named_schedule


def rates_over(schedule: Schedule, num_steps: int) -> np.ndarray:
    steps = np.arange(num_steps)
    return schedule.rates(steps / num_steps, steps)


@pytest.mark.parametrize("peak_rate", [1e-2, 2e-3])
@pytest.mark.parametrize("num_steps", [1000, 50_000])
def test_auto_starts_near_zero_peaks_and_ends_near_zero(peak_rate: float, num_steps: int) -> None:
    rates = rates_over(named_schedule("auto").for_network(peak_rate), num_steps)
    assert rates.dtype == np.float32
    assert rates[0] == 0
    assert rates.max() == pytest.approx(peak_rate, rel=0.01)
    assert rates.argmax() / num_steps == pytest.approx(0.02, abs=0.002)
    assert (np.diff(rates[rates.argmax() :]) < 0).all()
    assert 0 <= rates[-1] < 1e-4 * peak_rate
    # A cosine: half of the peak at half of the budget.
    assert rates[num_steps // 2] == pytest.approx(peak_rate / 2, rel=0.01)


def test_auto_stays_at_zero_past_the_end() -> None:
    rates = Schedule(peak_rate=1.0).rates(np.array([1.0, 1.2, 7.0]), np.arange(3))
    assert_allclose(rates, 0, atol=1e-7)


def test_the_papers_rate_falls_by_a_hundredth_every_thousand_steps() -> None:
    steps = np.array([0, 999, 1000, 1999, 2000, 399_999])
    expected = [0.01, 0.01, 0.0099, 0.0099, 0.009801, 0.01 * 0.99**399]
    for progress in (0.0, 0.5, 1.0):
        assert_allclose(PAPER.rates(np.full(6, progress), steps), expected, rtol=1e-5)


def test_the_paper_named_schedule() -> None:
    assert named_schedule("paper").for_network(0.5) is PAPER
    assert (PAPER.batch_size, PAPER.average, PAPER.reuse, PAPER_STEPS) == (200, False, False, 400_000)


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"schedule must be one of 'auto', 'paper', 'thorough'; received 'papers'.*'paper'"
    ):
        named_schedule("papers")


def test_a_batch_size_replaces_that_of_any_schedule() -> None:
    assert named_schedule("auto", 512).for_network(2e-3) == Schedule(peak_rate=2e-3, batch_size=512)
    assert named_schedule("paper", 32) == replace(PAPER, batch_size=32)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "many"])
def test_a_batch_size_is_a_positive_count(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="batch_size"):
        named_schedule("auto", wrong)


def test_a_schedule_without_a_rate_asks_for_one() -> None:
    with pytest.raises(ValueError, match="for_network"):
        rates_over(named_schedule("auto"), 10)
