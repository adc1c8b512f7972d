"""Data 1 and Data 3 of *Deep Bayes Factors* (Kim and Rockova): counts, and waiting times, with closed-form answers.

Data 1: negative binomial counts of size 1 with a Beta prior, or Poisson counts with a Gamma prior. Data 3: exponential
waiting times with an unknown rate, or with rate 3. Priors, simulators and densities are functions of a module, so that
models built from them pickle.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln

from deepbf import _checks
from deepbf.criticism import ExactPosterior
from deepbf.example import negbin_poisson_log_bf
from deepbf.models import Model
from deepbf_studies.problems.study import Array, OfSize, Study, library_of, log_gamma_of

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_WAITING_GAMMA = (2.0, 2.0)
_WAITING_RATE = 3.0
# The largest whole number that every int64 to float64 conversion keeps; p below 1e-14 would be needed to reach it.
_LARGEST_COUNT = 2**53
# Events per observation above which numpy's own Poisson sampler is faster than scattering them one by one (measured).
_SCATTER_LIMIT = 3
# Floats held on the way to whole counts: 64 KB stay in cache and in memory the process has already touched, where a
# second full-size array would double the time.
_VALUES_PER_BLOCK = 2**13


def counts_study(
    name: str, num_obs: int, *, label: str, beta: tuple[float, float], gamma: tuple[float, float]
) -> Study:
    """Return Data 1: counts, negative binomial of size 1 with a Beta prior, or Poisson with a Gamma prior.

    `beta` holds the two shapes of the negative binomial's prior, `gamma` the shape and the rate of Poisson's; `label`
    is what the paper calls this choice of priors. The exact answer is `negbin_poisson_log_bf`.
    """
    negative_binomial = Model(
        "negative binomial",
        prior=partial(_beta_prior, shapes=beta),
        simulator=OfSize(_negative_binomial, num_obs),
        log_prior=partial(_log_beta, shapes=beta),
        log_likelihood=_log_negative_binomial,
        transform="unit",
    )
    poisson = Model(
        "Poisson",
        prior=partial(_gamma_prior, shape_and_rate=gamma),
        simulator=OfSize(_poisson, num_obs),
        log_prior=partial(_log_gamma, shape_and_rate=gamma),
        log_likelihood=_log_poisson,
        transform="positive",
    )
    priors = f"Beta({beta[0]:g}, {beta[1]:g}) and Gamma({gamma[0]:g}, {gamma[1]:g})"
    return Study(
        name=name,
        title=f"{label}: negative binomial or Poisson counts, priors {priors}",
        num_obs=num_obs,
        models=(negative_binomial, poisson),
        structure="exchangeable",
        exact_log_bf=partial(negbin_poisson_log_bf, beta=beta, gamma=gamma),
        exact_posteriors=(
            ExactPosterior(negative_binomial, partial(_draw_prob, shapes=beta)),
            ExactPosterior(poisson, partial(_draw_poisson_rate, shape_and_rate=gamma)),
        ),
    )


def waiting_times_study(name: str, num_obs: int) -> Study:
    """Return Data 3: waiting times, exponential with an unknown rate or with rate 3.

    The second model has no parameters: its simulator takes a size, and its log likelihood None for the parameters. The
    exact answer is `exponential_log_bf`.
    """
    unknown_rate = Model(
        "exponential, unknown rate",
        prior=partial(_gamma_prior, shape_and_rate=_WAITING_GAMMA),
        simulator=OfSize(_exponential, num_obs),
        log_prior=partial(_log_gamma, shape_and_rate=_WAITING_GAMMA),
        log_likelihood=_log_exponential,
        transform="positive",
    )
    known_rate = Model(
        "exponential, rate 3",
        simulator=OfSize(partial(_exponential_known_rate, rate=_WAITING_RATE), num_obs),
        log_likelihood=partial(_log_exponential_known_rate, rate=_WAITING_RATE),
    )
    return Study(
        name=name,
        title="Data 3: exponential waiting times, rate unknown with prior Gamma(2, 2) or rate 3",
        num_obs=num_obs,
        models=(unknown_rate, known_rate),
        structure="exchangeable",
        exact_log_bf=partial(exponential_log_bf, gamma=_WAITING_GAMMA, rate=_WAITING_RATE),
        exact_posteriors=(
            ExactPosterior(unknown_rate, partial(_draw_exponential_rate, shape_and_rate=_WAITING_GAMMA)),
            ExactPosterior(known_rate, None),
        ),
    )


# Priors return arrays with leading axis `size`; simulators return arrays of shape (size, num_obs).


def _beta_prior(rng: np.random.Generator, size: int, *, shapes: tuple[float, float]) -> Floats:
    return rng.beta(*shapes, size)


def _gamma_prior(rng: np.random.Generator, size: int, *, shape_and_rate: tuple[float, float]) -> Floats:
    shape, rate = shape_and_rate
    return rng.standard_gamma(shape, size) / rate


def _negative_binomial(rng: np.random.Generator, probs: Floats, *, num_obs: int) -> Counts:
    """Return numbers of failures before the first success, whose probability is `probs`.

    The whole part of an exponential with rate -log(1 - p) is exactly geometric, and two to three times faster to draw
    than numpy's geometric. Counts stop at 2^53, instead of wrapping around, when p is all but 0.
    """
    with np.errstate(divide="ignore", over="ignore"):
        # p = 1 has an infinite rate and so counts of 0; p = 0 has rate 0 and so the largest count.
        scales = -1 / np.log1p(-probs)[:, None]
    counts = np.empty((len(probs), num_obs), dtype=np.int64)
    rows_per_block = max(1, _VALUES_PER_BLOCK // num_obs)
    for start in range(0, len(probs), rows_per_block):
        block = counts[start : start + rows_per_block]
        waiting = rng.standard_exponential(block.shape)
        with np.errstate(over="ignore"):
            waiting *= scales[start : start + rows_per_block]
        block[:] = np.minimum(waiting, _LARGEST_COUNT, out=waiting)
    return counts


def _poisson(rng: np.random.Generator, rates: Floats, *, num_obs: int) -> Counts:
    """Return Poisson counts.

    Given their total, which is Poisson too, a data set's events fall on its observations independently and evenly.
    Scattering them is several times faster than numpy's Poisson while events are few.
    """
    size = len(rates)
    totals = rng.poisson(num_obs * rates)
    if totals.sum() > _SCATTER_LIMIT * size * num_obs:
        return rng.poisson(rates[:, None], (size, num_obs))
    events = rng.integers(0, num_obs, totals.sum())
    events += np.repeat(num_obs * np.arange(size), totals)
    return np.bincount(events, minlength=size * num_obs).reshape(size, num_obs)


def _exponential(rng: np.random.Generator, rates: Floats, *, num_obs: int) -> Floats:
    data = rng.standard_exponential((len(rates), num_obs))
    # In place: memory that is new to the process costs as much as the random numbers.
    data /= rates[:, None]
    return data


def _exponential_known_rate(rng: np.random.Generator, size: int, *, num_obs: int, rate: float) -> Floats:
    return rng.standard_exponential((size, num_obs)) / rate


# Densities, for the baselines that need a likelihood. Parameters carry any leading axes, usually (size,); the last axis
# of data is the observations, and the axes before it broadcast against the parameters': pass one data set of shape
# (num_obs,), or one for each parameter, (size, num_obs). Parameters and data may be NumPy or JAX arrays, traced ones
# too, so that gradient-based samplers can use these functions. Parameters outside their open range have log density
# -inf; there they are replaced before any logarithm, so that neither it nor its gradient is nan.


def _log_beta(probs: Array, *, shapes: tuple[float, float]) -> Array:
    xp, probs = library_of(probs)
    a, b = shapes
    inside, safe = _restrict(xp, probs, (probs > 0) & (probs < 1), 0.5)
    return xp.where(inside, (a - 1) * xp.log(safe) + (b - 1) * xp.log1p(-safe) - float(betaln(a, b)), -xp.inf)


def _log_gamma(values: Array, *, shape_and_rate: tuple[float, float]) -> Array:
    xp, values = library_of(values)
    shape, rate = shape_and_rate
    inside, safe = _restrict(xp, values, values > 0, 1.0)
    constant = float(shape * np.log(rate) - gammaln(shape))
    return xp.where(inside, constant + (shape - 1) * xp.log(safe) - rate * safe, -xp.inf)


def _log_negative_binomial(probs: Array, data: ArrayLike) -> Array:
    xp, probs = library_of(probs)
    num_obs, total = _count_and_sum(data)
    inside, safe = _restrict(xp, probs, (probs > 0) & (probs < 1), 0.5)
    return xp.where(inside, num_obs * xp.log(safe) + total * xp.log1p(-safe), -xp.inf)


def _log_poisson(rates: Array, data: ArrayLike) -> Array:
    xp, rates = library_of(rates)
    num_obs, total = _count_and_sum(data)
    log_factorials = log_gamma_of(library_of(data)[1] + 1).sum(axis=-1)
    inside, safe = _restrict(xp, rates, rates > 0, 1.0)
    return xp.where(inside, total * xp.log(safe) - num_obs * safe - log_factorials, -xp.inf)


def _log_exponential(rates: Array, data: ArrayLike) -> Array:
    xp, rates = library_of(rates)
    num_obs, total = _count_and_sum(data)
    inside, safe = _restrict(xp, rates, rates > 0, 1.0)
    return xp.where(inside, num_obs * xp.log(safe) - safe * total, -xp.inf)


def _log_exponential_known_rate(params: None, data: ArrayLike, *, rate: float) -> Floats:
    del params
    num_obs, total = _count_and_sum(data)
    return num_obs * np.log(rate) - rate * total


def _restrict(xp: Any, params: Array, inside: Array, replacement: float) -> tuple[Array, Array]:
    """Return `inside`, and `params` with what lies outside replaced."""
    return inside, xp.where(inside, params, replacement)


def _count_and_sum(data: Array) -> tuple[int, Array]:
    _, values = library_of(data)
    return values.shape[-1], values.sum(axis=-1)


# Exact answers.


def exponential_log_bf(
    data: ArrayLike, *, gamma: tuple[float, float] = (2.0, 2.0), rate: float = 3.0
) -> NDArray[np.float64]:
    """Return the log Bayes factor of an exponential with unknown rate over one with rate `rate`, for each data set.

    `data` has shape (num_datasets, num_obs), and the result (num_datasets,). First model: y ~ Exp(lam), lam ~
    Gamma(shape, rate) = `gamma`. Second model: y ~ Exp(rate). With S the sum of the n waiting times, and (a, b) =
    `gamma`::

        a log b - log Gamma(a) + log Gamma(a + n) - (a + n) log(b + S) - n log(rate) + rate S

    Everything is in logarithms, so the answer stays finite where the Bayes factor itself would overflow. The defaults
    are Data 3 of *Deep Bayes Factors* (Kim and Rockova).

    Examples
    --------
    >>> exponential_log_bf([[0.0]]).round(4)  # the mean of lam, 1, over 3
    array([-1.0986])
    """
    a, b = _checks.check_positive_pair("gamma", gamma)
    rate = _checks.check_positive("rate", rate)
    times = _checks.check_datasets("data", data)
    if (times < 0).any():
        raise ValueError(f"data must be waiting times, 0 or more; received {times.min()}. Both models exclude it.")
    n = times.shape[1]
    S = times.sum(axis=1)
    log_unknown = a * np.log(b) - gammaln(a) + gammaln(a + n) - (a + n) * np.log(b + S)
    return log_unknown - (n * np.log(rate) - rate * S)


# Exact posterior draws of the conjugate models, which need only the total of the observations.


def total_given(observed: Floats, left_out: bool) -> tuple[Floats, int]:
    """Return the total of the observations that a posterior is given, shape (rows, 1), and how many they are.

    There is one row, given all observations; or, if `left_out`, one row for each observation, given all others.

    Examples
    --------
    >>> total_given(np.array([1.0, 2.0, 4.0]), left_out=True)
    (array([[6.], [5.], [3.]]), 2)
    """
    total = np.array([[observed.sum()]])
    return (total - observed[:, None], len(observed) - 1) if left_out else (total, len(observed))


def _draw_prob(
    rng: np.random.Generator, observed: Floats, num_draws: int, left_out: bool, *, shapes: tuple[float, float]
) -> Floats:
    """Draw a geometric's probability with a Beta(a, b) prior: Beta(a + n, b + total)."""
    total, num_obs = total_given(observed, left_out)
    return rng.beta(shapes[0] + num_obs, shapes[1] + total, (len(total), num_draws))


def _draw_poisson_rate(
    rng: np.random.Generator, observed: Floats, num_draws: int, left_out: bool, *, shape_and_rate: tuple[float, float]
) -> Floats:
    """Draw a Poisson rate with a Gamma(a, b) prior: Gamma(a + total, b + n)."""
    total, num_obs = total_given(observed, left_out)
    return rng.standard_gamma(shape_and_rate[0] + total, (len(total), num_draws)) / (shape_and_rate[1] + num_obs)


def _draw_exponential_rate(
    rng: np.random.Generator, observed: Floats, num_draws: int, left_out: bool, *, shape_and_rate: tuple[float, float]
) -> Floats:
    """Draw an exponential's rate with a Gamma(a, b) prior: Gamma(a + n, b + total)."""
    total, num_obs = total_given(observed, left_out)
    return rng.standard_gamma(shape_and_rate[0] + num_obs, (len(total), num_draws)) / (shape_and_rate[1] + total)
