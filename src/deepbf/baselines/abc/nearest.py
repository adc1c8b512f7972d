"""The draws near the observed data, found by one single-precision matrix product per stratum and never missed by it.

With centred points x (observed) and y (draw), |x - y|^2 <= t exactly when x.y - |y|^2 / 2 >= (|x|^2 - t) / 2. The left
side for all pairs is a matrix product with one extra column. In single precision with d features its error is at most
g (|x|^2 / 2 + |y|^2), g = (d + 8) 2^-24, in whatever order the terms are added. Both sides give way by more than that,
so a draw within reach is always found; a few beyond it are found too, and exact distances sort them out. A distance
that is a function of the user's own has no such short cut, and is asked about every pair.
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

from deepbf.baselines.abc.distance import LearnedDistance, Values
from deepbf.baselines.abc.reference import Comparison, Stratum

# Products held at once by a thread: 8 MB. Smaller tiles pack the draws for the product again and again.
_VALUES_PER_TILE = 2**21
# Values held at once while exact distances are computed: 512 KB. 8 MB took as long.
_VALUES_PER_CHUNK = 2**16
# Squared norms, in the distance's unit, up to which single precision is trusted; its largest number is 3e38.
_LARGEST_NORM = 1e30
# Underflow in single precision loses at most 1e-38 per term.
_UNDERFLOW = 1e-32


class Block(NamedTuple):
    """A stratum ready to be compared: exact points, and single-precision ones with their extra column."""

    draws: NDArray[np.int64]
    labels: NDArray[np.int16]
    num_undefined: int
    points: Values
    columns: NDArray[np.float32]


class Hits(NamedTuple):
    """Pairs of an observed data set and a draw, by observed data set and then in the draws' order."""

    rows: NDArray[np.intp]
    squared: NDArray[np.float64]
    draws: NDArray[np.int64]
    labels: NDArray[np.int16]

    @classmethod
    def join(cls, parts: Sequence[Hits]) -> Hits:
        """Return several lists of hits as one, in the given order."""
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.squared for part in parts]),
            np.concatenate([part.draws for part in parts]),
            np.concatenate([part.labels for part in parts]),
        )

    def keep_nearest(self, num_kept: int) -> Hits:
        """Return the `num_kept` nearest hits of each observed data set that has more; ties go to the first draw."""
        # Hits come row by row, so a row has too many where the hit `num_kept` further on is still of the same row.
        if not np.any(self.rows[num_kept:] == self.rows[:-num_kept]):
            return self
        order = np.lexsort((self.squared, self.rows))
        rows = self.rows[order]
        rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
        kept = np.sort(order[rank < num_kept])
        return Hits(self.rows[kept], self.squared[kept], self.draws[kept], self.labels[kept])


