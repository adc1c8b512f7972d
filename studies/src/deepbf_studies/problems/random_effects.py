"""Groups of different sizes, with means of their own or one mean: the study of nested data whose answer is known.

First model: y_ij ~ N(mu_j, s^2), mu_j ~ N(mu, tau^2), mu ~ N(0, m^2), tau half-normal with scale t. Second model:
y_ij ~ N(mu, s^2), mu ~ N(0, m^2). The spread within groups cancels: sizes n_j and means ybar_j are all that is needed.
Given tau, group means are independent normals about mu with variances v_j = tau^2 + s^2 / n_j, and with weights
w_j = 1 / v_j, W their sum and ybar the weighted mean, mu integrates in closed form::

    log p(ybar | tau) = 1/2 sum log w_j - 1/2 log(1 + m^2 W) - 1/2 sum w_j (ybar_j - ybar)^2
                        - 1/2 W ybar^2 / (1 + m^2 W) + constant

The second model is tau = 0, so the Bayes factor is the prior mean over tau of p(ybar | tau) / p(ybar | 0).
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.study import Study

Floats = NDArray[np.float64]

NUM_GROUPS = 20
# Observations in each group: uniform, the same under both models, so that sizes alone say nothing.
SMALLEST_GROUP, LARGEST_GROUP = 5, 15

# Twice as many change no log Bayes factor by 1e-8: studies/tests/problems/test_random_effects.py measures it.
NUM_NODES = 128
# Values of tau at which the integrand is looked at to find where its mass is, twice: the second time within the region
# found first, so that narrow peaks, of data that neither model would make, are not lost between the nodes.
NUM_SEARCH = 48
# The region that is integrated ends where the integrand is below exp(-40) = 4e-18 of its largest value.
LOG_NEGLIGIBLE = -40.0
# 1 MB for each temporary array: in cache.
VALUES_PER_BLOCK = 2**17


def random_effects_study(name: str, num_groups: int) -> Study:
    """Return normal groups of 5 to 15 observations: group means that vary about a common mean, or do not.

    The common mean is N(0, 1), the standard deviation of the group means half-normal with scale 1, and that of the
    observations 1. The half-normal has its mode at no variation, so many data sets are hard to tell apart.
    """
    random_effects = Model(
        "random effects", prior=_random_effects_prior, simulator=partial(_random_effects_groups, num_groups=num_groups)
    )
    fixed_effect = Model(
        "fixed effect", prior=_fixed_effect_prior, simulator=partial(_fixed_effect_groups, num_groups=num_groups)
    )
    return Study(
        name=name,
        title=f"Random effects or one fixed effect: {num_groups} normal groups of 5 to 15 observations",
        num_obs=num_groups,
        models=(random_effects, fixed_effect),
        structure="nested",
        exact_log_bf=random_effects_log_bf,
    )


def _random_effects_prior(rng: np.random.Generator, size: int) -> dict[str, Floats]:
    """Return the common mean, N(0, 1), and the standard deviation of group means, half-normal(1)."""
    return {"mean": rng.standard_normal(size), "effect_scale": np.abs(rng.standard_normal(size))}


def _fixed_effect_prior(rng: np.random.Generator, size: int) -> Floats:
    """Return the mean of all observations, N(0, 1)."""
    return rng.standard_normal(size)


def _random_effects_groups(rng: np.random.Generator, params: dict[str, Floats], *, num_groups: int) -> Any:
    """Return groups about means of their own, masked beyond each group's last observation."""
    effects = rng.standard_normal((len(params["mean"]), num_groups))
    effects *= params["effect_scale"][:, None]
    effects += params["mean"][:, None]
    return _groups_about(rng, effects)


def _fixed_effect_groups(rng: np.random.Generator, means: Floats, *, num_groups: int) -> Any:
    """Return groups about one mean, masked beyond each group's last observation."""
    return _groups_about(rng, np.repeat(means[:, None], num_groups, axis=1))


def _groups_about(rng: np.random.Generator, means: Floats) -> Any:
    sizes = rng.integers(SMALLEST_GROUP, LARGEST_GROUP, means.shape, endpoint=True)
    data = rng.standard_normal((*means.shape, LARGEST_GROUP))
    data += means[:, :, None]
    return np.ma.MaskedArray(data, mask=np.arange(LARGEST_GROUP) >= sizes[:, :, None])


# The exact answer.


class _Groups(NamedTuple):
    """Sizes and means of the groups, shape (num_datasets, num_groups); absent groups have size and mean 0."""

    sizes: Floats
    means: Floats


class _Scales(NamedTuple):
    mean: float
    effect: float
    noise: float


