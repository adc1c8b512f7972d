"""Simulations set aside: what tells progress from memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepbf.simulation import CHUNK_SIZE

# One chunk in so many is set aside, the first of them early, until there are enough.
ONE_IN = 8
FIRST = 1
MOST_DATASETS = 8192


class HeldOut:
    """Splits a stream of chunks into rows to train on and rows to judge by, always the same way."""

    def __init__(self, num_models: int) -> None:
        self._kept: list[list[NDArray[np.float32]]] = [[] for _ in range(num_models)]
        self._next_chunk = 0
        self.num_rows = 0

    def split(self, rows: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        """Keep this part's held-out chunks; return the rest, one array a model."""
        num_rows = len(rows[0])
        chunk_of_row = self._next_chunk + np.arange(num_rows) // CHUNK_SIZE
        self._next_chunk += -(-num_rows // CHUNK_SIZE)
        kept = (chunk_of_row % ONE_IN == FIRST) & (chunk_of_row < ONE_IN * MOST_DATASETS // CHUNK_SIZE)
        if not kept.any():
            return list(rows)
        self.num_rows += int(kept.sum())
        for model_index, model_rows in enumerate(rows):
            self._kept[model_index].append(model_rows[kept])
        return [model_rows[~kept] for model_rows in rows]

    def rows(self) -> list[NDArray[np.float32]]:
        """Return what has been set aside, one array a model."""
        return [np.concatenate(parts) for parts in self._kept]
