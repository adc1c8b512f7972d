"""Networks: from prepared data sets to log odds, for vectors, sets and series."""

from deepbf.networks.base import AbstractNetwork, AbstractPreparation, InputLayout, linked
from deepbf.networks.registry import (
    NETWORKS,
    OBSERVATION_AXES,
    SORTED,
    NetworkKind,
    Structure,
    check_network,
    check_structure,
    network_for,
    network_kind,
)

__all__ = [
    "NETWORKS",
    "OBSERVATION_AXES",
    "SORTED",
    "AbstractNetwork",
    "AbstractPreparation",
    "InputLayout",
    "NetworkKind",
    "Structure",
    "check_network",
    "check_structure",
    "linked",
    "network_for",
    "network_kind",
]
