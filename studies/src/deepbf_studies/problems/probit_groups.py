"""Binary responses in groups, with group effects or without: a probit regression on a fixed design.

Responses of group j are 1 with probability Phi(a + b x + u_j), where a ~ N(0, 0.8^2), b ~ N(0, 0.8^2) and u_j ~ N(0,
tau^2). First model: tau is half-normal with scale 1.5. Second model: tau = 0.

Given (a, b, tau), groups are independent, and a group of five has one of 32 outcomes. Groups come in three kinds, by
their covariates, so that 96 log probabilities, with the group effect integrated out, say all about a node (a, b, tau);
the log likelihood of a data set is the number of its groups of each kind and outcome, times these. All integrals
are by the trapezoidal rule.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from deepbf.models import Model
from deepbf_studies.problems.quadrature import even_nodes, log_integrals
from deepbf_studies.problems.study import OfSize, Study, check_binary

Floats = NDArray[np.float64]

GROUP_SIZE = 5
NUM_RESPONSES = 60
# Covariates within each group, to which one of the shifts is added, in turns: groups come in three kinds.
WITHIN = (-1.0, -0.5, 0.0, 0.5, 1.0)
SHIFTS = (-0.6, 0.0, 0.6)
COEFFICIENT_SCALE = 0.8
EFFECT_SCALE = 1.5

# How far the integrals over a, b and tau go, in standard deviations of their priors.
LARGEST_IN_SCALES = 5.5
# Steps of tau half as wide, or shorter steps of a and b, change no log evidence by 1e-4:
# studies/tests/problems/test_probit_groups.py measures it.
NUM_TAUS = 14
STEP_IN_WIDTHS = 1.25
# Group effects in units of tau. Steps are this many times shorter than the highest frequency of the integrand.
LARGEST_EFFECT = 6.5
EFFECT_RESOLUTION = 5.5
# Matrix products of a few rows would spend their time on reading the table of log probabilities.
VALUES_PER_BLOCK = 2**21


def probit_groups_study(name: str, num_obs: int) -> Study:
    """Return binary responses in groups of five on a fixed design: with group effects, or without.

    Responses have shape (data sets, num_obs), group by group; `num_obs` is a multiple of 5. `covariates` has the
    columns "x" and "group".
    """
    covariates = design(num_obs)
    group_effects = Model("group effects", prior=_group_effects_prior, simulator=OfSize(_responses, num_obs))
    no_effects = Model("no group effects", prior=_no_effects_prior, simulator=OfSize(_responses, num_obs))
    return Study(
        name=name,
        title=f"Probit regression with group effects or without: {num_obs} binary responses in groups of {GROUP_SIZE}",
        num_obs=num_obs,
        models=(group_effects, no_effects),
        structure="vector",
        exact_log_bf=probit_groups_log_bf,
        covariates=covariates,
    )


def design(num_obs: int) -> dict[str, NDArray]:
    """Return the fixed design: the covariate "x" and the number of the "group", each of shape (num_obs,).

    Examples
    --------
    >>> columns = design(10)
    >>> columns["x"].round(1)
    array([-1.6, -1.1, -0.6, -0.1,  0.4, -1. , -0.5,  0. ,  0.5,  1. ])
    >>> columns["group"]
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    if num_obs < 1 or num_obs % GROUP_SIZE:
        raise ValueError(
            f"num_obs must be a multiple of {GROUP_SIZE}, the size of each group; received {num_obs}. "
            f"Pass {GROUP_SIZE * max(1, round(num_obs / GROUP_SIZE))}."
        )
    group = np.arange(num_obs) // GROUP_SIZE
    x = np.tile(WITHIN, num_obs // GROUP_SIZE) + np.array(SHIFTS)[group % len(SHIFTS)]
    return {"x": x, "group": group}


def _group_effects_prior(rng: np.random.Generator, size: int) -> dict[str, Floats]:
    """Return intercepts and slopes, normal, and standard deviations of group effects, half-normal."""
    return {**_no_effects_prior(rng, size), "tau": EFFECT_SCALE * np.abs(rng.standard_normal(size))}


def _no_effects_prior(rng: np.random.Generator, size: int) -> dict[str, Floats]:
    """Return intercepts and slopes, normal, and standard deviations of group effects of 0."""
    coefficients = COEFFICIENT_SCALE * rng.standard_normal((2, size))
    return {"intercept": coefficients[0], "slope": coefficients[1], "tau": np.zeros(size)}


def _responses(rng: np.random.Generator, params: dict[str, Floats], *, num_obs: int) -> NDArray[np.int64]:
    """Return binary responses: whether normals about the linear predictor are above 0."""
    columns = design(num_obs)
    size = len(params["tau"])
    latent = rng.standard_normal((size, num_obs))
    latent += params["intercept"][:, None] + params["slope"][:, None] * columns["x"]
    effects = params["tau"][:, None] * rng.standard_normal((size, num_obs // GROUP_SIZE))
    latent += np.repeat(effects, GROUP_SIZE, axis=1)
    return (latent > 0).astype(np.int64)


# The exact answer.


class _Nodes(NamedTuple):
    """Log weights, shape (nodes,), and log probabilities of kinds and outcomes, shape (kinds * outcomes, nodes)."""

    log_weights: Floats
    log_probs: Floats


def probit_groups_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of group effects over none, for each data set of binary responses.

    `data` has shape (data sets, responses), in the order of `design`, and the result (data sets,).

    Examples
    --------
    >>> probit_groups_log_bf([[0, 0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]]).round(3)
    array([ 4.259, -0.671])
    """
    responses = check_binary("data", data)
    num_obs = responses.shape[1]
    counts = _counts_of_outcomes(responses, design(num_obs)["group"])
    first, second = (_log_evidence(counts, _nodes(num_obs, group_effects)) for group_effects in (True, False))
    return first - second


def _log_evidence(counts: Floats, nodes: _Nodes) -> Floats:
    """Return log evidences from how many groups of each kind have each outcome."""
    return log_integrals(
        lambda rows: counts[rows] @ nodes.log_probs, nodes.log_weights, len(counts), values_per_block=VALUES_PER_BLOCK
    )


def _counts_of_outcomes(responses: Floats, group: NDArray) -> Floats:
    """Return how many groups of each kind have each outcome, shape (data sets, kinds * outcomes)."""
    num_outcomes = 2**GROUP_SIZE
    outcome = responses.reshape(len(responses), len(group) // GROUP_SIZE, GROUP_SIZE) @ 2.0 ** np.arange(GROUP_SIZE)
    kind = group[::GROUP_SIZE] % len(SHIFTS)
    counts = np.zeros((len(responses), len(SHIFTS) * num_outcomes))
    rows = np.arange(len(responses))[:, None]
    np.add.at(counts, (rows, (kind * num_outcomes + outcome).astype(np.int64)), 1.0)
    return counts


@cache
def _nodes(
    num_obs: int, group_effects: bool, num_taus: int = NUM_TAUS, step_in_widths: float = STEP_IN_WIDTHS
) -> _Nodes:
    """Return nodes of (a, b) and, with group effects, of tau."""
    largest = LARGEST_IN_SCALES * COEFFICIENT_SCALE
    # A response tells most where its probability is 1/2: 2 / pi. So no posterior is narrower than this in a or b.
    narrowest = 1 / np.sqrt(1 / COEFFICIENT_SCALE**2 + num_obs * 2 / np.pi)
    coefficients, log_step = even_nodes(-largest, largest, step=step_in_widths * narrowest)
    a, b = (part.ravel() for part in np.meshgrid(coefficients, coefficients))
    inside = a**2 + b**2 < largest**2 + 1e-9
    a, b = a[inside], b[inside]
    log_constant = 2 * (log_step - 0.5 * np.log(2 * np.pi) - np.log(COEFFICIENT_SCALE))
    log_weights = log_constant - 0.5 * (a**2 + b**2) / COEFFICIENT_SCALE**2
    if not group_effects:
        return _Nodes(log_weights, _log_probs_of_outcomes(a, b, 0.0))
    # The likelihood is an even function of tau, so that half the trapezoidal rule on the whole line will do; in the
    # arcsine of the hyperbola, steps are shorter where the likelihood is narrower.
    places = np.linspace(0.0, np.arcsinh(LARGEST_IN_SCALES * EFFECT_SCALE), num_taus)
    weights = np.full(num_taus, places[1]) * np.cosh(places)
    weights[0] /= 2
    taus = np.sinh(places)
    prior = np.sqrt(2 / np.pi) / EFFECT_SCALE * np.exp(-0.5 * (taus / EFFECT_SCALE) ** 2)
    return _Nodes(
        np.concatenate([log_weights + np.log(weight) for weight in weights * prior]),
        np.concatenate([_log_probs_of_outcomes(a, b, tau) for tau in taus], axis=1),
    )


def _log_probs_of_outcomes(a: Floats, b: Floats, tau: float) -> Floats:
    """Return log probabilities of each kind and outcome of a group, shape (kinds * outcomes, nodes)."""
    # A product of five normal distribution functions, turning at one place, is about a normal of this precision.
    frequency = np.sqrt(1 + GROUP_SIZE * 2 / np.pi * tau**2)
    effects, _ = even_nodes(-LARGEST_EFFECT, LARGEST_EFFECT, step=2 * np.pi / (EFFECT_RESOLUTION * frequency))
    weights = np.exp(-0.5 * effects**2)
    if tau == 0:
        effects, weights = np.zeros(1), np.ones(1)
    parts = []
    for shift in SHIFTS:
        probs = np.ones((1, len(a), len(effects)))
        # Outcome 2^0 y_0 + 2^1 y_1 + ...: each response doubles the table, its zeros first.
        for x in np.add(WITHIN, shift):
            predictor = (a + b * x)[:, None] + tau * effects
            probs = np.concatenate([probs * ndtr(-predictor), probs * ndtr(predictor)])
        parts.append(np.log(probs @ (weights / weights.sum())))
    return np.concatenate(parts)