class Screen:
    """The observed points, ready to be compared with one block of draws after another; use it in a `with`.

    Tiles of observed data sets go to a few threads, and the matrix product inside a tile to one thread. A product
    that is itself shared among threads waits for the slowest of them at the end of every tile. On two processors that
    other processes used as well, tiles of 500 data sets then took 7 to 94 ms per stratum from one try to the next.
    """

    def __init__(self, observed: Values, distance: LearnedDistance) -> None:
        self._distance = distance
        self._points = distance.to_points(observed)
        centred = (self._points - distance.centre) / distance.unit
        self._norms = np.einsum("ij,ij->i", centred, centred)
        self._columns = np.ones((len(observed), self._points.shape[1] + 1), np.float32)
        self._columns[:, :-1] = centred
        self._local = threading.local()
        self._num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._executor = ThreadPoolExecutor(self._num_threads, "deepbf-screen")
        self._limits = threadpool_limits(1, user_api="blas")

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown()
        self._limits.restore_original_limits()

    def block(self, stratum: Stratum) -> Block:
        """Return the stratum's draws as points, with what the matrix product needs."""
        points = self._distance.to_points(stratum.values)
        num_draws, num_features = points.shape
        columns = np.empty((num_draws, num_features + 1), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            centred = (points - self._distance.centre) / self._distance.unit
            norms = np.einsum("ij,ij->i", centred, centred)
            columns[:, :-1] = centred
            columns[:, -1] = -0.5 * (1 - 4 * _relative_error(num_features)) * norms
        # A draw this far away is further than any threshold below the limit; above it, nothing is screened out.
        wild = ~(norms < _LARGEST_NORM)
        columns[wild, :-1] = 0
        columns[wild, -1] = -_LARGEST_NORM
        return Block(stratum.draws, stratum.labels, stratum.num_undefined, points, columns)

    def start(
        self, block: Block, thresholds: NDArray[np.float64], *, num_kept: int | None = None
    ) -> Callable[[], Hits]:
        """Start the search for all pairs with a squared distance of at most the observed data set's threshold.

        With `num_kept`, only that many nearest of each observed data set are found; ties go to the draw that comes
        first. The function that comes back waits for the hits.
        """
        search = self._search_by_product if self._distance.between is None else self._search_every_pair
        found = self._executor.map(lambda tile: search(tile, block, thresholds[tile], num_kept), self._tiles(block))
        return lambda: Hits.join(list(found))

    def _search_by_product(
        self, tile: slice, block: Block, thresholds: NDArray[np.float64], num_kept: int | None
    ) -> Hits:
        product = self._product(tile, block)
        if num_kept is not None and num_kept < len(block.draws) and np.isinf(thresholds).any():
            # Any `num_kept` draws give a bound on the distance of the last one kept; the nearest as far as single
            # precision can tell give a tight one.
            some = np.argpartition(product, -num_kept, axis=1)[:, -num_kept:]
            rows = np.repeat(np.arange(tile.start, tile.stop), num_kept)
            thresholds = np.minimum(
                thresholds, self._squared(rows, some.ravel(), block).reshape(some.shape).max(axis=1)
            )
        # What a product must reach for its draw to be a candidate.
        norms, squared = self._norms[tile], thresholds / self._distance.unit / self._distance.unit
        slack = 2 * _relative_error(self._points.shape[1]) * norms + _UNDERFLOW
        trusted = squared < 0.1 * _LARGEST_NORM
        cuts = np.where(trusted, (norms - squared) / 2 - slack, -np.inf).astype(np.float32)
        cuts = np.nextafter(cuts, np.float32(-np.inf))
        rows, columns = np.divmod(np.flatnonzero(product >= cuts[:, None]), product.shape[1])
        squared = self._squared(rows + tile.start, columns, block)
        close = squared <= thresholds[rows]
        rows, columns, squared = rows[close], columns[close], squared[close]
        hits = Hits(rows + tile.start, squared, block.draws[columns], block.labels[columns])
        return hits if num_kept is None else hits.keep_nearest(num_kept)

    def _search_every_pair(
        self, tile: slice, block: Block, thresholds: NDArray[np.float64], num_kept: int | None
    ) -> Hits:
        squared = self._distance.all_squared(self._points[tile], block.points)
        if num_kept is not None and num_kept < len(block.draws):
            last_kept = np.partition(squared, num_kept - 1, axis=1)[:, num_kept - 1]
            thresholds = np.minimum(thresholds, last_kept)
        rows, columns = np.nonzero(squared <= thresholds[:, None])
        hits = Hits(rows + tile.start, squared[rows, columns], block.draws[columns], block.labels[columns])
        return hits if num_kept is None else hits.keep_nearest(num_kept)

    def _product(self, tile: slice, block: Block) -> NDArray[np.float32]:
        shape = (tile.stop - tile.start, len(block.columns))
        size = shape[0] * shape[1]
        # One buffer per thread throughout, so that no tile waits for memory that is new to the process.
        if getattr(self._local, "buffer", np.empty(0)).size < size:
            self._local.buffer = np.empty(size, np.float32)
        out = self._local.buffer[:size].reshape(shape)
        return np.matmul(self._columns[tile], block.columns.T, out=out)

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
        # A function of the user's own may hold all differences of a pair at once.
        values_per_pair = 1 if self._distance.between is None else self._points.shape[1]
        num_tiles = -(-num_observed * len(block.columns) * values_per_pair // _VALUES_PER_TILE)
        num_tiles = min(num_observed, -(-num_tiles // self._num_threads) * self._num_threads)
        ends = np.linspace(0, num_observed, max(1, num_tiles) + 1).round().astype(int).tolist()
        for start, stop in itertools.pairwise(ends):
            yield slice(start, stop)


class Nearest:
    """The `num_kept` nearest draws of each observed data set among those added, in bounded memory.

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
        """Squared distance of the last draw kept, per observed data set; inf while there are too few."""
        return self.squared[:, -1]

    @property
    def largest_distance(self) -> NDArray[np.float64]:
        """Distance of the farthest draw kept, per observed data set; 0 where none was."""
        # The last is empty only where summaries were undefined.
        return np.sqrt(np.where(np.isfinite(self.squared), self.squared, 0.0).max(axis=1))

    def counts(self, num_models: int) -> NDArray[np.int64]:
        """Return how many of the draws kept come from each model, shape (observed data sets, K)."""
        return np.stack([(self.labels == k).sum(axis=1) for k in range(num_models)], axis=1)

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
        rows, squared, draws, labels = Hits.join([kept, *self._pending])
        # The sort is stable and the draws stand in their order, so that ties go to the draw that comes first.
        order = np.lexsort((squared, rows))
        starts = np.searchsorted(rows[order], np.arange(num_observed))
        chosen = order[starts[:, None] + np.arange(num_kept)]
        self.squared, self.draws, self.labels = squared[chosen], draws[chosen], labels[chosen]
        self._pending, self._num_pending = [], 0


def rank(
    comparison: Comparison, kept_per_stratum: int, num_kept: int, visit: Callable[[Block], None] | None = None
) -> tuple[Nearest, int]:
    """Return the nearest draws after one walk through the strata, and how many draws had no summary.

    Of each stratum the `kept_per_stratum` nearest draws of an observed data set are candidates, and of all candidates
    the `num_kept` nearest are kept. `visit` is called with every block on the way, in order.
    """
    nearest = Nearest(len(comparison.observed), num_kept)
    num_undefined = 0
    with Screen(comparison.observed, comparison.distance) as screen:
        running: Callable[[], Hits] | None = None
        for block in comparison.walk(screen.block):
            following = screen.start(block, nearest.thresholds, num_kept=kept_per_stratum)
            # Ranked while the next stratum is compared, whose thresholds are then a little too high, and lose nothing.
            if running is not None:
                nearest.add(running())
            running = following
            num_undefined += block.num_undefined
            if visit is not None:
                visit(block)
        if running is not None:
            nearest.add(running())
    nearest.merge()
    return nearest, num_undefined


class Table(NamedTuple):
    """Reference draws with finite summaries: points of the distance, the model of each, its number in the order."""

    points: Values
    labels: NDArray[np.int16]
    draws: NDArray[np.int64]
    num_undefined: int


def read_table(comparison: Comparison) -> Table:
    """Return all draws of the reference in memory at once, as points of the distance.

    That takes 8 bytes per coordinate and draw. Draws without a finite summary are left out, and counted.
    """
    return join_strata(
        list(comparison.walk(lambda stratum: stratum._replace(values=comparison.distance.to_points(stratum.values))))
    )


def join_strata(strata: Sequence[Stratum]) -> Table:
    """Return strata, given in order and with points of the distance as their values, as one table."""
    return Table(
        np.concatenate([stratum.values for stratum in strata]),
        np.concatenate([stratum.labels for stratum in strata]),
        np.concatenate([stratum.draws for stratum in strata]),
        sum(stratum.num_undefined for stratum in strata),
    )


def _relative_error(num_features: int) -> float:
    """Return the bound g on the relative rounding error of a product of `num_features` and one column."""
    return (num_features + 8) * 2.0**-24
