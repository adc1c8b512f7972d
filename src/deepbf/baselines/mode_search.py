"""Where a density of one to three parameters holds its mass: its modes, and a box around each.

Prior draws that beat their neighbours start a bounded optimiser; from each mode a box grows until the log density has
fallen by `drop` on all its faces, or the face is a bound. Posteriors may be a thousand times narrower than the prior,
and may lean on a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import KDTree

from deepbf.baselines.log_joint import Points, Values

LogDensity = Callable[[Points], Values]


def on_grid(log_density: LogDensity, axes: np.ndarray) -> np.ndarray:
    """Return the log density on the product grid of `axes`, which holds one row of nodes per parameter.

    What comes back has one axis per parameter.

    A density with a method `on_grid` of its own, which can do without evaluating every point alone, is asked for it.
    """
    short_cut = getattr(log_density, "on_grid", None)
    if short_cut is not None:
        return short_cut(axes)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return log_density(points).reshape([len(nodes) for nodes in axes])


NUM_SEARCH_DRAWS = 2000
# Draws a start must beat; about two shells of neighbours in three dimensions.
_NUM_NEIGHBOURS = 24
_MOST_STARTS = 8
# Points on the way from one start to a better one, where a dip shows that they climb different hills.
_PATH_STEPS = 24
# Densities may be -inf on a bound itself; the optimiser and the box stop this share of the prior's spread before it.
_BOUND_GAP = 1e-9
_DIFFERENCE_STEP = 1e-6
# A box side grows by this share of its width at a time, and no more often than this: heavy tails go on for ever.
_GROWTH = 0.5
_MOST_ROUNDS = 40
_COARSE_NODES = 9


class Search(NamedTuple):
    """What the search needs to know of a model, the same for every data set.

    `low` and `high` are the bounds, `draws` come from the prior, `neighbours` indexes the nearest draws of each, and
    `spread` is the prior's scale along each parameter.
    """

    low: Values
    high: Values
    draws: Points
    neighbours: np.ndarray
    spread: Values

    @property
    def inner_low(self) -> Values:
        """The lower bounds, moved a little inside."""
        return self.low + _BOUND_GAP * self.spread

    @property
    def inner_high(self) -> Values:
        """The upper bounds, moved a little inside."""
        return self.high - _BOUND_GAP * self.spread


class Box(NamedTuple):
    """A box of parameters, and the largest log density seen in it."""

    low: Values
    high: Values
    log_peak: float


def prepare_search(draws: Points, low: Values, high: Values) -> Search:
    """Return a search over the box of `low` and `high`, started from these draws of the prior.

    `draws` has shape (draws, parameters), `low` and `high` one entry per parameter; they may be infinite. The nearest
    neighbours of each draw are found here, once for all data sets.
    """
    quartiles = np.quantile(draws, [0.25, 0.75], axis=0)
    # Quartiles, since a heavy-tailed prior may have no standard deviation; its extremes if half the draws are equal.
    spread = quartiles[1] - quartiles[0]
    spread = np.where(spread > 0, spread, np.ptp(draws, axis=0))
    spread = np.where(spread > 0, spread, 1.0)
    scaled = draws / spread
    _, neighbours = KDTree(scaled).query(scaled, k=min(_NUM_NEIGHBOURS, len(draws)))
    return Search(low, high, draws, np.reshape(neighbours, (len(draws), -1)), spread)


def locate(log_density: LogDensity, search: Search, *, drop: float) -> list[Box]:
    """Return disjoint boxes that hold the mass, the highest first; an empty list if no draw has positive density.

    Outside of the boxes the log density is more than `drop` below its peak, as far as the search could see. A mode that
    is lower than the highest by more than `drop` gets no box.
    """
    values = log_density(search.draws)
    if not (values > -np.inf).any():
        return []
    # Draws that no neighbour beats, without those from which a straight line climbs to a better one.
    peaks = np.flatnonzero((values >= values[search.neighbours].max(axis=1)) & (values > -np.inf))
    peaks = peaks[np.argsort(-values[peaks], kind="stable")][:_MOST_STARTS]
    starts = search.draws[peaks]
    if len(starts) > 1:
        shares = np.linspace(0, 1, _PATH_STEPS)[:, None]
        first, second = np.triu_indices(len(starts), k=1)
        paths = starts[second][:, None] * (1 - shares) + starts[first][:, None] * shares
        heights = log_density(paths.reshape(-1, starts.shape[1])).reshape(len(first), -1)
        with np.errstate(invalid="ignore"):
            climbs = (np.diff(heights, axis=1) >= 0).all(axis=1)
        starts = np.delete(starts, second[climbs], axis=0)
    modes = sorted((_climb(log_density, search, start) for start in starts), key=lambda mode: -mode[1])
    boxes: list[Box] = []
    for mode, value in modes:
        inside = any((box.low <= mode).all() and (mode <= box.high).all() for box in boxes)
        if not inside and value > modes[0][1] - drop:
            boxes.append(_grow_box(log_density, search, mode, value, drop))
    return _merge(boxes)


def _climb(log_density: LogDensity, search: Search, start: Values) -> tuple[Values, float]:
    """Return the mode that a bounded quasi-Newton search reaches from `start`, and the log density there."""
    num_params = len(start)
    low, high = search.inner_low, search.inner_high
    steps = np.concatenate([np.zeros((1, num_params)), np.eye(num_params), -np.eye(num_params)])
    offset = float(log_density(start[None])[0])

    def objective(scaled: Values) -> tuple[float, Values]:
        points = np.clip(scaled * search.spread + _DIFFERENCE_STEP * search.spread * steps, low, high)
        # A finite stand-in for -inf, which would stop the line search.
        values = np.maximum(log_density(points) - offset, -1e12)
        up, down = points[1 : num_params + 1], points[num_params + 1 :]
        widths = np.diagonal(up - down) / search.spread
        return -values[0], -(values[1 : num_params + 1] - values[num_params + 1 :]) / widths

    bounds = np.stack([low, high], axis=1) / search.spread[:, None]
    start = np.clip(start, low, high)
    # TNC and not L-BFGS-B, whose tiny matrix products wait for BLAS threads ten times longer than they compute.
    found = minimize(objective, start / search.spread, jac=True, method="TNC", bounds=bounds)
    mode = np.clip(found.x * search.spread, low, high)
    value = float(log_density(mode[None])[0])
    return (mode, value) if value >= offset else (start, offset)


def _grow_box(log_density: LogDensity, search: Search, mode: Values, log_peak: float, drop: float) -> Box:
    """Return the box around a mode outside of which the log density is more than `drop` below its peak."""
    # First, how far each parameter alone can move, down and up, and one step beyond the farthest that is high enough.
    num_params = len(mode)
    distances = 2.0 ** np.arange(-40, 7)
    moves = np.concatenate([-np.eye(num_params), np.eye(num_params)]) * search.spread
    points = np.clip(mode + distances[:, None, None] * moves, search.inner_low, search.inner_high)
    above = log_density(points.reshape(-1, num_params)).reshape(len(distances), -1) >= log_peak - drop
    farthest = np.where(above.any(axis=0), len(distances) - np.argmax(above[::-1], axis=0), 0)
    reached = points[np.minimum(farthest, len(distances) - 1), np.arange(2 * num_params)]
    low, high = np.diagonal(reached[:num_params]).copy(), np.diagonal(reached[num_params:]).copy()
    for _ in range(_MOST_ROUNDS):
        axes = np.linspace(low, high, _COARSE_NODES, axis=1)
        values = on_grid(log_density, axes)
        log_peak = max(log_peak, float(values.max()))
        grown = False
        for k in range(num_params):
            others = tuple(axis for axis in range(num_params) if axis != k)
            profile = values.max(axis=others)
            kept = np.flatnonzero(profile > log_peak - drop)
            first, last = (kept[0], kept[-1]) if len(kept) else (0, _COARSE_NODES - 1)
            width = high[k] - low[k]
            if first == 0 and low[k] > search.inner_low[k]:
                low[k] = max(low[k] - _GROWTH * width, search.inner_low[k])
                grown = True
            elif first > 1:
                low[k] = axes[k, first - 1]
            if last == _COARSE_NODES - 1 and high[k] < search.inner_high[k]:
                high[k] = min(high[k] + _GROWTH * width, search.inner_high[k])
                grown = True
            elif last < _COARSE_NODES - 2:
                high[k] = axes[k, last + 1]
        if not grown:
            break
    # Back to the bound itself: the gap was for densities that are -inf there, and rules have no nodes on faces.
    low = np.where(low <= search.inner_low, search.low, low)
    high = np.where(high >= search.inner_high, search.high, high)
    return Box(low, high, log_peak)


def _merge(boxes: list[Box]) -> list[Box]:
    """Return boxes that do not overlap: those that do become the smallest box around both."""
    merged: list[Box] = []
    for box in boxes:
        current = box
        while True:
            touching = [b for b in merged if (b.low < current.high).all() and (current.low < b.high).all()]
            if not touching:
                break
            merged = [b for b in merged if not any(b is other for other in touching)]
            group = [current, *touching]
            current = Box(
                np.min([b.low for b in group], axis=0),
                np.max([b.high for b in group], axis=0),
                max(b.log_peak for b in group),
            )
        merged.append(current)
    return sorted(merged, key=lambda b: -b.log_peak)
