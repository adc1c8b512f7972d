"""Model criticism: whether a model fits the observed data at all, whatever it is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf.criticism.leave_one_out_discrepancy import LeaveOneOut, leave_one_out
    from deepbf.criticism.model_criticism import Criticism, ModelCriticism, criticise
    from deepbf.criticism.posterior_fitting import PartialPosteriorError, fit_posterior
    from deepbf.criticism.posterior_predictive_check import (
        PredictiveCheck,
        StatisticCheck,
        Verdict,
        predictive_check,
    )
    from deepbf.criticism.posterior_sampler import PosteriorSampler
    from deepbf.criticism.predictive_source import ExactPosterior, PredictiveSource
    from deepbf.criticism.z_value_check import ZValues, z_values

__all__ = [
    "Criticism",
    "ExactPosterior",
    "LeaveOneOut",
    "ModelCriticism",
    "PartialPosteriorError",
    "PosteriorSampler",
    "PredictiveCheck",
    "PredictiveSource",
    "StatisticCheck",
    "Verdict",
    "ZValues",
    "criticise",
    "fit_posterior",
    "leave_one_out",
    "predictive_check",
    "z_values",
]

# No module bears the name of something exported: once imported, it would hide that.
_HOMES = {
    "Criticism": "model_criticism",
    "ExactPosterior": "predictive_source",
    "LeaveOneOut": "leave_one_out_discrepancy",
    "ModelCriticism": "model_criticism",
    "PartialPosteriorError": "posterior_fitting",
    "PosteriorSampler": "posterior_sampler",
    "PredictiveCheck": "posterior_predictive_check",
    "PredictiveSource": "predictive_source",
    "StatisticCheck": "posterior_predictive_check",
    "Verdict": "posterior_predictive_check",
    "ZValues": "z_value_check",
    "criticise": "model_criticism",
    "fit_posterior": "posterior_fitting",
    "leave_one_out": "leave_one_out_discrepancy",
    "predictive_check": "posterior_predictive_check",
    "z_values": "z_value_check",
}

__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
