"""The studies whose Bayes factor is known exactly: Data 1, 2 and 3 of *Deep Bayes Factors* (Kim and Rockova)."""

from __future__ import annotations

from functools import partial

from deepbf.criticism import ExactPosterior
from deepbf.example import negbin_poisson_log_bf
from deepbf.models import Model
from deepbf_studies.problems import toy_densities as density
from deepbf_studies.problems import toy_simulators as simulate
from deepbf_studies.problems.exact import conjugate as posterior
from deepbf_studies.problems.exact import mixture
from deepbf_studies.problems.exact.closed_forms import exponential_log_bf
from deepbf_studies.problems.exact.mixture import normal_mixture_log_bf
from deepbf_studies.problems.exact.mixture_posterior import draw_mixture_means
from deepbf_studies.problems.study import Study

_WAITING_GAMMA = (2.0, 2.0)
_WAITING_RATE = 3.0


def counts_study(
    name: str, num_obs: int, *, label: str, beta: tuple[float, float], gamma: tuple[float, float]
) -> Study:
    """Return Data 1: counts, negative binomial of size 1 with a Beta prior, or Poisson with a Gamma prior."""
    negative_binomial = Model(
        "negative binomial",
        prior=partial(simulate.beta_prior, shapes=beta),
        simulator=simulate.OfSize(simulate.negative_binomial, num_obs),
        log_prior=partial(density.log_beta, shapes=beta),
        log_likelihood=density.log_negative_binomial,
        transform="unit",
    )
    poisson = Model(
        "Poisson",
        prior=partial(simulate.gamma_prior, shape_and_rate=gamma),
        simulator=simulate.OfSize(simulate.poisson, num_obs),
        log_prior=partial(density.log_gamma, shape_and_rate=gamma),
        log_likelihood=density.log_poisson,
        transform="positive",
    )
    return Study(
        name=name,
        title=f"{label}: negative binomial or Poisson counts, priors Beta{_written(beta)} and Gamma{_written(gamma)}",
        num_obs=num_obs,
        models=(negative_binomial, poisson),
        structure="exchangeable",
        exact_log_bf=partial(negbin_poisson_log_bf, beta=beta, gamma=gamma),
        exact_posteriors=(
            ExactPosterior(negative_binomial, posterior.beta_geometric(beta)),
            ExactPosterior(poisson, posterior.gamma_poisson(gamma)),
        ),
    )


def mixture_study(name: str, num_obs: int) -> Study:
    """Return Data 2: measurements, an equal mixture of two normals or one wider normal.

    The mixture's parameters are an array of shape (size, 2): the mean that the prior puts at 2, then the one at -2.
    """
    prior_means = (mixture.PRIOR_MEAN, -mixture.PRIOR_MEAN)
    two_normals = Model(
        "normal mixture",
        prior=partial(simulate.normal_prior, means=prior_means, scale=mixture.PRIOR_SCALE),
        simulator=simulate.OfSize(partial(simulate.normal_mixture, scale=mixture.COMPONENT_SCALE), num_obs),
        log_prior=partial(density.log_normal_pair, means=prior_means, scale=mixture.PRIOR_SCALE),
        log_likelihood=partial(density.log_normal_mixture, scale=mixture.COMPONENT_SCALE),
    )
    one_normal = Model(
        "normal",
        prior=partial(simulate.normal_prior, means=0.0, scale=mixture.NORMAL_PRIOR_SCALE),
        simulator=simulate.OfSize(partial(simulate.normal, scale=mixture.NORMAL_SCALE), num_obs),
        log_prior=partial(density.log_normal, mean=0.0, scale=mixture.NORMAL_PRIOR_SCALE),
        log_likelihood=partial(density.log_normal_sample, scale=mixture.NORMAL_SCALE),
    )
    return Study(
        name=name,
        title="Data 2: an equal mixture of two normals or one normal",
        num_obs=num_obs,
        models=(two_normals, one_normal),
        structure="exchangeable",
        exact_log_bf=normal_mixture_log_bf,
        exact_posteriors=(
            ExactPosterior(two_normals, draw_mixture_means),
            ExactPosterior(one_normal, posterior.normal_mean(mixture.NORMAL_PRIOR_SCALE, mixture.NORMAL_SCALE)),
        ),
    )


def waiting_times_study(name: str, num_obs: int) -> Study:
    """Return Data 3: waiting times, exponential with an unknown rate or with rate 3.

    The second model has no parameters: its simulator takes a size, and its log likelihood None for the parameters.
    """
    unknown_rate = Model(
        "exponential, unknown rate",
        prior=partial(simulate.gamma_prior, shape_and_rate=_WAITING_GAMMA),
        simulator=simulate.OfSize(simulate.exponential, num_obs),
        log_prior=partial(density.log_gamma, shape_and_rate=_WAITING_GAMMA),
        log_likelihood=density.log_exponential,
        transform="positive",
    )
    known_rate = Model(
        "exponential, rate 3",
        simulator=simulate.OfSize(partial(simulate.exponential_known_rate, rate=_WAITING_RATE), num_obs),
        log_likelihood=partial(density.log_exponential_known_rate, rate=_WAITING_RATE),
    )
    return Study(
        name=name,
        title="Data 3: exponential waiting times, rate unknown with prior Gamma(2, 2) or rate 3",
        num_obs=num_obs,
        models=(unknown_rate, known_rate),
        structure="exchangeable",
        exact_log_bf=partial(exponential_log_bf, gamma=_WAITING_GAMMA, rate=_WAITING_RATE),
        exact_posteriors=(
            ExactPosterior(unknown_rate, posterior.gamma_exponential(_WAITING_GAMMA)),
            ExactPosterior(known_rate, None),
        ),
    )


def _written(pair: tuple[float, float]) -> str:
    return f"({pair[0]:g}, {pair[1]:g})"
