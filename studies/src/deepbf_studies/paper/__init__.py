"""The paper's figures and tables, and some that it lacks: each recomputed by one command, step by step, from a cache.

`Target`: a figure or table by name; `targets`: all of them; `reproduce`: compute what is missing, then draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf_studies.paper.running import find_target, names, reproduce, targets
    from deepbf_studies.paper.step import Cache, Step
    from deepbf_studies.paper.target import SCALES, Drawing, Target

__all__ = ["SCALES", "Cache", "Drawing", "Step", "Target", "find_target", "names", "reproduce", "targets"]

_HOMES = {
    "SCALES": "target",
    "Cache": "step",
    "Drawing": "target",
    "Step": "step",
    "Target": "target",
    "names": "running",
    "reproduce": "running",
    "find_target": "running",
    "targets": "running",
}

__getattr__ = lazy_names(__name__, _HOMES)
