"""Where the parameters of a model must be to make the observed data, found from simulations alone.

A region is a part of a model's parameter space: an intersection of boxes, each along axes of its own, on a scale on
which every parameter looks standard normal under the prior. Inside it a window w, between 0 and 1, follows the
posterior at a distance. With E the mean over the prior and y the data::

    p(y | M) E[w | y, M] = E[w] p(y | M, prior in proportion to w)

so a model whose prior is narrowed by the window has the evidence of the whole model, up to two known factors: what the
window keeps of the prior, which is counted, and what it keeps of the posterior, which is near 1. Its simulations look
like the data far more often than those of the whole model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri
from scipy.stats import rankdata

from deepbf.models.model import Model, Params, SimulationError
from deepbf.models.transform import Unconstrained
from deepbf.simulation import CHUNK_SIZE

# From simulated data, as the model returns them, to what tells their parameters, shape (data sets, columns).
Read = Callable[[Any], NDArray[np.floating]]

# Regions shrink in rounds, each from simulations of the region before.
MOST_ROUNDS = 6
# A round keeps at least this share of the region: a guess that is far off does not lose the posterior at once.
LEAST_KEPT = 0.03
# One that would keep more than this share is not worth it, and ends the search.
MOST_KEPT = 0.85
# The least share of the prior: cutting it off costs the inverse of it in draws of the prior for each simulation.
LEAST_SHARE = 1 / 300
# Simulations whose parameters stand for the posterior: those whose data predict the most similar parameters.
NEAREST_SHARE = 1 / 20
FEWEST_NEAREST = 100
# How far the box reaches beyond the central 95% of them, in widths of it: beyond 4 standard deviations of a normal
# posterior, whatever else made them spread.
MARGIN = 0.6
# A box must hold all but this share of what stands for the posterior within it, or it was too small.
MOST_OUTSIDE = 0.02
# Within this share of a box's width from its side, the posterior touches it.
NEAR_EDGE = 0.02
# Of a ridge regression of the parameters on what is read of the data, by ranks, and on products of leading directions.
RIDGE = 3.0
NUM_LEADING = 8
# How fast scores grow beyond the draws that made the scale.
BEYOND = 20.0
# Draws of the prior at a time, and in all without finding as many inside as were asked for.
DRAWN_AT_ONCE = 200_000
MOST_DRAWN = 50_000_000
# Draws are counted so many at a time, until so many lie inside, or so many are drawn.
COUNTED_AT_ONCE = 50_000
MOST_INSIDE = 60_000
MOST_COUNTED = 20_000_000
# The window is a normal density so many times as wide as the posterior, along each of its axes: the first of these at
# which what it keeps of the posterior is known this well. Excess work grows with it, and that share comes nearer to 1.
WINDOW_WIDTHS = (2.0, 3.0, 4.5)
MOST_KEPT_ERROR = 0.05
# What the regression is off by, as a share of the log of what the window keeps of the posterior. On four data sets of
# weapon-sum, six windows, the difference from the exact one was 0.13 of it (root mean square).
KEPT_UNKNOWN = 0.15
# Draws that must stand for the posterior, or the window's prior would be a handful of points: their relative error.
FEWEST_STANDING = 400


@dataclass(frozen=True)
class RankScale:
    """Parameters by their ranks under the prior, as normal scores: no transform needs to be known.

    Parameters
    ----------
    flat
        How parameters become flat vectors.
    values, scores
        For each coordinate, values in increasing order and their normal scores.
    """

    flat: Unconstrained
    values: tuple[NDArray[np.float64], ...]
    scores: tuple[NDArray[np.float64], ...]

    @classmethod
    def fit(cls, params: Params) -> RankScale:
        """Return the scale on which these draws of the prior look standard normal, coordinate by coordinate."""
        flat = Unconstrained.fit(params, None)
        values, scores = [], []
        for column in flat.flatten(params).T:
            distinct, counts = np.unique(column, return_counts=True)
            values.append(distinct)
            scores.append(ndtri((np.cumsum(counts) - counts / 2) / counts.sum()))
        return cls(flat, tuple(values), tuple(scores))

    @property
    def num_coordinates(self) -> int:
        """How many parameters there are."""
        return len(self.values)

    def of_flat(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of flat parameters, shape (draws, coordinates); beyond all known values they go on."""
        scores = np.empty_like(flat)
        for k, (values, known) in enumerate(zip(self.values, self.scores, strict=True)):
            column = flat[:, k]
            width = max(values[-1] - values[0], np.finfo(float).tiny)
            with np.errstate(over="ignore"):
                above = np.log1p(BEYOND * np.maximum(column - values[-1], 0.0) / width)
                below = np.log1p(BEYOND * np.maximum(values[0] - column, 0.0) / width)
            scores[:, k] = np.interp(column, values, known) + above - below
        return scores

    def __call__(self, params: Params) -> NDArray[np.float64]:
        """Return the scores of parameters as the prior draws them."""
        return self.of_flat(self.flat.flatten(params))


