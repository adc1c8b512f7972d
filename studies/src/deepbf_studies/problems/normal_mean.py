"""The mean of normal values: unknown, 0, or 1/2. The simplest comparison, with its answer in closed form."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.mixture import normal_mean_log_bf
from deepbf_studies.problems.study import OfSize, Study

Floats = NDArray[np.float64]

NUM_OBS = 50
KNOWN_MEANS = (0.0, 0.5)


def normal_mean_study(name: str, num_obs: int) -> Study:
    """Return normal values of variance 1, shape (data sets, num_obs): with mean N(0, 1), or mean 0, or mean 1/2.

    Only the first model has a parameter. `exact_log_evidence` has one column for each model; `exact_log_bf` compares
    the first two.
    """
    known = (
        Model(f"mean {mean:g}", simulator=OfSize(partial(_values_of_known_mean, mean=mean), num_obs))
        for mean in KNOWN_MEANS
    )
    return Study(
        name=name,
        title=f"The mean of {num_obs} normal values of variance 1: N(0, 1), 0 or 0.5",
        num_obs=num_obs,
        models=(Model("unknown mean", prior=_mean_prior, simulator=OfSize(_values, num_obs)), *known),
        structure="exchangeable",
        exact_log_bf=partial(normal_mean_log_bf, prior_scale=1.0),
        exact_log_evidence=normal_mean_log_evidence,
    )


def _mean_prior(rng: np.random.Generator, size: int) -> Floats:
    """Return means, standard normal."""
    return rng.standard_normal(size)


def _values(rng: np.random.Generator, means: Floats, *, num_obs: int) -> Floats:
    """Return normal values about these means."""
    return means[:, None] + rng.standard_normal((len(means), num_obs))


def _values_of_known_mean(rng: np.random.Generator, size: int, *, num_obs: int, mean: float) -> Floats:
    """Return normal values about one mean."""
    return mean + rng.standard_normal((size, num_obs))


def normal_mean_log_evidence(data: ArrayLike) -> Floats:
    """Return log evidences of an unknown mean, mean 0 and mean 1/2, shape (data sets, 3).

    `data` has shape (data sets, observations). Values of a known mean are independent normals; the unknown mean, N(0,
    1), adds `normal_mean_log_bf` to the log evidence of mean 0.

    Examples
    --------
    >>> normal_mean_log_evidence([[0.0], [1.0]]).round(4)
    array([[-1.2655, -0.9189, -1.0439],
           [-1.5155, -1.4189, -1.0439]])
    """
    values = _checks.check_datasets("data", data)
    known = [-0.5 * ((values - mean) ** 2 + np.log(2 * np.pi)).sum(axis=1) for mean in KNOWN_MEANS]
    return np.stack([known[0] + normal_mean_log_bf(values, prior_scale=1.0), *known], axis=1)
