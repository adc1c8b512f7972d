"""Model criticism: whether a model fits the observed data at all, whatever it is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf.criticism.check_result import PredictiveCheck, StatisticCheck
    from deepbf.criticism.checking import predictive_check
    from deepbf.criticism.criticising import Criticism, ModelCriticism, criticise
    from deepbf.criticism.exact_posterior import ExactPosterior
    from deepbf.criticism.left_out import LeaveOneOut, leave_one_out
    from deepbf.criticism.posterior_fitting import PartialPosteriorError, fit_posterior
    from deepbf.criticism.posterior_sampler import PosteriorSampler
    from deepbf.criticism.predictive_source import PredictiveSource
    from deepbf.criticism.told_apart import z_values
    from deepbf.criticism.z_result import ZValues

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
    "ZValues",
    "criticise",
    "fit_posterior",
    "leave_one_out",
    "predictive_check",
    "z_values",
]

_HOMES = {
    "Criticism": "criticising",
    "ExactPosterior": "exact_posterior",
    "LeaveOneOut": "left_out",
    "ModelCriticism": "criticising",
    "PartialPosteriorError": "posterior_fitting",
    "PosteriorSampler": "posterior_sampler",
    "PredictiveCheck": "check_result",
    "PredictiveSource": "predictive_source",
    "StatisticCheck": "check_result",
    "ZValues": "z_result",
    "criticise": "criticising",
    "fit_posterior": "posterior_fitting",
    "leave_one_out": "left_out",
    "predictive_check": "checking",
    "z_values": "told_apart",
}

__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