@dataclass(frozen=True)
class Box:
    """A box along axes of its own: `low <= scores @ axes <= high`."""

    axes: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def around(cls, points: NDArray[np.float64]) -> Box:
        """Return a box about points, shape (points, coordinates), along their own principal axes, with a margin."""
        covariance = np.atleast_2d(np.cov(points.T))
        _, axes = np.linalg.eigh(covariance)
        along = points @ axes
        low, high = np.quantile(along, [0.025, 0.975], axis=0)
        return cls(axes, low - MARGIN * (high - low), high + MARGIN * (high - low))

    def widened(self, factor: float) -> Box:
        """Return the box with its sides so many times as long, about the same middle."""
        middle, half = (self.low + self.high) / 2, factor * (self.high - self.low) / 2
        return replace(self, low=middle - half, high=middle + half)

    def holds(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which points are inside."""
        along = scores @ self.axes
        return np.asarray(((along >= self.low) & (along <= self.high)).all(axis=1))

    def near_edge(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which points are outside or next to a side."""
        away = NEAR_EDGE * (self.high - self.low)
        return ~replace(self, low=self.low + away, high=self.high - away).holds(scores)


@dataclass(frozen=True)
class Region:
    """The parameters that are in all of the boxes."""

    scale: RankScale
    boxes: tuple[Box, ...]

    def holds(self, params: Params) -> NDArray[np.bool_]:
        """Return which of the parameters are in the region."""
        flat = self.scale.flat.flatten(params)
        low, high = self._bounds
        inside = np.ones(len(flat), bool)
        # Most draws of the prior are ruled out by plain bounds, at a tenth of the cost of the boxes.
        for k in range(self.scale.num_coordinates):
            inside &= (flat[:, k] >= low[k]) & (flat[:, k] <= high[k])
        candidates = np.flatnonzero(inside)
        scores = self.scale.of_flat(flat[candidates])
        kept = np.ones(len(candidates), bool)
        for box in self.boxes:
            kept &= box.holds(scores)
        inside[candidates] = kept
        return inside

    @cached_property
    def _bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values of each coordinate between which the whole region lies."""
        low_score = np.full(self.scale.num_coordinates, -np.inf)
        high_score = -low_score
        for box in self.boxes:
            middle = box.axes @ ((box.low + box.high) / 2)
            reach = np.abs(box.axes) @ ((box.high - box.low) / 2)
            low_score, high_score = np.maximum(low_score, middle - reach), np.minimum(high_score, middle + reach)
        low, high = np.full_like(low_score, -np.inf), np.full_like(low_score, np.inf)
        for k, (values, scores) in enumerate(zip(self.scale.values, self.scale.scores, strict=True)):
            if low_score[k] > scores[0]:
                low[k] = values[np.searchsorted(scores, low_score[k], side="right") - 1]
            if high_score[k] < scores[-1]:
                high[k] = values[np.searchsorted(scores, high_score[k], side="left")]
        return low, high


@dataclass(frozen=True)
class TruncatedPrior:
    """A prior cut off outside a region, by drawing until enough lie inside; `share` is about what does."""

    prior: Callable[..., Any]
    region: Region
    share: float

    def __call__(self, rng: np.random.Generator, size: int) -> Any:
        """Return draws of the prior that are in the region."""
        kept: list[Any] = []
        found = drawn = 0
        while found < size:
            wanted = min(int(1.2 * (size - found) / self.share) + 16, DRAWN_AT_ONCE)
            params = self.prior(rng, wanted)
            inside = np.flatnonzero(self.region.holds(params))
            kept.append(_rows(params, inside))
            found, drawn = found + len(inside), drawn + wanted
            if drawn > MOST_DRAWN:
                raise ValueError(
                    f"of {drawn:,} draws of the prior only {found} of {size} lie in the region found before; the prior "
                    "must depend on nothing but its generator"
                )
        return _rows(_joined(kept), np.arange(size))


@dataclass(frozen=True)
class Window:
    """A normal density about the posterior, at most 1, and `width` times as wide.

    `mean` and `covariance` are those of points that stand for the posterior, on the region's scale.
    """

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    width: float

    @classmethod
    def about(cls, points: NDArray[np.float64], width: float) -> Window:
        """Return the window about points that stand for the posterior, shape (points, coordinates)."""
        spread = 1e-9 * np.eye(points.shape[1])
        return cls(np.median(points, axis=0), np.atleast_2d(np.cov(points.T)) + spread, width)

    def log_weight(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log of the window at each point."""
        return -0.5 * self._distance(scores) / self.width**2

    def log_posterior(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log density of the normal that stands for the posterior, up to a constant."""
        return -0.5 * self._distance(scores)

    def kept(self, points: NDArray[np.float64]) -> tuple[float, float]:
        """Return the log of what it keeps of the posterior, for which these points stand, and its standard error."""
        kept = np.exp(self.log_weight(points))
        # By the points, and if the posterior were normal: they differ by what a few points and a regression are off.
        log_kept = math.log(kept.mean())
        if_normal = -0.5 * points.shape[1] * math.log1p(self.width**-2)
        chance = kept.std() / kept.mean() / math.sqrt(len(kept))
        return log_kept, math.hypot(chance, log_kept - if_normal, KEPT_UNKNOWN * log_kept)

    def _distance(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        away = np.linalg.solve(np.linalg.cholesky(self.covariance), (scores - self.mean).T)
        return (away**2).sum(axis=0)


@dataclass(frozen=True)
class WindowedPrior:
    """A prior in proportion to a window, by drawing again from draws of it, each as often as the window lets it."""

    params: Any
    cumulative: NDArray[np.float64]

    @classmethod
    def of(cls, params: Any, log_weights: NDArray[np.float64]) -> WindowedPrior:
        """Return the prior that draws from these, in proportion to the weights."""
        weights = np.exp(log_weights - log_weights.max())
        return cls(params, np.cumsum(weights) / weights.sum())

    def __call__(self, rng: np.random.Generator, size: int) -> Any:
        """Return draws of the prior in proportion to the window."""
        places = np.searchsorted(self.cumulative, rng.random(size))
        return _rows(self.params, np.minimum(places, len(self.cumulative) - 1))


def _rows(params: Any, places: NDArray[np.intp]) -> Any:
    if isinstance(params, Mapping):
        return {name: np.asarray(array)[places] for name, array in params.items()}
    return np.asarray(params)[places]


def _joined(parts: list[Any]) -> Any:
    """Return parameters, or data sets, one part after another; masked where any part is."""
    if isinstance(parts[0], Mapping):
        return {name: _joined([part[name] for part in parts]) for name in parts[0]}
    return np.ma.concatenate(parts) if any(map(np.ma.isMaskedArray, parts)) else np.concatenate(parts)


@dataclass(frozen=True)
class Zoom:
    """What is known of where the parameters of one model must be.

    Parameters
    ----------
    model
        The model's name.
    region
        Its region; None if that is everything.
    log_share, share_error
        Log of what the region, or its window, keeps of the prior, and its standard error.
    log_kept, kept_error
        Log of what the window keeps of the posterior, and its standard error; 0 without a window.
    outside
        The share of what stands for the posterior that lies outside the region.
    at_edge
        The share that is next to a side of it, or outside.
    num_simulations
        Data sets that were simulated to find it.
    why
        Why the region is everything, in words; empty if it is not.
    prior
        The prior inside; None where the model's own is left as it is, or cut off by rejection.
    wider
        The stages on the way, everything first: regions with about what they keep of the prior.
    """

    model: str
    region: Region | None = field(default=None, repr=False)
    log_share: float = 0.0
    share_error: float = 0.0
    log_kept: float = 0.0
    kept_error: float = 0.0
    outside: float = 0.0
    at_edge: float = 0.0
    num_simulations: int = 0
    why: str = ""
    prior: Callable[..., Any] | None = field(default=None, repr=False)
    wider: tuple[Zoom, ...] = field(default=(), repr=False)

    @property
    def log_factor(self) -> float:
        """The log evidence of the whole model minus that of the truncated one."""
        return self.log_share - self.log_kept

    @property
    def error(self) -> float:
        """The standard error of `log_factor`."""
        return math.hypot(self.share_error, self.kept_error)

    def truncated(self, model: Model) -> Model:
        """Return the model with its prior cut off outside the region, or narrowed by its window."""
        if self.region is None or model.prior is None:
            return model
        return replace(model, prior=self.prior or TruncatedPrior(model.prior, self.region, math.exp(self.log_share)))


def locate(
    model: Model,
    read: Read,
    observed: NDArray[np.floating],
    seed: np.random.SeedSequence,
    *,
    num_datasets: int,
    num_obs: int | None = None,
    executor: Executor | None = None,
    count_until: float = math.inf,
) -> Zoom:
    """Return the region of a model's parameters that holds its posterior at the observed data.

    `observed` is what `read` makes of the observed data, shape (1, columns); each round simulates `num_datasets`. Draws
    of the prior are counted until that moment of the monotonic clock at most.

    In each round, parameters are regressed on what is read of simulated data. The simulations whose predictions are
    nearest to that of the observed data stand for the posterior, as they are and with the prediction's difference
    taken off; the next region is a box that holds all of them with a margin. The last round only looks.
    """
    if model.prior is None:
        return Zoom(model.name, why="it has no parameters")
    zoom, num_simulated = Zoom(model.name), 0
    stages: list[Zoom] = []
    seeds = iter(seed.spawn(MOST_ROUNDS + 2))
    scale: RankScale | None = None
    standing: NDArray[np.float64] | None = None
    for _ in range(MOST_ROUNDS):
        params, rows = simulate_beside(zoom.truncated(model), num_datasets, next(seeds), read, num_obs, executor)
        num_simulated += num_datasets
        if scale is None:
            problem = _cannot_be_cut(params)
            if problem:
                return Zoom(model.name, num_simulations=num_simulated, why=problem)
            scale = RankScale.fit(params)
        scores = scale(params)
        likely = posterior_points(scores, rows, observed)
        boxes = () if zoom.region is None else zoom.region.boxes
        if boxes:
            # Draws that were simulated lie inside; those shifted by the regression tell what was cut off.
            shifted = likely[len(likely) // 2 :]
            held = np.all([box.holds(shifted) for box in boxes], axis=0)
            edge = np.any([box.near_edge(shifted) for box in boxes], axis=0)
            zoom = replace(zoom, outside=float(1.0 - held.mean()), at_edge=float(edge.mean()))
            if zoom.outside > MOST_OUTSIDE:
                zoom = stages.pop()
                break
            standing = shifted[held]
        # At first, the simulations as they are count as well: the regression may be far off.
        box = Box.around(likely[len(likely) // 2 :] if boxes else likely)
        kept = box.holds(scores).mean()
        while kept < LEAST_KEPT:
            box = box.widened(1.15)
            kept = box.holds(scores).mean()
        share = float(np.exp(zoom.log_share))
        if kept > MOST_KEPT or share <= LEAST_SHARE:
            break
        while kept * share < LEAST_SHARE and kept < MOST_KEPT:
            box = box.widened(1.05)
            kept = box.holds(scores).mean()
        stages.append(zoom)
        standing = None
        log_share = zoom.log_share + float(np.log(kept))
        zoom = replace(zoom, region=Region(scale, (*boxes, box)), log_share=log_share)
    zoom = replace(zoom, num_simulations=num_simulated, wider=tuple(stages))
    if zoom.region is None:
        return replace(zoom, why="the data do not say enough about its parameters for a smaller region")
    return counted(zoom, model, next(seeds), standing, count_until)


def _cannot_be_cut(params: Params) -> str:
    """Return why parameters cannot be confined to a region, in words; empty if they can."""
    arrays = list(params.values()) if isinstance(params, Mapping) else [params]
    if any(np.asarray(array).dtype.kind not in "biuf" for array in arrays):
        return "its parameters are not all numbers"
    flat = Unconstrained.fit(params, None).flatten(params)
    if not np.isfinite(flat).all():
        return "its prior draws parameters that are not finite"
    return "" if flat.shape[1] and (np.ptp(flat, axis=0) > 0).any() else "its prior always draws the same parameters"


def simulate_beside(
    model: Model,
    num_datasets: int,
    seed: np.random.SeedSequence,
    read: Read,
    num_obs: int | None,
    executor: Executor | None,
) -> tuple[Params, NDArray[np.floating]]:
    """Return parameters and what is read of the data that they gave, for so many data sets in chunks of their own."""
    sizes = [min(CHUNK_SIZE, num_datasets - start) for start in range(0, num_datasets, CHUNK_SIZE)]
    calls = list(zip(sizes, seed.spawn(len(sizes)), strict=True))
    if executor is None:
        parts = [model.simulate(size, own, num_obs) for size, own in calls]
    else:
        futures = [executor.submit(model.simulate, size, own, num_obs) for size, own in calls]
        try:
            parts = [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
    return _joined([part.params for part in parts]), read(_joined([part.data for part in parts]))


def posterior_points(
    scores: NDArray[np.float64], rows: NDArray[np.floating], observed: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return points that stand for the posterior at the observed data, shape (points, coordinates).

    The first half are parameters of simulations whose data predict nearly the same parameters as the observed data;
    the second half the same, each with the difference of the predictions taken off. Predictions are by a ridge
    regression, of each half of the simulations by the other: what it fits by chance does not make it look exact.
    """
    from sklearn.linear_model import Ridge

    values = np.concatenate([rows, observed]).astype(np.float64)
    values = values[:, np.ptp(values[:-1], axis=0) > 0]
    # By their ranks, whatever rises with a parameter is nearly a line, and nothing is ever far out.
    values = ndtri((rankdata(values, axis=0) - 0.5) / len(values))
    _, directions = np.linalg.eigh(values[:-1].T @ values[:-1])
    leading = values @ directions[:, -NUM_LEADING:] / np.sqrt(values.shape[1])
    first, second = np.triu_indices(leading.shape[1])
    columns = np.concatenate([values, leading[:, first] * leading[:, second]], axis=1)
    odd = np.arange(len(scores)) % 2 == 1
    predicted, at_observed = np.empty_like(scores), np.zeros(scores.shape[1])
    for half in (odd, ~odd):
        fitted = Ridge(RIDGE).fit(columns[:-1][half], scores[half])
        predicted[~half] = fitted.predict(columns[:-1][~half]).reshape(-1, scores.shape[1])
        at_observed += 0.5 * fitted.predict(columns[-1:]).reshape(-1)
    errors = scores - predicted
    # Distances in units of what the predictions are off by; a coordinate that is known exactly counts for all.
    covariance = np.atleast_2d(np.cov(errors.T)) + 1e-9 * np.eye(scores.shape[1])
    away = np.linalg.solve(np.linalg.cholesky(covariance), (predicted - at_observed).T)
    number = min(len(scores), max(FEWEST_NEAREST, int(NEAREST_SHARE * len(scores))))
    nearest = np.argsort((away**2).sum(axis=0), kind="stable")[:number]
    return np.concatenate([scores[nearest], at_observed + errors[nearest]])


def counted(
    zoom: Zoom,
    model: Model,
    seed: np.random.SeedSequence,
    standing: NDArray[np.float64] | None = None,
    until: float = math.inf,
) -> Zoom:
    """Return the zoom with what its region keeps of the prior, counted among fresh draws, and with a window.

    `standing` are points that stand for the posterior; without them, where what a window keeps of it is not known well,
    or where too few draws of the prior are among them, there is no window.
    """
    assert model.prior is not None
    region = zoom.region
    assert region is not None
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    inside = drawn = 0
    while inside < MOST_INSIDE and drawn < MOST_COUNTED and (drawn == 0 or time.monotonic() < until):
        try:
            params = model.prior(rng, COUNTED_AT_ONCE)
        except Exception as error:
            raise SimulationError(
                f"Model {model.name!r} failed: its prior raised {type(error).__name__}: {error}, asked for "
                f"{COUNTED_AT_ONCE:,} draws at once. Make it return as many draws as it is asked for."
            ) from error
        found.append(_rows(params, np.flatnonzero(region.holds(params))))
        inside += len(region.scale.flat.flatten(found[-1]))
        drawn += COUNTED_AT_ONCE
    if inside == 0:
        return Zoom(
            zoom.model, num_simulations=zoom.num_simulations, why="its region was not found again among fresh draws"
        )
    share = inside / drawn
    zoom = replace(zoom, log_share=math.log(share), share_error=math.sqrt((1.0 - share) / inside))
    if standing is None:
        return zoom
    params = _joined(found)
    scores = region.scale(params)
    for width in WINDOW_WIDTHS:
        window = Window.about(standing, width)
        log_kept, kept_error = window.kept(standing)
        if kept_error <= MOST_KEPT_ERROR:
            break
    else:
        return zoom
    log_weights = window.log_weight(scores)
    # What the likelihood at the draws should be: the posterior over the prior, which is standard normal on this scale.
    log_likelihood = window.log_posterior(scores) + 0.5 * (scores**2).sum(axis=1)
    num_standing = effective_number(log_weights + log_likelihood)
    if num_standing < FEWEST_STANDING:
        return zoom
    return replace(
        zoom,
        log_share=float(np.asarray(logsumexp(log_weights))) - math.log(drawn),
        share_error=1.0 / math.sqrt(num_standing),
        log_kept=log_kept,
        kept_error=kept_error,
        prior=WindowedPrior.of(params, log_weights),
    )


def effective_number(log_weights: NDArray[np.float64]) -> float:
    """Return how many equal weights would be as even as these: the square of their sum over the sum of squares."""
    return float(np.exp(2.0 * np.asarray(logsumexp(log_weights)) - np.asarray(logsumexp(2.0 * log_weights))))