def random_effects_log_bf(
    data: ArrayLike,
    *,
    mean_scale: float = 1.0,
    effect_scale: float = 1.0,
    noise_scale: float = 1.0,
    num_nodes: int = NUM_NODES,
) -> Floats:
    """Return the log Bayes factor of random effects over one fixed effect, for each data set.

    `data` has shape (num_datasets, num_groups, num_obs). Observations that are masked or nan are absent, and so are
    groups without observations. The one-dimensional integral over tau, half-normal with scale `effect_scale`, is by
    Gauss-Legendre quadrature with `num_nodes` nodes on the region that holds all but 1e-17 of its peak.

    Examples
    --------
    >>> random_effects_log_bf([[[1.0, np.nan], [0.0, 0.5]], [[9.0, 8.0], [-9.0, np.nan]]]).round(3)
    array([-0.314, 90.535])
    """
    values = _check_nested(data)
    present = ~np.isnan(values)
    sizes = present.sum(axis=2).astype(np.float64)
    groups = _Groups(sizes, np.where(present, values, 0.0).sum(axis=2) / np.maximum(sizes, 1.0))
    scales = _Scales(
        _checks.check_positive("mean_scale", mean_scale),
        _checks.check_positive("effect_scale", effect_scale),
        _checks.check_positive("noise_scale", noise_scale),
    )
    num_nodes = _checks.check_count("num_nodes", num_nodes)
    rows = max(1, VALUES_PER_BLOCK // (max(num_nodes, NUM_SEARCH) * groups.sizes.shape[1]))
    blocks = range(0, len(groups.sizes), rows)
    parts = [_log_bf(_Groups(*(part[i : i + rows] for part in groups)), scales, num_nodes) for i in blocks]
    return np.concatenate(parts) if parts else np.zeros(0)


def _log_bf(groups: _Groups, scales: _Scales, num_nodes: int) -> Floats:
    low, high = _region(groups, scales)
    nodes, weights = _gauss_legendre(num_nodes)
    half = (high - low) / 2
    taus = (low + half)[:, None] + half[:, None] * nodes
    log_prior_constant = np.log(np.sqrt(2 / np.pi) / scales.effect)
    log_mean = logsumexp(_log_integrand(groups, taus, scales), b=half[:, None] * weights, axis=1)
    return log_mean + log_prior_constant - _log_likelihood(groups, np.zeros((len(half), 1)), scales)[:, 0]


@cache
def _gauss_legendre(num_nodes: int) -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(num_nodes)


def _region(groups: _Groups, scales: _Scales) -> tuple[Floats, Floats]:
    """Return the interval of tau that holds the integral's mass, for each data set."""
    # The likelihood falls where tau exceeds the group means' distance from 0, and that of their mean times the root of
    # their number; from there the prior alone falls below exp(-40) within nine of its scales. Downwards evenly in
    # log tau, until tau^2 is far below the noise of any mean and the likelihood is flat.
    num_groups = groups.sizes.shape[1]
    highest = np.sqrt(num_groups) * np.abs(groups.means).max(axis=1) + 9 * scales.effect
    smallest = 1e-2 * np.minimum(scales.noise / np.sqrt(groups.sizes.max(axis=1)), scales.effect)
    steps = np.linspace(0.0, 1.0, NUM_SEARCH - 1)
    taus = smallest[:, None] * (highest / smallest)[:, None] ** steps
    low, high = _narrow(groups, np.concatenate([np.zeros((len(taus), 1)), taus], axis=1), scales)
    return _narrow(groups, low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, NUM_SEARCH), scales)


def _narrow(groups: _Groups, taus: Floats, scales: _Scales) -> tuple[Floats, Floats]:
    """Return the interval between increasing taus outside of which the integrand is negligible."""
    log_integrand = _log_integrand(groups, taus, scales)
    there = log_integrand > log_integrand.max(axis=1, keepdims=True) + LOG_NEGLIGIBLE
    first = np.maximum(there.argmax(axis=1) - 1, 0)
    last = np.minimum(taus.shape[1] - there[:, ::-1].argmax(axis=1), taus.shape[1] - 1)
    rows = np.arange(len(taus))
    return taus[rows, first], taus[rows, last]


def _log_integrand(groups: _Groups, taus: Floats, scales: _Scales) -> Floats:
    return _log_likelihood(groups, taus, scales) - 0.5 * (taus / scales.effect) ** 2


def _log_likelihood(groups: _Groups, taus: Floats, scales: _Scales) -> Floats:
    """Return log p(ybar | tau), shape of `taus`, (num_datasets, num_taus), up to a constant of each data set."""
    sizes, means = groups.sizes[:, None, :], groups.means[:, None, :]
    # w_j = n_j / (s^2 + n_j tau^2), which is 0 for an absent group. Its log is left out of the sum together with the
    # constant log(n_j / s^2), and so is 0 as well.
    inflation = sizes * (taus[:, :, None] / scales.noise) ** 2
    weights = sizes / scales.noise**2 / (1 + inflation)
    total = weights.sum(axis=2)
    centre = (weights * means).sum(axis=2) / total
    squares = (weights * (means - centre[:, :, None]) ** 2).sum(axis=2)
    shrink = 1 + scales.mean**2 * total
    return -0.5 * (np.log(1 + inflation).sum(axis=2) + np.log(shrink) + squares + total * centre**2 / shrink)


def _check_nested(data: ArrayLike) -> Floats:
    """Return `data` as float64 of shape (num_datasets, num_groups, num_obs), nan where there is no observation."""
    masked = np.ma.isMaskedArray(data)
    array = np.ma.filled(np.ma.asarray(data).astype(np.float64), np.nan) if masked else data
    values = _checks.check_numeric_array("data", array).astype(np.float64)
    if values.ndim != 3:
        raise ValueError(
            f"data must have shape (num_datasets, num_groups, num_obs); received shape {values.shape}. "
            "Pass data[None] for a single data set, with nan for observations that a group lacks."
        )
    if np.isinf(values).any():
        raise ValueError("data must be finite, or nan where there is no observation; received inf. Remove it.")
    empty = np.flatnonzero(np.isnan(values).all(axis=(1, 2)))
    if len(empty):
        raise ValueError(f"every data set needs an observation; data[{empty[0]}] has none. Leave it out.")
    return values
