"""The networks by name, and which structure of data each is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from deepbf import _checks
from deepbf.networks.base import AbstractNetwork, AbstractPreparation
from deepbf.networks.nested_summary import NestedSummary
from deepbf.networks.preparation import Pilot, SquashedSet, SquashedVector, prepare_vector
from deepbf.networks.series import ConvSeries, SummarySeries
from deepbf.networks.series_summary import SeriesSummary
from deepbf.networks.set_attention import SetAttention, SummaryAndObservations
from deepbf.networks.set_summary import SetSummary
from deepbf.networks.sets import DeepSet, DeepSet2
from deepbf.networks.vector import BNN, FNN, ScaledMLP


@dataclass(frozen=True)
class NetworkKind:
    """How inputs are prepared, how a network starts and how fast it may learn, for one named architecture.

    `any_num_obs`: whether data sets may differ in the number of their observations.
    """

    fit_preparation: Callable[[Pilot], AbstractPreparation]
    init: Callable[..., AbstractNetwork]
    peak_rate: float
    any_num_obs: bool = False


# Leading axes of a data set that run over observations, which share one scale.
OBSERVATION_AXES = {"vector": 0, "exchangeable": 1, "series": 1, "nested": 2}

# The first of each structure is its default.
NETWORKS: dict[str, dict[str, NetworkKind]] = {
    "vector": {
        "mlp": NetworkKind(prepare_vector, ScaledMLP, peak_rate=5e-3),
        "fnn": NetworkKind(SquashedVector.fit, FNN, peak_rate=2e-3),
        "bnn": NetworkKind(SquashedVector.fit, BNN, peak_rate=5e-3),
    },
    "exchangeable": {
        "deepset": NetworkKind(SetSummary.fit, DeepSet, peak_rate=1e-2, any_num_obs=True),
        "set-attention": NetworkKind(SummaryAndObservations.fit, SetAttention, peak_rate=5e-3, any_num_obs=True),
        "deepset2": NetworkKind(SquashedSet.fit, DeepSet2, peak_rate=2e-3),
        # The paper also feeds exchangeable data to its vector networks.
        "fnn": NetworkKind(SquashedVector.fit, FNN, peak_rate=2e-3),
        "bnn": NetworkKind(SquashedVector.fit, BNN, peak_rate=5e-3),
    },
    "nested": {
        "deepset": NetworkKind(NestedSummary.fit, DeepSet, peak_rate=1e-2, any_num_obs=True),
    },
    "series": {
        "summary": NetworkKind(SeriesSummary.fit, SummarySeries, peak_rate=5e-3, any_num_obs=True),
        "conv": NetworkKind(SeriesSummary.fit_with_values, ConvSeries, peak_rate=5e-3, any_num_obs=True),
    },
}


def check_structure(structure: object) -> str:
    """Return the structure if it is known."""
    return _checks.check_choice("structure", structure, NETWORKS)


def check_network(network: object, structure: str) -> str:
    """Return the name of a network for this structure; "auto" gives the structure's default."""
    names = NETWORKS[structure]
    if network == "auto":
        return next(iter(names))
    return _checks.check_choice(f"network for structure={structure!r}", network, ["auto", *names])
