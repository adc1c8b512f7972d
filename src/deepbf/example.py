"""The built-in example: 128 counts, negative binomial or Poisson (Data 1 (i) of the paper), with its exact answer.

The demo and the examples of the documentation run on it. Many more problems with known answers are in the package
`deepbf-studies`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln

from deepbf import _checks
from deepbf.models.model import Model

Floats = NDArray[np.float64]

NUM_OBS = 128
# The priors of Data 1 (i): the two shapes of a Beta, and the shape and the rate of a Gamma.
BETA = (2.0, 2.0)
GAMMA = (4.0, 4.0)
# The file holds counts drawn from the negative binomial model; they are simulated, not real data.
OBSERVED_FILE = "data-1-i-observed.csv"


class Example(NamedTuple):
    """Two models of counts, what `deepbf.fit` should assume about their data, and the exact log Bayes factor."""

    title: str
    models: tuple[Model, Model]
    structure: str
    exact_log_bf: Callable[[ArrayLike], Floats]


def counts_example(num_obs: int = NUM_OBS) -> Example:
    """Return the built-in comparison, of data sets of `num_obs` counts.

    The first model draws a probability p ~ Beta(2, 2), then counts of failures before the first success. The second
    draws a rate ~ Gamma(4, rate 4), then Poisson counts. Both simulators also take the number of counts as a third
    argument, so that the example serves `fit(num_obs=(low, high))`; and both have densities, for the baselines that
    need a likelihood. Everything pickles.

    Examples
    --------
    >>> example = counts_example(num_obs=4)
    >>> [model.name for model in example.models]
    ['negative binomial', 'Poisson']
    >>> example.exact_log_bf(example.models[0].simulate(5, seed=1).data).shape
    (5,)
    """
    number = _checks.check_count("num_obs", num_obs)
    negative_binomial = Model(
        "negative binomial",
        prior=_draw_prob,
        simulator=partial(_draw_failures, default_num_obs=number),
        log_prior=_log_prior_of_prob,
        log_likelihood=_log_likelihood_of_prob,
        transform="unit",
    )
    poisson = Model(
        "Poisson",
        prior=_draw_rate,
        simulator=partial(_draw_poisson, default_num_obs=number),
        log_prior=_log_prior_of_rate,
        log_likelihood=_log_likelihood_of_rate,
        transform="positive",
    )
    return Example(
        title="Data 1 (i): negative binomial or Poisson counts, priors Beta(2, 2) and Gamma(4, 4)",
        models=(negative_binomial, poisson),
        structure="exchangeable",
        exact_log_bf=partial(negbin_poisson_log_bf, beta=BETA, gamma=GAMMA),
    )


def observed_counts() -> Floats:
    """Return the observed counts that the demo compares the models by, shape (128,).

    They were simulated from the negative binomial model. The exact log Bayes factor at them is
    ``counts_example().exact_log_bf(observed_counts()[None])[0]``.
    """
    file = resources.files("deepbf") / "data" / OBSERVED_FILE
    return np.loadtxt(file.read_text().splitlines(), skiprows=1)


def negbin_poisson_log_bf(data: ArrayLike, *, beta: tuple[float, float], gamma: tuple[float, float]) -> Floats:
    """Return the log Bayes factor of the negative binomial over the Poisson, one entry per data set.

    `data` has shape (num_datasets, num_obs). First model: y given p is the number of failures before a success
    (negative binomial of size 1), p ~ Beta(*beta). Second model: y given rate is Poisson, rate ~ Gamma(shape, rate) =
    `gamma`. With S the sum of the n counts::

        log B(a1 + n, b1 + S) - log B(a1, b1)
        - [a2 log b2 - log Gamma(a2) + log Gamma(a2 + S) - (a2 + S) log(b2 + n) - sum log y!]

    This is Data 1 of *Deep Bayes Factors* (Kim and Rockova); its printed formula has Gamma(n + b2) where n + b2 is
    meant. The terms are of size S log S and cancel, so the absolute rounding error is about 1e-15 of that.

    Examples
    --------
    >>> negbin_poisson_log_bf([[0, 0]], beta=(2, 2), gamma=(4, 4)).round(4)
    array([0.4179])
    """
    (a1, b1), (a2, b2) = _checks.check_positive_pair("beta", beta), _checks.check_positive_pair("gamma", gamma)
    counts = _checks.check_datasets("data", data)
    if (counts < 0).any():
        raise ValueError(f"data must be counts, 0 or more; received {counts.min()}. Both models exclude it.")
    fractional = counts != np.floor(counts)
    if fractional.any():
        raise ValueError(
            f"data must be whole counts; received {counts[fractional][0]}. Both models give fractions probability 0."
        )
    n = counts.shape[1]
    S = counts.sum(axis=1)
    log_negbin = betaln(a1 + n, b1 + S) - betaln(a1, b1)
    log_poisson = (
        a2 * np.log(b2) - gammaln(a2) + gammaln(a2 + S) - (a2 + S) * np.log(b2 + n) - gammaln(counts + 1).sum(axis=1)
    )
    return log_negbin - log_poisson


def _draw_prob(rng: np.random.Generator, size: int) -> Floats:
    return rng.beta(*BETA, size)


def _draw_rate(rng: np.random.Generator, size: int) -> Floats:
    shape, rate = GAMMA
    return rng.gamma(shape, 1 / rate, size)


def _draw_failures(
    rng: np.random.Generator, probs: Floats, num_obs: int | None = None, *, default_num_obs: int
) -> NDArray[np.int64]:
    return rng.geometric(probs[:, None], (len(probs), num_obs or default_num_obs)) - 1


def _draw_poisson(
    rng: np.random.Generator, rates: Floats, num_obs: int | None = None, *, default_num_obs: int
) -> NDArray[np.int64]:
    return rng.poisson(rates[:, None], (len(rates), num_obs or default_num_obs))


# Densities are written for NumPy and for JAX arrays alike: bridge sampling differentiates them.


def _log_prior_of_prob(probs: Any) -> Any:
    xp = probs.__array_namespace__()
    return (BETA[0] - 1) * xp.log(probs) + (BETA[1] - 1) * xp.log1p(-probs) - betaln(*BETA)


def _log_likelihood_of_prob(probs: Any, data: Any) -> Any:
    xp = probs.__array_namespace__()
    return data.shape[-1] * xp.log(probs) + data.sum(axis=-1) * xp.log1p(-probs)


def _log_prior_of_rate(rates: Any) -> Any:
    xp = rates.__array_namespace__()
    shape, rate = GAMMA
    return shape * np.log(rate) - gammaln(shape) + (shape - 1) * xp.log(rates) - rate * rates


def _log_likelihood_of_rate(rates: Any, data: Any) -> Any:
    xp = rates.__array_namespace__()
    log_gamma = gammaln
    if not isinstance(data, np.ndarray):
        from jax.scipy.special import gammaln as log_gamma
    return data.sum(axis=-1) * xp.log(rates) - data.shape[-1] * rates - log_gamma(data + 1.0).sum(axis=-1)
