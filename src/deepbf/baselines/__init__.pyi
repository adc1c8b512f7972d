# What the package exports; read by type checkers, and by lazy_loader when a name is first used.

from .abc import abc_epsilon as abc_epsilon
from .abc import abc_forest as abc_forest
from .abc import abc_logistic as abc_logistic
from .abc import abc_ranked as abc_ranked
from .baseline_result import BaselineResult as BaselineResult
from .bridge_nuts import bridge as bridge
from .bridge_nuts import warp_bridge as warp_bridge
from .bridge_sampling import Evidence as Evidence
from .bridge_sampling import bridge_evidence as bridge_evidence
from .importance_sampling import importance as importance
from .integration import integrate as integrate

METHODS: tuple[str, ...]
