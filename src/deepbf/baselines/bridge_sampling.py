"""Bridge sampling: the log evidence from posterior draws of any sampler and a log density, with its error.

One fixed point in log space serves both proposals, and many data sets at once. With N1 posterior and N2 proposal
draws, and log ratios l = log unnormalised posterior - log proposal, the optimal bridge of Meng and Wong (1996) solves
for the evidence r::

    r = mean over proposal draws of e^l / (s1 e^l + s2 r)  divided by  mean over posterior draws of 1 / (s1 e^l + s2 r)

with s1, s2 the shares of effective posterior draws and of proposal draws.

The proposal is a normal fitted to some of the posterior draws. Both methods work in coordinates where it is a standard
normal. The warp (Meng and Schilling, 2002) also makes the posterior symmetric about its mean, by mixing it with its
mirror image, which leaves its integral as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from deepbf import _checks

LogDensity = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Log unnormalised posterior of each data set at its own points: (data sets, points, d) to (data sets, points)."""

PROPOSALS = ("normal", "warp")
# Draws per coordinate in each half: fewer would fit the proposal's covariance to noise.
_FEWEST_DRAWS_PER_COORDINATE = 10
_FEWEST_DRAWS = 100
_FEWEST_DRAWS_PER_CHAIN = 4
# Keeps the factor of a covariance of nearly collinear draws well defined.
_RELATIVE_JITTER = 1e-9
_TOLERANCE = 1e-10
_MOST_ITERATIONS = 1000


@dataclass(frozen=True)
class Evidence:
    """Log evidences with their standard errors and what they rest on; each array has one entry per data set.

    Parameters
    ----------
    log_evidence, error
        The log evidence, and its standard error; nan and inf where no proposal met the posterior.
    converged, num_iterations
        Whether the fixed point of the bridge was reached, and in how many steps.
    effective_draws
        How many independent draws the posterior draws in the bridge are worth, by the worst coordinate.
    scale_reduction
        Potential scale reduction of the chains, of the worst coordinate; 1 when they agree.
    num_proposals_outside
        Proposal draws outside the posterior's support.
    num_divergent
        Divergent transitions of the sampler; 0 where the draws came from elsewhere.
    """

    log_evidence: NDArray[np.float64]
    error: NDArray[np.float64]
    converged: NDArray[np.bool_]
    num_iterations: NDArray[np.int64]
    effective_draws: NDArray[np.float64]
    scale_reduction: NDArray[np.float64]
    num_proposals_outside: NDArray[np.int64]
    num_divergent: NDArray[np.int64]


