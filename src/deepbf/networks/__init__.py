"""Networks: from prepared data sets to log odds, for vectors, sets and series."""

from deepbf.networks.base import AbstractNetwork, AbstractPreparation, InputLayout
from deepbf.networks.registry import NETWORKS, OBSERVATION_AXES, NetworkKind, check_network, check_structure

__all__ = [
    "NETWORKS",
    "OBSERVATION_AXES",
    "AbstractNetwork",
    "AbstractPreparation",
    "InputLayout",
    "NetworkKind",
    "check_network",
    "check_structure",
]
