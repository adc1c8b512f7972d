"""One change at an unknown time or none, exact by a sum over the times: the variance of a series, the rate of counts.

Before and after the change, the variance or the rate is drawn independently from its conjugate prior. The evidence of
a stretch without a change depends on a sum over it alone, so that cumulative sums give the evidence of every beginning
and of every end; with a change, the evidence is the mean of their products over the times at which it may happen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.study import OfSize, Study, in_blocks

Floats = NDArray[np.float64]
Params = dict[str, Floats]
# Maps the sums over stretches, and the number of observations in each, to log evidences.
LogEvidence = Callable[[Floats, Any], Floats]

VARIANCE_SERIES_LENGTH = 100
# Shape and rate of the inverse gamma prior of a variance.
VARIANCE_PRIOR = (1.0, 1.0)

NUM_COUNTS = 20
# Shape and rate of the gamma prior of a rate.
RATE_PRIOR = (1.5, 0.15)


def variance_change_study(name: str, num_obs: int) -> Study:
    """Return Gaussian noise about 0 whose variance changes once, or never.

    The change comes before the second observation, or before any later one, all with the same probability. The exact
    answer is `variance_change_log_bf`.
    """
    _check_room_for_a_change(num_obs)
    return Study(
        name=name,
        title="Time series: Gaussian noise of unknown variance, which changes once or never",
        num_obs=num_obs,
        models=(
            Model("variance changes", prior=_changing_variance_prior, simulator=OfSize(_simulate_noise, num_obs)),
            Model("constant variance", prior=_variance_prior, simulator=OfSize(_simulate_noise, num_obs)),
        ),
        structure="series",
        exact_log_bf=variance_change_log_bf,
    )


def change_counts_study(name: str, num_obs: int) -> Study:
    """Return Poisson counts over time whose rate changes once, or never.

    The change comes before the second count, or before any later one, all with the same probability. The exact answer
    is `change_counts_log_bf`.
    """
    _check_room_for_a_change(num_obs)
    return Study(
        name=name,
        title=f"{num_obs} Poisson counts over time, of unknown rate, which changes once or never",
        num_obs=num_obs,
        models=(
            Model("rate changes", prior=_changing_rate_prior, simulator=OfSize(_simulate_counts, num_obs)),
            Model("constant rate", prior=_rate_prior, simulator=OfSize(_simulate_counts, num_obs)),
        ),
        structure="vector",
        exact_log_bf=change_counts_log_bf,
    )


def _check_room_for_a_change(num_obs: int) -> None:
    if num_obs < 2:
        raise ValueError(f"num_obs must be at least 2, so that there is a time to change; received {num_obs}.")


# Simulators. "place" is the change's place between the first possible one, 0, and the last, 1.


def _variance_prior(rng: np.random.Generator, size: int) -> Params:
    """Return variances, inverse gamma."""
    shape, rate = VARIANCE_PRIOR
    return {"first": rate / rng.standard_gamma(shape, size)}


def _changing_variance_prior(rng: np.random.Generator, size: int) -> Params:
    """Return variances before and after the change, and its place."""
    shape, rate = VARIANCE_PRIOR
    second = rate / rng.standard_gamma(shape, size)
    return {**_variance_prior(rng, size), "second": second, "place": rng.uniform(size=size)}


def _rate_prior(rng: np.random.Generator, size: int) -> Params:
    """Return rates, gamma."""
    shape, rate = RATE_PRIOR
    return {"first": rng.standard_gamma(shape, size) / rate}


def _changing_rate_prior(rng: np.random.Generator, size: int) -> Params:
    """Return rates before and after the change, and its place."""
    shape, rate = RATE_PRIOR
    second = rng.standard_gamma(shape, size) / rate
    return {**_rate_prior(rng, size), "second": second, "place": rng.uniform(size=size)}


def _simulate_noise(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return normal values about 0 with the variances of their times, shape (data sets, num_obs)."""
    scales = np.sqrt(_over_time(params, num_obs))
    return scales * rng.standard_normal((len(scales), num_obs))


