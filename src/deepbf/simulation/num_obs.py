"""How many observations simulated data sets have, where an estimator is trained for a range of numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepbf import _checks

# Data sets of one call of a simulator, all with the same number of observations: few, so that a mini-batch holds many
# different numbers; not one, for a call of a vectorised simulator costs some tens of microseconds whatever it draws.
GROUP_SIZE = 16
# Set apart from every model's index, for the numbers are the same for all models.
NUM_OBS_KEY = 2**31 - 1


class NumObsRange(NamedTuple):
    """The smallest and the largest number of observations a data set, both included."""

    low: int
    high: int

    @classmethod
    def of(cls, num_obs: object) -> NumObsRange:
        """Return the checked range."""
        if isinstance(num_obs, str) or not hasattr(num_obs, "__len__") or len(num_obs) != 2:  # pyright: ignore[reportArgumentType]
            raise TypeError(
                f"num_obs must be the smallest and the largest number of observations, such as (2, 256); received "
                f"{num_obs!r}. For a single number, let the simulators draw that many, and leave num_obs out."
            )
        low, high = (_checks.check_count("num_obs", number) for number in num_obs)  # pyright: ignore[reportGeneralTypeIssues]
        if low >= high:
            raise ValueError(f"num_obs must run from a smaller to a larger number; received ({low}, {high}).")
        return cls(low, high)

    def draw(self, seed: int, chunk_index: int, num_datasets: int) -> list[tuple[int, int]]:
        """Return groups of data sets of a chunk, each as (data sets, observations); the same for all models.

        The number says nothing about the model then. It is drawn evenly on a log scale, so that an estimator learns as
        much between 2 and 4 as between 128 and 256, and evenly within each chunk.
        """
        num_groups = -(-num_datasets // GROUP_SIZE)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(NUM_OBS_KEY, chunk_index)))
        shares = (rng.permutation(num_groups) + rng.uniform(size=num_groups)) / num_groups
        # Up to high + 1, rounded down, gives every whole number its own stretch of the scale.
        numbers = np.floor(self.low * ((self.high + 1) / self.low) ** shares).astype(int)
        numbers = np.clip(numbers, self.low, self.high)
        sizes = np.full(num_groups, GROUP_SIZE)
        sizes[-1] = num_datasets - GROUP_SIZE * (num_groups - 1)
        return [(int(size), int(number)) for size, number in zip(sizes, numbers, strict=True)]
