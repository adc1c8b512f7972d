"""Importance sampling of the evidence with a mixture of the prior and independent Betas.

This is how TreeBUGS computes the evidence of processing trees (Heck, Arnold and Arnold, 2018), without its Markov
chains: the Betas match the posterior's means and variances, which come from rounds of tempered importance sampling.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import root_scalar
from scipy.special import betaln, logsumexp

from deepbf import _checks
from deepbf.baselines import log_joint as joint
from deepbf.baselines.baseline_result import BaselineResult, check_observed
from deepbf.baselines.log_joint import LogJoint, Points, Values
from deepbf.models.model import Model, ModelSet
from deepbf.models.transform import Unconstrained

LEAST_DRAWS = 100
# Below this effective sample size the delta-method error itself is not to be trusted.
LEAST_EFFECTIVE_SAMPLE_SIZE = 100.0
# One draw that carries this share of the evidence decides it alone.
MOST_WEIGHT_SHARE = 0.1

# Draws in each round of adaptation; means and variances good to some per cent are all that the rounds pass on.
_ADAPT_DRAWS = 2000
# Each round raises the temperature until this share of its draws is effective.
_ADAPT_SHARE = 0.2
_MOST_ROUNDS = 60
# Rounds at full temperature stop when this share is effective; until then the posterior is cut into pieces.
_GOOD_SHARE = 0.5
_MOST_FINAL_ROUNDS = 6
# While it is still on its way, a proposal wider than what it has seen: the next target lies at its edge.
_INFLATION = 1.5
# Pieces that the posterior is cut into at most, and effective draws that each must have to be fitted.
_MOST_PIECES = 16
_DRAWS_PER_PIECE = 50
# Pieces that just touch would leave gaps between them.
_PIECE_INFLATION = 1.3
# Shapes below this put draws next to the edge: those of a normal posterior four of its deviations away from it.
_NEAR_EDGE = 16.0
# Draws rounded to 0 or 1 would fall on the edge of the support.
_LEAST, _MOST = 1e-300, 1 - 2.0**-53
# The first round's trial count of the prior, to learn whether parameters are probabilities.
_CHECKED_DRAWS = 1000


@dataclass(frozen=True)
class _Proposal:
    """prior_share times the prior plus the rest times a mixture of products of Betas.

    `a` and `b` have shape (pieces, parameters), `shares` one entry per piece, summing to 1.
    """

    model: Model
    layout: Unconstrained
    prior_share: float
    a: Values
    b: Values
    shares: Values

    def draw(self, rng: np.random.Generator, size: int) -> Points:
        """Return `size` draws as rows, a fixed number of them from each part, which is less noisy than a random one."""
        num_prior, *num_each = self.part_sizes(size)
        assert self.model.prior is not None
        parts = [self.layout.flatten(self.model.prior(rng, num_prior))]
        parts += [rng.beta(a, b, (n, len(a))) for a, b, n in zip(self.a, self.b, num_each, strict=True)]
        return np.clip(np.concatenate(parts), _LEAST, _MOST)

    def log_density(self, points: Points, log_prior: Values) -> Values:
        """Return the log density of the mixture at all its draws, where the prior has log density `log_prior`."""
        with np.errstate(divide="ignore"):
            log_shares = np.log(self.part_sizes(len(points)) / len(points))
        log_betas = np.log(points) @ (self.a - 1).T + np.log1p(-points) @ (self.b - 1).T
        log_betas += log_shares[1:] - betaln(self.a, self.b).sum(axis=1)
        return np.logaddexp(log_shares[0] + log_prior, np.asarray(logsumexp(log_betas, axis=1)))

    def part_sizes(self, size: int) -> NDArray[np.int64]:
        """Return how many of `size` draws come from the prior, and how many from each piece; they are in that order."""
        num_prior = min(max(1, round(self.prior_share * size)), size - 1)
        ends = np.round(np.cumsum(self.shares) * (size - num_prior)).astype(np.int64)
        ends[-1] = size - num_prior
        return np.concatenate([[num_prior], np.diff(ends, prepend=0)])


class _Estimate(NamedTuple):
    """What one data set and one model give."""

    log_evidence: float
    error: float
    effective_sample_size: float
    largest_weight_share: float
    num_outside: int
    num_rounds: int


def importance(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    num_draws: int = 10_000,
    prior_share: float = 0.1,
    seed: int = 0,
) -> BaselineResult:
    """Return log evidences by importance sampling, for models whose parameters lie in [0, 1].

    The proposal is `prior_share` times the prior plus the rest times a Beta approximation of the posterior: a product
    of Beta distributions with the posterior's means and variances or, where that is not enough, one for each of several
    pieces of it. These come from rounds of importance sampling that move from the prior to the posterior by raising the
    likelihood to powers up to 1; fresh draws then give the estimate, so that it is unbiased for the evidence.

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
    Independent Betas cannot follow a correlation, so the posterior is cut into pieces across its longest direction,
    which also serves several modes. A mode that no round has met is missed by error and effective sample size alike,
    until one of the prior's draws finds it. A warning says where the effective sample size is below 100 or one draw
    holds a tenth of the evidence.

    Examples
    --------
    >>> import numpy as np
    >>> import deepbf
    >>> heads = lambda rng, prob: rng.binomial(4, prob, len(prob))[:, None]
    >>> log_binomial = lambda prob, data: data[:, 0] * np.log(prob) + (4 - data[:, 0]) * np.log1p(-prob)
    >>> unknown = deepbf.Model(
    ...     "unknown", prior=lambda rng, size: rng.uniform(size=size), simulator=heads,
    ...     log_prior=np.zeros_like, log_likelihood=log_binomial, transform="unit",
    ... )
    >>> fair = deepbf.Model(
    ...     "fair", simulator=lambda rng, size: rng.binomial(4, 0.5, (size, 1)),
    ...     log_likelihood=lambda params, data: log_binomial(0.5, data),
    ... )
    >>> result = importance([unknown, fair], [[4]])  # 1/5 over 1/16
    >>> bool(abs(result.log_bf - np.log(16 / 5))[0] < 4 * result.log_bf_error[0] + 1e-9)
    True
    """
    model_set = ModelSet.of(models)
    joint.check_densities(model_set)
    num_draws = _checks.check_count("num_draws", num_draws, least=LEAST_DRAWS)
    prior_share = _checks.check_positive("prior_share", prior_share)
    if prior_share >= 1:
        raise ValueError(
            f"prior_share must lie between 0 and 1, both excluded; received {prior_share}. Pass, for example, 0.1."
        )
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
    """Return the evidence of one data set: adapt the proposal, then draw afresh from it.

    The error is that of the log mean of the terms, by the delta method.
    """
    proposal, num_rounds = _adapt(log_joint, rng, prior_share)
    log_weights, log_likelihood, _ = _weigh(log_joint, proposal, rng, num_draws)
    num_outside = int((log_likelihood == -np.inf).sum())
    log_terms = log_weights + log_likelihood
    highest = log_terms.max()
    if highest == -np.inf:
        return _Estimate(-np.inf, np.inf, 0.0, 1.0, num_outside, num_rounds)
    terms = np.exp(log_terms - highest)
    mean = terms.mean()
    # Within the prior's draws and within each piece's: their shares are fixed, so what sets them apart is no error.
    strata = np.split(terms, np.cumsum(proposal.part_sizes(num_draws))[:-1])
    # A part of one draw has no variance of its own, and all the more weight to be unsure of.
    variances = [len(part) * part.var() if len(part) > 1 else float((part**2).sum()) for part in strata]
    return _Estimate(
        log_evidence=float(highest + np.log(mean)),
        error=float(np.sqrt(sum(variances)) / len(terms) / mean),
        effective_sample_size=float(terms.sum() ** 2 / (terms**2).sum()),
        largest_weight_share=float(terms.max() / terms.sum()),
        num_outside=num_outside,
        num_rounds=num_rounds,
    )


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
    Betas to the tempered posterior: one product of Betas on the way, and at power 1, where one is not enough, as many
    pieces as the effective draws can tell apart. The proposal with the most effective draws is kept.
    """
    model, layout = log_joint.model, log_joint.layout
    ones = np.ones((1, layout.num_coordinates))
    proposal = _Proposal(model, layout, prior_share, ones, ones, np.ones(1))
    best, best_size, num_final = proposal, 0.0, 0
    power = 0.0
    for num_rounds in range(1, _MOST_ROUNDS + 1):
        log_weights, log_likelihood, points = _weigh(log_joint, proposal, rng, _ADAPT_DRAWS)
        if not (log_likelihood > -np.inf).any():
            return proposal, num_rounds
        power = _next_power(log_weights, log_likelihood, power)
        tempered = log_weights + power * np.maximum(log_likelihood, -1e300)
        if power == 1.0:
            num_final += 1
            size = _effective_size(tempered)
            if size > best_size:
                best, best_size = proposal, size
            # The first of these was drawn for a lower power, and says little about what comes next.
            if (num_final > 1 and best_size > _GOOD_SHARE * len(points)) or num_final > _MOST_FINAL_ROUNDS:
                return best, num_rounds
        inflation = 1.0 if num_final == 1 else _PIECE_INFLATION if num_final else _INFLATION
        pieces = _split(points, tempered) if num_final > 1 else [np.arange(len(points))]
        proposal = _Proposal(model, layout, prior_share, *_fit_betas(points, tempered, pieces, inflation=inflation))
    return best if num_final else proposal, _MOST_ROUNDS


