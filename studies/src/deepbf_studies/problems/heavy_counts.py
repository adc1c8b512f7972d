"""Counts with heavy tails: negative binomial of size 1/2, or Poisson with lognormal rates.

Under both models the logarithm of the mean is N(3, 1), so that counts in the hundreds are common and thousands occur.
First model: negative binomial of size r = 1/2, with variance mean + mean^2 / r. Second model: Poisson counts with rates
exp(t), t ~ N(m, s^2), s = 1.5 and m = log(mean) - s^2 / 2.

Evidences are exact by the trapezoidal rule over the logarithm of the mean, and, for the second model, over the
logarithm t of the rate of each count, whose likelihood y t - exp(t) - log(y!) is about 1 / sqrt(y) wide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.quadrature import even_nodes, log_integrals
from deepbf_studies.problems.study import OfSize, Study

Floats = NDArray[np.float64]

NUM_OBS = 32
SIZE = 0.5
LOG_RATE_SCALE = 1.5
LOG_MEAN_CENTRE = 3.0
# Nine standard deviations of the logarithm of the mean to either side: means from 0.002 to 160,000.
LARGEST_IN_SCALES = 9.0
# Counts up to this one share nodes over the logarithm of the rate; larger ones have nodes about their own logarithm.
LARGEST_SHARED = 50
COUNTS_AT_A_TIME = 200


def heavy_counts_study(name: str, num_obs: int) -> Study:
    """Return counts, shape (data sets, num_obs): negative binomial of size 1/2, or Poisson-lognormal."""
    negative_binomial = Model("negative binomial", prior=_log_mean_prior, simulator=OfSize(_negbin_counts, num_obs))
    lognormal = Model("Poisson-lognormal", prior=_log_mean_prior, simulator=OfSize(_lognormal_counts, num_obs))
    return Study(
        name=name,
        title=f"Counts with heavy tails: {num_obs} negative binomial or Poisson-lognormal counts",
        num_obs=num_obs,
        models=(negative_binomial, lognormal),
        structure="exchangeable",
        exact_log_bf=heavy_counts_log_bf,
    )


def _log_mean_prior(rng: np.random.Generator, size: int) -> Floats:
    """Return logarithms of means, N(3, 1)."""
    return LOG_MEAN_CENTRE + rng.standard_normal(size)


def _negbin_counts(rng: np.random.Generator, log_means: Floats, *, num_obs: int) -> NDArray[np.int64]:
    """Return Poisson counts with gamma rates."""
    return rng.poisson(np.exp(log_means)[:, None] / SIZE * rng.standard_gamma(SIZE, (len(log_means), num_obs)))


def _lognormal_counts(rng: np.random.Generator, log_means: Floats, *, num_obs: int) -> NDArray[np.int64]:
    """Return Poisson counts with lognormal rates."""
    log_rates = LOG_RATE_SCALE * rng.standard_normal((len(log_means), num_obs))
    log_rates += log_means[:, None] - LOG_RATE_SCALE**2 / 2
    return rng.poisson(np.exp(log_rates))


def heavy_counts_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of the negative binomial over the Poisson-lognormal, for each data set of counts.

    `data` has shape (data sets, observations), and the result (data sets,).

    Examples
    --------
    >>> heavy_counts_log_bf([[0, 0, 0, 1, 80, 300], [9, 12, 14, 30, 50, 800]]).round(3)
    array([ 1.355, -2.668])
    """
    counts = _checks.check_datasets("data", data)
    if (counts < 0).any() or (counts != np.floor(counts)).any():
        raise ValueError("data must be counts, whole numbers of 0 or more; received others. Both models exclude them.")
    num_obs = counts.shape[1]
    # No count tells more about the logarithm of the mean than 1/2.
    log_means, log_step = even_nodes(
        LOG_MEAN_CENTRE - LARGEST_IN_SCALES, LOG_MEAN_CENTRE + LARGEST_IN_SCALES, step=0.6 / np.sqrt(1 + num_obs / 2)
    )
    log_weights = log_step - 0.5 * np.log(2 * np.pi) - 0.5 * (log_means - LOG_MEAN_CENTRE) ** 2
    total = counts.sum(axis=1)
    log_fail = -np.log1p(SIZE * np.exp(-log_means))
    log_success = -np.log1p(np.exp(log_means) / SIZE)
    constant = (gammaln(counts + SIZE) - gammaln(SIZE) - gammaln(counts + 1)).sum(axis=1)
    values, places = np.unique(counts, return_inverse=True)
    places = places.reshape(counts.shape)
    log_probs = lognormal_log_probs(values, log_means)

    def log_negbin(rows: slice) -> Floats:
        return total[rows, None] * log_fail + num_obs * SIZE * log_success

    def log_lognormal(rows: slice) -> Floats:
        return sum((log_probs[places[rows, i]] for i in range(num_obs)), np.zeros(len(log_means)))

    log_first = constant + log_integrals(log_negbin, log_weights, len(counts))
    return log_first - log_integrals(log_lognormal, log_weights, len(counts))


def lognormal_log_probs(counts: Floats, log_means: Floats) -> Floats:
    """Return log probabilities of counts under the Poisson-lognormal, shape (counts, log means)."""
    centres = log_means - LOG_RATE_SCALE**2 / 2
    low, high = centres.min() - 9 * LOG_RATE_SCALE, centres.max() + 9 * LOG_RATE_SCALE
    shared, log_step = even_nodes(low, high, step=0.06)
    small = counts <= LARGEST_SHARED
    found = np.empty((len(counts), len(log_means)))
    log_normal = -0.5 * ((shared - centres[:, None]) / LOG_RATE_SCALE) ** 2
    for i in np.flatnonzero(small):
        found[i] = np.asarray(logsumexp(log_normal + counts[i] * shared - np.exp(shared), axis=1)) + log_step
    # In units of 1 / sqrt(y) about log(y), where the likelihood is nearly a standard normal.
    steps, log_unit = even_nodes(-10.0, 10.0, step=0.6)
    large = np.flatnonzero(~small)
    for start in range(0, len(large), COUNTS_AT_A_TIME):
        block = large[start : start + COUNTS_AT_A_TIME]
        y = counts[block, None]
        log_rates = np.log(y) + steps / np.sqrt(y)
        log_likelihood = y * log_rates - np.exp(log_rates) + log_unit - 0.5 * np.log(y)
        distance = (log_rates[:, None, :] - centres[:, None]) / LOG_RATE_SCALE
        found[block] = logsumexp(log_likelihood[:, None, :] - 0.5 * distance**2, axis=2)
    return found - gammaln(counts[:, None] + 1) - 0.5 * np.log(2 * np.pi) - np.log(LOG_RATE_SCALE)
