"""The networks by name, and which structure of data each is for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from deepbf import _checks
from deepbf._mixed import MixedForm
from deepbf.networks.base import NetworkKind
from deepbf.networks.mixed import MixedHead, MixedSummary
from deepbf.networks.nested import NestedSummary
from deepbf.networks.series import ConvSeries, SeriesSummary, SummarySeries
from deepbf.networks.set_attention import SetAttention, SummaryAndObservations
from deepbf.networks.sets import DeepSet, DeepSet2, SetSummary, SortedSet
from deepbf.networks.vector import (
    BNN,
    FNN,
    GatedMLP,
    ScaledMLP,
    SquashedSet,
    SquashedVector,
    prepare_plain_vector,
    prepare_vector,
)

# One structure for data that are one array; one by name where they are several.
Structure = str | dict[str, str]

# Leading axes of a data set that run over observations, which share one scale.
OBSERVATION_AXES = {"vector": 0, "exchangeable": 1, "series": 1, "nested": 2}

# The network for scalar observations that takes them in increasing order, and up to how many it is the default.
SORTED = "sorted"
MOST_SORTED = 8

# The first of each structure is its default, but for few scalar observations.
NETWORKS: dict[str, dict[str, NetworkKind]] = {
    "vector": {
        "gated": NetworkKind(prepare_vector, GatedMLP, peak_rate=2e-3),
        "mlp": NetworkKind(prepare_plain_vector, ScaledMLP, peak_rate=5e-3),
        "fnn": NetworkKind(SquashedVector.fit, FNN, peak_rate=2e-3),
        "bnn": NetworkKind(SquashedVector.fit, BNN, peak_rate=5e-3),
    },
    "exchangeable": {
        "deepset": NetworkKind(SetSummary.fit, DeepSet, peak_rate=1e-2, any_num_obs=True),
        SORTED: NetworkKind(SortedSet.fit, GatedMLP, peak_rate=2e-3, any_num_obs=True),
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


# The one network for mixed data; each part is prepared as its structure's default network has it.
MIXED_NETWORK = "mixed"
MIXED_RATE = 5e-3


def network_kind(structure: Structure, network: str, form: MixedForm | None = None) -> NetworkKind:
    """Return the named architecture for data of this structure, and of this form if they are mixed."""
    if isinstance(structure, str):
        return NETWORKS[structure][network]
    if form is None or network != MIXED_NETWORK:
        raise ValueError(f"mixed data need a form and network={MIXED_NETWORK!r}; received {form} and {network!r}.")
    defaults = [NETWORKS[structure[name]][check_network("auto", structure[name])] for name in form.names]
    fit_parts = [kind.fit_preparation for kind in defaults]
    fit = partial(MixedSummary.fit, shapes=list(form.shapes.values()), fit_parts=fit_parts)
    return NetworkKind(fit, MixedHead, MIXED_RATE, any_num_obs=True)


def network_for(structure: Structure, data_shape: tuple[int, ...]) -> str:
    """Return the name of the default network for data sets of this shape."""
    if structure == "exchangeable" and len(data_shape) == 1 and data_shape[0] <= MOST_SORTED:
        return SORTED
    return check_network("auto", structure)


def check_structure(structure: object) -> Structure:
    """Return the structure, or structures by name, if they are known."""
    if not isinstance(structure, Mapping):
        return _checks.check_choice("structure", structure, NETWORKS)
    if not structure:
        raise ValueError(
            "structure must name the arrays of a data set, each with its structure; received an empty dict."
        )
    for name in structure:
        if not isinstance(name, str):
            raise TypeError(f"structure must name the arrays of a data set by strings; received {name!r}.")
    return {name: _checks.check_choice(f"structure[{name!r}]", structure[name], NETWORKS) for name in sorted(structure)}


def check_network(network: object, structure: Structure) -> str:
    """Return the name of a network for this structure; "auto" gives the structure's default."""
    if not isinstance(structure, str):
        return _checks.check_choice(
            "network for mixed data", MIXED_NETWORK if network == "auto" else network, [MIXED_NETWORK]
        )
    names = NETWORKS[structure]
    if network == "auto":
        return next(iter(names))
    return _checks.check_choice(f"network for structure={structure!r}", network, ["auto", *names])
