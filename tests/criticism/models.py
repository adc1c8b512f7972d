"""Models whose posterior is known, or whose parameters test the layout."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import deepbf

PRIOR_SCALE = 2.0
RANGE = (4, 12)
# Enough to see that training works at all.
QUICK: dict[str, Any] = {"structure": "exchangeable", "steps": 150, "seed": 1, "progress": False}


def normal_data(rng: np.random.Generator, means: NDArray[Any], num_obs: int = 8) -> NDArray[Any]:
    return rng.normal(means[:, None], 1.0, (len(means), num_obs))


def normal_prior(rng: np.random.Generator, size: int) -> NDArray[Any]:
    return PRIOR_SCALE * rng.standard_normal(size)


NORMAL = deepbf.Model("normal", prior=normal_prior, simulator=normal_data)


def normal_posterior(data: ArrayLike) -> tuple[NDArray[Any], float]:
    """Return the exact posterior means of data sets, shape (..., n), and the standard deviation they share."""
    values = np.asarray(data)
    precision = values.shape[-1] + PRIOR_SCALE**-2
    return values.sum(axis=-1) / precision, precision**-0.5


def _bounded_prior(rng: np.random.Generator, size: int) -> dict[str, NDArray[Any]]:
    return {
        "weights": rng.beta(2, 2, (size, 2)),
        "spread": rng.gamma(2, 0.5, size),
        "angle": rng.uniform(-1, 3, size),
        "level": rng.normal(size=size),
    }


def _bounded_data(rng: np.random.Generator, params: dict[str, NDArray[Any]]) -> NDArray[Any]:
    noise = rng.normal(size=(len(params["level"]), 5))
    exact = np.column_stack([params["weights"], params["spread"], params["angle"], params["level"]])
    return exact + 0.1 * noise


BOUNDED = deepbf.Model(
    "bounded",
    prior=_bounded_prior,
    simulator=_bounded_data,
    transform={"weights": "unit", "spread": "positive", "angle": (-1, 3)},
)


def _mixed_data(rng: np.random.Generator, means: NDArray[Any], num_obs: int) -> dict[str, NDArray[Any]]:
    return {"trials": normal_data(rng, means, num_obs), "about": rng.normal(means[:, None], 0.5, (len(means), 1))}


MIXED = deepbf.Model("mixed", prior=normal_prior, simulator=_mixed_data)
KNOWN = deepbf.Model("known", simulator=lambda rng, size, num_obs=8: rng.normal(0.0, 1.0, (size, num_obs)))
