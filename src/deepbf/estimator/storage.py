"""The estimator's file: one safetensors file with weights, and a JSON header that says how to put them together.

Loading builds only the classes listed here, from arrays and numbers: nothing in the file is ever run.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from deepbf import _checks, losses
from deepbf._files import write_whole
from deepbf._mixed import MixedForm, Part
from deepbf._version import __version__
from deepbf.estimator.bayes_factor import BayesFactor
from deepbf.models.hyperparameters import check_ranges, check_values
from deepbf.networks import (
    OBSERVATION_AXES,
    AbstractNetwork,
    AbstractPreparation,
    InputLayout,
    Structure,
    check_structure,
    linked,
    network_kind,
)
from deepbf.networks.ensemble import blank_ensemble
from deepbf.networks.features import CountLogs, MultiScale
from deepbf.networks.histogram import SoftHistogram
from deepbf.networks.mixed import MixedSummary
from deepbf.networks.nested import GroupSummary, NestedSummary
from deepbf.networks.series import SeriesFeatures, SeriesSummary
from deepbf.networks.set_attention import SummaryAndObservations
from deepbf.networks.sets import SetSummary, SortedSet
from deepbf.networks.vector import CountedVector, ScaledVector, SquashedSet, SquashedVector
from deepbf.standardise import Standardiser
from deepbf.training import TrainedEnsemble, TrainingRecord
from deepbf.training.typicality import Typicality, columns_of

FORMAT = "deepbf-estimator"
FORMAT_VERSION = 1

PARTS: dict[str, type[eqx.Module]] = {
    kind.__name__: kind
    for kind in (
        SquashedVector,
        SquashedSet,
        ScaledVector,
        CountedVector,
        CountLogs,
        SetSummary,
        SortedSet,
        SummaryAndObservations,
        NestedSummary,
        GroupSummary,
        SeriesSummary,
        SeriesFeatures,
        SoftHistogram,
        MultiScale,
        MixedSummary,
    )
}

Arrays = dict[str, NDArray[Any]]


def save(estimator: BayesFactor, path: str | os.PathLike[str]) -> None:
    """Write the estimator to `path`, whole or not at all."""
    ensemble = estimator.ensemble
    arrays: Arrays = {
        "standardiser.location": ensemble.standardiser.location,
        "standardiser.scale": ensemble.standardiser.scale,
    }
    header = {
        "names": list(estimator.names),
        "prior_probs": estimator.prior_probs.tolist(),
        "structure": estimator.structure,
        "network": estimator.network,
        "loss": estimator.loss,
        "num_members": estimator.num_members,
        "data_shape": list(ensemble.data_shape),
        "layout": dataclasses.asdict(ensemble.preparation.layout(ensemble.data_shape)),
        "preparation": describe_part(ensemble.preparation, "preparation", arrays),
        "record": dataclasses.asdict(ensemble.record),
        "has_reference": ensemble.reference is not None,
        "num_obs": None if ensemble.num_obs is None else list(ensemble.num_obs),
        "num_obs_asked": ensemble.num_obs_asked,
        "sizes": dict(ensemble.sizes),
        "hyperparameters": ensemble.hyperparameters,
        "values": None if estimator.values is None else dict(estimator.values),
        "has_typicality": ensemble.typicality is not None,
        "any_order": ensemble.any_order,
    }
    if ensemble.form is not None:
        header["form"] = dataclasses.asdict(ensemble.form)["parts"]
    arrays |= named_leaves(ensemble.networks)
    if ensemble.reference is not None:
        arrays["reference"] = ensemble.reference
    if ensemble.reference_num_obs is not None:
        arrays["reference_num_obs"] = ensemble.reference_num_obs
    if ensemble.typicality is not None:
        arrays |= {f"typicality.{item.name}": getattr(ensemble.typicality, item.name) for item in fields(Typicality)}
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "deepbf_version": __version__,
        "header": json.dumps(header),
    }
    content = to_bytes({name: np.array(array, order="C") for name, array in arrays.items()}, metadata)
    write_whole(path, content)


def load(path: str | os.PathLike[str]) -> BayesFactor:
    """Return the estimator saved at `path`; it answers bit for bit as it did when it was saved."""
    metadata, arrays = read_file(Path(path))
    try:
        return rebuild(json.loads(metadata["header"]), arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} says it is a deepbf estimator, but its contents do not fit together ({error}). "
            "The file is damaged: save the estimator again."
        ) from error


def read_file(path: Path) -> tuple[Mapping[str, str], Arrays]:
    """Return the metadata and arrays of a saved estimator, or say what the file is instead."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}. Pass the path given to save.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a saved estimator. Pass the path given to save.")
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a mapping
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a saved estimator, or is cut short ({error}). "
            "Pass a file written by save; if it was copied, copy it again."
        ) from error
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{path} holds tensors, but not a saved estimator (format {metadata.get('format')!r}). "
            "Pass a file written by BayesFactor.save."
        )
    written_version = metadata.get("format_version", "")
    if not written_version.isdecimal():
        raise ValueError(
            f"{path} says it is a deepbf estimator of file format {written_version!r}, which is no number. "
            "The file is damaged: save the estimator again."
        )
    version = int(written_version)
    if version > FORMAT_VERSION:
        raise ValueError(
            f"{path} was written by a newer deepbf ({metadata.get('deepbf_version')}, file format {version}; this is "
            f"{__version__}, which reads up to {FORMAT_VERSION}). Upgrade deepbf to load it."
        )
    return metadata, arrays


