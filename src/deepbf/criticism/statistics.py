"""Statistics of data sets: the built-in ones by name, and the user's own, checked.

A statistic takes many data sets along a leading axis, and returns one number for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Any]


def _values(data: Floats) -> Floats:
    """Return all numbers of each data set in a row."""
    return data.reshape(len(data), -1)


def mean(data: Floats) -> Floats:
    """Return the mean of all values of each data set."""
    return _values(data).mean(axis=1)


def sd(data: Floats) -> Floats:
    """Return the standard deviation of all values of each data set; 0 for a single one."""
    values = _values(data)
    return values.std(axis=1, ddof=1 if values.shape[1] > 1 else 0)


def smallest(data: Floats) -> Floats:
    """Return the smallest value of each data set."""
    return _values(data).min(axis=1)


def largest(data: Floats) -> Floats:
    """Return the largest value of each data set."""
    return _values(data).max(axis=1)


def share_of_zeros(data: Floats) -> Floats:
    """Return which share of the values of each data set is 0."""
    return (_values(data) == 0).mean(axis=1)


def autocorrelation(data: Floats) -> Floats:
    """Return the correlation of each value with the next, in the order given; 0 where values do not vary."""
    if data.ndim != 2:
        raise ValueError(f"needs one number an observation; data sets have shape {data.shape[1:]}")
    with np.errstate(over="ignore"):
        centred = data - data.mean(axis=1, keepdims=True)
    # Largest first: squares of values near 1e150 would overflow in a sum.
    size = np.abs(centred).max(axis=1, keepdims=True)
    scaled = centred / np.where(size > 0, size, 1.0)
    total = (scaled**2).sum(axis=1)
    return (scaled[:, 1:] * scaled[:, :-1]).sum(axis=1) / np.where(total > 0, total, 1.0)


BUILT_IN: dict[str, Statistic] = {
    "mean": mean,
    "sd": sd,
    "min": smallest,
    "max": largest,
    "zeros": share_of_zeros,
    "autocorrelation": autocorrelation,
}


def check_statistics(statistics: Any) -> dict[str, Statistic]:
    """Return functions by name, from names of built-in ones, functions, sequences of both, or a mapping."""
    if isinstance(statistics, str) or callable(statistics):
        statistics = [statistics]
    if isinstance(statistics, Mapping):
        pairs = [(name, _one(f"statistics[{name!r}]", value)) for name, value in statistics.items()]
    elif isinstance(statistics, Sequence):
        pairs = [(_name(value, k), _one(f"statistics[{k}]", value)) for k, value in enumerate(statistics)]
    else:
        raise TypeError(
            "statistics must be names, functions, or functions by name; received "
            f"{type(statistics).__name__}. Pass, for example, {{'variance': lambda data: data.var(axis=1)}}."
        )
    if not pairs:
        raise ValueError(f"statistics must hold at least one; received none. Built in are {', '.join(BUILT_IN)}.")
    names = [name for name, _ in pairs]
    if any(not isinstance(name, str) or not name for name in names):
        raise TypeError(f"statistics must be named by strings; received the names {names}.")
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"statistics must have different names; received {', '.join(doubled)} twice. Pass a dict.")
    return dict(pairs)


def evaluate_statistic(name: str, statistic: Statistic, data: Floats, what: str) -> Floats:
    """Return one finite number a data set, or say which statistic failed and how."""
    try:
        # A copy: what a statistic does to its argument must not reach the next one.
        found = _checks.check_numeric_array(f"statistic {name!r}", statistic(data.copy()))
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"statistic {name!r} failed on {what} of shape {data.shape}: {said}") from error
    if found.shape != (len(data),):
        raise ValueError(
            f"statistic {name!r} returned shape {found.shape} for {len(data)} data sets, an array of shape "
            f"{data.shape}; return one number a data set, as lambda data: data.var(axis=1) does."
        )
    problem = _checks.describe_nonfinite(found)
    if problem is not None:
        raise ValueError(f"statistic {name!r} of {what} has {problem}; return a finite number for every data set.")
    return found.astype(np.float64)


def _one(argument: str, value: Any) -> Statistic:
    if callable(value):
        return value
    return BUILT_IN[_checks.check_choice(argument, value, BUILT_IN)]


def _name(value: Any, k: int) -> str:
    if isinstance(value, str):
        return value
    name = getattr(value, "__name__", "<lambda>")
    return f"statistic {k + 1}" if name == "<lambda>" else name
