"""The paper's cases of model criticism (Section S5.2): which data are criticised, and with which posteriors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf.criticism import PredictiveSource, fit_posterior
from deepbf_studies.problems.study import Study

EXACT, FLOW, GAN = "exact", "flow", "gan"
SAMPLERS = (EXACT, FLOW, GAN)
# The paper's outliers, as one value of all entries.
OUTLIERS = {"data-1-i": 18.0, "data-1-ii": 18.0, "data-2": 10.0, "data-3": 2.5}
NUM_OBS = 128
OBSERVED_SEED = 1_000_003


def observed_data(study: Study) -> dict[str, NDArray[Any]]:
    """Return the criticised data sets by name: one simulated from each model, by its name, then one of outliers."""
    observed = {model.name: model.simulate(1, OBSERVED_SEED).data[0] for model in study.models}
    value = OUTLIERS[study.name]
    return {**observed, f"outliers, all {value:g}": np.full(study.num_obs, value)}


def posterior_of(study: Study, model: int, sampler: str, **options: Any) -> PredictiveSource:
    """Return a sampler of the posterior of one model: the exact one, or one trained with options of `fit_posterior`.

    A model without parameters has nothing to learn: its predictions are its simulations.
    """
    if study.exact_posteriors is None:
        raise ValueError(f"study must come with exact posteriors; received {study.name}. Pass one of {list(OUTLIERS)}.")
    chosen = study.models[model]
    if sampler == EXACT or chosen.prior is None:
        return study.exact_posteriors[model]
    return fit_posterior(chosen, structure="exchangeable", method=sampler, progress=False, **options)
