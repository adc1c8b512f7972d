"""Log odds of a fraction of the evidence: the same observations, counted as fewer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepbf.estimator.bayes_factor import FEW_DATASETS, MANY_DATASETS, BayesFactor
from deepbf.networks.ensemble import compile_evaluation, ensemble_log_odds, in_batches
from deepbf.networks.sets import SetSummary, SortedSet


def fractional_log_odds(estimator: BayesFactor, data: NDArray[np.generic], fraction: float) -> NDArray[np.float32]:
    """Return each member's log odds for the likelihood to the power `fraction`, shape (ensemble, batch, K - 1).

    The default set networks see frequencies of values, and their number apart from them. Raised to a power, the
    likelihood of independent observations is that of as many fewer with the same frequencies.
    """
    preparation, networks = estimator.ensemble.preparation, estimator.ensemble.networks
    if not isinstance(preparation, SetSummary | SortedSet) or not preparation.largest:
        raise ValueError(
            f"fractional Bayes factors need a default network for sets, network='auto', and num_obs=(fewest, "
            f"most) in fit; the estimator has network={estimator.network!r}."
        )
    evaluate = compile_evaluation(lambda rows: ensemble_log_odds(networks, preparation(rows, fraction=fraction)))
    batch_size = FEW_DATASETS if len(data) <= FEW_DATASETS else MANY_DATASETS
    return in_batches(evaluate, data, batch_size, axis=1, before=estimator.ensemble.standardiser)
