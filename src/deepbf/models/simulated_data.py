"""What simulators return, checked: one array with a data set per leading index, or a dict of such arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks

# Any, for a simulator alone decides whether it returns an array or a dict, and its user knows.
Data = Any


def as_checked(drawn: object) -> Data:
    """Return arrays of plain numbers, nan where they were masked, by name if they came by name."""
    if isinstance(drawn, Mapping):
        return {str(name): _as_array(array) for name, array in drawn.items()}
    return _as_array(drawn)


def with_nan_for_absent(masked: Any) -> NDArray[np.float64]:
    """Return a masked array as floats, nan where it is masked: the one mark of absence behind the public edge."""
    return np.ma.filled(np.ma.asarray(masked).astype(np.float64), np.nan)


def masked_where_absent(data: Data) -> Data:
    """Return simulated data as users pass them: masked where nan marks what is absent."""
    if isinstance(data, Mapping):
        return {name: masked_where_absent(array) for name, array in data.items()}
    return np.ma.masked_invalid(data) if data.dtype.kind == "f" and np.isnan(data).any() else data


def problem_with_data(drawn: object, size: int, num_obs: int | None) -> str | None:
    """Return what is wrong with a simulator's output as the end of a sentence, or None."""
    if isinstance(drawn, Mapping):
        return _problem_with_dict(drawn, size, num_obs)
    problem = _problem_with_array(drawn, size)
    if problem is not None or num_obs is None:
        return problem
    shape = np.asarray(drawn).shape
    if len(shape) < 2 or shape[1] != num_obs:
        return f"returned an array of shape {shape} for num_obs={num_obs}; axis 1 must be {num_obs} long"
    return None


def _problem_with_dict(drawn: Mapping[Any, Any], size: int, num_obs: int | None) -> str | None:
    if not drawn:
        return "returned an empty dict; return arrays by name, each with one data set per leading index"
    for name, array in drawn.items():
        if not isinstance(name, str):
            return f"returned a dict with the key {name!r}; name its arrays by strings"
        problem = _problem_with_array(array, size)
        if problem is not None:
            return f"returned a dict in which {name!r} is wrong: it {problem}"
    shapes = {name: np.shape(array) for name, array in drawn.items()}
    if num_obs is not None and not any(len(shape) > 1 and shape[1] == num_obs for shape in shapes.values()):
        return f"returned arrays of shapes {shapes} for num_obs={num_obs}; axis 1 of one must be {num_obs} long"
    return None


def _problem_with_array(drawn: object, size: int) -> str | None:
    if drawn is None:
        return "returned None; return an array with one data set per leading index"
    try:
        data = np.asarray(drawn)
    except ValueError as error:
        return f"returned {type(drawn).__name__}, which is not one array ({error}); return equally shaped data sets"
    if data.dtype.kind not in "biuf":
        return f"returned an array of dtype {data.dtype}; return real numbers"
    if data.ndim == 0:
        return f"returned a single number ({drawn!r}); return an array with leading axis {size}"
    if data.shape[0] != size:
        return f"returned an array of shape {data.shape}; the leading axis must be {size}, one entry a data set"
    if data.size == 0:
        return f"returned an empty array of shape {data.shape}; every data set needs at least one value"
    if np.ma.isMaskedArray(drawn):
        # What is masked is not there; what lies under the mask is of no account.
        data = np.where(np.ma.getmaskarray(drawn), 0, data)
    nonfinite = _checks.describe_nonfinite(data)
    return None if nonfinite is None else f"returned {nonfinite}; return finite numbers only"


def _as_array(drawn: object) -> NDArray[np.generic]:
    return with_nan_for_absent(drawn) if np.ma.isMaskedArray(drawn) else np.asarray(drawn)
