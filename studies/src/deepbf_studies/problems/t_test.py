"""The t-test with a Cauchy prior for the effect size: whether the mean of a few normal values is 0.

First model: y_i ~ N(mu, sigma^2) with effect size delta = mu / sigma ~ Cauchy(0, r). Second model: delta = 0. Under
both, log sigma ~ N(0, 1): a proper prior, so that the models can be simulated. The Cauchy prior of scale r = 0.707 is
that of Rouder, Speckman, Sun, Morey and Iverson (2009), *Psychonomic Bulletin and Review* 16, 225-237.

Given sigma, the mean of the n values divided by sigma is a normal about delta, so that delta integrates to a Voigt
profile V, the convolution of N(0, 1 / n) and Cauchy(0, r). With ybar the mean and S the sum of squares about it::

    p(y | sigma, M1) = (2 pi sigma^2)^(-n/2) exp(-S / (2 sigma^2)) sqrt(2 pi / n) V(ybar / sigma)
    p(y | sigma, M2) = (2 pi sigma^2)^(-n/2) exp(-(S + n ybar^2) / (2 sigma^2))

The remaining integral over log sigma is by the trapezoidal rule.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import voigt_profile

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.quadrature import even_nodes, log_integrals
from deepbf_studies.problems.study import OfSize, Study

Floats = NDArray[np.float64]

NUM_OBS = 10
EFFECT_SCALE = 0.707
# Log sigma is standard normal, but the Cauchy makes values of any size, and then both models ask for a large sigma.
LARGEST_LOG_SIGMA = 24.0


def t_test_study(name: str, num_obs: int) -> Study:
    """Return normal values of unknown scale: effect size Cauchy(0, 0.707), or no effect.

    Values have shape (data sets, num_obs). They have heavy tails under the first model, whose mean may be far out.
    """
    effect = Model("effect", prior=partial(_effect_prior, scale=EFFECT_SCALE), simulator=OfSize(_values, num_obs))
    no_effect = Model("no effect", prior=_no_effect_prior, simulator=OfSize(_values, num_obs))
    return Study(
        name=name,
        title=f"The t-test: {num_obs} normal values, effect size Cauchy(0, {EFFECT_SCALE}) or 0",
        num_obs=num_obs,
        models=(effect, no_effect),
        structure="exchangeable",
        exact_log_bf=partial(t_test_log_bf, effect_scale=EFFECT_SCALE),
    )


def _effect_prior(rng: np.random.Generator, size: int, *, scale: float) -> dict[str, Floats]:
    """Return effect sizes, Cauchy, and standard deviations, whose logarithm is standard normal."""
    return {"effect": scale * rng.standard_cauchy(size), "sigma": np.exp(rng.standard_normal(size))}


def _no_effect_prior(rng: np.random.Generator, size: int) -> dict[str, Floats]:
    """Return effect sizes of 0, and standard deviations, whose logarithm is standard normal."""
    return {"effect": np.zeros(size), "sigma": np.exp(rng.standard_normal(size))}


def _values(rng: np.random.Generator, params: dict[str, Floats], *, num_obs: int) -> Floats:
    """Return normal values of this effect size and standard deviation."""
    noise = rng.standard_normal((len(params["sigma"]), num_obs))
    return params["sigma"][:, None] * (params["effect"][:, None] + noise)


def t_test_log_bf(data: ArrayLike, *, effect_scale: float = EFFECT_SCALE) -> Floats:
    """Return the log Bayes factor of an effect over no effect, for each data set.

    `data` has shape (data sets, observations), and the result (data sets,). The effect size mu / sigma is Cauchy(0,
    `effect_scale`) under the first model and 0 under the second; log sigma is N(0, 1) under both.

    Examples
    --------
    >>> t_test_log_bf([[1.2, 0.8, 1.1, 0.9], [1.2, -0.8, -1.1, 0.9]]).round(3)
    array([ 2.466, -0.846])
    """
    effect_scale = _checks.check_positive("effect_scale", effect_scale)
    values = _checks.check_datasets("data", data)
    num_obs = values.shape[1]
    mean = values.mean(axis=1, keepdims=True)
    squares = ((values - mean) ** 2).sum(axis=1, keepdims=True)
    # The likelihood is about 1 / sqrt(2 n) wide in log sigma, the prior 1.
    log_sigma, log_step = even_nodes(-LARGEST_LOG_SIGMA, LARGEST_LOG_SIGMA, step=0.5 / np.sqrt(2 * num_obs + 1))
    sigma = np.exp(log_sigma)
    log_weights = log_step - 0.5 * np.log(2 * np.pi) - 0.5 * log_sigma**2 - num_obs * log_sigma

    def log_effect(rows: slice) -> Floats:
        profile = voigt_profile(mean[rows] / sigma, 1 / np.sqrt(num_obs), effect_scale)
        return np.log(profile) - 0.5 * squares[rows] / sigma**2

    def log_no_effect(rows: slice) -> Floats:
        return -0.5 * (squares + num_obs * mean**2)[rows] / sigma**2

    log_first = log_integrals(log_effect, log_weights, len(values)) + 0.5 * np.log(2 * np.pi / num_obs)
    return log_first - log_integrals(log_no_effect, log_weights, len(values))
