"""From accepted draws to log evidences: the small adjustment, the prior odds, the Monte Carlo error.

Of N_k draws of model k, a_k are accepted. The evidence of model k is in proportion to a_k / N_k. Half a draw is added
to each a_k: then log(a_k + 1/2) is unbiased for the log of the expected count up to terms of second order (Anscombe,
1956; 1 instead of 1/2 would pull the estimate to 0, and 0 would make it infinite). With k accepted in all and equal
prior odds, the Bayes factor then lies in [1 / (2k + 1), 2k + 1]; the paper's range is [1/k, k].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ADJUSTMENT = 0.5


def log_evidence_from_counts(accepted: NDArray[np.int64], num_draws: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return log((a_k + 1/2) / N_k), shape (data sets, K).

    `num_draws` holds the draws of each model, which are the prior odds actually simulated. Several models without
    an accepted draw get equal evidences: otherwise the prior odds alone would decide between them.
    """
    log_rate = np.log(accepted + ADJUSTMENT) - np.log(num_draws)
    none = accepted == 0
    shared = np.log(ADJUSTMENT) - np.log(num_draws.min())
    return np.where(none & (none.sum(axis=1, keepdims=True) > 1), shared, log_rate)


def log_bf_error_from_counts(accepted: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the standard error of the log Bayes factor of the first two models, by the delta method.

    The variance of log(a_1 / a_2) is 1 / E[a_1] + 1 / E[a_2], for counts that share a total or not.
    """
    return np.sqrt((1 / (accepted[:, :2] + ADJUSTMENT)).sum(axis=1))


def count_labels(labels: NDArray[np.int16], num_models: int) -> NDArray[np.int64]:
    """Return how often each model stands in each row, shape (rows, K); -1 is no model."""
    return np.stack([(labels == k).sum(axis=1) for k in range(num_models)], axis=1)


def acceptance_warnings(accepted: NDArray[np.int64], next_step: str) -> list[str]:
    """Return warnings about data sets whose log Bayes factor is a bound, or nothing at all."""
    num_datasets = len(accepted)
    none = int((accepted.sum(axis=1) == 0).sum())
    bounds = int(((accepted[:, :2] == 0).any(axis=1) & (accepted.sum(axis=1) > 0)).sum())
    warnings = []
    if none:
        warnings.append(
            f"no draw was accepted for {none} of {num_datasets} data sets: their log Bayes factor of 0 says nothing. "
            f"{next_step}"
        )
    if bounds:
        warnings.append(
            f"one of the first two models has no accepted draw for {bounds} of {num_datasets} data sets: their log "
            f"Bayes factor is a bound that the added half draw sets. {next_step}"
        )
    return warnings


def undefined_warnings(num_undefined: int, num_draws: int) -> list[str]:
    """Return a warning about draws whose summary is nan or inf."""
    if num_undefined == 0:
        return []
    return [
        f"summary is nan or inf for {num_undefined} of {num_draws} reference draws; they count as draws that were not "
        "accepted. Choose a summary that is defined for all data."
    ]
