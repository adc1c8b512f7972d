"""From posterior draws and a log density to the log evidence, by either proposal, with its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.baselines.bridge_sampling.iteration import Bridge, solve_bridge
from deepbf.baselines.bridge_sampling.log_density import check_log_density
from deepbf.baselines.bridge_sampling.posterior import effective_draws, scale_reduction
from deepbf.baselines.bridge_sampling.proposal import LogDensity, NormalProposal

PROPOSALS = ("normal", "warp")
# Draws a coordinate in each half: fewer would fit the proposal's covariance to noise.
FEWEST_DRAWS_A_COORDINATE = 10
FEWEST_DRAWS = 100
FEWEST_DRAWS_A_CHAIN = 4


@dataclass(frozen=True)
class Evidence:
    """Log evidences with their standard errors and what they rest on, one entry a data set in each array."""

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
        Log prior plus log likelihood plus log Jacobian at points of shape (points, d), one number a point; -inf
        outside the support.
    proposal
        "normal", or "warp", which makes the posterior symmetric first and serves skewed posteriors better.

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
    chains = _check_draws(draws)

    def batched(points: NDArray[np.float64]) -> NDArray[np.float64]:
        values = np.asarray(log_density(points[0]), dtype=np.float64)
        if values.shape != points.shape[1:2]:
            raise ValueError(
                f"log_density must return one number a point, shape {points.shape[1:2]}; received {values.shape}."
            )
        return values[None]

    with jax.enable_x64(True):
        return evidence_from_draws(chains[None], batched, warp=proposal == "warp", seed=seed)


def evidence_from_draws(draws: NDArray[np.float64], log_density: LogDensity, *, warp: bool, seed: int) -> Evidence:
    """Return the evidence of many posteriors at once; `draws` has shape (data sets, chains, draws, d).

    The first half of every chain fits the proposal and the second half enters the iteration: draws that have shaped
    the proposal would make it look closer to the posterior than it is.
    """
    num_datasets, num_chains, num_draws, num_coordinates = draws.shape
    halfway = num_draws // 2
    fitting, kept = draws[:, :, :halfway], draws[:, :, halfway:]
    proposal = NormalProposal.fit(fitting.reshape(num_datasets, -1, num_coordinates))
    rng = np.random.default_rng(seed)
    # Mirrored at random, draws of the posterior are draws of its mixture with its mirror image.
    signs = rng.choice([-1.0, 1.0], size=(num_datasets, kept.shape[1] * kept.shape[2], 1)) if warp else 1.0
    at_posterior = signs * proposal.standardise(kept.reshape(num_datasets, -1, num_coordinates))
    at_proposal = rng.standard_normal(at_posterior.shape)
    log_ratio_posterior = proposal.log_ratio(at_posterior, log_density, warp=warp)
    log_ratio_proposal = proposal.log_ratio(at_proposal, log_density, warp=warp)
    check_log_density(np.stack([log_ratio_posterior, log_ratio_proposal]), "the log density")
    _check_inside(log_ratio_posterior)

    by_chain = np.moveaxis(kept, 3, 0)
    worth = np.min([effective_draws(coordinate) for coordinate in by_chain], axis=0)
    bridge = solve_bridge(log_ratio_posterior, log_ratio_proposal, worth / (worth + at_proposal.shape[1]))
    return Evidence(
        # Nothing is known about the evidence where no proposal met the posterior.
        log_evidence=np.where(np.isneginf(log_ratio_proposal).all(axis=1), np.nan, bridge.log_evidence),
        error=_standard_error(bridge, num_chains),
        converged=bridge.converged,
        num_iterations=bridge.num_iterations,
        effective_draws=worth,
        scale_reduction=np.max([scale_reduction(coordinate) for coordinate in np.moveaxis(draws, 3, 0)], axis=0),
        num_proposals_outside=np.isneginf(log_ratio_proposal).sum(axis=1),
        num_divergent=np.zeros(num_datasets, np.int64),
    )


def _standard_error(bridge: Bridge, num_chains: int) -> NDArray[np.float64]:
    """Return the standard error of the log evidence: that of numerator and denominator, relative to their means.

    Proposal draws are independent; posterior draws count by their effective number (Fruehwirth-Schnatter, 2004).
    """
    proposal = np.exp(bridge.log_proposal_terms - bridge.log_proposal_terms.max(axis=1, keepdims=True))
    posterior = np.exp(bridge.log_posterior_terms - bridge.log_posterior_terms.max(axis=1, keepdims=True))
    worth = effective_draws(posterior.reshape(len(posterior), num_chains, -1))
    with np.errstate(invalid="ignore"):
        relative_proposal = proposal.var(axis=1) / proposal.mean(axis=1) ** 2 / proposal.shape[1]
    relative_posterior = posterior.var(axis=1) / posterior.mean(axis=1) ** 2 / worth
    # No overlap at all: nothing is known about the evidence.
    return np.sqrt(np.where(np.isfinite(relative_proposal), relative_proposal, np.inf) + relative_posterior)


def _check_draws(draws: ArrayLike) -> NDArray[np.float64]:
    """Return draws as (chains, draws, d), after checking that they are finite and enough."""
    array = np.asarray(_checks.check_numeric_array("draws", draws), dtype=np.float64)
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            f"draws must have shape (draws, d) or (chains, draws, d); received {np.shape(draws)}. "
            "For a single parameter pass draws[:, None]."
        )
    nonfinite = _checks.describe_nonfinite(array)
    if nonfinite is not None:
        raise ValueError(f"draws has {nonfinite}. Transform bounded parameters to an unconstrained scale first.")
    if (np.ptp(array, axis=(0, 1)) == 0).any():
        raise ValueError(
            "draws holds a parameter that never changes: the sampler did not move, or the parameter is no parameter. "
            "Check the sampler, or leave the parameter out."
        )
    if array.shape[1] < FEWEST_DRAWS_A_CHAIN:
        raise ValueError(
            f"draws holds chains of {array.shape[1]} draws; at least {FEWEST_DRAWS_A_CHAIN} are needed. The shape "
            "must be (chains, draws, d)."
        )
    fewest = max(FEWEST_DRAWS, 2 * FEWEST_DRAWS_A_COORDINATE * array.shape[2])
    if array.shape[0] * array.shape[1] < fewest:
        raise ValueError(
            f"draws holds {array.shape[0] * array.shape[1]} draws; half fit the proposal and half enter the bridge, so "
            f"at least {fewest} are needed for {array.shape[2]} parameters. Draw more."
        )
    return array


def _check_inside(log_ratio_posterior: NDArray[np.float64]) -> None:
    outside = np.isneginf(log_ratio_posterior)
    if outside.any():
        dataset, draw = (int(i) for i in np.argwhere(outside)[0])
        raise ValueError(
            f"{int(outside.sum())} of {outside.size} posterior draws lie outside the support, the first at data set "
            f"{dataset}, draw {draw}: their log density is -inf. The draws come from another posterior than the log "
            "density describes, or the log density misses a transform."
        )