def _fit_betas(
    points: Points, log_weights: Values, pieces: Sequence[NDArray[np.intp]], *, inflation: float
) -> tuple[Values, Values, Values]:
    """Return shapes and shares of Betas with the weighted means and variances of each piece's draws.

    Variances are multiplied by `inflation`. Each Beta that fades towards an edge close by is joined by one that does
    not: a posterior cut off by 0 is finite there, where a Beta with a > 1 vanishes, and the few draws next to the edge
    would carry unbounded weights. A Beta(1, b) of the same mean bounds them; and likewise at 1.
    """
    shares = np.exp([np.asarray(logsumexp(log_weights[rows])) - np.asarray(logsumexp(log_weights)) for rows in pieces])
    found: list[tuple[Values, Values, float]] = []
    for rows, share in zip(pieces, shares / shares.sum(), strict=True):
        weights = np.exp(log_weights[rows] - log_weights[rows].max())
        weights /= weights.sum()
        mean = weights @ points[rows]
        # 1 - mean summed as such: near 1 the difference would lose all its digits.
        rest = weights @ (1 - points[rows])
        variance = inflation * (weights @ (points[rows] - mean) ** 2)
        # Wider than uniform no posterior on [0, 1] needs to be, and a single effective draw has no variance at all.
        total = np.clip(mean * rest / np.maximum(variance, 1e-300) - 1, 0.5, 1e12)
        a, b = np.maximum(mean * total, 0.05), np.maximum(rest * total, 0.05)
        at_0, at_1 = (a > 1) & (a < _NEAR_EDGE) & (a < b), (b > 1) & (b < _NEAR_EDGE) & (b <= a)
        flat_a = np.where(at_0, 1.0, np.where(at_1, a / b, a))
        flat_b = np.where(at_1, 1.0, np.where(at_0, b / a, b))
        choices = [(False, True) if leaning else (False,) for leaning in at_0 | at_1]
        combinations = list(itertools.islice(itertools.product(*choices), _MOST_PIECES))
        for flat in combinations:
            found.append((np.where(flat, flat_a, a), np.where(flat, flat_b, b), share / len(combinations)))
    return np.stack([a for a, _, _ in found]), np.stack([b for _, b, _ in found]), np.array([s for _, _, s in found])


