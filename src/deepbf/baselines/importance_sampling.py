"""Importance sampling of the evidence with a mixture of the prior and independent Betas.

This is how TreeBUGS computes the evidence of processing trees (Heck, Arnold and Arnold, 2018), without its Markov
chains: the Betas match the posterior's means and variances, which come from rounds of tempered importance sampling.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root_scalar
from scipy.special import betaln

from deepbf import _checks
from deepbf.baselines import log_joint as joint
from deepbf.baselines.log_joint import LogJoint, Points, Values
from deepbf.baselines.observed import check_observed
from deepbf.baselines.result import BaselineResult
from deepbf.models import Model, ModelSet
from deepbf.models.transform import Unconstrained

LEAST_DRAWS = 100
# Below this effective sample size the delta-method error itself is not to be trusted.
LEAST_EFFECTIVE_SAMPLE_SIZE = 100.0
# One draw that carries this share of the evidence decides it alone.
MOST_WEIGHT_SHARE = 0.1

# Draws a round of adaptation; means and variances good to some per cent are all that the rounds pass on.
_ADAPT_DRAWS = 2000
# Each round raises the temperature until this share of its draws is effective.
_ADAPT_SHARE = 0.2
_MOST_ROUNDS = 60
# Rounds at full temperature stop when the effective share gains less than this.
_SETTLED = 0.05
_MOST_FINAL_ROUNDS = 6
# While it is still on its way, a proposal wider than what it has seen: the next target lies at its edge.
_INFLATION = 1.5
# Draws rounded to 0 or 1 would fall on the edge of the support.
_LEAST, _MOST = 1e-300, 1 - 2.0**-53
# The first round's trial count of the prior, to learn whether parameters are probabilities.
_CHECKED_DRAWS = 1000


@dataclass(frozen=True)
class _Proposal:
    """prior_share times the prior plus the rest times a product of Beta(a, b), one pair a parameter."""

    model: Model
    layout: Unconstrained
    prior_share: float
    a: Values
    b: Values

    def draw(self, rng: np.random.Generator, size: int) -> Points:
        """Return `size` draws as rows, a fixed number of them from the prior, which is less noisy than a random one."""
        num_prior = self.num_prior(size)
        from_prior = joint.draw_params(self.model, self.layout, rng, num_prior)
        from_betas = rng.beta(self.a, self.b, (size - num_prior, len(self.a)))
        return np.clip(np.concatenate([from_prior, from_betas]), _LEAST, _MOST)

    def log_density(self, points: Points, log_prior: Values) -> Values:
        """Return the log density of the mixture at all its draws, where the prior has log density `log_prior`."""
        share = self.num_prior(len(points)) / len(points)
        log_betas = (self.a - 1) * np.log(points) + (self.b - 1) * np.log1p(-points) - betaln(self.a, self.b)
        return np.logaddexp(np.log(share) + log_prior, np.log1p(-share) + log_betas.sum(axis=1))

    def num_prior(self, size: int) -> int:
        """Return how many of `size` draws come from the prior; they are the first."""
        return min(max(1, round(self.prior_share * size)), size - 1)


class _Estimate(NamedTuple):
    """What one data set and one model give."""

    log_evidence: float
    error: float
    effective_sample_size: float
    largest_weight_share: float
    num_outside: int
    num_rounds: int


_NO_WEIGHT = (-np.inf, np.inf, 0.0, 1.0)


def importance(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    num_draws: int = 10_000,
    prior_share: float = 0.1,
    seed: int = 0,
) -> BaselineResult:
    """Return log evidences by importance sampling, for models whose parameters lie in [0, 1].

    The proposal is `prior_share` times the prior plus the rest times a product of Beta distributions with the
    posterior's means and variances. These come from rounds of importance sampling that move from the prior to the
    posterior by raising the likelihood to powers up to 1; fresh draws then give the estimate, so that it is unbiased
    for the evidence.

    Parameters
    ----------
    models
        Models with `log_prior` and `log_likelihood`, all parameters in [0, 1]. A model without parameters needs its
        `log_likelihood` alone, which is its evidence.
    observed
        One data set, or many along a leading axis.
    num_draws
        Draws for each estimate, at least 100; the adaptation takes some thousand more.
    prior_share
        Share of draws from the prior, between 0 and 1: they bound the weights where the Betas are too narrow.
    seed
        The same seed gives the same bits. Each model's stream depends on its name alone, so that swapping models flips
        the sign exactly.

    Returns
    -------
    BaselineResult
        `log_bf_error` is the standard error of the log Bayes factor by the delta method. Diagnostics, each of shape
        (data sets, K): `effective_sample_size`, `largest_weight_share`, `outside` (draws with density 0), `rounds` of
        adaptation, and `log_evidence_error`.

    Notes
    -----
    Independent Betas cannot follow a correlation: of two parameters with a nearly normal posterior and correlation r,
    a share of 1 - r^2 of the draws is effective. Of several separate modes one Beta covers all, with a loss; a mode
    that no round has met is missed by error and effective sample size alike, until one of the prior's draws finds it. A
    warning says where the effective sample size is below 100 or one draw holds a tenth of the evidence.
    """
    model_set = ModelSet.of(models)
    joint.check_densities(model_set)
    num_draws = _checks.check_count("num_draws", num_draws, least=LEAST_DRAWS)
    prior_share = _check_share("prior_share", prior_share)
    seed = _checks.check_seed("seed", seed)
    data = check_observed(model_set, observed, seed=seed)
    layouts = [_check_unit_params(model, seed=seed) for model in model_set.models]

    estimates = np.zeros((len(data), len(model_set), len(_Estimate._fields)))
    for k, (model, layout) in enumerate(zip(model_set.models, layouts, strict=True)):
        if layout is None:
            estimates[:, k, 0] = joint.log_likelihood_without_params(model, data)
            estimates[:, k, 2] = num_draws
            continue
        # The model's name, not its position, marks its random numbers.
        stream = zlib.crc32(model.name.encode())
        repeat = joint.needs_repeated_data(model, layout, data, seed=seed)
        for i, dataset in enumerate(data):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, i)))
            log_joint = LogJoint(model, layout, dataset, repeat=repeat)
            estimates[i, k] = _estimate(log_joint, rng, num_draws, prior_share)
    log_evidence, errors, effective, largest, outside, rounds = np.moveaxis(estimates, -1, 0)
    return BaselineResult(
        method="importance sampling",
        names=model_set.names,
        log_evidence=log_evidence,
        log_bf_error=np.hypot(errors[:, 0], errors[:, 1]),
        diagnostics={
            "effective_sample_size": effective,
            "largest_weight_share": largest,
            "outside": outside.astype(np.int64),
            "rounds": rounds.astype(np.int64),
            "log_evidence_error": errors,
        },
        warnings=_warnings(model_set, effective, largest),
    )


def _estimate(log_joint: LogJoint, rng: np.random.Generator, num_draws: int, prior_share: float) -> _Estimate:
    """Return the evidence of one data set: adapt the proposal, then draw afresh from it."""
    proposal, num_rounds = _adapt(log_joint, rng, prior_share)
    log_weights, log_likelihood, _ = _weigh(log_joint, proposal, rng, num_draws)
    num_outside = int((log_likelihood == -np.inf).sum())
    return _Estimate(*_summarise(log_weights + log_likelihood, proposal.num_prior(num_draws)), num_outside, num_rounds)


def _weigh(
    log_joint: LogJoint, proposal: _Proposal, rng: np.random.Generator, size: int
) -> tuple[Values, Values, Points]:
    """Return log(prior / proposal), log likelihood (-inf outside the support) and the draws of a proposal."""
    points = proposal.draw(rng, size)
    log_density, log_prior = log_joint.parts(points)
    supported = log_prior > -np.inf
    safe_prior = np.where(supported, log_prior, 0.0)
    log_weights = np.where(supported, safe_prior - proposal.log_density(points, log_prior), 0.0)
    return log_weights, np.where(supported, log_density - safe_prior, -np.inf), points


def _adapt(log_joint: LogJoint, rng: np.random.Generator, prior_share: float) -> tuple[_Proposal, int]:
    """Return the proposal whose Betas match the posterior, and the number of rounds that it took.

    A round draws from the proposal, raises the power of the likelihood as far as the draws can carry, and matches the
    Betas to the tempered posterior. At power 1 it goes on until the effective sample size no longer grows.
    """
    model, layout = log_joint.model, log_joint.layout
    ones = np.ones(layout.num_coordinates)
    proposal = _Proposal(model, layout, prior_share, ones, ones)
    best, best_size, num_final = proposal, 0.0, 0
    power = 0.0
    for num_rounds in range(1, _MOST_ROUNDS + 1):
        log_weights, log_likelihood, points = _weigh(log_joint, proposal, rng, _ADAPT_DRAWS)
        if not (log_likelihood > -np.inf).any():
            return proposal, num_rounds
        power = _next_power(log_weights, log_likelihood, power)
        tempered = log_weights + power * np.maximum(log_likelihood, -1e300)
        if power == 1.0:
            size = _effective_size(tempered)
            if num_final > 0 and size < (1 + _SETTLED) * best_size:
                return (proposal if size > best_size else best), num_rounds
            best, best_size, num_final = proposal, size, num_final + 1
            if num_final > _MOST_FINAL_ROUNDS:
                return best, num_rounds
        a, b = _match_betas(points, tempered, inflation=1.0 if power == 1.0 else _INFLATION)
        proposal = _Proposal(model, layout, prior_share, a, b)
    return proposal, _MOST_ROUNDS


def _next_power(log_weights: Values, log_likelihood: Values, power: float) -> float:
    """Return the largest power, up to 1, at which a fifth of the draws is effective, and never less than `power`."""
    finite = np.maximum(log_likelihood, -1e300)
    least = _ADAPT_SHARE * len(log_weights)

    def surplus(candidate: float) -> float:
        return _effective_size(log_weights + candidate * finite) - least

    if surplus(1.0) >= 0:
        return 1.0
    # From a proposal that does not carry even the last power, creep on: its moments are still the best there are.
    if surplus(power) <= 0:
        return min(1.0, 1.1 * power) if power > 0 else 1e-6
    return float(root_scalar(surplus, bracket=(power, 1.0), method="brentq", xtol=1e-12, rtol=1e-3).root)


def _match_betas(points: Points, log_weights: Values, *, inflation: float) -> tuple[Values, Values]:
    """Return the Betas with the weighted means and variances of the draws, the variances times `inflation`."""
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = weights @ points
    # 1 - mean summed as such: near 1 the difference would lose all its digits.
    rest = weights @ (1 - points)
    variance = inflation * (weights @ (points - mean) ** 2)
    # Wider than uniform no posterior on [0, 1] needs to be, and a single effective draw has no variance at all.
    total = np.clip(mean * rest / np.maximum(variance, 1e-300) - 1, 0.5, 1e12)
    return np.maximum(mean * total, 0.05), np.maximum(rest * total, 0.05)


def _effective_size(log_weights: Values) -> float:
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def _summarise(log_terms: Values, num_prior: int) -> tuple[float, float, float, float]:
    """Return log mean, its error by the delta method, effective sample size and largest share of the terms."""
    highest = log_terms.max()
    if highest == -np.inf:
        return _NO_WEIGHT
    terms = np.exp(log_terms - highest)
    mean = terms.mean()
    # Within the prior's draws and within the Betas': their shares are fixed, so what sets them apart is no error.
    strata = terms[:num_prior], terms[num_prior:]
    error = np.sqrt(sum(len(part) * part.var() for part in strata)) / len(terms) / mean
    size = terms.sum() ** 2 / (terms**2).sum()
    return float(highest + np.log(mean)), float(error), float(size), float(terms.max() / terms.sum())


def _check_unit_params(model: Model, *, seed: int) -> Unconstrained | None:
    layout = joint.layout_of(model, seed=seed)
    if layout is None:
        return None
    draws = layout.flatten(model.simulate(_CHECKED_DRAWS, seed).params)
    outside = (draws < 0) | (draws > 1)
    if outside.any():
        raise ValueError(
            f"importance sampling with Betas takes parameters in [0, 1]; the prior of model {model.name!r} draws "
            f"{draws[outside][0]:g}. Use bridge sampling, or give the model parameters on a unit scale."
        )
    return layout


def _check_share(argument: str, value: float) -> float:
    number = _checks.check_positive(argument, value)
    if number >= 1:
        raise ValueError(
            f"{argument} must lie between 0 and 1, both excluded; received {value}. Pass, for example, 0.1."
        )
    return number


def _warnings(model_set: ModelSet, effective: Values, largest: Values) -> tuple[str, ...]:
    found = []
    for k, name in enumerate(model_set.names):
        few = effective[:, k] < LEAST_EFFECTIVE_SAMPLE_SIZE
        if few.any():
            found.append(
                f"{name}: effective sample size below {LEAST_EFFECTIVE_SAMPLE_SIZE:g} for {int(few.sum())} of "
                f"{len(few)} data sets (lowest: {effective[:, k].min():.1f}, at {int(effective[:, k].argmin())}); "
                "raise num_draws, or integrate"
            )
        ruled = (largest[:, k] > MOST_WEIGHT_SHARE) & ~few
        if ruled.any():
            found.append(
                f"{name}: one draw holds more than a tenth of the evidence for {int(ruled.sum())} of {len(ruled)} data "
                f"sets (first: {int(np.argmax(ruled))}); raise num_draws"
            )
    return tuple(found)
