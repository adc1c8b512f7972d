"""Small models for the ABC tests, and ABC done naively."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deepbf
from deepbf.baselines.abc.distance import feature_scale
from deepbf.baselines.abc.reference import DrawOrder
from deepbf.baselines.baseline_result import BaselineResult

NUM_OBS = 4


def normal(name: str, scale: float) -> deepbf.Model:
    """Normal observations whose mean has a normal prior; a mean of 0 for scale 0."""
    return deepbf.Model(
        name,
        prior=lambda rng, size: scale * rng.standard_normal(size),
        simulator=lambda rng, mean: mean[:, None] + rng.standard_normal((len(mean), NUM_OBS)),
    )


def counts(name: str, shapes: tuple[float, float], num_obs: int = NUM_OBS) -> deepbf.Model:
    """Binomial counts of three trials: few values, so many ties."""
    return deepbf.Model(
        name,
        prior=lambda rng, size: rng.beta(*shapes, size),
        simulator=lambda rng, p: rng.binomial(3, p[:, None], (len(p), num_obs)),
    )


NORMALS = [normal("wide", 2.0), normal("null", 0.0), normal("middle", 1.0)]
COUNTS = [counts("low", (1, 3)), counts("high", (3, 1)), counts("flat", (1, 1))]


def draw_reference(models: Sequence[deepbf.Model], sizes: Sequence[int], seed: int) -> list[NDArray[np.generic]]:
    return [model.simulate(size, seed + k).data for k, (model, size) in enumerate(zip(models, sizes, strict=True))]


def naive_squared(
    observed: NDArray[np.generic], draws: NDArray[np.generic], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """All squared distances at once, shape (data sets, draws)."""
    x, y = (array.reshape(len(array), -1).astype(float) / scale for array in (observed, draws))
    return ((y[None] - x[:, None]) ** 2).sum(axis=-1)


def in_order(
    models: Sequence[deepbf.Model], reference: Sequence[NDArray[np.generic]], num_strata: int, seed: int
) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """The reference as one array, laid out stratum by stratum, with its labels."""
    order = DrawOrder(np.array([len(r) for r in reference]), [m.name for m in models], num_strata, seed)
    labels = np.concatenate([order.labels(s) for s in range(num_strata)]).astype(np.int64)
    draws = np.empty((len(labels), *reference[0].shape[1:]))
    for k, array in enumerate(reference):
        draws[labels == k] = array
    return draws, labels


def naive_scale(draws: NDArray[np.generic], distance: str, pilot: int) -> NDArray[np.float64]:
    flat = draws.reshape(len(draws), -1).astype(float)
    return feature_scale(flat[:pilot]) if distance == "scaled" else np.ones(flat.shape[1])


def naive_ranked(
    squared: NDArray[np.float64], num_strata: int, kept_per_stratum: int, num_kept: int
) -> list[list[int]]:
    """The accepted draws of each data set, nearest first, by the definition: sort, keep, sort, keep."""
    size = squared.shape[1] // num_strata
    accepted = []
    for row in squared:
        candidates = []
        for start in range(0, len(row), size):
            ranked = sorted(range(start, start + size), key=lambda i: (row[i], i))
            candidates += ranked[:kept_per_stratum]
        accepted.append(sorted(candidates, key=lambda i: (row[i], i))[:num_kept])
    return accepted


def diagnostic(result: BaselineResult, name: str) -> Any:
    """One of the result's diagnostics, free of the type of its entries."""
    return result.diagnostics[name]
