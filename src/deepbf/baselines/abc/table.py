"""The whole reference as one table of summaries, for methods that train a classifier on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepbf.baselines.abc.comparison import Comparison
from deepbf.baselines.abc.nearest import Nearest
from deepbf.baselines.abc.screen import Block


class Table(NamedTuple):
    """Reference draws with finite summaries: points on the ruler, the model of each, its number in the order."""

    points: NDArray[np.float64]
    labels: NDArray[np.int16]
    draws: NDArray[np.int64]
    num_undefined: int


def read_table(comparison: Comparison) -> Table:
    """Return all draws in memory at once: 8 bytes a feature and draw."""
    return _joined([_light(block) for block in comparison.blocks()])


def read_table_and_rank(comparison: Comparison, num_kept: int) -> tuple[Table, Nearest]:
    """Return the table and, for each observed data set, its `num_kept` nearest draws, in one walk."""
    nearest = Nearest(len(comparison.observed), num_kept)
    blocks = []
    with comparison.screen() as screen:
        for block in comparison.blocks():
            nearest.add(screen.start_nearest(block, num_kept, nearest.thresholds)())
            blocks.append(_light(block))
    nearest.merge()
    return _joined(blocks), nearest


def _light(block: Block) -> Block:
    """Return the block without its single-precision copy."""
    return block._replace(columns=np.empty((0, 0), np.float32))


def _joined(blocks: Sequence[Block]) -> Table:
    return Table(
        np.concatenate([block.points for block in blocks]),
        np.concatenate([block.labels for block in blocks]),
        np.concatenate([block.draws for block in blocks]),
        sum(block.num_undefined for block in blocks),
    )
