"""Priors and simulators of the toy studies.

All are functions of a module, so that models built from them pickle. Priors return arrays with leading axis `size`;
simulators return arrays of shape (size, num_obs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Draws = NDArray[np.float64]
Counts = NDArray[np.int64]

# The largest whole number that every int64 to float64 conversion keeps; p below 1e-14 would be needed to reach it.
_LARGEST_COUNT = 2**53
# Events an observation above which numpy's own Poisson sampler is faster than scattering them one by one (measured).
_SCATTER_LIMIT = 3
# Floats held on the way to whole counts: 64 KB stay in cache and in memory the process has already touched, where a
# second full-size array would double the time.
_VALUES_PER_BLOCK = 2**13


@dataclass(frozen=True)
class OfSize:
    """A simulator that draws `num_obs` observations, or as many as it is asked for."""

    draw: Callable[..., Any]
    num_obs: int

    def __call__(self, rng: np.random.Generator, params: Draws | int, num_obs: int | None = None) -> Any:
        """Return data sets for these parameters, or as many of a model without parameters as it is told."""
        return self.draw(rng, params, num_obs=self.num_obs if num_obs is None else num_obs)


def beta_prior(rng: np.random.Generator, size: int, *, shapes: tuple[float, float]) -> Draws:
    """Return `size` draws from a Beta distribution."""
    return rng.beta(*shapes, size)


def gamma_prior(rng: np.random.Generator, size: int, *, shape_and_rate: tuple[float, float]) -> Draws:
    """Return `size` draws from a Gamma distribution given by its shape and rate."""
    shape, rate = shape_and_rate
    return rng.standard_gamma(shape, size) / rate


def normal_prior(rng: np.random.Generator, size: int, *, means: ArrayLike, scale: float) -> Draws:
    """Return `size` draws of independent normals with these means: shape (size,), or (size, len(means))."""
    return np.asarray(means) + scale * rng.standard_normal((size, *np.shape(means)))


def negative_binomial(rng: np.random.Generator, probs: Draws, *, num_obs: int) -> Counts:
    """Return numbers of failures before the first success, whose probability is `probs`.

    The whole part of an exponential with rate -log(1 - p) is exactly geometric, and two to three times faster to draw
    than numpy's geometric. Counts stop at 2^53, instead of wrapping around, when p is all but 0.
    """
    with np.errstate(divide="ignore", over="ignore"):
        # p = 1 has an infinite rate and so counts of 0; p = 0 has rate 0 and so the largest count.
        scales = -1 / np.log1p(-probs)[:, None]
    counts = np.empty((len(probs), num_obs), dtype=np.int64)
    rows_per_block = max(1, _VALUES_PER_BLOCK // num_obs)
    for start in range(0, len(probs), rows_per_block):
        block = counts[start : start + rows_per_block]
        waiting = rng.standard_exponential(block.shape)
        with np.errstate(over="ignore"):
            waiting *= scales[start : start + rows_per_block]
        block[:] = np.minimum(waiting, _LARGEST_COUNT, out=waiting)
    return counts


def poisson(rng: np.random.Generator, rates: Draws, *, num_obs: int) -> Counts:
    """Return Poisson counts.

    Given their total, which is Poisson too, a data set's events fall on its observations independently and evenly.
    Scattering them is several times faster than numpy's Poisson while events are few.
    """
    size = len(rates)
    totals = rng.poisson(num_obs * rates)
    if totals.sum() > _SCATTER_LIMIT * size * num_obs:
        return rng.poisson(rates[:, None], (size, num_obs))
    events = rng.integers(0, num_obs, totals.sum())
    events += np.repeat(num_obs * np.arange(size), totals)
    return np.bincount(events, minlength=size * num_obs).reshape(size, num_obs)


def normal_mixture(rng: np.random.Generator, means: Draws, *, num_obs: int, scale: float) -> Draws:
    """Return draws from an equal mixture of two normals; `means` has shape (size, 2)."""
    first = rng.integers(0, 2, (len(means), num_obs), dtype=np.bool_)
    # In place: on small simulators, memory that is new to the process costs as much as the random numbers.
    data = rng.standard_normal((len(means), num_obs))
    data *= scale
    data += np.where(first, means[:, :1], means[:, 1:])
    return data


def normal(rng: np.random.Generator, means: Draws, *, num_obs: int, scale: float) -> Draws:
    """Return normal draws; `means` has shape (size,)."""
    data = rng.standard_normal((len(means), num_obs))
    data *= scale
    data += means[:, None]
    return data


def exponential(rng: np.random.Generator, rates: Draws, *, num_obs: int) -> Draws:
    """Return exponential waiting times; `rates` has shape (size,)."""
    data = rng.standard_exponential((len(rates), num_obs))
    data /= rates[:, None]
    return data


def exponential_known_rate(rng: np.random.Generator, size: int, *, num_obs: int, rate: float) -> Draws:
    """Return `size` data sets of exponential waiting times with one rate."""
    return rng.standard_exponential((size, num_obs)) / rate