def bridge_evidence(
    draws: ArrayLike,
    log_density: Callable[[NDArray[np.float64]], ArrayLike],
    *,
    proposal: str = "normal",
    seed: int = 0,
) -> Evidence:
    """Return the log evidence of one posterior from draws that any sampler made.

    Parameters
    ----------
    draws
        Posterior draws on an unconstrained scale, shape (draws, d), or (chains, draws, d) in the order drawn, so that
        their autocorrelation can be told.
    log_density
        Log prior plus log likelihood plus log Jacobian at points of shape (points, d), one number per point; -inf
        outside the support.
    proposal
        "normal", or "warp", which makes the posterior symmetric first and serves skewed posteriors better.
    seed
        The seed of the proposal draws, and of the mirrored posterior draws of the warp.

    Returns
    -------
    Evidence
        Arrays with a single entry. Half of the draws fit the proposal, and half enter the bridge.

    Notes
    -----
    Draws that miss a mode give an evidence without it, and no diagnostic here can tell. Bounded parameters must be
    transformed to the whole line first, with the log Jacobian added to `log_density`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> evidence = bridge_evidence(rng.normal(size=(4000, 1)), lambda x: -0.5 * x[:, 0] ** 2)
    >>> round(float(evidence.log_evidence[0]), 2)  # half the log of 2 pi
    0.92
    """
    _checks.check_choice("proposal", proposal, PROPOSALS)
    _checks.check_seed("seed", seed)
    chains = np.asarray(_checks.check_numeric_array("draws", draws), dtype=np.float64)
    if chains.ndim == 2:
        chains = chains[None]
    if chains.ndim != 3 or 0 in chains.shape:
        raise ValueError(
            f"draws must have shape (draws, d) or (chains, draws, d); received {np.shape(draws)}. "
            "For a single parameter pass draws[:, None]."
        )
    nonfinite = _checks.describe_nonfinite(chains)
    if nonfinite is not None:
        raise ValueError(f"draws has {nonfinite}. Transform bounded parameters to an unconstrained scale first.")
    if (np.ptp(chains, axis=(0, 1)) == 0).any():
        raise ValueError(
            "draws holds a parameter that never changes: the sampler did not move, or the parameter is no parameter. "
            "Check the sampler, or leave the parameter out."
        )
    num_chains, num_draws, num_coordinates = chains.shape
    if num_draws < _FEWEST_DRAWS_PER_CHAIN:
        raise ValueError(
            f"draws holds chains of {num_draws} draws; at least {_FEWEST_DRAWS_PER_CHAIN} are needed. The shape "
            "must be (chains, draws, d)."
        )
    fewest = max(_FEWEST_DRAWS, 2 * _FEWEST_DRAWS_PER_COORDINATE * num_coordinates)
    if num_chains * num_draws < fewest:
        raise ValueError(
            f"draws holds {num_chains * num_draws} draws; half fit the proposal and half enter the bridge, so "
            f"at least {fewest} are needed for {num_coordinates} parameters. Draw more."
        )

    def batched(points: NDArray[np.float64]) -> NDArray[np.float64]:
        values = np.asarray(log_density(points[0]), dtype=np.float64)
        if values.shape != points.shape[1:2]:
            raise ValueError(
                f"log_density must return one number per point, shape {points.shape[1:2]}; received {values.shape}."
            )
        return values[None]

    with jax.enable_x64(True):
        return evidence_from_draws(chains[None], batched, warp=proposal == "warp", seed=seed)


def evidence_from_draws(draws: NDArray[np.float64], log_density: LogDensity, *, warp: bool, seed: int) -> Evidence:
    """Return the evidence of many posteriors at once; `draws` has shape (data sets, chains, draws, d).

    The first half of every chain fits the proposal and the second half enters the iteration: draws that have shaped
    the proposal would make it look closer to the posterior than it is. `log_density` takes all data sets together, each
    at its own points (see `LogDensity`). The seed draws from the proposal. JAX must be in double precision.
    """
    num_datasets, num_chains, num_draws, num_coordinates = draws.shape
    halfway = num_draws // 2
    fitting, kept = draws[:, :, :halfway], draws[:, :, halfway:]
    proposal = _NormalProposal.fit(fitting.reshape(num_datasets, -1, num_coordinates))
    rng = np.random.default_rng(seed)
    # Mirrored at random, draws of the posterior are draws of its mixture with its mirror image.
    signs = rng.choice([-1.0, 1.0], size=(num_datasets, kept.shape[1] * kept.shape[2], 1)) if warp else 1.0
    at_posterior = signs * proposal.standardise(kept.reshape(num_datasets, -1, num_coordinates))
    at_proposal = rng.standard_normal(at_posterior.shape)
    log_ratio_posterior = proposal.log_ratio(at_posterior, log_density, warp=warp)
    log_ratio_proposal = proposal.log_ratio(at_proposal, log_density, warp=warp)
    check_log_density(np.stack([log_ratio_posterior, log_ratio_proposal]), "the log density")
    outside = np.isneginf(log_ratio_posterior)
    if outside.any():
        dataset, draw = (int(i) for i in np.argwhere(outside)[0])
        raise ValueError(
            f"{int(outside.sum())} of {outside.size} posterior draws lie outside the support, the first at data set "
            f"{dataset}, draw {draw}: their log density is -inf. The draws come from another posterior than the log "
            "density describes, or the log density misses a transform."
        )

    by_chain = np.moveaxis(kept, 3, 0)
    worth = np.min([_effective_draws(coordinate) for coordinate in by_chain], axis=0)
    share = worth / (worth + at_proposal.shape[1])
    bridge = solve_bridge(log_ratio_posterior, log_ratio_proposal, share, num_chains)
    scale_reduction = np.ones((num_datasets, num_coordinates))
    if num_chains > 1:
        diagnostics = import_blackjax().diagnostics
        reduction = np.asarray(diagnostics.potential_scale_reduction(jnp.asarray(draws), chain_axis=1, sample_axis=2))
        scale_reduction = np.nan_to_num(reduction.reshape(scale_reduction.shape), nan=1.0)
    return Evidence(
        # Nothing is known about the evidence where no proposal met the posterior.
        log_evidence=np.where(np.isneginf(log_ratio_proposal).all(axis=1), np.nan, bridge.log_evidence),
        error=bridge.error,
        converged=bridge.converged,
        num_iterations=bridge.num_iterations,
        effective_draws=worth,
        scale_reduction=scale_reduction.max(axis=1),
        num_proposals_outside=np.isneginf(log_ratio_proposal).sum(axis=1),
        num_divergent=np.zeros(num_datasets, np.int64),
    )


