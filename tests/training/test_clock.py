"""The clock: budgets are spent exactly, and what is checked never depends on how blocks were cut."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deepbf.training import schedule as clock_module
from deepbf.training.schedule import BLOCK_SECONDS, CHECK_SHARE, MOST_CHECKING, Clock


class FakeTime:
    """A clock on the wall that moves only when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(clock_module, "time", SimpleNamespace(monotonic=lambda: self.now))


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    return FakeTime(monkeypatch)


def run_planned(planned: int, most: int, limits: list[int] | None = None) -> tuple[list[int], list[int]]:
    """Return the sizes of all blocks and the steps at which a check was due."""
    clock = Clock(seconds=None, planned_steps=planned, started=0.0)
    blocks, checks = [], []
    while (num_steps := clock.next_steps(most)) > 0:
        if limits:
            num_steps = min(num_steps, limits[len(blocks) % len(limits)])
        clock.book(num_steps, most)
        clock.done(num_steps, 0.01)
        blocks.append(num_steps)
        if clock.check_due():
            checks.append(clock.num_done)
    return blocks, checks


@pytest.mark.parametrize("planned", [1, 7, 20, 21, 300, 1001])
@pytest.mark.parametrize("most", [1, 16, 64])
def test_planned_steps_are_taken_exactly(planned: int, most: int) -> None:
    blocks, _ = run_planned(planned, most)
    assert sum(blocks) == planned
    assert max(blocks) <= most


@pytest.mark.parametrize("planned", [7, 300, 1001])
def test_checks_come_at_fixed_steps_however_blocks_are_cut(planned: int) -> None:
    _, checks = run_planned(planned, 64)
    every = int(np.ceil(planned * CHECK_SHARE))
    assert checks == list(range(every, planned + 1, every))
    for most, limits in ((1, None), (3, None), (64, [5, 1, 64]), (64, [2])):
        assert run_planned(planned, most, limits)[1] == checks


def test_shares_of_planned_steps_are_exact() -> None:
    clock = Clock(seconds=None, planned_steps=100, started=0.0)
    share, steps = clock.book(3, 5)
    assert_allclose(share, [0, 0.01, 0.02, 0.03, 0.04])
    assert_array_equal(steps, np.arange(5))
    # Booked ahead, while the first block still runs.
    share, steps = clock.book(2, 5)
    assert_allclose(share, [0.03, 0.04, 0.05, 0.06, 0.07])
    assert clock.share() == 0
    clock.done(3, 0.1)
    assert clock.share() == 0.03
    assert clock.num_done == 3


def test_planned_steps_count_as_seconds_left_once_their_cost_is_known() -> None:
    clock = Clock(seconds=None, planned_steps=100, started=0.0)
    for _ in range(2):
        clock.book(10, 64)
        clock.done(10, 0.5)
    assert clock.seconds_left() == pytest.approx(80 * 0.05)
    assert not clock.by_time


def run_by_seconds(
    wall: FakeTime, seconds: float, *, step: float, compilation: float, check: float = 0.0
) -> tuple[Clock, list[float], list[float]]:
    """Run a fake training; return the clock, the shares at which steps were taken, and when checks were."""
    clock = Clock(seconds=seconds, planned_steps=None, started=wall.now)
    shares: list[float] = []
    checks: list[float] = []
    drawn = 0
    while (num_steps := clock.next_steps(64)) > 0:
        share, _ = clock.book(num_steps, 64)
        shares.extend(share[:num_steps])
        cost = num_steps * step + (compilation if not drawn else 0.0)
        wall.now += cost
        drawn += num_steps
        clock.done(num_steps, cost)
        if clock.check_due():
            checks.append(clock.share())
            wall.now += check
            clock.check_seconds = check
    return clock, shares, checks


@pytest.mark.parametrize(("step", "compilation"), [(0.001, 3.0), (0.01, 3.0), (0.3, 0.5)])
def test_seconds_are_spent_and_not_overspent(wall: FakeTime, step: float, compilation: float) -> None:
    clock, _, _ = run_by_seconds(wall, 20.0, step=step, compilation=compilation)
    assert 20.0 - 2 * step <= clock.elapsed() <= 20.0
    assert clock.num_done == pytest.approx((20.0 - compilation) / step, rel=0.05, abs=2)
    assert clock.next_steps(64) == 0


def test_time_is_kept_back_for_the_last_check(wall: FakeTime) -> None:
    clock, _, checks = run_by_seconds(wall, 20.0, step=0.01, compilation=2.0, check=0.06)
    assert 20.0 - 0.09 - 0.25 <= clock.elapsed() <= 20.0 - 0.06
    # One check each twentieth of the training.
    assert 15 <= len(checks) <= 21


def test_dear_checks_are_few(wall: FakeTime) -> None:
    clock, _, checks = run_by_seconds(wall, 20.0, step=0.01, compilation=2.0, check=0.4)
    assert 20.0 - 0.6 - 0.25 <= clock.elapsed() <= 20.0 - 0.4
    # After the first, whose cost was not known, they take about so much of the time.
    assert len(checks) >= 3
    assert 0.4 * (len(checks) - 2) <= 1.1 * MOST_CHECKING * 18.0


def test_shares_of_seconds_run_from_0_to_1(wall: FakeTime) -> None:
    _, shares, checks = run_by_seconds(wall, 20.0, step=0.01, compilation=2.0)
    assert shares[0] == 0
    assert min(np.diff(shares)) >= 0
    assert 0.98 <= shares[-1] <= 1.0
    assert checks[0] < 0.01
    assert_allclose(np.diff(checks), CHECK_SHARE, atol=0.02)


def test_the_cost_of_compilation_does_not_count_as_the_pace_of_steps(wall: FakeTime) -> None:
    clock = Clock(seconds=100.0, planned_steps=None, started=wall.now)
    assert clock.next_steps(64) == 1
    clock.book(1, 64)
    wall.now += 10.0
    clock.done(1, 10.0)
    assert clock.share() == 0
    # Still unknown what a step costs: one more to find out.
    assert clock.next_steps(64) == 1
    clock.book(1, 64)
    wall.now += 0.01
    clock.done(1, 0.01)
    assert clock.next_steps(1000) == BLOCK_SECONDS // 0.01
    assert clock.share() == pytest.approx(0.01 / 90)


def test_steps_booked_but_not_done_are_reckoned_with(wall: FakeTime) -> None:
    clock = Clock(seconds=10.0, planned_steps=None, started=wall.now)
    for _ in range(2):
        clock.book(1, 64)
        wall.now += 0.1
        clock.done(1, 0.1)
    wall.now += 9.0
    # 0.8 s left: eight steps, of which at most two at a time.
    taken = 0
    while taken < 100 and (num_steps := clock.next_steps(64)) > 0:
        clock.book(num_steps, 64)
        taken += num_steps
    assert 6 <= taken <= 8


def test_a_spent_budget_gives_no_step(wall: FakeTime) -> None:
    clock = Clock(seconds=5.0, planned_steps=None, started=wall.now)
    wall.now += 5.1
    assert clock.next_steps(64) == 0
    assert clock.seconds_left() == 0
