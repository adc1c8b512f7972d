"""The estimator's file: one safetensors file with weights, and a JSON header that says how to put them together.

Loading builds only classes that registered themselves as storable (`deepbf.networks.Storable`), from arrays and
numbers: nothing in the file is ever run.
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
from deepbf._version import __version__
from deepbf.estimator.bayes_factor import BayesFactor
from deepbf.layout.data_layout import WHOLE, ArrayLayout, DataLayout, NumObsRange
from deepbf.layout.structure import Structure, find_structure
from deepbf.models.covariates import Covariates
from deepbf.models.hyperparameters import check_ranges, check_values
from deepbf.networks.base import STORABLE, AbstractNetwork, AbstractPreparation, InputLayout
from deepbf.networks.ensemble import blank_ensemble
from deepbf.networks.registry import network_kind
from deepbf.standardise import Standardiser
from deepbf.support import Typicality
from deepbf.training.trained import TrainedEnsemble, TrainingRecord

FORMAT = "deepbf-estimator"
FORMAT_VERSION = 1

Arrays = dict[str, NDArray[Any]]


def save(estimator: BayesFactor, path: str | os.PathLike[str]) -> None:
    """Write the estimator to `path`, whole or not at all.

    The file has the weights, what the data look like, and the simulations set aside for surprise and support. It does
    not have the models, which are Python functions.
    """
    ensemble, layout = estimator.ensemble, estimator.layout
    arrays: Arrays = {
        "standardiser.location": ensemble.standardiser.location,
        "standardiser.scale": ensemble.standardiser.scale,
    }
    header = {
        "names": list(estimator.names),
        "prior_probs": estimator.prior_probs.tolist(),
        "structure": layout.structure,
        "network": estimator.network,
        "loss": estimator.loss,
        "num_members": estimator.num_members,
        "data_shape": list(layout.shape),
        "layout": dataclasses.asdict(ensemble.preparation.layout(layout.shape)),
        "preparation": _describe_part(ensemble.preparation, "preparation", arrays),
        "record": dataclasses.asdict(ensemble.record),
        "has_reference": ensemble.reference is not None,
        "num_obs": None if layout.num_obs is None else list(layout.num_obs),
        "num_obs_asked": layout.asked is not None,
        "sizes": {array.name: array.sizes for array in layout.arrays},
        "hyperparameters": layout.hyperparameters,
        "values": None if estimator.values is None else dict(estimator.values),
        "has_typicality": ensemble.typicality is not None,
        "any_order": ensemble.any_order,
        "spread": ensemble.spread,
    }
    if layout.covariates is not None:
        header["covariates"] = {name: column.tolist() for name, column in layout.covariates.columns.items()}
    if layout.packed:
        header["form"] = [{"name": array.name, "shape": array.shape, "grows": array.grows} for array in layout.arrays]
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(ensemble.networks, eqx.is_array))
    arrays |= {"networks" + jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
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
    """Return the estimator saved at `path`; it answers bit for bit as it did when it was saved.

    Its `models` are None: pass them to methods that simulate, such as ``evaluate(models=[...])``. A network or loss
    from outside the library must be registered before. Raises a FileNotFoundError if there is no such file, and a
    ValueError that says what is wrong if it is not an estimator, is damaged, or was written by a newer version.
    """
    path = Path(path)
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
    try:
        return _rebuild(json.loads(metadata["header"]), arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} says it is a deepbf estimator, but its contents do not fit together ({error}). "
            "The file is damaged: save the estimator again."
        ) from error


def _rebuild(header: Mapping[str, Any], arrays: Arrays) -> BayesFactor:
    """Return the estimator from its header and arrays."""
    layout = _read_layout(header)
    # Files from before there were others do not name their loss.
    loss = header.get("loss", losses.OLDEST)
    kind = network_kind(layout, header["network"], losses.by_name(loss).link)
    inputs = InputLayout(**header["layout"])
    preparation = _build_part(header["preparation"], arrays)
    if not isinstance(preparation, AbstractPreparation):
        raise TypeError(f"{type(preparation).__name__} does not prepare data")
    standardiser = Standardiser(arrays["standardiser.location"], arrays["standardiser.scale"])
    # Data of this layout must pass through the standardiser and the preparation as networks read them.
    shape, num_axes = layout.shape, 0 if layout.packed else layout.arrays[0].structure.num_axes
    for name, array in (("location", standardiser.location), ("scale", standardiser.scale)):
        if array.shape != shape[num_axes:]:
            raise ValueError(f"standardiser.{name} has shape {array.shape} for data sets of shape {shape}")
    if preparation.layout(shape) != inputs:
        raise ValueError(f"the preparation does not fit data sets of shape {shape}")
    # Seven data sets, so that no axis of a wrong length broadcasts against the batch by chance.
    prepared = eqx.filter_eval_shape(preparation, jax.ShapeDtypeStruct((7, *shape), jnp.float32))
    if prepared.shape != (7, inputs.width):
        raise ValueError(f"the preparation makes {prepared.shape[1:]} columns, the networks read {inputs.width}")
    networks = _fill_leaves(blank_ensemble(kind, inputs, len(header["names"]), header["num_members"]), arrays)
    record = TrainingRecord(**header["record"])
    reference, reference_num_obs, typicality = _read_set_aside(header, arrays, inputs.num_describing)
    ensemble = TrainedEnsemble(
        layout=layout,
        standardiser=standardiser,
        preparation=preparation,
        networks=networks,
        record=record,
        reference=reference,
        reference_num_obs=reference_num_obs,
        typicality=typicality,
        any_order=bool(header.get("any_order", False)),
        spread=float(header.get("spread", 1.0)),
    )
    return BayesFactor(
        names=tuple(header["names"]),
        prior_probs=_checks.check_probs("prior_probs", header["prior_probs"], header["names"]),
        network=header["network"],
        ensemble=ensemble,
        loss=loss,
        values=check_values("values", layout.hyperparameters, header["values"]) if header["values"] else None,
    )


def _read_layout(header: Mapping[str, Any]) -> DataLayout:
    """Return what data sets look like."""
    structure = find_structure(header["structure"])
    sizes = {name: tuple((int(low), int(high)) for low, high in found) for name, found in header["sizes"].items()}
    asked = NumObsRange(*map(int, header["num_obs"])) if header["num_obs_asked"] else None
    ranges = check_ranges("hyperparameters", header["hyperparameters"]) if header["hyperparameters"] else {}
    table = Covariates.of(header["covariates"]) if "covariates" in header else None
    if isinstance(structure, Structure):
        shape = tuple(header["data_shape"])
        array = ArrayLayout(WHOLE, structure, shape, asked is not None, sizes.get(WHOLE, ()), table)
        return DataLayout((array,), asked, ranges)
    arrays = tuple(
        ArrayLayout(
            part["name"], structure[part["name"]], tuple(part["shape"]), part["grows"], sizes[part["name"]],
            table if structure[part["name"]].has_covariates else None,
        )
        for part in header["form"]
    )  # fmt: skip
    layout = DataLayout(arrays, asked, ranges)
    if sorted(sizes) != sorted(structure) or sorted(layout.columns) != sorted(structure):
        raise ValueError(f"the arrays {', '.join(layout.columns)} do not have the structures {header['structure']}")
    if layout.shape != tuple(header["data_shape"]):
        raise ValueError(f"arrays of {layout.width} numbers do not make rows of shape {header['data_shape']}")
    return layout


def _read_set_aside(
    header: Mapping[str, Any], arrays: Arrays, num_columns: int
) -> tuple[NDArray[np.float32] | None, NDArray[np.int32] | None, Typicality | None]:
    """Return what the file holds of simulations set aside: None for each part that it does not hold.

    The parts are the log odds there, how many observations they have where that varies, and how to tell strange data
    from usual ones, of which `num_columns` columns describe a data set. Raises a ValueError if shapes do not fit.
    """
    reference, reference_num_obs, typicality = None, None, None
    num_models = len(header["names"])
    if header.get("has_reference", False):
        reference = arrays["reference"]
        if reference.ndim != 3 or reference.shape[::2] != (num_models, num_models - 1):
            raise ValueError(f"reference has shape {reference.shape} for {num_models} models")
        if header.get("num_obs") is not None:
            reference_num_obs = arrays["reference_num_obs"]
            if reference_num_obs.shape != reference.shape[:2]:
                raise ValueError(f"reference_num_obs has shape {reference_num_obs.shape}")
    if header.get("has_typicality", False):
        typicality = Typicality(**{item.name: arrays[f"typicality.{item.name}"] for item in fields(Typicality)})
        num_directions = typicality.matrix.shape[-1]
        expected = {
            "location": (num_models, num_columns),
            "scale": (num_models, num_columns),
            "offset": (num_models, num_directions),
            "matrix": (num_models, num_columns, num_directions),
            "distances": (num_models, *typicality.distances.shape[1:2]),
        }
        for name, shape in expected.items():
            if getattr(typicality, name).shape != shape:
                raise ValueError(f"typicality.{name} has shape {getattr(typicality, name).shape}, not {shape}")
    return reference, reference_num_obs, typicality


def _describe_part(part: eqx.Module, name: str, arrays: Arrays) -> dict[str, Any]:
    """Return a JSON description of a preparation or a part of one, putting its arrays into `arrays`."""
    described: dict[str, Any] = {"kind": type(part).__name__}
    for item in fields(part):
        value = getattr(part, item.name)
        if isinstance(value, eqx.Module):
            described[item.name] = _describe_part(value, f"{name}.{item.name}", arrays)
        elif isinstance(value, tuple) and value and isinstance(value[0], eqx.Module):
            parts = [_describe_part(part, f"{name}.{item.name}.{k}", arrays) for k, part in enumerate(value)]
            described[item.name] = {"parts": parts}
        elif isinstance(value, jax.Array):
            arrays[f"{name}.{item.name}"] = np.asarray(value)
            described[item.name] = {"array": f"{name}.{item.name}"}
        else:
            described[item.name] = {"value": value}
    return described


def _build_part(described: Mapping[str, Any], arrays: Arrays) -> eqx.Module:
    """Return the part that `_describe_part` described."""
    values = {}
    for name, item in described.items():
        if name == "kind":
            continue
        if "kind" in item:
            values[name] = _build_part(item, arrays)
        elif "parts" in item:
            values[name] = tuple(_build_part(part, arrays) for part in item["parts"])
        elif "array" in item:
            values[name] = jnp.asarray(arrays[item["array"]])
        else:
            values[name] = _as_tuples(item["value"])
    if described["kind"] not in STORABLE:
        raise ValueError(f"it needs the class {described['kind']}; import the module that defines it first")
    return STORABLE[described["kind"]](**values)


def _as_tuples(value: Any) -> Any:
    """Return the value with tuples in place of lists, which is what they were before JSON."""
    return tuple(_as_tuples(one) for one in value) if isinstance(value, list) else value


def _fill_leaves(blank: AbstractNetwork, arrays: Arrays) -> AbstractNetwork:
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