def _split(points: Points, log_weights: Values) -> list[NDArray[np.intp]]:
    """Return the rows of each piece: the posterior halved again and again across its longest direction.

    Along a ridge, or over several modes, a chain of independent Betas follows what a single one cannot.
    """
    weights = np.exp(log_weights - log_weights.max())
    num_pieces = np.clip(_effective_size(log_weights) / _DRAWS_PER_PIECE, 1, _MOST_PIECES)
    pieces = [np.arange(len(points))]
    for _ in range(int(np.log2(num_pieces))):
        halves = []
        for rows in pieces:
            own = weights[rows] / weights[rows].sum()
            centred = points[rows] - own @ points[rows]
            _, directions = np.linalg.eigh((centred * own[:, None]).T @ centred)
            order = np.argsort(centred @ directions[:, -1], kind="stable")
            # At the weighted median; a piece whose first draw alone holds half of its weight stays whole.
            middle = int(np.searchsorted(np.cumsum(own[order]), 0.5))
            halves += [rows[order[:middle]], rows[order[middle:]]] if 0 < middle < len(rows) else [rows]
        pieces = halves
    return pieces


def _next_power(log_weights: Values, log_likelihood: Values, power: float) -> float:
    """Return the largest power, up to 1, at which a fifth of the draws is effective, and never less than `power`."""
    # Draws outside the support have no weight at any power; counted at power 0, they would look like a loss later on.
    supported = log_likelihood > -np.inf
    log_weights, log_likelihood = log_weights[supported], log_likelihood[supported]
    least = _ADAPT_SHARE * len(log_weights)

    def surplus(candidate: float) -> float:
        return _effective_size(log_weights + candidate * log_likelihood) - least

    if surplus(1.0) >= 0:
        return 1.0
    # From a proposal that does not carry even the last power, creep on: its moments are still the best there are.
    if surplus(power) <= 0:
        return min(1.0, 1.5 * power) if power > 0 else 1e-6
    return float(root_scalar(surplus, bracket=(power, 1.0), method="brentq", xtol=1e-12, rtol=1e-3).root)


def _effective_size(log_weights: Values) -> float:
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def _check_unit_params(model: Model, *, seed: int) -> Unconstrained | None:
    """Return the layout of the model's parameters, or None without any, refusing those that leave [0, 1]."""
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
