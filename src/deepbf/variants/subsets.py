"""Training samples: all subsets of the observations of one size, or a random sample of them where they are many."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Subsets:
    """Which observations each training sample holds, shape (subsets, size), and how many samples there could be."""

    indices: NDArray[np.intp]
    num_possible: int

    @property
    def all_there(self) -> bool:
        """Whether every possible subset is among them, so that no error comes from choosing."""
        return len(self.indices) == self.num_possible


def choose_subsets(num_obs: int, size: int, most: int, seed: int) -> Subsets:
    """Return all subsets of `size` among `num_obs` observations if they are at most `most`, else `most` random ones.

    Random ones are drawn independently of each other, each subset with the same probability.

    Examples
    --------
    >>> choose_subsets(3, 2, most=10, seed=0).indices.tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> choose_subsets(40, 20, most=5, seed=0).indices.shape
    (5, 20)
    """
    num_possible = math.comb(num_obs, size)
    if num_possible <= most:
        every = list(itertools.combinations(range(num_obs), size))
        return Subsets(np.array(every, dtype=np.intp), num_possible)
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.tile(np.arange(num_obs), (most, 1)), axis=1)
    return Subsets(np.sort(order[:, :size], axis=1), num_possible)
