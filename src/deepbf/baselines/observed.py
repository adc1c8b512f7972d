"""Observed data as every baseline takes them: one data set or many, checked against what the models simulate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.models import ModelSet

# Data sets drawn from each model to learn their shape; two, since one might hide a missing leading axis.
NUM_TRIED = 2


def check_observed(model_set: ModelSet, observed: ArrayLike, *, seed: int) -> NDArray[np.generic]:
    """Return the observed data with a leading axis of data sets, after checking shape and finiteness."""
    shape = simulated_shape(model_set, seed=seed)
    array = _checks.check_numeric_array("observed", observed)
    if array.shape == shape:
        array = array[None]
    if array.ndim == 0 or array.shape[1:] != shape:
        raise ValueError(
            f"observed has shape {array.shape}; the models simulate data sets of shape {shape}. "
            f"Pass one such data set, or many along a leading axis."
        )
    if len(array) == 0:
        raise ValueError(f"observed must hold at least one data set; received an array of shape {array.shape}.")
    nonfinite = _checks.describe_nonfinite(array)
    if nonfinite is not None:
        raise ValueError(
            f"observed has {nonfinite} (leading axis: data sets). "
            "Remove or impute missing values the way the simulators would produce them."
        )
    return array


def simulated_shape(model_set: ModelSet, *, seed: int) -> tuple[int, ...]:
    """Return the shape of one data set, the same from all models."""
    drawn = [model.simulate(NUM_TRIED, seed).data for model in model_set.models]
    for model, data in zip(model_set.models, drawn, strict=True):
        if isinstance(data, Mapping):
            raise TypeError(
                f"baselines compare data sets of one array; model {model.name!r} simulates a dict of "
                f"{', '.join(data)}. Pass models whose simulators join them into one array, or summarise them."
            )
    shapes = [data.shape[1:] for data in drawn]
    for model, shape in zip(model_set.models, shapes, strict=True):
        if shape != shapes[0]:
            raise ValueError(
                f"models must simulate data sets of one shape; {model_set.models[0].name!r} gives {shapes[0]}, "
                f"{model.name!r} gives {shape}. Change one of the simulators."
            )
    return shapes[0]
