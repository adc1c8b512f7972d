"""The list of targets: every figure and table that can be reproduced, by name."""

from __future__ import annotations

from deepbf import _checks
from deepbf.reproduction import size_figures
from deepbf.reproduction.target import Target

_TARGETS: tuple[Target, ...] = (*size_figures.TARGETS,)


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
