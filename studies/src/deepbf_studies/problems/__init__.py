"""Ready-made problems: models, the shape of their data and, where there is one, the exact Bayes factor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf.example import negbin_poisson_log_bf
    from deepbf_studies.problems.catalogue import load, names
    from deepbf_studies.problems.covariate import covariate_log_bf
    from deepbf_studies.problems.linear_series import ar_ma_log_bf
    from deepbf_studies.problems.mixture import (
        normal_mean_log_bf,
        normal_mixture_log_bf,
        normal_mixture_log_bf_by_enumeration,
        normal_mixture_log_bf_by_quadrature,
    )
    from deepbf_studies.problems.random_effects import random_effects_log_bf
    from deepbf_studies.problems.study import Study
    from deepbf_studies.problems.toy import exponential_log_bf

__all__ = [
    "Study",
    "ar_ma_log_bf",
    "covariate_log_bf",
    "exponential_log_bf",
    "load",
    "names",
    "negbin_poisson_log_bf",
    "normal_mean_log_bf",
    "normal_mixture_log_bf",
    "normal_mixture_log_bf_by_enumeration",
    "normal_mixture_log_bf_by_quadrature",
    "random_effects_log_bf",
]

_HOMES = {
    "Study": "study",
    "ar_ma_log_bf": "linear_series",
    "covariate_log_bf": "covariate",
    "exponential_log_bf": "toy",
    "load": "catalogue",
    "names": "catalogue",
    "negbin_poisson_log_bf": "toy",
    "normal_mean_log_bf": "mixture",
    "normal_mixture_log_bf": "mixture",
    "normal_mixture_log_bf_by_enumeration": "mixture",
    "normal_mixture_log_bf_by_quadrature": "mixture",
    "random_effects_log_bf": "random_effects",
}

__getattr__ = lazy_names(__name__, _HOMES)
