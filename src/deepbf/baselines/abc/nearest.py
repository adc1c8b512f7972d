"""The nearest draws so far of each observed data set, in bounded memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepbf.baselines.abc.screen import Hits, join


class Nearest:
    """The `num_kept` nearest draws of each observed data set, among those added.

    `thresholds` is what a draw must not exceed to matter: the distance of the last one kept. It makes ranking in
    strata cheap without changing its outcome. A draw beyond the threshold has `num_kept` nearer ones, each among the
    nearest of its stratum; it cannot be in the end result, and a stratum's nearest are the same with or without it.

    New hits are merged only when they are as many as half of those kept. Until then the threshold is a little too
    high, which lets in some more hits and loses none; the number of merges grows with the logarithm of the draws.
    """

    def __init__(self, num_observed: int, num_kept: int) -> None:
        shape = (num_observed, num_kept)
        self.squared = np.full(shape, np.inf)
        self.draws = np.full(shape, -1, np.int64)
        self.labels = np.full(shape, -1, np.int16)
        self._pending: list[Hits] = []
        self._num_pending = 0

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """Squared distance of the last draw kept, inf while there are too few; one an observed data set."""
        return self.squared[:, -1]

    def add(self, hits: Hits) -> None:
        """Take in the hits of one stratum; strata must come in order."""
        self._pending.append(hits)
        self._num_pending += len(hits.rows)
        if self._num_pending >= self.squared.size / 2:
            self.merge()

    def merge(self) -> None:
        """Bring everything added into `squared`, `draws` and `labels`, nearest first."""
        num_observed, num_kept = self.squared.shape
        kept_rows = np.repeat(np.arange(num_observed), num_kept)
        kept = Hits(kept_rows, self.squared.ravel(), self.draws.ravel(), self.labels.ravel())
        rows, squared, draws, labels = join([kept, *self._pending])
        # The sort is stable and the draws stand in their order, so that ties go to the draw that comes first.
        order = np.lexsort((squared, rows))
        starts = np.searchsorted(rows[order], np.arange(num_observed))
        chosen = order[starts[:, None] + np.arange(num_kept)]
        self.squared, self.draws, self.labels = squared[chosen], draws[chosen], labels[chosen]
        self._pending, self._num_pending = [], 0
