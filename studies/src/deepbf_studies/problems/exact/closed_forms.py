"""Log Bayes factors in closed form: waiting times (Data 3), and the mean of a normal.

Every function takes data of shape (num_datasets, num_obs) and returns one natural log Bayes factor a data set, the
first model over the second. Formulas are in terms of logarithms throughout, so they stay finite where the Bayes factor
itself would overflow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from deepbf import _checks


def exponential_log_bf(
    data: ArrayLike, *, gamma: tuple[float, float] = (2.0, 2.0), rate: float = 3.0
) -> NDArray[np.float64]:
    """Return the log Bayes factor of an exponential with unknown rate over one with rate `rate`, one entry a data set.

    First model: y ~ Exp(lam), lam ~ Gamma(shape, rate) = `gamma`. Second model: y ~ Exp(rate). With S the sum of the
    n waiting times, and (a, b) = `gamma`::

        a log b - log Gamma(a) + log Gamma(a + n) - (a + n) log(b + S) - n log(rate) + rate S

    The defaults are Data 3 of *Deep Bayes Factors* (Kim and Rockova).

    Examples
    --------
    >>> exponential_log_bf([[0.0]]).round(4)  # the mean of lam, 1, over 3
    array([-1.0986])
    """
    a, b = _checks.check_positive_pair("gamma", gamma)
    rate = _checks.check_positive("rate", rate)
    times = _checks.check_datasets("data", data)
    _check_nonnegative(times, "waiting times")
    n = times.shape[1]
    S = times.sum(axis=1)
    log_unknown = a * np.log(b) - gammaln(a) + gammaln(a + n) - (a + n) * np.log(b + S)
    return log_unknown - (n * np.log(rate) - rate * S)


def normal_mean_log_bf(data: ArrayLike, *, prior_scale: float, noise_scale: float = 1.0) -> NDArray[np.float64]:
    """Return the log Bayes factor of a normal with unknown mean over one with mean 0, one entry a data set.

    First model: y ~ N(mu, noise_scale^2), mu ~ N(0, prior_scale^2). Second model: mu = 0.

    Examples
    --------
    >>> normal_mean_log_bf([[0.0], [3.0]], prior_scale=1.0).round(4)
    array([-0.3466,  1.9034])
    """
    values = _checks.check_datasets("data", data)
    return normal_mean_log_bf_from_total(
        values.shape[1],
        values.sum(axis=1),
        prior_scale=_checks.check_positive("prior_scale", prior_scale),
        noise_scale=_checks.check_positive("noise_scale", noise_scale),
    )


def normal_mean_log_bf_from_total(
    num_obs: int | NDArray[np.float64], total: NDArray[np.float64], *, prior_scale: float, noise_scale: float
) -> NDArray[np.float64]:
    """Return the log Bayes factor of unknown mean over mean 0, from the number of observations and their sum.

    The sum is all that the Bayes factor needs. `num_obs` and `total` broadcast against each other::

        -1/2 log(1 + n t^2 / s^2) + t^2 total^2 / (2 s^2 (s^2 + n t^2)),   t = prior_scale, s = noise_scale
    """
    noise_var, prior_var = noise_scale**2, prior_scale**2
    shrunk = prior_var * total**2 / (2 * noise_var * (noise_var + num_obs * prior_var))
    return shrunk - 0.5 * np.log1p(num_obs * prior_var / noise_var)


def _check_nonnegative(values: NDArray[np.float64], what: str) -> None:
    if (values < 0).any():
        raise ValueError(f"data must be {what}, 0 or more; received {values.min()}. Both models exclude it.")
