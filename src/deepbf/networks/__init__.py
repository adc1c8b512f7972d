"""Networks: from prepared data sets to log odds, for every structure of data."""

from deepbf.networks.base import AbstractNetwork, AbstractPreparation, InputLayout, NetworkKind, Storable, linked
from deepbf.networks.registry import (
    NETWORKS,
    check_network,
    check_simulated,
    choose_network,
    network_kind,
    register_network,
)

__all__ = [
    "NETWORKS",
    "AbstractNetwork",
    "AbstractPreparation",
    "InputLayout",
    "NetworkKind",
    "Storable",
    "check_network",
    "check_simulated",
    "choose_network",
    "linked",
    "network_kind",
    "register_network",
]
