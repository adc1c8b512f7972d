"""The result of accepting and counting, the same for a fixed tolerance and for ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepbf.baselines.abc.comparison import Comparison
from deepbf.baselines.abc.evidence import (
    acceptance_warnings,
    log_bf_error_from_counts,
    log_evidence_from_counts,
    undefined_warnings,
)
from deepbf.baselines.result import BaselineResult


def accepted_result(
    method: str,
    comparison: Comparison,
    accepted: NDArray[np.int64],
    largest_distance: NDArray[np.float64],
    num_undefined: int,
    next_step: str,
) -> BaselineResult:
    """Return the result that counts of accepted draws give; `next_step` ends the warnings."""
    num_datasets = len(accepted)
    return BaselineResult(
        method=method,
        names=comparison.model_set.names,
        log_evidence=log_evidence_from_counts(accepted, comparison.num_draws),
        log_bf_error=log_bf_error_from_counts(accepted),
        diagnostics={
            "accepted": accepted,
            "largest_distance": largest_distance,
            "num_draws": np.tile(comparison.num_draws, (num_datasets, 1)),
            "num_undefined": np.full(num_datasets, num_undefined),
            "bound": (accepted[:, :2] == 0).any(axis=1),
        },
        warnings=(
            *acceptance_warnings(accepted, next_step),
            *undefined_warnings(num_undefined, int(comparison.num_draws.sum())),
        ),
    )
