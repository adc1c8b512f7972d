"""The networks by name, for each structure of data, and how one is chosen.

A network from outside the package joins by `register_network`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.layout.data_layout import ArrayLayout, DataLayout
from deepbf.networks.base import FitPreparation, FreeNetwork, Link, NetworkKind, linked
from deepbf.networks.boosted_trees import BoostedTrees
from deepbf.networks.ensemble import committee_kind
from deepbf.networks.image_features import plain_image
from deepbf.networks.images import ConvImage, ImageSummary, SummaryImage
from deepbf.networks.log_linear import LogLinear
from deepbf.networks.mixed import MixedHead, MixedSummary
from deepbf.networks.nested import NestedSummary, plain_groups
from deepbf.networks.paper_networks import BNN, FNN, DeepSet2, SquashedSet
from deepbf.networks.responses import ResponsesSummary, plain_responses
from deepbf.networks.series import ConvSeries, SeriesSummary, SummarySeries
from deepbf.networks.series_features import plain_series
from deepbf.networks.set_attention import SetAttention, SummaryAndObservations
from deepbf.networks.sets import DeepSet, SetSummary, SortedSet, plain_set
from deepbf.networks.vector import (
    GatedMLP,
    ScaledMLP,
    SquashedVector,
    plain_vector,
    prepare_plain_vector,
    prepare_vector,
)

AUTO = "auto"
COMMITTEE = "committee"
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


register_network("vector", "head", NetworkKind(prepare_vector, ScaledMLP, peak_rate=5e-3))
register_network("vector", "gated", NetworkKind(prepare_vector, GatedMLP, peak_rate=2e-3))
register_network("vector", "mlp", NetworkKind(prepare_plain_vector, ScaledMLP, peak_rate=5e-3))
register_network("exchangeable", "deepset", NetworkKind(SetSummary.fit, DeepSet, peak_rate=1e-2, any_num_obs=True))
register_network(
    "exchangeable",
    "sorted-head",
    NetworkKind(SortedSet.fit, ScaledMLP, peak_rate=5e-3, any_num_obs=True, scalars_only=True),
)
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
register_network("image", "summary", NetworkKind(ImageSummary.fit, SummaryImage, peak_rate=5e-3))
register_network("image", "conv", NetworkKind(ImageSummary.fit_with_values, ConvImage, peak_rate=5e-3))
register_network("responses", "summary", NetworkKind(ResponsesSummary.fit, ScaledMLP, peak_rate=5e-3))


# What reads the plain view of each structure, beside the default network of the structure.
FREE = "free"
FREE_RATE = 2e-3
for _structure, _fit_plain in (
    ("vector", plain_vector),
    ("exchangeable", plain_set),
    ("series", plain_series),
    ("nested", plain_groups),
    ("image", plain_image),
    ("responses", plain_responses),
):
    _any_num_obs = _structure not in ("vector", "image", "responses")
    register_network(_structure, FREE, NetworkKind(_fit_plain, FreeNetwork, FREE_RATE, any_num_obs=_any_num_obs))

# Simple classifiers, which join the committee where simulations are few. They learn by no rate.
SIMPLE: dict[str, NetworkKind] = {
    "log-linear": NetworkKind(SquashedVector.fit, LogLinear, peak_rate=0.0),
    "boosted trees": NetworkKind(SquashedVector.fit, BoostedTrees, peak_rate=0.0),
}
# Between the names of a committee and of the simple classifiers that joined it.
JOINED = " + "


def check_network(network: object, layout: DataLayout) -> None:
    """Raise unless `network` is "auto" or the name of a network for data of this layout, whatever their shape."""
    if layout.packed:
        _checks.check_choice("network for mixed data", network, [AUTO, COMMITTEE, MIXED_NETWORK])
        return
    structure = layout.arrays[0].structure.name
    known = NETWORKS.get(structure, {})
    choices = [AUTO, *([COMMITTEE] if FREE in known else []), *known]
    _checks.check_choice(f"network for structure={structure!r}", network, choices)


def choose_network(layout: DataLayout, network: str = AUTO) -> str:
    """Return the name of the network that reads data of this layout: the one named, or the default.

    This is the one place where "auto" is resolved: a committee, wherever every array has a plain view.
    """
    if network != AUTO:
        return network
    if all(FREE in NETWORKS.get(array.structure.name, {}) for array in layout.arrays):
        return COMMITTEE
    return MIXED_NETWORK if layout.packed else layout.arrays[0].structure.default_network(layout.arrays[0].shape)


def network_kind(layout: DataLayout, network: str = AUTO, link: Link | None = None) -> NetworkKind:
    """Return the architecture that reads data of this layout, which must know the shape of a data set.

    `link` makes log odds of the output of networks, where the loss asks for one.
    """
    name, *simple = choose_network(layout, network).split(JOINED)
    if name != COMMITTEE:
        own = summary_kind(layout) if layout.packed else _array_kind(layout.arrays[0], name)
        return linked(own, link)
    fit_parts = [_array_kind(array, FREE).fit_preparation for array in layout.arrays]
    free = NetworkKind(_fit_arrays(layout, fit_parts), FreeNetwork, FREE_RATE)
    has_summary = layout.packed or layout.arrays[0].structure.summary_says_more
    informed = linked(summary_kind(layout), link) if has_summary else None
    return committee_kind(informed, linked(free, link), [SIMPLE[one] for one in simple])


def summary_kind(layout: DataLayout) -> NetworkKind:
    """Return the network with built-in knowledge of the structure: a summary of the data, and a head that reads it.

    Posterior samplers read the same summary.
    """
    kinds = [_array_kind(array, array.structure.default_network(array.shape)) for array in layout.arrays]
    if not layout.packed:
        return kinds[0]
    fit = _fit_arrays(layout, [kind.fit_preparation for kind in kinds])
    return NetworkKind(fit, MixedHead, MIXED_RATE, any_num_obs=True)


def _array_kind(array: ArrayLayout, name: str) -> NetworkKind:
    """Return the network of this name for one array, told of the array's covariates if it has any."""
    kind = NETWORKS[array.structure.name][name]
    if array.covariates is None:
        return kind
    return replace(kind, fit_preparation=partial(kind.fit_preparation, covariates=array.covariates))


