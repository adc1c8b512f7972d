"""How long and how fast to train: budgets, the clock that keeps to them, and schedules of the learning rate."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.simulation import CHUNK_SIZE

DEFAULT_SECONDS = 60.0
# Passes over a fixed number of simulations, and the most over those of a slow simulator before waiting for more.
MOST_PASSES = 40
# Mini-batches that few simulations should give at least, and what a mini-batch has at least.
FEWEST_BATCHES = 16
SMALLEST_BATCH = 8


@dataclass(frozen=True)
class Budget:
    """Exactly one of the three is set; `steps` may accompany `num_simulations` to say how long to reuse them."""

    seconds: float | None = None
    steps: int | None = None
    num_simulations: int | None = None

    @property
    def all_fresh(self) -> bool:
        """Whether every step takes simulations that no step took before."""
        return self.seconds is None and self.num_simulations is None

    @classmethod
    def of(cls, seconds: float | None, steps: int | None, num_simulations: int | None, *, num_models: int) -> Budget:
        """Return the checked budget; 60 seconds when none is given."""
        given = {"seconds": seconds, "steps": steps, "num_simulations": num_simulations}
        chosen = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        if len(chosen) > 1:
            raise ValueError(
                f"pass exactly one budget: seconds, steps or num_simulations; received {' and '.join(chosen)}. "
                "Remove all but one."
            )
        if steps is not None:
            return cls(steps=_checks.check_count("steps", steps))
        if num_simulations is not None:
            # Two chunks: one to train on, one to judge by.
            least = 2 * CHUNK_SIZE * num_models
            return cls(num_simulations=_checks.check_count("num_simulations", num_simulations, least=least))
        return cls(seconds=_checks.check_positive("seconds", DEFAULT_SECONDS if seconds is None else seconds))

    def share(self, share: float) -> dict[str, Any]:
        """Return a share of the budget, as `fit` takes it."""
        if self.seconds is not None:
            return {"seconds": share * self.seconds}
        given = {"steps": self.steps, "num_simulations": self.num_simulations}
        return {name: math.ceil(share * number) for name, number in given.items() if number is not None}

    def expected_datasets(self, num_models: int, datasets_a_second: float) -> float:
        """Return how many data sets per model it will bring, at this pace of simulation."""
        if self.num_simulations is not None:
            return self.num_simulations // num_models
        return math.inf if self.seconds is None else datasets_a_second * self.seconds

    def planned_steps(self, num_models: int, batch_size: int) -> int | None:
        """Return how many steps it means; None if only time will tell."""
        if self.num_simulations is None:
            return self.steps
        return max(1, MOST_PASSES * (self.num_simulations // num_models) // batch_size)


def fitting_batch_size(wanted: int, num_datasets: float) -> int:
    """Return the mini-batch per model: as wanted, or smaller where few simulations would give too few batches."""
    return int(np.clip(num_datasets / FEWEST_BATCHES, SMALLEST_BATCH, wanted))


# A block this long keeps the bar moving and Ctrl-C prompt.
BLOCK_SECONDS = 0.25
# Held-out losses are taken after each such share of the budget, and may take so much of the time between two of them:
# of series, which networks read slowly, they took a quarter of ten seconds.
CHECK_SHARE = 0.05
MOST_CHECKING = 0.08


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
        # What a held-out loss takes; learned from the one before.
        self.check_seconds = 0.0
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
            cost = seconds / num_steps
            self._step_seconds = cost if self._step_seconds is None else 0.8 * self._step_seconds + 0.2 * cost
        self.num_done += num_steps

    def since_first_step(self) -> float:
        """Return the seconds since the first step was done; 0 before."""
        return 0.0 if self._first_step_at is None else self.elapsed() - self._first_step_at

    def share(self) -> float:
        """Return the share of the budget spent, from 0 at the first step to 1."""
        if self._planned_steps is not None:
            return self.num_done / self._planned_steps
        return self.since_first_step() / self._training_seconds()

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
        dear = self.check_seconds / MOST_CHECKING / self._training_seconds()
        self._checked_at = self.share() + max(CHECK_SHARE, dear)
        return True

    @property
    def _reserve(self) -> float:
        """Time to keep back for the last held-out loss."""
        return 1.5 * self.check_seconds

    def _seconds_left(self) -> float:
        booked_not_done = (self._num_booked - self.num_done) * (self._step_seconds or 0.0)
        return (self._seconds or 0.0) - self._reserve - self.elapsed() - booked_not_done

    def _training_seconds(self) -> float:
        return max(1e-3, (self._seconds or 0.0) - self._reserve - (self._first_step_at or self.elapsed()))


@dataclass(frozen=True)
class Schedule:
    """How a network is trained, whatever the budget.

    Parameters
    ----------
    peak_rate
        The largest learning rate; None for the network's own.
    batch_size
        Data sets per model in a mini-batch.
    warm_up
        Share of the budget over which the rate rises from zero.
    decay_every
        None: the rate falls to zero along a cosine over the budget. A number: it falls by 1% every so many steps,
        whatever the budget.
    average
        Whether the answer uses weights averaged over the last part of training.
    reuse
        Whether a simulation may be used again while the next is not there yet.
    thin
        Whether to train on those simulations alone that teach most.
    orthogonal
        Whether steps of weight matrices are made orthogonal: Muon, in place of Adam.
    """

    peak_rate: float | None = None
    batch_size: int = 256
    warm_up: float = 0.02
    decay_every: int | None = None
    average: bool = True
    reuse: bool = True
    thin: bool = False
    orthogonal: bool = False

    def for_network(self, peak_rate: float) -> Schedule:
        """Return the schedule of a network that may learn this fast; one that has a rate of its own keeps it."""
        return self if self.peak_rate is not None else replace(self, peak_rate=peak_rate)

    def rates(self, progress: NDArray[np.float64], steps: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the learning rates at these shares of the budget and step numbers."""
        if self.peak_rate is None:
            raise ValueError("the schedule has no peak rate yet. Call for_network first.")
        if self.decay_every is not None:
            return (self.peak_rate * 0.99 ** (steps // self.decay_every)).astype(np.float32)
        share = np.clip(progress, 0.0, 1.0)
        rising = np.minimum(1.0, share / self.warm_up)
        falling = 0.5 * (1.0 + np.cos(np.pi * share))
        return (self.peak_rate * rising * falling).astype(np.float32)


# Section S3: Adam at 0.01, times 0.99 every 1,000 steps, 200 data sets per model, each used once, 400,000 steps.
PAPER = Schedule(peak_rate=0.01, batch_size=200, decay_every=1000, average=False, reuse=False)
PAPER_STEPS = 400_000

# The learning rate of networks that are trained already, as a share of what it is for new ones. A normal mean whose
# prior was made twice as wide, after 3,000 steps with the old one, error of the log Bayes factor, one run each: 0.24
# from 2,000 simulations and 0.14 from 20,000; 0.26 and 0.17 at three times this rate; 0.58 and 0.27 without a start.
WARM_RATE = 0.1

AUTO_NAME, PAPER_NAME, THOROUGH_NAME = SCHEDULES = ("auto", "paper", "thorough")
# Thinned simulations are all worth learning from: more of them a step, and each step goes further.
THOROUGH_BATCH = 512


def named_schedule(name: str, batch_size: int | None = None) -> Schedule:
    """Return the schedule called `name`; all but the paper's adapt to the budget, at the network's own peak rate."""
    chosen = {
        AUTO_NAME: Schedule(),
        PAPER_NAME: PAPER,
        THOROUGH_NAME: Schedule(batch_size=THOROUGH_BATCH, thin=True, orthogonal=True),
    }[_checks.check_choice("schedule", name, SCHEDULES)]
    return chosen if batch_size is None else replace(chosen, batch_size=_checks.check_count("batch_size", batch_size))
