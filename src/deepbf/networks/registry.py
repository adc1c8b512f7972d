"""The networks by name, for each structure of data, and how one is chosen.

A network from outside the package joins by `register_network`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.layout.data_layout import ArrayLayout, DataLayout
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

AUTO = "auto"
# The one network for mixed data; each array is prepared as the default network of its structure has it.
MIXED_NETWORK = "mixed"
MIXED_RATE = 5e-3

# By structure and by name. Which one is the default, `Structure.default_network` says.
NETWORKS: dict[str, dict[str, NetworkKind]] = {}


def register_network(structure: str, name: str, kind: NetworkKind) -> None:
    """Make a network known, so that ``deepbf.fit(structure=structure, network=name)`` finds it.

    `structure` is the name of a structure, registered or not yet. A network of the same name is replaced.
    """
    NETWORKS.setdefault(structure, {})[name] = kind


register_network("vector", "gated", NetworkKind(prepare_vector, GatedMLP, peak_rate=2e-3))
register_network("vector", "mlp", NetworkKind(prepare_plain_vector, ScaledMLP, peak_rate=5e-3))
register_network("exchangeable", "deepset", NetworkKind(SetSummary.fit, DeepSet, peak_rate=1e-2, any_num_obs=True))
register_network(
    "exchangeable",
    "sorted",
    NetworkKind(SortedSet.fit, GatedMLP, peak_rate=2e-3, any_num_obs=True, scalars_only=True),
)
register_network(
    "exchangeable",
    "set-attention",
    NetworkKind(SummaryAndObservations.fit, SetAttention, peak_rate=5e-3, any_num_obs=True),
)
register_network("exchangeable", "deepset2", NetworkKind(SquashedSet.fit, DeepSet2, peak_rate=2e-3))
# The paper also feeds exchangeable data to its vector networks.
for _structure in ("vector", "exchangeable"):
    register_network(_structure, "fnn", NetworkKind(SquashedVector.fit, FNN, peak_rate=2e-3))
    register_network(_structure, "bnn", NetworkKind(SquashedVector.fit, BNN, peak_rate=5e-3))
register_network("nested", "deepset", NetworkKind(NestedSummary.fit, DeepSet, peak_rate=1e-2, any_num_obs=True))
register_network("series", "summary", NetworkKind(SeriesSummary.fit, SummarySeries, peak_rate=5e-3, any_num_obs=True))
register_network(
    "series", "conv", NetworkKind(SeriesSummary.fit_with_values, ConvSeries, peak_rate=5e-3, any_num_obs=True)
)


def check_network(network: object, layout: DataLayout) -> None:
    """Raise unless `network` is "auto" or the name of a network for data of this layout, whatever their shape."""
    if layout.packed:
        _checks.check_choice("network for mixed data", MIXED_NETWORK if network == AUTO else network, [MIXED_NETWORK])
        return
    structure = layout.arrays[0].structure.name
    _checks.check_choice(f"network for structure={structure!r}", network, [AUTO, *NETWORKS.get(structure, {})])


def choose_network(layout: DataLayout, network: str = AUTO) -> str:
    """Return the name of the network that reads data of this layout: the one named, or the default for their shape.

    This is the one place where "auto" is resolved, for estimators, for posterior samplers and for the arrays of mixed
    data.
    """
    if layout.packed:
        return MIXED_NETWORK
    return layout.arrays[0].structure.default_network(layout.arrays[0].shape) if network == AUTO else network


def network_kind(layout: DataLayout, network: str = AUTO) -> NetworkKind:
    """Return the architecture that reads data of this layout, which must know the shape of a data set."""
    if not layout.packed:
        return NETWORKS[layout.arrays[0].structure.name][choose_network(layout, network)]
    fit_parts = [_default_kind(array).fit_preparation for array in layout.arrays]
    fit = partial(MixedSummary.fit, shapes=[array.shape for array in layout.arrays], fit_parts=fit_parts)
    return NetworkKind(fit, MixedHead, MIXED_RATE, any_num_obs=True)


def check_simulated(layout: DataLayout, network: str, data: Sequence[NDArray[np.generic]]) -> None:
    """Raise if simulated data, one array per model, do not have the structure that they were said to have.

    That is a matter of the structure's own rules, and of what the network can do with observations that are vectors,
    or that are not there.
    """
    for array, parts in layout.split(data):
        structure = array.structure
        shape = parts[0].shape[1:]
        if len(shape) >= structure.num_axes:
            name = structure.default_network(shape) if layout.packed or network == AUTO else network
            kind = NETWORKS[structure.name][name]
            if kind.scalars_only and len(shape) > 1:
                raise ValueError(
                    f"network={name!r} puts observations in increasing order, so they must be scalars; the "
                    f"simulators return data sets of shape {shape}. Pass network='deepset', or leave network out."
                )
            if not kind.any_num_obs and any(np.isnan(one).any() for one in parts if one.dtype.kind == "f"):
                raise ValueError(
                    f"{array.called} with network={name!r} needs every value; the simulators return masked arrays, "
                    "with observations that are not there. Pass structure='exchangeable' or structure='nested' and "
                    "their default network, or simulate every value."
                )
        structure.check_simulated(array.called, parts)


def _default_kind(array: ArrayLayout) -> NetworkKind:
    return NETWORKS[array.structure.name][array.structure.default_network(array.shape)]
