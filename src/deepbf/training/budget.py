"""How long to train: by seconds, by steps, or by a fixed number of simulations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

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

    def expected_datasets(self, num_models: int, datasets_a_second: float) -> float:
        """Return how many data sets a model it will bring, at this pace of simulation."""
        if self.num_simulations is not None:
            return self.num_simulations // num_models
        return math.inf if self.seconds is None else datasets_a_second * self.seconds

    def planned_steps(self, num_models: int, batch_size: int) -> int | None:
        """Return how many steps it means; None if only time will tell."""
        if self.num_simulations is None:
            return self.steps
        return max(1, MOST_PASSES * (self.num_simulations // num_models) // batch_size)


def fitting_batch_size(wanted: int, num_datasets: float) -> int:
    """Return the mini-batch a model: as wanted, or smaller where few simulations would give too few batches."""
    return int(np.clip(num_datasets / FEWEST_BATCHES, SMALLEST_BATCH, wanted))
