"""What ABC compares, and how: summaries of the data, and the distance between summaries.

A summary maps data sets to a few numbers each; without one the data themselves are compared. The argument `distance` of
`abc_epsilon`, `abc_ranked` and `abc_logistic` is one of three things:

- a name in `DISTANCES`: "euclidean", or "scaled", which first divides each summary by its spread;
- a function of two arrays, as `scipy.spatial.distance.cdist` is: from observed summaries of shape (n, features) and
  simulated ones of shape (m, features) to distances of shape (n, m), each of which depends on its own pair alone;
- a `PointDistance` of your own: Euclidean distance between points that it makes of the summaries, with whatever it
  learns from the first simulations. It is several times faster than a function, because draws that are too far away are
  found by one matrix product in single precision and never looked at again.

Examples
--------
Another metric takes a line, and needs nothing else:

>>> from functools import partial
>>> from scipy.spatial.distance import cdist
>>> from deepbf.baselines import abc_ranked
>>> from deepbf.example import counts_example
>>> models = counts_example(num_obs=2).models
>>> settings = {"num_simulations": 2_000, "num_strata": 2, "kept_per_stratum": 20, "num_kept": 20}
>>> result = abc_ranked(models, [0, 2], distance=partial(cdist, metric="cityblock"), **settings)
>>> int(result.diagnostics["accepted"].sum())
20

The Mahalanobis distance learns the covariance of the summaries:

>>> class Mahalanobis(PointDistance):
...     def learn(self, pilot):
...         factor = np.linalg.cholesky(np.linalg.inv(np.cov(pilot.T)))
...         return lambda values: values @ factor
>>> result = abc_ranked(models, [0, 2], distance=Mahalanobis(), **settings)
>>> int(result.diagnostics["accepted"].sum())
20

``DISTANCES["mahalanobis"] = Mahalanobis()`` would give it a name.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks

Values = NDArray[np.float64]
"""Summaries or points as rows: shape (data sets, features)."""
Summary = Callable[[Any], Any]
DistanceFn = Callable[[Values, Values], Values]
"""From (n, features) and (m, features) to the distances of all pairs, (n, m)."""

# Median absolute deviation to standard deviation, for a normal.
_MAD_TO_SD = 1.4826
# Squares of larger numbers leave float64.
_LARGEST_VALUE = 1e150


class PointDistance(abc.ABC):
    """A distance that is Euclidean between points made of the summaries; subclass it for one of your own."""

    @abc.abstractmethod
    def learn(self, pilot: Values) -> Callable[[Values], Values]:
        """Return the function that turns summaries into points, row by row.

        Parameters
        ----------
        pilot
            Summaries of the first stratum of simulations of all models, finite, shape (draws, features).

        Returns
        -------
        A function from (rows, features) to (rows, coordinates). The point of a row must not depend on other rows.
        """


class Euclidean(PointDistance):
    """The Euclidean distance between the summaries as they are."""

    def learn(self, pilot: Values) -> Callable[[Values], Values]:
        """Return the identity."""
        return lambda values: values


class Scaled(PointDistance):
    """The Euclidean distance between summaries divided by their spread, `feature_scale` of the first stratum."""

    def learn(self, pilot: Values) -> Callable[[Values], Values]:
        """Return the division by each feature's spread."""
        scale = feature_scale(pilot)
        return lambda values: values / scale


DISTANCES: dict[str, PointDistance | DistanceFn] = {"euclidean": Euclidean(), "scaled": Scaled()}
"""Distances by the names that the argument `distance` takes; add your own to give it a name."""

Distance = str | PointDistance | DistanceFn


@dataclass(frozen=True)
class LearnedDistance:
    """A distance that has seen the first stratum.

    Distances are Euclidean between points, or what `between` says about them. `centre` and `unit`, of the points, only
    make numbers moderate for single precision; no distance depends on them.
    """

    to_points: Callable[[Values], Values]
    centre: Values
    unit: float
    between: DistanceFn | None = None

    def all_squared(self, observed: Values, draws: Values) -> Values:
        """Return the squares of what `between` returns, shape (observed, draws), after checking it."""
        assert self.between is not None
        distances = np.asarray(self.between(observed, draws), np.float64)
        if distances.shape != (len(observed), len(draws)):
            raise ValueError(
                f"distance returned an array of shape {distances.shape} for {len(observed)} observed and {len(draws)} "
                f"simulated data sets; it must be ({len(observed)}, {len(draws)}), one distance per pair. Return what "
                "scipy.spatial.distance.cdist would."
            )
        if not (distances >= 0).all():
            bad = distances[~(distances >= 0)]
            raise ValueError(
                f"distance must return numbers of at least 0; received {bad[0]} for {bad.size} of {distances.size} "
                "pairs. Check it for differences without an absolute value, and for divisions by 0."
            )
        with np.errstate(over="ignore"):
            return np.minimum(np.square(distances), np.finfo(np.float64).max)


