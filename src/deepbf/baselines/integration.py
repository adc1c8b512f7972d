"""The evidence of models with one to three parameters, by integration with an error estimate.

Two routes start from the same located region (`deepbf.baselines.mode_search`) and share no further step. The
adaptive one is SciPy's cubature over the whole range of the parameters, split along the faces of the region, so that
mass outside of it is still seen. The grid is a Gauss-Legendre product rule on the region, with ever more nodes until
two successive ones agree; it is several times faster, and where it does not settle the adaptive route takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import cubature

from deepbf import _checks
from deepbf.baselines import log_joint as joint
from deepbf.baselines.baseline_result import BaselineResult, check_observed
from deepbf.baselines.log_joint import LogJoint, Points, Values
from deepbf.baselines.mode_search import (
    NUM_SEARCH_DRAWS,
    Box,
    LogDensity,
    Search,
    locate,
    on_grid,
    prepare_search,
)
from deepbf.models.model import Model, ModelSet
from deepbf.models.transform import Unconstrained

MOST_PARAMS = 3
ROUTES = ("adaptive", "grid")

# The log density at the faces of the region, below its peak: exp(-7) of the error allowed, for the mass beyond them.
_LOG_MARGIN = 7.0
# Nodes along each parameter, by number of parameters; the last one costs about a tenth of a second.
_GRID_NODES = {1: (24, 36, 54, 80, 120, 180), 2: (20, 30, 45, 68, 102, 153), 3: (24, 30, 40, 54, 80)}
# Evaluations and subdivisions after which the adaptive route gives up and says so: some seconds per data set.
_MOST_EVALUATIONS = 2e7
_MOST_SUBDIVISIONS = 5000
# Of the Gauss-Kronrod rule; in three dimensions 21 needed twice the evaluations of 15 (measured).
_NODES_PER_AXIS = 15
# An integrator's difference between two rules can be 0 by luck; nothing is claimed below this.
_LEAST_ERROR = 1e-12


class Integral(NamedTuple):
    """A log integral, its relative error, and whether that is as small as asked."""

    log_value: float
    error: float
    converged: bool


_NOT_LOCATED = Integral(np.nan, np.nan, False)
_legendre = lru_cache(np.polynomial.legendre.leggauss)


def integrate(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    bounds: Sequence[Any] | None = None,
    relative_error: float = 1e-6,
    route: str = "adaptive",
    seed: int = 0,
) -> BaselineResult:
    """Return log evidences by numerical integration, with the integrator's own error.

    Parameters
    ----------
    models
        Models with `log_prior` and `log_likelihood` and at most three parameters. A model without parameters needs its
        `log_likelihood` alone, which is its evidence.
    observed
        One data set, or many along a leading axis.
    bounds
        One entry per model: None, one pair (low, high) for all its parameters, or one pair for each; infinite bounds
        are allowed. By default the model's `transform` decides.
    relative_error
        The error of each evidence to reach, as a share of it.
    route
        "adaptive": SciPy's cubature over the whole range. "grid": a product rule on the region that holds the mass,
        refined until two agree, several times faster; where it does not settle, the adaptive route is taken.
    seed
        The seed of the prior draws that start the search for modes; the integrals are deterministic.

    Returns
    -------
    BaselineResult
        `log_bf_error` adds up the relative errors of the first two evidences; they bound more often than they estimate.
        Diagnostics, each of shape (data sets, K): `converged`, `evaluations`, and `relative_error` of the evidence.

    Notes
    -----
    A mode that is far narrower than the distance between 2,000 prior draws and also leaves no slope around it can be
    missed, by any integrator. The log densities are evaluated in the precision in which they come back: float32 ones
    limit the relative error to about 1e-7 of their size.

    Examples
    --------
    >>> from deepbf.example import counts_example
    >>> example = counts_example(num_obs=4)
    >>> result = integrate(example.models, [[0, 2, 1, 5]])
    >>> bool(abs(result.log_bf - example.exact_log_bf([[0, 2, 1, 5]]))[0] < 1e-8)
    True
    """
    model_set = ModelSet.of(models)
    joint.check_densities(model_set)
    relative_error = _checks.check_positive("relative_error", relative_error)
    if not 1e-11 <= relative_error <= 0.1:
        raise ValueError(
            f"relative_error must lie between 1e-11, near what rounding allows, and 0.1; received {relative_error}. "
            "Pass, for example, relative_error=1e-6."
        )
    route = _checks.check_choice("route", route, ROUTES)
    seed = _checks.check_seed("seed", seed)
    entries = [None] * len(model_set) if bounds is None else bounds
    if not isinstance(entries, Sequence) or len(entries) != len(model_set):
        raise ValueError(
            f"bounds must have one entry per model ({', '.join(model_set.names)}), each None, (low, high) or one pair "
            f"for each parameter; received {bounds!r}."
        )
    data = check_observed(model_set, observed, seed=seed)
    searches = [_prepare(model, entry, seed=seed) for model, entry in zip(model_set.models, entries, strict=True)]

    shape = (len(data), len(model_set))
    log_evidence, errors = np.empty(shape), np.zeros(shape)
    converged, evaluations = np.ones(shape, dtype=bool), np.ones(shape, dtype=np.int64)
    for k, (model, prepared) in enumerate(zip(model_set.models, searches, strict=True)):
        if prepared is None:
            log_evidence[:, k] = joint.log_likelihood_without_params(model, data)
            continue
        layout, search = prepared
        repeat = joint.needs_repeated_data(model, layout, data, seed=seed)
        for i, dataset in enumerate(data):
            log_joint = LogJoint(model, layout, dataset, repeat=repeat)
            integral = log_integral(log_joint, search, relative_error=relative_error, route=route)
            log_evidence[i, k], errors[i, k], converged[i, k] = integral
            evaluations[i, k] = log_joint.num_evaluations
    return BaselineResult(
        method="adaptive integration" if route == "adaptive" else "integration on a located grid",
        names=model_set.names,
        log_evidence=log_evidence,
        log_bf_error=errors[:, :2].sum(axis=1),
        diagnostics={"converged": converged, "evaluations": evaluations, "relative_error": errors},
        warnings=_warnings(model_set, log_evidence, converged, relative_error),
    )


def log_integral(log_density: LogDensity, search: Search, *, relative_error: float, route: str) -> Integral:
    """Return the log of the integral of exp(log_density) over the bounds of `search`.

    `log_density` maps rows of parameters to one number each, and may have a method `on_grid` (see
    `deepbf.baselines.mode_search.on_grid`). `relative_error` and `route` are those of `integrate`. The log integral is
    nan where no prior draw has a density above 0.
    """
    boxes = locate(log_density, search, drop=_LOG_MARGIN - np.log(relative_error))
    if not boxes:
        return _NOT_LOCATED
    if route == "grid":
        integral = _grid_integral(log_density, boxes, relative_error)
        if integral.converged:
            return integral
    return _adaptive_integral(log_density, search, boxes, relative_error)


def _grid_integral(log_density: LogDensity, boxes: list[Box], relative_error: float) -> Integral:
    """Return the integral over the boxes by product rules with more and more nodes."""
    log_peak = boxes[0].log_peak
    previous = total = error = np.nan
    for num_nodes in _GRID_NODES[len(boxes[0].low)]:
        nodes, weights = _legendre(num_nodes)
        parts = []
        for box in boxes:
            half = 0.5 * (box.high - box.low)
            axes = box.low[:, None] + half[:, None] * (nodes + 1)
            values = np.exp(on_grid(log_density, axes) - log_peak)
            for _ in half:
                # Not a matrix product: its threads cost more than they save at this size.
                values = np.einsum("...j,j->...", values, weights)
            parts.append(float(values) * float(np.prod(half)))
        total = sum(parts)
        error = abs(total - previous) / total if total > 0 else np.nan
        if error <= relative_error:
            break
        previous = total
    converged = bool(error <= relative_error)
    return Integral(log_peak + float(np.log(total)), max(float(error), _LEAST_ERROR), converged)


def _adaptive_integral(log_density: LogDensity, search: Search, boxes: list[Box], relative_error: float) -> Integral:
    """Return the integral over the whole range by SciPy's cubature: the boxes first, then what lies around them.

    One call per region, and not one call with the corners as `points`: SciPy 1.17 puts the regions that these make into
    its heap unsorted, and may go on to divide empty ones while the mass waits.
    """
    # In units of the box, infinite ranges are mapped to finite ones where the mass is.
    centre, half = 0.5 * (boxes[0].low + boxes[0].high), 0.5 * (boxes[0].high - boxes[0].low)
    log_peak = boxes[0].log_peak
    integrand = _Integrand(log_density, centre, half, log_peak)
    regions = _partition(search.low, search.high, boxes)
    affordable = int(_MOST_EVALUATIONS / (2 * _NODES_PER_AXIS) ** len(centre))
    total = error = 0.0
    for low, high in regions:
        found = cubature(
            integrand,
            (low - centre) / half,
            (high - centre) / half,
            rule=f"gk{_NODES_PER_AXIS}",
            rtol=0.5 * relative_error,
            atol=0.5 * relative_error * total / len(regions),  # pyright: ignore[reportArgumentType]
            max_subdivisions=min(affordable, _MOST_SUBDIVISIONS),
        )
        total += float(found.estimate)
        error += float(found.error)
    if not total > 0:
        return _NOT_LOCATED
    log_value = log_peak + float(np.log(total) + np.log(half).sum())
    return Integral(log_value, max(error / total, _LEAST_ERROR), error <= relative_error * total)


def _partition(low: Values, high: Values, boxes: Sequence[Box]) -> list[tuple[Values, Values]]:
    """Return regions that fill the range without overlap: the boxes, or their parts, and slabs around them."""
    overlapping = [box for box in boxes if (box.low < high).all() and (low < box.high).all()]
    if not overlapping:
        return [(low, high)]
    first, others = overlapping[0], overlapping[1:]
    inner_low, inner_high = np.maximum(first.low, low), np.minimum(first.high, high)
    regions, low, high = [(inner_low, inner_high)], low.copy(), high.copy()
    for k in range(len(low)):
        if low[k] < inner_low[k]:
            below = high.copy()
            below[k] = inner_low[k]
            regions += _partition(low.copy(), below, others)
        if inner_high[k] < high[k]:
            above = low.copy()
            above[k] = inner_high[k]
            regions += _partition(above, high.copy(), others)
        low[k], high[k] = inner_low[k], inner_high[k]
    return regions


class _Integrand:
    """exp(log density - peak) in units of a box; remembers its last answer, since cubature asks everything twice."""

    def __init__(self, log_density: LogDensity, centre: Values, half: Values, log_peak: float) -> None:
        self.log_density, self.centre, self.half, self.log_peak = log_density, centre, half, log_peak
        self._last: tuple[Points, Values] | None = None

    def __call__(self, points: Points) -> Values:
        if self._last is not None and np.array_equal(points, self._last[0]):
            return self._last[1]
        values = np.exp(self.log_density(self.centre + self.half * points) - self.log_peak)
        self._last = points, values
        return values


def _prepare(model: Model, entry: Any, *, seed: int) -> tuple[Unconstrained, Search] | None:
    """Return the model's layout and search, or None for a model without parameters."""
    layout = joint.layout_of(model, seed=seed)
    if layout is None:
        return None
    if layout.num_coordinates > MOST_PARAMS:
        raise ValueError(
            f"model {model.name!r} has {layout.num_coordinates} parameters; integration takes at most {MOST_PARAMS}. "
            "Use bridge sampling or importance sampling."
        )
    low, high = layout.low, layout.high
    if entry is not None:
        try:
            pairs = np.asarray(entry, dtype=np.float64)
        except (TypeError, ValueError):
            pairs = np.empty(0)
        if pairs.shape == (2,):
            pairs = np.tile(pairs, (layout.num_coordinates, 1))
        if pairs.shape != (layout.num_coordinates, 2) or not (pairs[:, 0] < pairs[:, 1]).all():
            raise ValueError(
                f"bounds of model {model.name!r} must be None, one pair (low, high) with low < high, or one such pair "
                f"for each of its {layout.num_coordinates} parameters; received {entry!r}."
            )
        low, high = pairs[:, 0], pairs[:, 1]
    draws = layout.flatten(model.simulate(NUM_SEARCH_DRAWS, seed).params)
    outside = ((draws < low) | (draws > high)).any(axis=1)
    if outside.any():
        raise ValueError(
            f"bounds of model {model.name!r} must hold all its prior draws; {int(outside.sum())} of {len(draws)} lie "
            f"outside, the first at {draws[outside][0].tolist()}. Widen the bounds, or correct the model's transform."
        )
    return layout, prepare_search(draws, low, high)


def _warnings(
    model_set: ModelSet, log_evidence: Values, converged: NDArray[np.bool_], relative_error: float
) -> tuple[str, ...]:
    found = []
    for k, name in enumerate(model_set.names):
        not_located = np.isnan(log_evidence[:, k])
        if not_located.any():
            found.append(
                f"{name}: no density above 0 found for {int(not_located.sum())} of {len(log_evidence)} data sets "
                f"(first: {int(np.argmax(not_located))}); their log evidence is nan"
            )
        short = ~converged[:, k] & ~not_located
        if short.any():
            found.append(
                f"{name}: the integral missed its relative error of {relative_error:g} for {int(short.sum())} of "
                f"{len(log_evidence)} data sets (first: {int(np.argmax(short))}); see log_bf_error"
            )
    return tuple(found)
