"""The bridge iteration: one fixed point in log space serves every proposal, and many data sets at once.

With N1 posterior and N2 proposal draws, and log ratios l = log unnormalised posterior - log proposal, the optimal
bridge of Meng and Wong (1996) solves for the evidence r::

    r = mean over proposal draws of e^l / (s1 e^l + s2 r)  divided by  mean over posterior draws of 1 / (s1 e^l + s2 r)

with s1, s2 the shares of effective posterior draws and of proposal draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

TOLERANCE = 1e-10
MOST_ITERATIONS = 1000


class Bridge(NamedTuple):
    """The solution, one entry a data set in each array."""

    log_evidence: NDArray[np.float64]
    converged: NDArray[np.bool_]
    num_iterations: NDArray[np.int64]
    log_proposal_terms: NDArray[np.float64]
    log_posterior_terms: NDArray[np.float64]


def solve_bridge(
    log_ratio_posterior: NDArray[np.float64],
    log_ratio_proposal: NDArray[np.float64],
    posterior_share: NDArray[np.float64],
) -> Bridge:
    """Return the log evidence of each data set; log ratios have shape (data sets, draws).

    Ratios of proposal draws may be -inf (outside the posterior's support); those of posterior draws are finite.
    The two arrays of terms, whose means make the last ratio, are what the error is computed from.
    """
    log_share_1 = np.log(posterior_share)[:, None]
    log_share_2 = np.log1p(-posterior_share)[:, None]
    # The importance-sampling estimate is a start within reach of the fixed point for any overlap.
    log_r = np.nan_to_num(_log_mean(log_ratio_proposal), neginf=0.0)
    converged = np.zeros(len(log_r), bool)
    num_iterations = np.zeros(len(log_r), np.int64)
    for _ in range(MOST_ITERATIONS):
        active = ~converged
        proposal, posterior = _terms(
            log_ratio_posterior[active], log_ratio_proposal[active], log_share_1[active], log_share_2[active],
            log_r[active, None],
        )  # fmt: skip
        updated = _log_mean(proposal) - _log_mean(posterior)
        # No proposal draw inside the support: the evidence cannot be told, and the start is left as it is.
        updated = np.where(np.isfinite(updated), updated, log_r[active])
        num_iterations[active] += 1
        done = np.abs(updated - log_r[active]) < TOLERANCE
        log_r[active] = updated
        converged[np.flatnonzero(active)[done]] = True
        if converged.all():
            break
    # A fixed point that only stood still because nothing overlapped has not converged to anything.
    converged &= np.isfinite(log_ratio_proposal).any(axis=1)
    proposal, posterior = _terms(log_ratio_posterior, log_ratio_proposal, log_share_1, log_share_2, log_r[:, None])
    return Bridge(log_r, converged, num_iterations, proposal, posterior)


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
