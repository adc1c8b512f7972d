"""Draws near the observed data, found by one single-precision matrix product a stratum and never missed by it.

With centred points x (observed) and y (draw), |x - y|^2 <= t exactly when x.y - |y|^2 / 2 >= (|x|^2 - t) / 2. The left
side for all pairs is a matrix product with one extra column. In single precision with d features its error is at most
g (|x|^2 / 2 + |y|^2), g = (d + 8) 2^-24, in whatever order the terms are added. Both sides give way by more than that,
so a draw within reach is always found; a few beyond it are found too, and exact distances sort them out.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from deepbf.baselines.abc.reference import Stratum
from deepbf.baselines.abc.ruler import Ruler

# Products held at once by a thread: 8 MB. Smaller tiles pack the draws for the product again and again.
_VALUES_PER_TILE = 2**21
# Values held at once while exact distances are computed: 512 KB. 8 MB took as long.
_VALUES_PER_CHUNK = 2**16
# Squared norms, in the ruler's unit, up to which single precision is trusted; its largest number is 3e38.
_LARGEST_NORM = 1e30
# Underflow in single precision loses at most 1e-38 a term.
_UNDERFLOW = 1e-32


class Block(NamedTuple):
    """A stratum ready to be compared: exact points, and single-precision ones with their extra column."""

    draws: NDArray[np.int64]
    labels: NDArray[np.int16]
    num_undefined: int
    points: NDArray[np.float64]
    columns: NDArray[np.float32]


class Hits(NamedTuple):
    """Pairs of an observed data set and a draw, by observed data set and then in the draws' order."""

    rows: NDArray[np.intp]
    squared: NDArray[np.float64]
    draws: NDArray[np.int64]
    labels: NDArray[np.int16]