@dataclass(frozen=True)
class _NormalProposal:
    """Mean and lower factor of the covariance of each data set: shapes (data sets, d) and (data sets, d, d)."""

    mean: NDArray[np.float64]
    factor: NDArray[np.float64]

    @classmethod
    def fit(cls, draws: NDArray[np.float64]) -> _NormalProposal:
        """Return the proposal with the moments of the draws, shape (data sets, draws, d)."""
        mean = draws.mean(axis=1)
        centred = draws - mean[:, None, :]
        covariance = np.einsum("bni,bnj->bij", centred, centred) / (draws.shape[1] - 1)
        spread = np.einsum("bii->bi", covariance)
        jitter = _RELATIVE_JITTER * spread + np.finfo(np.float64).tiny
        covariance = covariance + jitter[:, :, None] * np.eye(draws.shape[2])
        return cls(mean, np.linalg.cholesky(covariance))

    def standardise(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points in the proposal's coordinates, shape (data sets, points, d)."""
        centred = np.swapaxes(points - self.mean[:, None, :], 1, 2)
        return np.swapaxes(np.linalg.solve(self.factor, centred).astype(np.float64), 1, 2)

    def place(self, standard: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points on the posterior's scale from the proposal's coordinates."""
        return self.mean[:, None, :] + np.einsum("bij,bnj->bni", self.factor, standard)

    def log_ratio(self, standard: NDArray[np.float64], log_density: LogDensity, *, warp: bool) -> NDArray[np.float64]:
        """Return log unnormalised posterior minus log proposal at points in the proposal's coordinates."""
        log_posterior = log_density(self.place(standard))
        if warp:
            log_posterior = np.logaddexp(log_posterior, log_density(self.place(-standard))) - np.log(2)
        log_volume = np.log(np.einsum("bii->bi", self.factor)).sum(axis=1)
        num_coordinates = standard.shape[2]
        log_normal = -0.5 * (standard**2).sum(axis=2) - 0.5 * num_coordinates * np.log(2 * np.pi)
        return log_posterior + log_volume[:, None] - log_normal


class _Bridge(NamedTuple):
    """The solution and its standard error; each array has one entry per data set."""

    log_evidence: NDArray[np.float64]
    error: NDArray[np.float64]
    converged: NDArray[np.bool_]
    num_iterations: NDArray[np.int64]


def solve_bridge(
    log_ratio_posterior: NDArray[np.float64],
    log_ratio_proposal: NDArray[np.float64],
    posterior_share: NDArray[np.float64],
    num_chains: int,
) -> _Bridge:
    """Return the log evidence of each data set, and its error; log ratios have shape (data sets, draws).

    Ratios of proposal draws may be -inf (outside the posterior's support); those of posterior draws are finite, and
    come chain after chain, `num_chains` of equal length. `posterior_share` is s1, the share of effective posterior
    draws among all draws, one number per data set.

    The squared error is that of numerator and denominator, each relative to its mean. Proposal draws are independent;
    posterior draws count by their effective number (Fruehwirth-Schnatter, 2004).
    """
    log_share_1 = np.log(posterior_share)[:, None]
    log_share_2 = np.log1p(-posterior_share)[:, None]
    # The importance-sampling estimate is a start within reach of the fixed point for any overlap.
    log_r = np.nan_to_num(_log_mean(log_ratio_proposal), neginf=0.0)
    converged = np.zeros(len(log_r), bool)
    num_iterations = np.zeros(len(log_r), np.int64)
    for _ in range(_MOST_ITERATIONS):
        active = ~converged
        proposal, posterior = _terms(
            log_ratio_posterior[active], log_ratio_proposal[active], log_share_1[active], log_share_2[active],
            log_r[active, None],
        )  # fmt: skip
        updated = _log_mean(proposal) - _log_mean(posterior)
        # No proposal draw inside the support: the evidence cannot be told, and the start is left as it is.
        updated = np.where(np.isfinite(updated), updated, log_r[active])
        num_iterations[active] += 1
        done = np.abs(updated - log_r[active]) < _TOLERANCE
        log_r[active] = updated
        converged[np.flatnonzero(active)[done]] = True
        if converged.all():
            break
    # A fixed point that only stood still because nothing overlapped has not converged to anything.
    converged &= np.isfinite(log_ratio_proposal).any(axis=1)
    terms = _terms(log_ratio_posterior, log_ratio_proposal, log_share_1, log_share_2, log_r[:, None])
    proposal, posterior = (np.exp(log_terms - log_terms.max(axis=1, keepdims=True)) for log_terms in terms)
    worth = _effective_draws(posterior.reshape(len(posterior), num_chains, -1))
    with np.errstate(invalid="ignore"):
        relative_proposal = proposal.var(axis=1) / proposal.mean(axis=1) ** 2 / proposal.shape[1]
    relative_posterior = posterior.var(axis=1) / posterior.mean(axis=1) ** 2 / worth
    # No overlap at all: nothing is known about the evidence.
    error = np.sqrt(np.where(np.isfinite(relative_proposal), relative_proposal, np.inf) + relative_posterior)
    return _Bridge(log_r, error, converged, num_iterations)


def _terms(
    log_ratio_posterior: NDArray[np.float64],
    log_ratio_proposal: NDArray[np.float64],
    log_share_1: NDArray[np.float64],
    log_share_2: NDArray[np.float64],
    log_r: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logs of the terms whose means are numerator and denominator."""
    proposal = log_ratio_proposal - np.logaddexp(log_share_1 + log_ratio_proposal, log_share_2 + log_r)
    posterior = -np.logaddexp(log_share_1 + log_ratio_posterior, log_share_2 + log_r)
    return proposal, posterior


def _log_mean(log_terms: NDArray[np.float64]) -> NDArray[np.float64]:
    return logsumexp(log_terms, axis=1) - np.log(log_terms.shape[1])


def _effective_draws(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many independent draws the chains are worth, shape (data sets,), from (data sets, chains, draws)."""
    blackjax = import_blackjax()
    num_draws = values.shape[1] * values.shape[2]
    by_chain = jnp.moveaxis(jnp.asarray(values), 0, 2)
    sizes = np.asarray(blackjax.diagnostics.effective_sample_size(by_chain, chain_axis=0, sample_axis=1))
    sizes = sizes.reshape(len(values))
    # Anticorrelated draws are not credited with more than they are, and chains that never moved with one.
    return np.where(sizes > 0, np.clip(sizes, 1.0, num_draws), 1.0)


def import_blackjax() -> Any:
    """Return the module blackjax, or raise an ImportError that says which extra installs it.

    Imported when first needed: the library runs without it, but for bridge sampling.
    """
    try:
        import blackjax
    except ImportError as error:
        raise ImportError("bridge sampling needs blackjax. Install it with: pip install 'deepbf[bridge]'") from error
    return blackjax


def check_log_density(values: NDArray[np.float64], what: str) -> None:
    """Raise if a log density is nan or +inf anywhere; -inf is a place outside the support.

    `what` names the function that returned `values`, an array of any shape, at the start of the error.
    """
    bad = np.isnan(values) | (values == np.inf)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{what} returned {values[first]} for {int(bad.sum())} of {bad.size} points; it must be finite, or -inf "
            "outside the support. Check it for logarithms of negative numbers and divisions by zero."
        )
