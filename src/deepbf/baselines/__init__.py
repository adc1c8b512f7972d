"""Independent judges of the trained estimator, first model over second.

Methods that take any models share one interface, ``method(models, observed, ..., seed=0)``, and return a
`BaselineResult`; `METHODS` lists them. The functions named ``*_log_bf`` are exact answers to particular comparisons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf.baselines.abc import abc_epsilon, abc_forest, abc_logistic, abc_ranked
    from deepbf.baselines.bridge_sampling import Evidence, bridge, bridge_evidence, warp_bridge
    from deepbf.baselines.covariate import covariate_log_bf
    from deepbf.baselines.exact import exponential_log_bf, negbin_poisson_log_bf, normal_mean_log_bf
    from deepbf.baselines.importance_sampling import importance
    from deepbf.baselines.integration import integrate
    from deepbf.baselines.linear_series import ar_ma_log_bf
    from deepbf.baselines.mixture import (
        normal_mixture_log_bf,
        normal_mixture_log_bf_by_enumeration,
        normal_mixture_log_bf_by_quadrature,
    )
    from deepbf.baselines.random_effects import random_effects_log_bf
    from deepbf.baselines.result import BaselineResult

METHODS = (
    "abc_epsilon",
    "abc_ranked",
    "abc_logistic",
    "abc_forest",
    "bridge",
    "warp_bridge",
    "integrate",
    "importance",
)

__all__ = [
    "METHODS",
    "BaselineResult",
    "Evidence",
    "abc_epsilon",
    "abc_forest",
    "abc_logistic",
    "abc_ranked",
    "ar_ma_log_bf",
    "bridge",
    "bridge_evidence",
    "covariate_log_bf",
    "exponential_log_bf",
    "importance",
    "integrate",
    "negbin_poisson_log_bf",
    "normal_mean_log_bf",
    "normal_mixture_log_bf",
    "normal_mixture_log_bf_by_enumeration",
    "normal_mixture_log_bf_by_quadrature",
    "random_effects_log_bf",
    "warp_bridge",
]

# Looked up when first used: a worker process that only simulates a study loads neither scikit-learn nor JAX.
_HOMES = {
    "BaselineResult": "result",
    "Evidence": "bridge_sampling",
    "abc_epsilon": "abc",
    "abc_forest": "abc",
    "abc_logistic": "abc",
    "abc_ranked": "abc",
    "ar_ma_log_bf": "linear_series",
    "bridge": "bridge_sampling",
    "bridge_evidence": "bridge_sampling",
    "covariate_log_bf": "covariate",
    "exponential_log_bf": "exact",
    "importance": "importance_sampling",
    "integrate": "integration",
    "negbin_poisson_log_bf": "exact",
    "normal_mean_log_bf": "exact",
    "normal_mixture_log_bf": "mixture",
    "normal_mixture_log_bf_by_enumeration": "mixture",
    "normal_mixture_log_bf_by_quadrature": "mixture",
    "random_effects_log_bf": "random_effects",
    "warp_bridge": "bridge_sampling",
}


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