def block_of(stratum: Stratum, ruler: Ruler) -> Block:
    """Return the stratum's draws as points on the ruler."""
    points = stratum.values / ruler.scale
    num_draws, num_features = points.shape
    columns = np.empty((num_draws, num_features + 1), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        centred = (points - ruler.centre) / ruler.unit
        norms = np.einsum("ij,ij->i", centred, centred)
        columns[:, :-1] = centred
        columns[:, -1] = -0.5 * (1 - 4 * _relative_error(num_features)) * norms
    # A draw this far away is further than any threshold below the limit; above it, nothing is screened out.
    wild = ~(norms < _LARGEST_NORM)
    columns[wild, :-1] = 0
    columns[wild, -1] = -_LARGEST_NORM
    return Block(stratum.draws, stratum.labels, stratum.num_undefined, points, columns)


class Screen:
    """The observed points, ready to be compared with one block of draws after another; use it in a `with`.

    Tiles of observed data sets go to a few threads, and the matrix product inside a tile to one thread. A product
    that is itself shared among threads waits for the slowest of them at the end of every tile. On two processors that
    other processes used as well, tiles of 500 data sets then took 7 to 94 ms a stratum from one try to the next.
    """

    def __init__(self, observed: NDArray[np.float64], ruler: Ruler) -> None:
        self._points = observed / ruler.scale
        centred = (self._points - ruler.centre) / ruler.unit
        self._norms = np.einsum("ij,ij->i", centred, centred)
        self._columns = np.ones((len(observed), observed.shape[1] + 1), np.float32)
        self._columns[:, :-1] = centred
        self._unit = ruler.unit
        self._local = threading.local()
        self._num_threads = _num_processors()
        self._executor = ThreadPoolExecutor(self._num_threads, "deepbf-screen")
        self._limits = threadpool_limits(1, user_api="blas")

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown()
        self._limits.restore_original_limits()

    def within(self, block: Block, thresholds: NDArray[np.float64]) -> Hits:
        """Return all pairs with a squared distance of at most the observed data set's threshold."""
        return self._start(block, lambda tile: self._within_tile(tile, block, thresholds[tile]))()

    def start_nearest(self, block: Block, num_kept: int, thresholds: NDArray[np.float64]) -> Callable[[], Hits]:
        """Start the search for the `num_kept` nearest to each observed data set among the pairs within the thresholds.

        The function that comes back waits for them. Ties go to the draw that comes first.
        """
        return self._start(block, lambda tile: self._nearest_in_tile(tile, block, num_kept, thresholds[tile]))

    def _start(self, block: Block, search: Callable[[slice], Hits]) -> Callable[[], Hits]:
        found = self._executor.map(search, self._tiles(block))
        return lambda: join(list(found))

    def _nearest_in_tile(self, tile: slice, block: Block, num_kept: int, thresholds: NDArray[np.float64]) -> Hits:
        product = self._product(tile, block)
        if num_kept < len(block.draws) and np.isinf(thresholds).any():
            thresholds = np.minimum(thresholds, self._bound(tile, block, product, num_kept))
        return keep_nearest(self._exact_hits(tile, block, product, thresholds), num_kept)

    def _within_tile(self, tile: slice, block: Block, thresholds: NDArray[np.float64]) -> Hits:
        return self._exact_hits(tile, block, self._product(tile, block), thresholds)

    def _bound(self, tile: slice, block: Block, product: NDArray[np.float32], num_kept: int) -> NDArray[np.float64]:
        """Return a squared distance that at least `num_kept` draws do not exceed, one an observed data set.

        Any `num_kept` draws give one; the nearest as far as single precision can tell give a tight one.
        """
        some = np.argpartition(product, -num_kept, axis=1)[:, -num_kept:]
        rows = np.repeat(np.arange(tile.start, tile.start + len(some)), num_kept)
        return self._squared(rows, some.ravel(), block).reshape(some.shape).max(axis=1)

    def _exact_hits(
        self, tile: slice, block: Block, product: NDArray[np.float32], thresholds: NDArray[np.float64]
    ) -> Hits:
        candidates = np.flatnonzero(product >= self._cuts(tile, thresholds)[:, None])
        rows, columns = np.divmod(candidates, product.shape[1])
        squared = self._squared(rows + tile.start, columns, block)
        close = squared <= thresholds[rows]
        rows, columns, squared = rows[close], columns[close], squared[close]
        return Hits(rows + tile.start, squared, block.draws[columns], block.labels[columns])

    def _product(self, tile: slice, block: Block) -> NDArray[np.float32]:
        shape = (tile.stop - tile.start, len(block.columns))
        size = shape[0] * shape[1]
        # One buffer a thread throughout, so that no tile waits for memory that is new to the process.
        if getattr(self._local, "buffer", np.empty(0)).size < size:
            self._local.buffer = np.empty(size, np.float32)
        out = self._local.buffer[:size].reshape(shape)
        return np.matmul(self._columns[tile], block.columns.T, out=out)

    def _cuts(self, tile: slice, thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return what a product must reach for its draw to be a candidate."""
        norms, squared = self._norms[tile], thresholds / self._unit / self._unit
        slack = 2 * _relative_error(self._columns.shape[1] - 1) * norms + _UNDERFLOW
        trusted = squared < 0.1 * _LARGEST_NORM
        cuts = np.where(trusted, (norms - squared) / 2 - slack, -np.inf).astype(np.float32)
        return np.nextafter(cuts, np.float32(-np.inf))

    def _squared(self, rows: NDArray[np.intp], columns: NDArray[np.intp], block: Block) -> NDArray[np.float64]:
        """Return exact squared distances; those beyond float64 are its largest number, so never inf."""
        squared = np.empty(len(rows))
        size = max(1, _VALUES_PER_CHUNK // block.points.shape[1])
        with np.errstate(over="ignore"):
            for start in range(0, len(rows), size):
                part = slice(start, start + size)
                differences = block.points[columns[part]] - self._points[rows[part]]
                np.square(differences, out=differences)
                differences.sum(axis=1, out=squared[part])
        return np.minimum(squared, np.finfo(np.float64).max, out=squared)

    def _tiles(self, block: Block) -> Iterator[slice]:
        """Yield equal shares of the observed data, as many as keep every thread busy, and none too large."""
        num_observed = len(self._points)
        num_tiles = -(-num_observed * len(block.columns) // _VALUES_PER_TILE)
        num_tiles = min(num_observed, -(-num_tiles // self._num_threads) * self._num_threads)
        ends = np.linspace(0, num_observed, max(1, num_tiles) + 1).round().astype(int).tolist()
        for start, stop in itertools.pairwise(ends):
            yield slice(start, stop)


def join(parts: Sequence[Hits]) -> Hits:
    """Return several lists of hits as one, in the given order."""
    return Hits(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.squared for part in parts]),
        np.concatenate([part.draws for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )


def keep_nearest(hits: Hits, num_kept: int) -> Hits:
    """Return the `num_kept` nearest hits of each observed data set that has more; ties go to the first draw."""
    # Hits come row by row, so a row has too many where the hit `num_kept` further on is still of the same row.
    if not np.any(hits.rows[num_kept:] == hits.rows[:-num_kept]):
        return hits
    order = np.lexsort((hits.squared, hits.rows))
    rows = hits.rows[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = np.sort(order[rank < num_kept])
    return Hits(hits.rows[kept], hits.squared[kept], hits.draws[kept], hits.labels[kept])


def _num_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _relative_error(num_features: int) -> float:
    """Return the bound g on the relative rounding error of a product of `num_features` and one column."""
    return (num_features + 8) * 2.0**-24