def _fit_arrays(layout: DataLayout, fit_parts: Sequence[FitPreparation]) -> FitPreparation:
    """Return how the arrays of a data set are prepared together, given how to prepare each."""
    shapes = [array.shape for array in layout.arrays]
    return partial(MixedSummary.fit, shapes=shapes, fit_parts=fit_parts) if layout.packed else fit_parts[0]


def check_simulated(layout: DataLayout, network: str, data: Sequence[NDArray[np.generic]]) -> None:
    """Raise if simulated data, one array per model, do not have the structure that they were said to have.

    That is a matter of the structure's own rules, and of what the network can do with observations that are vectors,
    or that are not there.
    """
    for array, parts in layout.split(data):
        structure = array.structure
        shape = parts[0].shape[1:]
        if len(shape) >= structure.num_axes:
            informed = layout.packed or network in (AUTO, COMMITTEE)
            name = structure.default_network(shape) if informed else network
            named = "" if informed else f" with network={name!r}"
            kind = NETWORKS[structure.name][name]
            if kind.scalars_only and len(shape) > 1:
                raise ValueError(
                    f"network={name!r} puts observations in increasing order, so they must be scalars; the "
                    f"simulators return data sets of shape {shape}. Pass network='deepset', or leave network out."
                )
            if not kind.any_num_obs and any(np.isnan(one).any() for one in parts if one.dtype.kind == "f"):
                raise ValueError(
                    f"{array.called}{named} needs every value; the simulators return masked arrays, "
                    "with observations that are not there. Pass structure='exchangeable' or structure='nested' and "
                    "their default network, or simulate every value."
                )
        structure.check_simulated(array.called, parts)
