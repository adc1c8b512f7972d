"""Independent judges of the trained estimator, first model over second.

Methods that take any models share one interface, ``method(models, observed, ..., seed=0)``, and return a
`BaselineResult`; `METHODS` lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf.baselines.abc import abc_epsilon, abc_forest, abc_logistic, abc_ranked
    from deepbf.baselines.baseline_result import BaselineResult
    from deepbf.baselines.bridge_nuts import bridge, warp_bridge
    from deepbf.baselines.bridge_sampling import Evidence, bridge_evidence
    from deepbf.baselines.importance_sampling import importance
    from deepbf.baselines.integration import integrate

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
    "bridge",
    "bridge_evidence",
    "importance",
    "integrate",
    "warp_bridge",
]

# Looked up when first used: a worker process that only simulates a study loads neither scikit-learn nor JAX.
_HOMES = {
    "BaselineResult": "baseline_result",
    "Evidence": "bridge_sampling",
    "abc_epsilon": "abc",
    "abc_forest": "abc",
    "abc_logistic": "abc",
    "abc_ranked": "abc",
    "bridge": "bridge_nuts",
    "bridge_evidence": "bridge_sampling",
    "importance": "importance_sampling",
    "integrate": "integration",
    "warp_bridge": "bridge_nuts",
}


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
