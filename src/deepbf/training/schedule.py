"""Schedules: the learning rate, the mini-batch and the averaging, as functions of progress through the budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks


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
