"""Five models for counts, told apart by how they spread about a common mean: the study of more than two models."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf.models import Model
from deepbf_studies.problems.exact.count_models import (
    negbin_log_evidence,
    poisson_log_evidence,
    zero_inflated_log_evidence,
)
from deepbf_studies.problems.study import Study
from deepbf_studies.problems.toy_simulators import OfSize

NUM_OBS = 50
# The smaller, the more spread out. A size of 1 is the geometric distribution.
SIZES = (2.0, 6.0)

Draws = NDArray[np.float64]


def five_counts_study(name: str, num_obs: int) -> Study:
    """Return counts about a mean that is Gamma(2, 1): Poisson, geometric, two negative binomials, zero-inflated."""
    models = (
        Model("Poisson", prior=mean_prior, simulator=OfSize(poisson_counts, num_obs)),
        Model("geometric", prior=mean_prior, simulator=OfSize(partial(negbin_counts, size=1.0), num_obs)),
        *(
            Model(
                f"negative binomial of size {size:g}",
                prior=mean_prior,
                simulator=OfSize(partial(negbin_counts, size=size), num_obs),
            )
            for size in SIZES
        ),
        Model("zero-inflated Poisson", prior=inflated_prior, simulator=OfSize(inflated_counts, num_obs)),
    )
    return Study(
        name=name,
        title=f"Five models of {num_obs} counts: Poisson, geometric, negative binomial of size 2 and 6, zero-inflated",
        num_obs=num_obs,
        models=models,
        structure="exchangeable",
        exact_log_bf=first_over_second,
        exact_log_evidence=five_log_evidences,
    )


def five_log_evidences(data: ArrayLike) -> Draws:
    """Return exact log evidences, shape (data sets, 5), in the order of the models."""
    found = [poisson_log_evidence(data), *(negbin_log_evidence(data, size=size) for size in (1.0, *SIZES))]
    return np.stack([*found, zero_inflated_log_evidence(data)], axis=1)


def first_over_second(data: ArrayLike) -> Draws:
    """Return exact log Bayes factors of the Poisson over the geometric."""
    return poisson_log_evidence(data) - negbin_log_evidence(data, size=1.0)


def mean_prior(rng: np.random.Generator, size: int) -> Draws:
    """Return means, Gamma(2, 1)."""
    return rng.standard_gamma(2.0, size)


def inflated_prior(rng: np.random.Generator, size: int) -> dict[str, Draws]:
    """Return means of the Poisson, Gamma(2, 1), and probabilities of an extra zero, uniform."""
    return {"mean": rng.standard_gamma(2.0, size), "extra_zero": rng.uniform(size=size)}


def poisson_counts(rng: np.random.Generator, means: Draws, *, num_obs: int) -> NDArray[np.int64]:
    """Return Poisson counts."""
    return rng.poisson(means[:, None], (len(means), num_obs))


def negbin_counts(rng: np.random.Generator, means: Draws, *, num_obs: int, size: float) -> NDArray[np.int64]:
    """Return negative binomial counts: Poisson, with means that vary about the mean."""
    return rng.poisson(means[:, None] / size * rng.standard_gamma(size, (len(means), num_obs)))


def inflated_counts(rng: np.random.Generator, params: dict[str, Any], *, num_obs: int) -> NDArray[np.int64]:
    """Return Poisson counts with extra zeros."""
    counts = poisson_counts(rng, params["mean"], num_obs=num_obs)
    return np.where(rng.uniform(size=counts.shape) < params["extra_zero"][:, None], 0, counts)
