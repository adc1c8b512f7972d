"""Groups of different sizes, with means of their own or one mean: the study of nested data whose answer is known."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf.models import Model
from deepbf_studies.problems.exact.random_effects import random_effects_log_bf
from deepbf_studies.problems.study import Study

NUM_GROUPS = 20
# Observations a group: uniform, the same under both models, so that sizes alone say nothing.
SMALLEST_GROUP, LARGEST_GROUP = 5, 15

Draws = NDArray[np.float64]


def random_effects_study(name: str, num_groups: int) -> Study:
    """Return normal groups of 5 to 15 observations: group means that vary about a common mean, or do not.

    The common mean is N(0, 1), the standard deviation of the group means half-normal with scale 1, and that of the
    observations 1. The half-normal has its mode at no variation, so many data sets are hard to tell apart.
    """
    random_effects = Model(
        "random effects", prior=random_effects_prior, simulator=partial(random_effects_groups, num_groups=num_groups)
    )
    fixed_effect = Model(
        "fixed effect", prior=fixed_effect_prior, simulator=partial(fixed_effect_groups, num_groups=num_groups)
    )
    return Study(
        name=name,
        title=f"Random effects or one fixed effect: {num_groups} normal groups of 5 to 15 observations",
        num_obs=num_groups,
        models=(random_effects, fixed_effect),
        structure="nested",
        exact_log_bf=random_effects_log_bf,
    )


def random_effects_prior(rng: np.random.Generator, size: int) -> dict[str, Draws]:
    """Return the common mean, N(0, 1), and the standard deviation of group means, half-normal(1)."""
    return {"mean": rng.standard_normal(size), "effect_scale": np.abs(rng.standard_normal(size))}


def fixed_effect_prior(rng: np.random.Generator, size: int) -> Draws:
    """Return the mean of all observations, N(0, 1)."""
    return rng.standard_normal(size)


def random_effects_groups(rng: np.random.Generator, params: dict[str, Draws], *, num_groups: int) -> Any:
    """Return groups about means of their own, masked beyond each group's last observation."""
    effects = rng.standard_normal((len(params["mean"]), num_groups))
    effects *= params["effect_scale"][:, None]
    effects += params["mean"][:, None]
    return _groups_about(rng, effects)


def fixed_effect_groups(rng: np.random.Generator, means: Draws, *, num_groups: int) -> Any:
    """Return groups about one mean, masked beyond each group's last observation."""
    return _groups_about(rng, np.repeat(means[:, None], num_groups, axis=1))


def _groups_about(rng: np.random.Generator, means: Draws) -> Any:
    sizes = rng.integers(SMALLEST_GROUP, LARGEST_GROUP, means.shape, endpoint=True)
    data = rng.standard_normal((*means.shape, LARGEST_GROUP))
    data += means[:, :, None]
    return np.ma.MaskedArray(data, mask=np.arange(LARGEST_GROUP) >= sizes[:, :, None])
