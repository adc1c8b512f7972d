"""The clock: how far the budget is spent, and how many steps the next block may take."""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

# A block this long keeps the bar moving and Ctrl-C prompt.
BLOCK_SECONDS = 0.25
# Held-out losses are taken after each such share of the budget.
CHECK_SHARE = 0.05


class Clock:
    """Progress through a budget of seconds, counted from `started`, or of planned steps.

    Steps are booked when their data are drawn and done when they have run, so that data for the next block can be
    drawn while this one runs.
    """

    def __init__(self, *, seconds: float | None, planned_steps: int | None, started: float) -> None:
        self._seconds = seconds
        self._planned_steps = planned_steps
        self._started = started
        self._first_step_at: float | None = None
        self._step_seconds: float | None = None
        self._check_every = 1 if planned_steps is None else math.ceil(planned_steps * CHECK_SHARE)
        self._checked_at = 0.0
        self._num_booked = 0
        # Time to keep back for the last held-out loss; learned from the first one.
        self.reserve = 0.0
        # What the last block cost.
        self.block_seconds = 0.0
        self.num_done = 0

    @property
    def by_time(self) -> bool:
        """Whether seconds, not steps, end training."""
        return self._seconds is not None

    def elapsed(self) -> float:
        """Return the seconds since the call began."""
        return time.monotonic() - self._started

    def next_steps(self, most: int) -> int:
        """Return how many steps to book next, at most `most`; 0 when the budget is spent."""
        if self._planned_steps is not None:
            # No block runs past a held-out check, so that what is checked never depends on how blocks were cut.
            to_check = self._check_every - self._num_booked % self._check_every
            return min(most, self._planned_steps - self._num_booked, to_check)
        left = self._seconds_left()
        if left <= 0:
            return 0
        if self._step_seconds is None:
            # Nothing is known yet about the cost of a step.
            return 1
        return int(min(most, max(1, BLOCK_SECONDS // self._step_seconds), left // self._step_seconds))

    def steps_until_check(self, number: int) -> int | None:
        """Return how many steps come before the held-out check of this number, from 1; None if only time will tell."""
        return None if self._planned_steps is None else number * self._check_every

    def book(self, num_steps: int, length: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return, for each of `length` steps from here, the share of the budget then spent and its number."""
        ahead = np.arange(length)
        steps = self._num_booked + ahead
        if self._planned_steps is not None:
            share = steps / self._planned_steps
        else:
            share = self.share() + (steps - self.num_done) * (self._step_seconds or 0.0) / self._training_seconds()
        self._num_booked += num_steps
        return share.astype(np.float64), steps

    def done(self, num_steps: int, seconds: float) -> None:
        """Note that booked steps have run, and what they cost."""
        if self._first_step_at is None:
            # The first block is mostly compilation: it starts the clock of training, and says nothing of its pace.
            self._first_step_at = self.elapsed()
        else:
            self.block_seconds = seconds
            cost = seconds / num_steps
            self._step_seconds = cost if self._step_seconds is None else 0.8 * self._step_seconds + 0.2 * cost
        self.num_done += num_steps

    def share(self) -> float:
        """Return the share of the budget spent, from 0 at the first step to 1."""
        if self._planned_steps is not None:
            return self.num_done / self._planned_steps
        if self._first_step_at is None:
            return 0.0
        return (self.elapsed() - self._first_step_at) / self._training_seconds()

    def seconds_left(self) -> float:
        """Return the time left, known or estimated."""
        if self._planned_steps is not None:
            return (self._planned_steps - self.num_done) * (self._step_seconds or 0.0)
        return max(0.0, (self._seconds or 0.0) - self.elapsed())

    def check_due(self) -> bool:
        """Whether enough of the budget has gone by for another look at the held-out loss."""
        if self._planned_steps is not None:
            return self.num_done % self._check_every == 0
        if self.share() < self._checked_at:
            return False
        self._checked_at = self.share() + CHECK_SHARE
        return True

    def _seconds_left(self) -> float:
        booked_not_done = (self._num_booked - self.num_done) * (self._step_seconds or 0.0)
        return (self._seconds or 0.0) - self.reserve - self.elapsed() - booked_not_done

    def _training_seconds(self) -> float:
        return max(1e-3, (self._seconds or 0.0) - self.reserve - (self._first_step_at or self.elapsed()))