def _simulate_counts(rng: np.random.Generator, params: Params, *, num_obs: int) -> NDArray[np.int64]:
    """Return Poisson counts with the rates of their times, shape (data sets, num_obs)."""
    rates = _over_time(params, num_obs)
    return rng.poisson(rates, (len(rates), num_obs))


def _over_time(params: Params, num_obs: int) -> Floats:
    """Return the variance or rate at each time, shape (data sets, num_obs), or (data sets, 1) if it never changes."""
    first = params["first"][:, None]
    if "place" not in params:
        return first
    num_before = 1 + np.floor(params["place"] * (num_obs - 1))
    return np.where(np.arange(num_obs) < num_before[:, None], first, params["second"][:, None])


# The exact answers.


def variance_change_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of one change of variance over none, per data set; `data` has shape (data sets, n).

    Under both models, y_t ~ N(0, v_t). First model: v_t = v for t <= k and v_t = w for t > k, with k uniform on
    1, ..., n - 1, and v and w independent and inverse gamma, of shape a = 1 and rate b = 1. Second model: v_t = v. A
    stretch of n observations whose squares sum to s has the evidence::

        (2 pi)^(-n/2) b^a Gamma(a + n/2) / Gamma(a) (b + s/2)^-(a + n/2)

    Examples
    --------
    >>> variance_change_log_bf([[1.0, -1.0, 1.0, -1.0], [0.1, -0.1, 9.0, -9.0]]).round(4)
    array([-0.1447,  2.7216])
    """
    squares = _checks.check_datasets("data", data) ** 2
    return _one_change_log_bf(squares, _noise_log_evidence)


def change_counts_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of one change of rate over none, per data set; `data` has shape (data sets, n).

    Under both models, y_t ~ Poisson(r_t). First model: r_t = r for t <= k and r_t = q for t > k, with k uniform on
    1, ..., n - 1, and r and q independent and gamma, of shape a = 1.5 and rate b = 0.15. Second model: r_t = r. A
    stretch of n counts that sum to s has the evidence, but for the factorials of the counts, which cancel::

        b^a / Gamma(a) Gamma(a + s) / (b + n)^(a + s)

    Examples
    --------
    >>> change_counts_log_bf([[4, 4, 4, 4], [0, 0, 9, 9]]).round(4)
    array([-0.9821,  7.7337])
    """
    counts = _checks.check_datasets("data", data)
    if (counts < 0).any() or (counts != np.floor(counts)).any():
        raise ValueError("data must be counts, whole numbers of at least 0; received others.")
    return _one_change_log_bf(counts, _counts_log_evidence)


def _noise_log_evidence(sums: Floats, number: Any) -> Floats:
    """Return log evidences of stretches of normal values, from the sums of their squares, but for powers of 2 pi."""
    shape, rate = VARIANCE_PRIOR
    power = shape + 0.5 * number
    return shape * np.log(rate) - gammaln(shape) + gammaln(power) - power * np.log(rate + 0.5 * sums)


def _counts_log_evidence(sums: Floats, number: Any) -> Floats:
    """Return log evidences of stretches of Poisson counts, from their sums, but for the factorials of the counts."""
    shape, rate = RATE_PRIOR
    return shape * np.log(rate) - gammaln(shape) + gammaln(shape + sums) - (shape + sums) * np.log(rate + number)


def _one_change_log_bf(values: Floats, log_evidence_fn: LogEvidence) -> Floats:
    """Return the log mean, over all times of the change, of evidence before times evidence after over that of all."""
    num_obs = values.shape[1]
    _check_room_for_a_change(num_obs)
    num_before = np.arange(1, num_obs)

    def of_block(block: Floats) -> Floats:
        before = np.cumsum(block, axis=1)[:, :-1]
        # Summed from the end: a difference of cumulative sums would lose a quiet end after a loud beginning.
        after = np.cumsum(block[:, :0:-1], axis=1)[:, ::-1]
        log_products = log_evidence_fn(before, num_before) + log_evidence_fn(after, num_obs - num_before)
        together = log_evidence_fn(block.sum(axis=1), num_obs)
        return np.asarray(logsumexp(log_products, axis=1)) - np.log(num_obs - 1.0) - together

    return in_blocks(of_block, values)
