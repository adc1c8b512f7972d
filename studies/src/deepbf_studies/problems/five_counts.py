"""Five models for counts, or three, told apart by how they spread about a common mean: studies of several models.

The mean is Gamma(2, 1) under every model. Evidences are exact by quadrature over the mean: the integrals run over its
logarithm by the trapezoidal rule, which for integrands this smooth, vanishing at both ends, is exact to rounding at
the step taken here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaln, gammaln

from deepbf.models import Model
from deepbf_studies.problems.quadrature import log_integrals
from deepbf_studies.problems.study import OfSize, Study

Floats = NDArray[np.float64]

NUM_OBS = 50
NUM_OBS_OF_THREE = 40
# The smaller, the more spread out. A size of 1 is the geometric distribution.
SIZES = (2.0, 6.0)

# Of the logarithm of the mean: wide enough for all that Gamma(2, 1) gives more than 1e-16, and for counts to 1e4.
LOWEST, HIGHEST, NUM_NODES = -25.0, 12.0, 3000
_LOG_MEANS = np.linspace(LOWEST, HIGHEST, NUM_NODES)
_MEANS = np.exp(_LOG_MEANS)
# Density of the logarithm of a Gamma(2, 1) variable, times the step.
_LOG_WEIGHTS = 2.0 * _LOG_MEANS - _MEANS + np.log(_LOG_MEANS[1] - _LOG_MEANS[0])


def five_counts_study(name: str, num_obs: int) -> Study:
    """Return counts about a mean that is Gamma(2, 1): Poisson, geometric, two negative binomials, zero-inflated.

    `exact_log_evidence` has one column for each model; `exact_log_bf` compares the first two.
    """
    models = (
        Model("Poisson", prior=_mean_prior, simulator=OfSize(_poisson_counts, num_obs)),
        Model("geometric", prior=_mean_prior, simulator=OfSize(partial(_negbin_counts, size=1.0), num_obs)),
        *(
            Model(
                f"negative binomial of size {size:g}",
                prior=_mean_prior,
                simulator=OfSize(partial(_negbin_counts, size=size), num_obs),
            )
            for size in SIZES
        ),
        Model("zero-inflated Poisson", prior=_inflated_prior, simulator=OfSize(_inflated_counts, num_obs)),
    )
    return Study(
        name=name,
        title=f"Five models of {num_obs} counts: Poisson, geometric, negative binomial of size 2 and 6, zero-inflated",
        num_obs=num_obs,
        models=models,
        structure="exchangeable",
        exact_log_bf=_first_over_second,
        exact_log_evidence=_five_log_evidences,
    )


def three_counts_study(name: str, num_obs: int) -> Study:
    """Return three of the models of `five_counts_study`: Poisson, geometric, zero-inflated Poisson.

    `exact_log_evidence` has one column for each model; `exact_log_bf` compares the first two.
    """
    poisson, geometric, *_, zero_inflated = five_counts_study(name, num_obs).models
    return Study(
        name=name,
        title=f"Three models of {num_obs} counts: Poisson, geometric, zero-inflated Poisson",
        num_obs=num_obs,
        models=(poisson, geometric, zero_inflated),
        structure="exchangeable",
        exact_log_bf=_first_over_second,
        exact_log_evidence=_three_log_evidences,
    )


def _three_log_evidences(data: ArrayLike) -> Floats:
    """Return exact log evidences, shape (data sets, 3), in the order of the models."""
    found = [poisson_log_evidence(data), negbin_log_evidence(data, size=1.0), zero_inflated_log_evidence(data)]
    return np.stack(found, axis=1)


def _five_log_evidences(data: ArrayLike) -> Floats:
    """Return exact log evidences, shape (data sets, 5), in the order of the models."""
    found = [poisson_log_evidence(data), *(negbin_log_evidence(data, size=size) for size in (1.0, *SIZES))]
    return np.stack([*found, zero_inflated_log_evidence(data)], axis=1)


def _first_over_second(data: ArrayLike) -> Floats:
    """Return exact log Bayes factors of the Poisson over the geometric."""
    return poisson_log_evidence(data) - negbin_log_evidence(data, size=1.0)


def _mean_prior(rng: np.random.Generator, size: int) -> Floats:
    """Return means, Gamma(2, 1)."""
    return rng.standard_gamma(2.0, size)


def _inflated_prior(rng: np.random.Generator, size: int) -> dict[str, Floats]:
    """Return means of the Poisson, Gamma(2, 1), and probabilities of an extra zero, uniform."""
    return {"mean": rng.standard_gamma(2.0, size), "extra_zero": rng.uniform(size=size)}


def _poisson_counts(rng: np.random.Generator, means: Floats, *, num_obs: int) -> NDArray[np.int64]:
    """Return Poisson counts."""
    return rng.poisson(means[:, None], (len(means), num_obs))


def _negbin_counts(rng: np.random.Generator, means: Floats, *, num_obs: int, size: float) -> NDArray[np.int64]:
    """Return negative binomial counts: Poisson, with means that vary about the mean."""
    return rng.poisson(means[:, None] / size * rng.standard_gamma(size, (len(means), num_obs)))


def _inflated_counts(rng: np.random.Generator, params: dict[str, Any], *, num_obs: int) -> NDArray[np.int64]:
    """Return Poisson counts with extra zeros."""
    counts = _poisson_counts(rng, params["mean"], num_obs=num_obs)
    return np.where(rng.uniform(size=counts.shape) < params["extra_zero"][:, None], 0, counts)


# Exact log evidences: counts have shape (data sets, n), and results (data sets,).


def poisson_log_evidence(data: ArrayLike) -> Floats:
    """Return the log evidence of the Poisson for each data set, in closed form.

    Examples
    --------
    >>> poisson_log_evidence([[0]]).round(4)  # the mean of exp(-mean) is 1/4
    array([-1.3863])
    """
    counts = _counts(data)
    total, num_obs = counts.sum(axis=1), counts.shape[1]
    return gammaln(total + 2.0) - (total + 2.0) * np.log(num_obs + 1.0) - gammaln(counts + 1.0).sum(axis=1)


def negbin_log_evidence(data: ArrayLike, *, size: float) -> Floats:
    """Return the log evidence of the negative binomial of this size for each data set, by quadrature over the mean.

    Its variance is mean + mean^2 / size: the smaller the size, the more spread out. A size of 1 is the geometric.
    """
    counts = _counts(data)
    total, num_obs = counts.sum(axis=1), counts.shape[1]
    # Of each node: log(mean / (mean + size)) and log(size / (mean + size)), exact for means near 0 and far out.
    log_fail = -np.log1p(size / _MEANS)
    log_success = -np.log1p(_MEANS / size)
    constant = (gammaln(counts + size) - gammaln(size) - gammaln(counts + 1.0)).sum(axis=1)

    def log_integrand(rows: slice) -> Floats:
        return total[rows, None] * log_fail + num_obs * size * log_success

    return constant + log_integrals(log_integrand, _LOG_WEIGHTS, len(counts))


def zero_inflated_log_evidence(data: ArrayLike) -> Floats:
    """Return the log evidence of the zero-inflated Poisson, with the probability of an extra zero uniform on (0, 1).

    Given the mean m of the Poisson, the probability q of a count above 0 is uniform on (0, c), c = 1 - exp(-m), which
    leaves an incomplete beta function; what the counts above 0 are does not depend on it.
    """
    counts = _counts(data)
    total, num_obs = counts.sum(axis=1), counts.shape[1]
    num_above = (counts > 0).sum(axis=1)
    num_zero = num_obs - num_above
    log_c = np.log(-np.expm1(-_MEANS))
    constant = betaln(num_above + 1.0, num_zero + 1.0) - gammaln(counts + 1.0).sum(axis=1)

    def log_integrand(rows: slice) -> Floats:
        above, zero = num_above[rows, None], num_zero[rows, None]
        with np.errstate(divide="ignore"):
            log_part = np.log(betainc(above + 1.0, zero + 1.0, np.exp(log_c)))
        # Far below, the incomplete beta function underflows; its leading term does not.
        leading = (above + 1.0) * log_c - np.log(above + 1.0) - betaln(above + 1.0, zero + 1.0)
        log_part = np.where(np.isfinite(log_part), log_part, leading)
        return log_part - log_c + total[rows, None] * _LOG_MEANS - above * (_MEANS + log_c)

    return constant + log_integrals(log_integrand, _LOG_WEIGHTS, len(counts))


def _counts(data: ArrayLike) -> Floats:
    counts = np.asarray(data, np.float64)
    if counts.ndim != 2 or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise ValueError(f"data must be counts of shape (data sets, observations); received shape {counts.shape}.")
    return counts
