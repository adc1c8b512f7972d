"""Which draw of the reference comes from which model: strata that all mix the models alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def share_out(num_draws: int, probs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many of `num_draws` each model gives: in proportion to `probs`, rounded by largest remainder.

    Every model gives at least one draw where there are enough, since a model without any could not be judged.
    """
    exact = num_draws * probs
    counts = np.floor(exact).astype(np.int64)
    remainders = np.argsort(counts - exact, kind="stable")
    counts[remainders[: num_draws - counts.sum()]] += 1
    while (counts == 0).any() and num_draws >= len(probs):
        counts[np.argmax(counts)] -= 1
        counts[np.argmin(counts)] += 1
    return counts


class Layout:
    """The order of a reference of `counts` draws, cut into strata.

    Model k's i-th draw stands at (i + 1/2) / counts[k], so that every stratum holds the models in proportion, give or
    take one draw. Inside a stratum the draws are shuffled. Ties in distance go to the draw that comes first in this
    order, and so to each model in proportion to its draws.

    Everything here depends on the models' names and not on their positions, so that two models swapped give the same
    order and the opposite Bayes factor, to the last bit.
    """

    def __init__(self, counts: NDArray[np.int64], names: Sequence[str], num_strata: int, seed: int) -> None:
        by_name = np.argsort(np.asarray(names), kind="stable")
        places = np.concatenate([(np.arange(int(counts[k])) + 0.5) / counts[k] for k in by_name])
        labels = np.repeat(by_name, counts[by_name]).astype(np.int16)
        self._labels = labels[np.argsort(places, kind="stable")]
        self._bounds = np.arange(num_strata + 1) * len(labels) // num_strata
        self._seed = seed
        # Row s: how many draws of each model come before stratum s.
        per_stratum = [np.bincount(self._labels[a:b], minlength=len(counts)) for a, b in self._slices()]
        self._before = np.concatenate([np.zeros((1, len(counts)), np.int64), np.cumsum(per_stratum, axis=0)])
        self.counts = counts
        self.num_strata = num_strata

    @property
    def num_draws(self) -> int:
        """Draws in all strata together."""
        return len(self._labels)

    def first_draw(self, stratum: int) -> int:
        """Return the number of the stratum's first draw in the whole order."""
        return int(self._bounds[stratum])

    def labels(self, stratum: int) -> NDArray[np.int16]:
        """Return the model of each draw of the stratum, shuffled."""
        labels = self._labels[self._bounds[stratum] : self._bounds[stratum + 1]]
        # Beyond the models' own spawn keys, so that no simulator shares these random numbers.
        key = (len(self.counts), stratum)
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key)).permutation(labels)

    def rows(self, stratum: int, model: int) -> slice:
        """Return which of the model's own draws belong to the stratum."""
        return slice(int(self._before[stratum, model]), int(self._before[stratum + 1, model]))

    def _slices(self) -> zip[tuple[int, int]]:
        return zip(self._bounds[:-1], self._bounds[1:], strict=True)