def learn_distance(distance: PointDistance | DistanceFn, observed: Values, pilot: Values) -> LearnedDistance:
    """Return the distance for these observed summaries, learned from the summaries of the first stratum.

    `observed` has shape (data sets, features) and `pilot` shape (draws, features). A function of two arrays of
    summaries is used as it is; a `PointDistance` learns from the pilot how summaries become points. Raises a ValueError
    if these are not finite, one row each.
    """
    fitted = distance if isinstance(distance, PointDistance) else Euclidean()
    to_points = fitted.learn(pilot)
    points, observed_points = to_points(pilot), to_points(observed)
    for values, made in ((pilot, points), (observed, observed_points)):
        if np.ndim(made) != 2 or len(made) != len(values) or not np.isfinite(made).all():
            raise ValueError(
                f"the function that {type(fitted).__name__}.learn returned must turn summaries of shape {values.shape} "
                f"into finite points, one row each; received shape {np.shape(made)}. Check it on the pilot itself."
            )
    centre = np.median(points, axis=0)
    reach = max(np.abs(observed_points - centre).max(), np.quantile(np.abs(points - centre), 0.9))
    # A power of two, so that dividing by it rounds nothing.
    unit = float(2.0 ** np.ceil(np.log2(reach))) if reach > 0 else 1.0
    return LearnedDistance(to_points, centre, unit, None if isinstance(distance, PointDistance) else distance)


def feature_scale(pilot: Values) -> Values:
    """Return each feature's spread: the median absolute deviation, as robust as heavy-tailed counts need it.

    It is multiplied by 1.4826, which makes it the standard deviation of a normal. Where more than half of the values
    are equal it is 0, and the mean absolute deviation stands in; a constant feature keeps its unit.
    """
    deviations = np.abs(pilot - np.median(pilot, axis=0))
    scale = _MAD_TO_SD * np.median(deviations, axis=0)
    scale = np.where(scale > 0, scale, deviations.mean(axis=0))
    return np.where(scale > 0, scale, 1.0)


def summarise(summary: Summary | None, data: NDArray[np.generic], whose: str) -> Values:
    """Return the summaries of `data`, shape (data sets, features); the flattened data when there is no summary.

    `whose` says in errors which data these are. Whatever the user's function raises is raised again with the shape
    that it was given.
    """
    values = data
    if summary is not None:
        try:
            returned = summary(data)
        except Exception as error:
            raise ValueError(
                f"summary raised {type(error).__name__}: {error}, given data of shape {data.shape} of {whose}. "
                "It must take many data sets along the leading axis."
            ) from error
        values = _checks.check_numeric_array(f"summary of {whose}", returned)
    if values.ndim == 0 or len(values) != len(data):
        raise ValueError(
            f"summary returned an array of shape {values.shape} for {len(data)} data sets of {whose}; its leading axis "
            f"must be {len(data)}. Reduce over the axes after the first, as in data.mean(axis=1)."
        )
    if values.size == 0:
        raise ValueError(f"summary returned an empty array of shape {values.shape} for {whose}; return some numbers.")
    return values.reshape(len(values), -1).astype(np.float64)


def summarise_observed(summary: Summary | None, data: NDArray[np.generic]) -> Values:
    """Return the summaries of the observed data, shape (data sets, features).

    Unlike those of simulations, which are left out and counted, they must be finite, and small enough to be squared.
    """
    if summary is not None and not callable(summary):
        raise TypeError(
            f"summary must be a function of data sets or None; received {summary!r}. "
            "Pass, for example, summary=lambda data: data.mean(axis=1)."
        )
    values = summarise(summary, data, "observed")
    nonfinite = _checks.describe_nonfinite(values)
    if nonfinite is not None:
        raise ValueError(
            f"summary of observed has {nonfinite} (leading axis: data sets). "
            "Choose a summary that is defined for the observed data."
        )
    largest = np.abs(values).max()
    if largest > _LARGEST_VALUE:
        raise ValueError(
            f"observed summaries must lie within {_LARGEST_VALUE:g} of 0, or their squares overflow; received "
            f"{largest:g}. Change the unit of the data, or pass a summary on a log scale."
        )
    return values
