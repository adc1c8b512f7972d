"""The list of targets: every figure and table that can be reproduced, by name."""

from __future__ import annotations

import re

from deepbf import _checks
from deepbf_studies.paper import (
    consistency_decisions,
    consistency_simulations,
    criticism_panels,
    heat_maps,
    influenza,
    large_samples,
    repeated_fits,
    scorecard,
    separability,
    size_figures,
    variant_maps,
    weapon_drawings,
)
from deepbf_studies.paper.target import Target

_PARTS = (
    heat_maps,
    variant_maps,
    size_figures,
    large_samples,
    repeated_fits,
    separability,
    criticism_panels,
    weapon_drawings,
    scorecard,
    consistency_simulations,
    consistency_decisions,
    influenza,
)


def _place(target: Target) -> tuple[int, ...]:
    """Return where a target stands: main figures, tables, the supplement's, then what the paper lacks."""
    found = re.fullmatch(r"(figure|table)-(s?)(\d+)", target.name)
    if found is None:
        return (3, 0)
    kind, supplement, number = found.groups()
    return (2 if supplement else kind == "table", int(number))


# Sorting keeps the order of what the paper lacks.
_TARGETS: tuple[Target, ...] = tuple(sorted((one for part in _PARTS for one in part.TARGETS), key=_place))


def targets() -> tuple[Target, ...]:
    """Return all targets, in the paper's order, then those that it does not have."""
    return _TARGETS


def names() -> tuple[str, ...]:
    """Return the names that `find_target` knows."""
    return tuple(one.name for one in _TARGETS)


def find_target(name: str) -> Target:
    """Return the target called `name`."""
    _checks.check_choice("target", name, names())
    return next(one for one in _TARGETS if one.name == name)
