"""A set of trials, a short vector and a covariate: the study of mixed data whose answer is known."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from deepbf.models import Model
from deepbf_studies.problems.exact.covariate import covariate_log_bf
from deepbf_studies.problems.study import Study
from deepbf_studies.problems.toy_simulators import OfSize

NUM_TRIALS = 40
NUM_PRETESTS = 2
# Standardised: uniform within this distance of 0, the same under both models, so that age alone says nothing.
OLDEST = 1.5
SLOPE_SCALE = 2.0
MEAN_SCALE = 1.0

Draws = NDArray[np.float64]


def covariate_study(name: str, num_obs: int) -> Study:
    """Return normal trials and pretests of one person about a mean: in proportion to age, or free of it.

    Neither part decides alone: how far the mean may be from 0 under the first model depends on the age.
    """
    follows_age = Model(
        "mean follows age",
        prior=partial(normal_prior, scale=SLOPE_SCALE),
        simulator=OfSize(partial(person, follows_age=True), num_obs),
    )
    free_mean = Model(
        "free mean",
        prior=partial(normal_prior, scale=MEAN_SCALE),
        simulator=OfSize(partial(person, follows_age=False), num_obs),
    )
    return Study(
        name=name,
        title=f"A mean that follows age, or a free one: {num_obs} normal trials, {NUM_PRETESTS} pretests, and the age",
        num_obs=num_obs,
        models=(follows_age, free_mean),
        structure={"age": "vector", "pretest": "vector", "trials": "exchangeable"},
        exact_log_bf=partial(covariate_log_bf, slope_scale=SLOPE_SCALE, mean_scale=MEAN_SCALE),
    )


def normal_prior(rng: np.random.Generator, size: int, *, scale: float) -> Draws:
    """Return the slope or the mean, normal about 0."""
    return scale * rng.standard_normal(size)


def person(rng: np.random.Generator, params: Draws, *, num_obs: int, follows_age: bool) -> dict[str, Draws]:
    """Return age, pretests and trials of one person a parameter."""
    age = rng.uniform(-OLDEST, OLDEST, len(params))
    means = params * age if follows_age else params
    pretest = rng.standard_normal((len(params), NUM_PRETESTS)) + means[:, None]
    trials = rng.standard_normal((len(params), num_obs)) + means[:, None]
    return {"age": age, "pretest": pretest, "trials": trials}
