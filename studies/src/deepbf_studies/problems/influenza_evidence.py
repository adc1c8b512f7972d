"""The evidence of an epidemic model at one outbreak, without a network: particles within importance sampling.

The likelihood of the numbers in bed is a sum over all courses that the epidemic may have taken unseen. A particle
filter (Gordon, Salmond and Smith, 1993) estimates it without bias, and an unbiased estimate is all that importance
sampling over the parameters needs (Andrieu and Roberts, 2009): the result is exact but for Monte Carlo error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, xlog1py, xlogy

from deepbf.models import Model
from deepbf_studies.problems.influenza import (
    PRIORS,
    Chances,
    Counts,
    Epidemic,
    Floats,
    School,
    epidemic_model,
    epidemic_of,
    param_names,
)

# Simulations that find the region of the parameters at all, and how many of the nearest place the first proposal.
NUM_SCREENED = 20_000
NUM_NEAREST = 200
# A proposal is Student's t, wider than the draws that place it: its tails must cover those of the posterior.
DEGREES_OF_FREEDOM = 6.0
WIDENING = 1.3
# Draws that must carry the weights which place the next proposal; weights are flattened until so many do.
FEWEST_EFFECTIVE = 50.0
# Particles held at once: more would leave the cache, and each step would take longer.
PARTICLES_AT_ONCE = 50_000

# Within a day particles are chosen every so many steps by how promising they look. The guess at how a day ends is as
# wide as the flows vary, times a factor, and a share of the flows for each step that is still to come.
STEPS_BETWEEN_LOOKS = 2
GUESSED_SPREAD = 1.2
GUESSED_DRIFT = 0.05


class Round(NamedTuple):
    """One round of importance sampling: draws of the parameters, and particles for each."""

    num_draws: int
    num_particles: int


class Evidence(NamedTuple):
    """A log evidence with its standard error, the effective number of draws, and the weighted draws themselves."""

    log_evidence: float
    error: float
    num_effective: float
    params: dict[str, Floats]
    weights: Floats


class Proposal(NamedTuple):
    """Student's t on the scale where the prior is standard normal."""

    centre: Floats
    root: Floats

    @classmethod
    def of(cls, draws: Floats, weights: Floats) -> Proposal:
        """Return the proposal with the moments of weighted draws, widened."""
        centre = weights @ draws
        away = draws - centre
        covariance = away.T @ (away * weights[:, None]) + 1e-4 * np.eye(draws.shape[1])
        return cls(centre, np.asarray(np.linalg.cholesky(WIDENING * covariance), np.float64))

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Return draws and their log densities."""
        num, nu = len(self.centre), DEGREES_OF_FREEDOM
        standard = rng.standard_normal((size, num)) / np.sqrt(rng.chisquare(nu, size) / nu)[:, None]
        log_constant = gammaln((nu + num) / 2) - gammaln(nu / 2) - 0.5 * num * np.log(nu * np.pi)
        log_constant -= np.log(np.diag(self.root)).sum()
        log_density = log_constant - 0.5 * (nu + num) * np.log1p((standard**2).sum(axis=1) / nu)
        return self.centre + standard @ self.root.T, log_density


def log_evidence(name: str, observed: Counts, rounds: Sequence[Round], *, seed: int, steps_a_day: int = 6) -> Evidence:
    """Return the log evidence of one influenza model at the numbers in bed; the last round's alone.

    Parameters
    ----------
    name
        The model, as `deepbf_studies.problems.influenza` calls it.
    observed
        Numbers in bed on each day.
    rounds
        Rounds before the last only place the next round's proposal.
    seed
        The same seed gives the same estimate.
    steps_a_day
        Steps of the chain.
    """
    rng = np.random.default_rng(seed)
    names, epidemic = param_names(name), epidemic_of(name, steps_a_day)
    proposal = _first_proposal(epidemic_model(name, num_obs=len(observed), steps_a_day=steps_a_day), observed, seed)
    found = None
    for one in rounds:
        draws, log_density = proposal.draw(rng, one.num_draws)
        params = {param: PRIORS[param].at(draws[:, place]) for place, param in enumerate(names)}
        log_prior = -0.5 * (draws**2).sum(axis=1) - 0.5 * len(names) * np.log(2 * np.pi)
        log_likelihood = filtered_log_likelihood(rng, epidemic, params, observed, one.num_particles)
        log_weights = log_likelihood + log_prior - log_density
        proposal = Proposal.of(draws, flattened(log_weights))
        found = _summed_up(log_weights, params)
    if found is None:
        raise ValueError("rounds must hold at least one round; received none.")
    return found


def _first_proposal(model: Model, observed: Counts, seed: int) -> Proposal:
    """Return a proposal at the parameters whose simulations come nearest to the observed numbers.

    Square roots of counts vary about as much at the peak as at the ends.
    """
    params, data = model.simulate(NUM_SCREENED, seed)
    assert isinstance(params, Mapping)
    assert isinstance(data, np.ndarray)
    distance = ((np.sqrt(data) - np.sqrt(observed)) ** 2).sum(axis=1)
    nearest = np.argsort(distance)[:NUM_NEAREST]
    draws = np.stack(
        [PRIORS[name].standard(np.asarray(values[nearest], np.float64)) for name, values in params.items()], axis=1
    )
    return Proposal.of(draws, np.full(NUM_NEAREST, 1 / NUM_NEAREST))


def flattened(log_weights: Floats) -> Floats:
    """Return weights that sum to 1, raised to a power below 1 where few draws would carry them all.

    The power falls until `FEWEST_EFFECTIVE` draws carry them, so that a proposal is never placed by one or two.
    """
    power = 1.0
    while True:
        weights = np.exp(power * (log_weights - log_weights.max()))
        weights /= weights.sum()
        if 1.0 / (weights**2).sum() >= FEWEST_EFFECTIVE or power < 0.02:
            return weights
        power *= 0.8


def _summed_up(log_weights: Floats, params: dict[str, Floats]) -> Evidence:
    """Return the mean weight in logarithms, with its error."""
    weights = np.exp(log_weights - log_weights.max())
    mean = weights.mean()
    return Evidence(
        log_evidence=float(logsumexp(log_weights) - np.log(len(weights))),
        error=float(weights.std(ddof=1) / mean / np.sqrt(len(weights))),
        num_effective=float(weights.sum() ** 2 / (weights**2).sum()),
        params=params,
        weights=weights / weights.sum(),
    )


def filtered_log_likelihood(
    rng: np.random.Generator,
    epidemic: Epidemic,
    params: Mapping[str, Floats],
    observed: Counts,
    num_particles: int,
) -> Floats:
    """Return estimated log likelihoods of the numbers in bed, for each draw of the parameters.

    -inf where no particle can have made the numbers. Unbiased before the logarithm, whatever `num_particles`.
    """
    num_draws = len(params["reproduction"])
    at_once = max(1, PARTICLES_AT_ONCE // num_particles)
    found = []
    for start in range(0, num_draws, at_once):
        block = {name: values[start : start + at_once, None] for name, values in params.items()}
        found.append(_filter_block(rng, epidemic, block, observed, num_particles))
    return np.concatenate(found)


def _filter_block(
    rng: np.random.Generator, epidemic: Epidemic, params: Mapping[str, Floats], observed: Counts, num_particles: int
) -> Floats:
    chances = epidemic.chances(params)
    shape = (len(params["reproduction"]), num_particles)
    school = epidemic.start(rng, params, shape)
    log_likelihood = np.zeros(shape[0])
    for number in observed:
        contacts = np.broadcast_to(epidemic.contacts_of_a_day(rng, chances, school), shape)
        log_promise = np.zeros(shape)
        for remaining in range(epidemic.steps_a_day, 1, -1):
            if remaining % STEPS_BETWEEN_LOOKS == 0:
                promise = _promise_of(school, chances, number, remaining)
                log_mean, chosen = _resampled(rng, promise - log_promise)
                log_likelihood += log_mean
                school, contacts, log_promise = (
                    _chosen_of(school, chosen),
                    _take(contacts, chosen),
                    _take(promise, chosen),
                )
            school = epidemic.step(rng, school, chances, contacts)
        school, log_weights = _last_step_of_day(rng, epidemic, school, chances, contacts, number)
        log_mean, chosen = _resampled(rng, log_weights - log_promise)
        log_likelihood += log_mean
        school = _chosen_of(school, chosen)
    return log_likelihood


def _promise_of(school: School, chances: Chances, number: int, remaining: int) -> Floats:
    """Return how probable it looks, in logs, that a day ends with `number` in bed, so many steps before its end.

    A guess that is divided out later: a bad one costs precision, not truth. Flows in and out of bed go on as they are.
    """
    coming = remaining * school.infectious * chances.to_bed
    going = remaining * school.in_bed[-1] * chances.next_bed_stage
    variance = GUESSED_SPREAD**2 * (coming + going + 1.0) + (GUESSED_DRIFT * remaining * (coming + going)) ** 2
    away = number - school.num_in_bed - coming + going
    return -0.5 * away**2 / variance - 0.5 * np.log(variance)


def _last_step_of_day(
    rng: np.random.Generator, epidemic: Epidemic, school: School, chances: Chances, contacts: Floats, number: int
) -> tuple[School, Floats]:
    """Return the school after a step that ends with exactly `number` in bed, and the log chance of that.

    Drawing the whole step would end with that number in few particles. So one of two moves, taking to bed or getting
    up, is drawn, and the other made to fit: its chance is known. The one that varies more is made to fit.
    """
    moving = epidemic.moving_in_bed(rng, school, chances)
    to_bed = rng.binomial(school.infectious, chances.to_bed)
    last_stage = school.in_bed[-1]
    fits_up = school.num_in_bed + to_bed - number
    fits_to_bed = number - school.num_in_bed + moving[-1]
    fit_up = last_stage * _variance(chances.next_bed_stage) > school.infectious * _variance(chances.to_bed)
    log_weights = np.where(
        fit_up,
        _log_binomial(fits_up, last_stage, chances.next_bed_stage),
        _log_binomial(fits_to_bed, school.infectious, chances.to_bed),
    )
    # Impossible moves have weight 0; they are cut to possible ones so that nothing after them fails.
    moving[-1] = np.where(fit_up, np.clip(fits_up, 0, last_stage), moving[-1])
    to_bed = np.where(fit_up, to_bed, np.clip(fits_to_bed, 0, school.infectious))
    return epidemic.after(rng, school, chances, contacts, moving, to_bed), log_weights


def _variance(prob: Floats) -> Floats:
    return prob * (1.0 - prob)


def _log_binomial(counts: Counts, totals: Counts, probs: Floats) -> Floats:
    """Return log probabilities of counts out of totals; -inf for those that cannot be."""
    possible = (counts >= 0) & (counts <= totals)
    inside = np.where(possible, counts, 0)
    log_ways = gammaln(totals + 1) - gammaln(inside + 1) - gammaln(totals - inside + 1)
    return np.where(possible, log_ways + xlogy(inside, probs) + xlog1py(totals - inside, -probs), -np.inf)


def _resampled(rng: np.random.Generator, log_weights: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the log of the mean weight for each draw of the parameters, and particles drawn by their weights.

    Systematic within each draw; places are those of the flat array.
    """
    num_draws, num_particles = log_weights.shape
    highest = log_weights.max(axis=1, keepdims=True)
    # Where no particle can be right the likelihood is 0 from here on, and any of them may go on.
    alive = np.isfinite(highest)
    weights = np.where(alive, np.exp(log_weights - np.where(alive, highest, 0.0)), 1.0)
    shares = np.cumsum(weights, axis=1)
    log_mean = np.where(alive, highest + np.log(shares[:, -1:] / num_particles), -np.inf)[:, 0]
    # One search for all rows: each row's shares lie in an interval of its own.
    rows = np.arange(num_draws)[:, None]
    points = (np.arange(num_particles) + rng.uniform(size=(num_draws, 1))) / num_particles
    places = np.searchsorted((shares / shares[:, -1:] + rows).ravel(), (points + rows).ravel())
    first = num_particles * rows
    return log_mean, np.clip(places.reshape(num_draws, -1), first, first + num_particles - 1)


def _take(values: NDArray[Any], chosen: NDArray[np.intp]) -> NDArray[Any]:
    """Return the values of the chosen particles."""
    return values.ravel()[chosen]


def _chosen_of(school: School, chosen: NDArray[np.intp]) -> School:
    """Return the chosen particles."""
    susceptible, latent, infectious = (_take(counts, chosen) for counts in school[:3])
    return School(susceptible, latent, infectious, tuple(_take(stage, chosen) for stage in school.in_bed))
