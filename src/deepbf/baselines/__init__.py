"""Independent judges of the trained estimator: exact log Bayes factors, first model over second."""

from deepbf.baselines.bridge_sampling import Evidence, bridge, bridge_evidence, warp_bridge
from deepbf.baselines.exact import exponential_log_bf, negbin_poisson_log_bf, normal_mean_log_bf
from deepbf.baselines.mixture import (
    normal_mixture_log_bf,
    normal_mixture_log_bf_by_enumeration,
    normal_mixture_log_bf_by_quadrature,
)

__all__ = [
    "Evidence",
    "bridge",
    "bridge_evidence",
    "exponential_log_bf",
    "negbin_poisson_log_bf",
    "normal_mean_log_bf",
    "normal_mixture_log_bf",
    "normal_mixture_log_bf_by_enumeration",
    "normal_mixture_log_bf_by_quadrature",
    "warp_bridge",
]
