"""Bridge sampling: one iterative scheme, met by a normal proposal or by its warped form."""

from deepbf.baselines.bridge_sampling.evidence import Evidence, bridge_evidence
from deepbf.baselines.bridge_sampling.methods import bridge, warp_bridge

__all__ = ["Evidence", "bridge", "bridge_evidence", "warp_bridge"]
