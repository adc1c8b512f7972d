"""Summaries: what a distance compares, from the user's own function or from the data as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf import _checks

Summary = Callable[[Any], Any]

# Squares of larger numbers leave float64.
LARGEST_VALUE = 1e150


def check_summary(summary: object) -> None:
    """Raise unless `summary` is a function or None."""
    if summary is not None and not callable(summary):
        raise TypeError(
            f"summary must be a function of data sets or None; received {summary!r}. "
            "Pass, for example, summary=lambda data: data.mean(axis=1)."
        )


def summarise(summary: Summary | None, data: NDArray[np.generic], whose: str) -> NDArray[np.float64]:
    """Return the summaries of `data`, shape (data sets, features); the flattened data when there is no summary.

    `whose` says in errors which data these are.
    """
    values = data if summary is None else _call(summary, data, whose)
    if values.ndim == 0 or len(values) != len(data):
        raise ValueError(
            f"summary returned an array of shape {values.shape} for {len(data)} data sets of {whose}; its leading axis "
            f"must be {len(data)}. Reduce over the axes after the first, as in data.mean(axis=1)."
        )
    if values.size == 0:
        raise ValueError(f"summary returned an empty array of shape {values.shape} for {whose}; return some numbers.")
    return values.reshape(len(values), -1).astype(np.float64)


def check_observed_summaries(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the summaries of the observed data, refusing nan, inf and numbers whose squares would overflow."""
    nonfinite = _checks.describe_nonfinite(values)
    if nonfinite is not None:
        raise ValueError(
            f"summary of observed has {nonfinite} (leading axis: data sets). "
            "Choose a summary that is defined for the observed data."
        )
    largest = np.abs(values).max()
    if largest > LARGEST_VALUE:
        raise ValueError(
            f"observed summaries must lie within {LARGEST_VALUE:g} of 0, or their squares overflow; received "
            f"{largest:g}. Change the unit of the data, or pass a summary on a log scale."
        )
    return values


def _call(summary: Summary, data: NDArray[np.generic], whose: str) -> NDArray[np.generic]:
    try:
        returned = summary(data)
    except Exception as error:
        raise ValueError(
            f"summary raised {type(error).__name__}: {error}, given data of shape {data.shape} of {whose}. "
            "It must take many data sets along the leading axis."
        ) from error
    return _checks.check_numeric_array(f"summary of {whose}", returned)
