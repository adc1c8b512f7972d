"""Counts in groups, with a rate for each group or one for all: a Poisson regression on a fixed exposure.

Counts are Poisson with mean exposure times rate. First model: the rates of groups are gamma distributed about a common
mean m, with shape 4. Second model: every rate is m. Under both, m is gamma distributed with shape 4 and mean 1.

Only the total of each group matters. Rates are integrated out in closed form, and so is m of the second model; m of the
first is integrated by the trapezoidal rule over log m.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.quadrature import even_nodes, log_integrals
from deepbf_studies.problems.study import OfSize, Study

Floats = NDArray[np.float64]

GROUP_SIZE = 5
NUM_RESPONSES = 60
# Exposures within each group.
EXPOSURES = (0.5, 1.0, 1.5, 2.0, 3.0)
MEAN_SHAPE = 4.0
RATE_SHAPE = 4.0
# Over log m; the prior puts less than 1e-13 outside, and the posterior is at least 0.05 wide.
LOG_MEANS = (-9.0, 4.0)
STEP = 0.02


def grouped_counts_study(name: str, num_obs: int) -> Study:
    """Return counts in groups of five with fixed exposures: with a rate for each group, or with one for all.

    Counts have shape (data sets, num_obs), group by group; `num_obs` is a multiple of 5. `covariates` has the columns
    "exposure" and "group".
    """
    varying = Model("a rate per group", prior=OfSize(_varying_prior, num_obs), simulator=OfSize(_counts, num_obs))
    common = Model("one rate", prior=OfSize(_common_prior, num_obs), simulator=OfSize(_counts, num_obs))
    return Study(
        name=name,
        title=f"A rate per group or one for all: {num_obs} counts in groups of {GROUP_SIZE} with fixed exposures",
        num_obs=num_obs,
        models=(varying, common),
        structure="vector",
        exact_log_bf=grouped_counts_log_bf,
        covariates=design(num_obs),
    )


def design(num_obs: int) -> dict[str, NDArray[Any]]:
    """Return the fixed design: columns "exposure" and "group" of shape (num_obs,).

    Examples
    --------
    >>> design(10)["group"]
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    if num_obs % GROUP_SIZE or num_obs <= 0:
        raise ValueError(f"num_obs must be a multiple of {GROUP_SIZE}, whole groups; received {num_obs}.")
    group = np.arange(num_obs) // GROUP_SIZE
    return {"exposure": np.tile(EXPOSURES, num_obs // GROUP_SIZE), "group": group}


def _varying_prior(rng: np.random.Generator, size: int, *, num_obs: int) -> Floats:
    """Return the rate of each group, shape (size, groups)."""
    means = rng.gamma(MEAN_SHAPE, 1 / MEAN_SHAPE, (size, 1))
    return means * rng.gamma(RATE_SHAPE, 1 / RATE_SHAPE, (size, num_obs // GROUP_SIZE))


def _common_prior(rng: np.random.Generator, size: int, *, num_obs: int) -> Floats:
    """Return one rate for all groups, shape (size, groups)."""
    return np.repeat(rng.gamma(MEAN_SHAPE, 1 / MEAN_SHAPE, (size, 1)), num_obs // GROUP_SIZE, axis=1)


def _counts(rng: np.random.Generator, rates: Floats, *, num_obs: int) -> NDArray[np.int64]:
    """Return counts, group by group."""
    columns = design(num_obs)
    return rng.poisson(rates[:, columns["group"]] * columns["exposure"])


def grouped_counts_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of a rate for each group over one for all, for each data set of counts.

    `data` has shape (data sets, counts), in the order of `design`, and the result (data sets,).

    Examples
    --------
    >>> grouped_counts_log_bf([[0, 0, 0, 0, 0, 9, 9, 9, 9, 9], [1, 1, 2, 2, 3, 1, 1, 2, 2, 3]]).round(3)
    array([22.861, -0.808])
    """
    counts = _checks.check_datasets("data", data)
    design(counts.shape[1])
    totals = counts.reshape(len(counts), counts.shape[1] // GROUP_SIZE, GROUP_SIZE).sum(axis=2)
    exposure = float(sum(EXPOSURES))
    log_means, log_step = even_nodes(*LOG_MEANS, step=STEP)
    # Of gamma(RATE_SHAPE, rate) with mean m; the prior density of log m.
    rate = RATE_SHAPE / np.exp(log_means)
    log_prior = MEAN_SHAPE * np.log(MEAN_SHAPE) - gammaln(MEAN_SHAPE) + MEAN_SHAPE * (log_means - np.exp(log_means))
    num_groups = totals.shape[1]
    all_totals = totals.sum(axis=1)

    def log_integrand(rows: slice) -> Floats:
        shapes = num_groups * RATE_SHAPE + all_totals[rows, None]
        return num_groups * RATE_SHAPE * np.log(rate) - shapes * np.log(rate + exposure)

    varying = log_integrals(log_integrand, log_prior + log_step, len(totals))
    varying += (gammaln(RATE_SHAPE + totals) - gammaln(RATE_SHAPE)).sum(axis=1)
    shape = MEAN_SHAPE + all_totals
    common = MEAN_SHAPE * np.log(MEAN_SHAPE) - gammaln(MEAN_SHAPE) + gammaln(shape)
    return varying - (common - shape * np.log(MEAN_SHAPE + num_groups * exposure))