def rebuild(header: Mapping[str, Any], arrays: Arrays) -> BayesFactor:
    """Return the estimator from its header and arrays."""
    structure = check_structure(header["structure"])
    form = read_form(header, structure)
    # Files from before there were others do not name their loss.
    loss = header.get("loss", losses.DEFAULT)
    kind = linked(network_kind(structure, header["network"], form), losses.by_name(loss).link)
    layout = InputLayout(**header["layout"])
    preparation = build_part(header["preparation"], arrays)
    if not isinstance(preparation, AbstractPreparation):
        raise TypeError(f"{type(preparation).__name__} does not prepare data")
    standardiser = Standardiser(arrays["standardiser.location"], arrays["standardiser.scale"])
    num_axes = OBSERVATION_AXES[structure] if isinstance(structure, str) else 0
    check_shapes(standardiser, preparation, layout, tuple(header["data_shape"]), num_axes)
    ensemble = TrainedEnsemble(
        standardiser=standardiser,
        preparation=preparation,
        networks=fill_leaves(blank_ensemble(kind, layout, len(header["names"]), header["num_members"]), arrays),
        data_shape=tuple(header["data_shape"]),
        record=TrainingRecord(**header["record"]),
        reference=read_reference(header, arrays),
        reference_num_obs=read_reference_num_obs(header, arrays),
        num_obs=read_num_obs(header),
        num_obs_asked=bool(header["num_obs_asked"]),
        sizes={name: tuple((int(low), int(high)) for low, high in sizes) for name, sizes in header["sizes"].items()},
        form=form,
        hyperparameters=check_ranges("hyperparameters", header["hyperparameters"]) if header["hyperparameters"] else {},
        typicality=read_typicality(header, arrays, columns_of(layout)),
        any_order=bool(header.get("any_order", False)),
    )
    return BayesFactor(
        names=tuple(header["names"]),
        prior_probs=_checks.check_probs("prior_probs", header["prior_probs"], header["names"]),
        structure=structure,
        network=header["network"],
        ensemble=ensemble,
        loss=loss,
        values=check_values("values", ensemble.hyperparameters, header["values"]) if header["values"] else None,
    )


def check_shapes(
    standardiser: Standardiser,
    preparation: AbstractPreparation,
    layout: InputLayout,
    data_shape: tuple[int, ...],
    num_axes: int,
) -> None:
    """Raise unless data of this shape pass through the standardiser and the preparation as the layout says."""
    for name, array in (("location", standardiser.location), ("scale", standardiser.scale)):
        if array.shape != data_shape[num_axes:]:
            raise ValueError(f"standardiser.{name} has shape {array.shape} for data sets of shape {data_shape}")
    if preparation.layout(data_shape) != layout:
        raise ValueError(f"the preparation does not fit data sets of shape {data_shape}")
    # Seven data sets, so that no axis of a wrong length broadcasts against the batch by chance.
    prepared = eqx.filter_eval_shape(preparation, jax.ShapeDtypeStruct((7, *data_shape), jnp.float32))
    if prepared.shape != (7, layout.width):
        raise ValueError(f"the preparation makes {prepared.shape[1:]} columns, the networks read {layout.width}")


def read_form(header: Mapping[str, Any], structure: Structure) -> MixedForm | None:
    """Return how mixed data are packed."""
    if isinstance(structure, str):
        return None
    form = MixedForm(tuple(Part(part["name"], tuple(part["shape"]), part["grows"]) for part in header["form"]))
    if sorted(form.names) != sorted(structure) or sorted(header["sizes"]) != sorted(structure):
        raise ValueError(f"the arrays {', '.join(form.names)} do not have the structures {structure}")
    return form


