"""Input checks shared by every public entry point, and the errors they raise.

Each message says which argument, the rule, the value received and the next step.
"""

from __future__ import annotations

import difflib
import numbers
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

_FOLDER = Path(__file__).parent
# The other package of this project: its lines are not the user's either.
_STUDIES = "deepbf_studies"


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the user's own line: the innermost one on the way here that is neither deepbf's nor deepbf-studies'.

    A fixed `stacklevel` would point into deepbf as soon as a function more stands between the two.
    """
    level = 1
    frame = sys._getframe()
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package != _STUDIES and _FOLDER not in Path(frame.f_code.co_filename).parents:
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_choice(argument: str, value: object, valid: Iterable[str]) -> str:
    """Return `value` if it is one of `valid`; otherwise name the nearest valid one."""
    names = list(valid)
    if isinstance(value, str) and value in names:
        return value
    listed = ", ".join(repr(name) for name in names)
    close = difflib.get_close_matches(str(value), names, n=1, cutoff=0.4)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{argument} must be one of {listed}; received {value!r}.{hint}")


def check_count(argument: str, value: object, *, least: int = 1) -> int:
    """Return `value` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{argument} must be a whole number, at least {least}; received {value!r}. Pass an int.")
    if value < least:
        raise ValueError(f"{argument} must be at least {least}; received {value}. Pass a larger number.")
    return int(value)


def check_positive(argument: str, value: object) -> float:
    """Return `value` as a finite float above zero."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{argument} must be a number above 0; received {value!r}. Pass a float or an int.")
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{argument} must be finite and above 0; received {value}. Pass a positive number.")
    return number


def check_seed(argument: str, value: object) -> int:
    """Return `value` as a non-negative int, the only kind of seed that a person can write down again."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{argument} must be a non-negative int; received {value!r}. Pass, for example, {argument}=1.")
    if value < 0:
        raise ValueError(f"{argument} must be a non-negative int; received {value}. Pass, for example, {argument}=1.")
    return int(value)


def check_probs(argument: str, value: ArrayLike | None, names: Sequence[str]) -> NDArray[np.float64]:
    """Return one probability per model, shape (K,), positive and summing to 1; equal ones when `value` is None.

    Sums within 1e-6 of 1 are rounding, and divided out. Raises a TypeError for what holds no numbers, and a ValueError
    for another length, for probabilities of 0 or less, and for other sums, with what to pass instead.
    """
    num_models = len(names)
    if value is None:
        return np.full(num_models, 1.0 / num_models)
    try:
        probs = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{argument} must be a sequence of numbers; received {value!r}.") from error
    if probs.shape != (num_models,):
        raise ValueError(
            f"{argument} has shape {probs.shape} for {num_models} models ({', '.join(names)}); "
            "pass one probability per model, summing to 1."
        )
    if not np.all(np.isfinite(probs)) or np.any(probs <= 0):
        raise ValueError(
            f"{argument} must be finite and above 0 for every model; received {probs.tolist()}. "
            "Leave a model with probability 0 out of the list of models."
        )
    if abs(probs.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"{argument} must sum to 1; received {probs.tolist()}, which sums to {probs.sum():.6g}. "
            f"Divide by the sum: {np.round(probs / probs.sum(), 6).tolist()}."
        )
    return probs / probs.sum()


def check_numeric_array(argument: str, value: object) -> NDArray[np.generic]:
    """Return `value` as an array of real numbers, refusing objects, text and complex numbers."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(
            f"{argument} cannot be made into one array ({error}); pass equally long rows, one per data set."
        ) from error
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{argument} must hold real numbers; received {type(value).__name__} that makes an array of dtype "
            f"{array.dtype}. Pass a numeric NumPy array."
        )
    return array


def describe_nonfinite(array: NDArray[np.generic]) -> str | None:
    """Return a phrase that counts the nan and inf entries and says where the first is, or None when all are finite."""
    if array.dtype.kind != "f":
        return None
    finite = np.isfinite(array)
    if finite.all():
        return None
    bad = np.argwhere(~finite)
    first = tuple(int(i) for i in bad[0])
    return f"{len(bad)} of {array.size} values not finite, the first, {array[first]}, at index {first}"


def check_datasets(argument: str, data: ArrayLike) -> NDArray[np.float64]:
    """Return `data` as float64 of shape (num_datasets, num_obs).

    Raises a ValueError for other numbers of axes and for nan or inf, and a TypeError for what holds no real numbers.
    """
    array = check_numeric_array(argument, data)
    if array.ndim != 2:
        raise ValueError(
            f"{argument} must have shape (num_datasets, num_obs); received shape {array.shape}. "
            f"Pass {argument}[None, :] for a single data set."
        )
    nonfinite = describe_nonfinite(array)
    if nonfinite is not None:
        raise ValueError(f"{argument} must be finite; received {nonfinite}. Remove or impute missing observations.")
    # Float before any sum: integer sums of large counts would wrap around in silence.
    return array.astype(np.float64)


def check_log_bfs(
    argument: str, value: Sequence[ArrayLike], names: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log Bayes factors at data of each of two models as two float64 arrays.

    Each model needs at least two data sets. Infinite and nan entries stay; whoever measures counts them.
    """
    rule = f"{argument} must be two one-dimensional arrays: log Bayes factors at data of {names[0]}, then of {names[1]}"
    try:
        parts = tuple(value)
    except TypeError as error:
        raise TypeError(f"{rule}; received {type(value).__name__}.") from error
    if len(parts) != 2:
        raise ValueError(f"{rule}; received {len(parts)} of them. Pass (at_first, at_second).")
    arrays = []
    for name, part in zip(names, parts, strict=True):
        array = check_numeric_array(f"{argument} at data of {name}", part).astype(np.float64)
        if array.ndim != 1:
            raise ValueError(f"{rule}; at data of {name} the shape is {array.shape}. Pass one number per data set.")
        if len(array) < 2:
            raise ValueError(
                f"{argument} has {len(array)} data sets of {name}; the toolkit needs at least 2 of each model. "
                "Simulate more of them."
            )
        arrays.append(array)
    return arrays[0], arrays[1]


def check_positive_pair(argument: str, value: tuple[float, float]) -> tuple[float, float]:
    """Return a pair of finite numbers above zero."""
    try:
        first, second = value
    except (TypeError, ValueError) as error:
        raise TypeError(f"{argument} must be a pair of positive numbers; received {value!r}.") from error
    return check_positive(f"{argument}[0]", first), check_positive(f"{argument}[1]", second)