def read_reference(header: Mapping[str, Any], arrays: Arrays) -> NDArray[np.float32] | None:
    """Return the log odds at simulations set aside, if the file holds them."""
    if not header.get("has_reference", False):
        return None
    reference, num_models = arrays["reference"], len(header["names"])
    if reference.ndim != 3 or reference.shape[::2] != (num_models, num_models - 1):
        raise ValueError(f"reference has shape {reference.shape} for {num_models} models")
    return reference


def read_typicality(header: Mapping[str, Any], arrays: Arrays, num_columns: int) -> Typicality | None:
    """Return how to tell strange data from usual ones, if the file holds it."""
    if not header.get("has_typicality", False):
        return None
    found = Typicality(**{item.name: arrays[f"typicality.{item.name}"] for item in fields(Typicality)})
    num_models, num_directions = len(header["names"]), found.matrix.shape[-1]
    expected = {
        "location": (num_models, num_columns),
        "scale": (num_models, num_columns),
        "offset": (num_models, num_directions),
        "matrix": (num_models, num_columns, num_directions),
        "distances": (num_models, *found.distances.shape[1:2]),
    }
    for name, shape in expected.items():
        if getattr(found, name).shape != shape:
            raise ValueError(f"typicality.{name} has shape {getattr(found, name).shape}, not {shape}")
    return found


def read_num_obs(header: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the range of the number of observations, if the estimator is for one."""
    found = header.get("num_obs")
    return None if found is None else (int(found[0]), int(found[1]))


def read_reference_num_obs(header: Mapping[str, Any], arrays: Arrays) -> NDArray[np.int32] | None:
    """Return how many observations those simulations have, if that varies."""
    if not header.get("has_reference", False) or header.get("num_obs") is None:
        return None
    if arrays["reference_num_obs"].shape != arrays["reference"].shape[:2]:
        raise ValueError(f"reference_num_obs has shape {arrays['reference_num_obs'].shape}")
    return arrays["reference_num_obs"]


def describe_part(part: eqx.Module, name: str, arrays: Arrays) -> dict[str, Any]:
    """Return a JSON description of a preparation or a part of one, putting its arrays into `arrays`."""
    described: dict[str, Any] = {"kind": type(part).__name__}
    for item in fields(part):
        value = getattr(part, item.name)
        if isinstance(value, eqx.Module):
            described[item.name] = describe_part(value, f"{name}.{item.name}", arrays)
        elif isinstance(value, tuple) and value and isinstance(value[0], eqx.Module):
            parts = [describe_part(part, f"{name}.{item.name}.{k}", arrays) for k, part in enumerate(value)]
            described[item.name] = {"parts": parts}
        elif isinstance(value, jax.Array):
            arrays[f"{name}.{item.name}"] = np.asarray(value)
            described[item.name] = {"array": f"{name}.{item.name}"}
        else:
            described[item.name] = {"value": value}
    return described


def build_part(described: Mapping[str, Any], arrays: Arrays) -> eqx.Module:
    """Return the part that `describe_part` described."""
    values = {}
    for name, item in described.items():
        if name == "kind":
            continue
        if "kind" in item:
            values[name] = build_part(item, arrays)
        elif "parts" in item:
            values[name] = tuple(build_part(part, arrays) for part in item["parts"])
        elif "array" in item:
            values[name] = jnp.asarray(arrays[item["array"]])
        else:
            values[name] = as_tuples(item["value"])
    return PARTS[described["kind"]](**values)


def as_tuples(value: Any) -> Any:
    """Return the value with tuples in place of lists, which is what they were before JSON."""
    return tuple(as_tuples(one) for one in value) if isinstance(value, list) else value


def named_leaves(networks: AbstractNetwork) -> Arrays:
    """Return the networks' arrays by their path in the tree."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(networks, eqx.is_array))
    return {"networks" + jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def fill_leaves(blank: AbstractNetwork, arrays: Arrays) -> AbstractNetwork:
    """Return the networks with the arrays in place, each checked against the shape that belongs there."""

    def fill(path: Any, leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        name = "networks" + jax.tree_util.keystr(path)
        array = arrays[name]
        if array.shape != leaf.shape:
            raise ValueError(f"{name} has shape {array.shape}, not {leaf.shape}")
        return jnp.asarray(array, leaf.dtype)

    return jax.tree_util.tree_map_with_path(fill, blank)
