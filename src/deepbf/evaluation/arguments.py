"""What users pass to the toolkit, checked before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from deepbf import _checks
from deepbf.evaluation.labels import EXACT, WEIGHTED
from deepbf.evaluation.log_bfs import ByModel


def check_log_bfs(argument: str, value: Sequence[ArrayLike], names: Sequence[str]) -> ByModel:
    """Return the log Bayes factors as two float64 arrays; infinite and nan entries stay, to be counted later."""
    rule = f"{argument} must be two one-dimensional arrays: log Bayes factors at data of {names[0]}, then of {names[1]}"
    try:
        parts = tuple(value)
    except TypeError as error:
        raise TypeError(f"{rule}; received {type(value).__name__}.") from error
    if len(parts) != 2:
        raise ValueError(f"{rule}; received {len(parts)} of them. Pass (at_first, at_second).")
    arrays = []
    for name, part in zip(names, parts, strict=True):
        array = _checks.check_numeric_array(f"{argument} at data of {name}", part).astype(np.float64)
        if array.ndim != 1:
            raise ValueError(f"{rule}; at data of {name} the shape is {array.shape}. Pass one entry a data set.")
        if len(array) < 2:
            raise ValueError(
                f"{argument} has {len(array)} data sets of {name}; the toolkit needs at least 2 of each model. "
                "Simulate more of them."
            )
        arrays.append(array)
    return arrays[0], arrays[1]


def check_same_lengths(argument: str, value: ByModel, exact: ByModel, names: Sequence[str]) -> None:
    """Raise unless estimated and exact log Bayes factors are at the same data sets, as far as their number tells."""
    for name, estimated_part, exact_part in zip(names, value, exact, strict=True):
        if len(estimated_part) != len(exact_part):
            raise ValueError(
                f"{argument} and exact must be at the same data sets; at data of {name}, {argument} has "
                f"{len(estimated_part)} entries and exact has {len(exact_part)}. Evaluate both on the same simulations."
            )


def check_names(names: Sequence[str]) -> tuple[str, str]:
    """Return the two models' names."""
    if isinstance(names, str) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be the names of two models; received {names!r}. Pass, for example, ('A', 'B').")
    if names[0] == names[1] or WEIGHTED in names:
        raise ValueError(f"names must be distinct, and not {WEIGHTED!r}; received {tuple(names)!r}. Rename a model.")
    return names[0], names[1]


def check_estimates(
    log_bf: Mapping[str, Sequence[ArrayLike]] | Sequence[ArrayLike], names: tuple[str, str]
) -> dict[str, ByModel]:
    """Return the log Bayes factors of each estimator by its name."""
    by_name = log_bf if isinstance(log_bf, Mapping) else {"estimate": log_bf}
    if not by_name:
        raise ValueError("log_bf must hold at least one estimator; received an empty dict.")
    if EXACT in by_name:
        raise ValueError(f"no estimator may be called {EXACT!r}; pass the exact values as exact=, or rename it.")
    return {
        str(name): check_log_bfs("log_bf" if len(by_name) == 1 else f"log_bf of {name!r}", values, names)
        for name, values in by_name.items()
    }


def check_exact(exact: Sequence[ArrayLike], estimates: Mapping[str, ByModel], names: tuple[str, str]) -> ByModel:
    """Return the exact log Bayes factors, at as many data sets as every estimate, none of them nan."""
    checked = check_log_bfs("exact", exact, names)
    for name, values in estimates.items():
        check_same_lengths(f"log_bf of {name!r}", values, checked, names)
    for name, part in zip(names, checked, strict=True):
        if np.isnan(part).any():
            raise ValueError(
                f"exact has {int(np.isnan(part).sum())} nan of {len(part)} at data of {name}, the first at index "
                f"{int(np.flatnonzero(np.isnan(part))[0])}. Leave out exact, or these data "
                "sets: an exact Bayes factor is known everywhere."
            )
    return checked


def check_same_data(estimates: Mapping[str, ByModel], names: tuple[str, str]) -> None:
    """Raise unless all estimators were asked about as many data sets."""
    (first_name, first), *others = estimates.items()
    for name, values in others:
        for model, part, before in zip(names, values, first, strict=True):
            if len(part) != len(before):
                raise ValueError(
                    f"all estimators must be asked about the same data sets; at data of {model}, {first_name!r} has "
                    f"{len(before)} entries and {name!r} has {len(part)}."
                )


def check_observed_log_bfs(observed: Mapping[str, float] | float | None, estimators: Sequence[str]) -> dict[str, float]:
    """Return the observed log Bayes factor of each estimator that has one."""
    if observed is None:
        return {}
    if not isinstance(observed, Mapping):
        if len(estimators) > 1:
            raise ValueError(
                f"observed must be a dict by estimator where there are several ({', '.join(estimators)}); "
                f"received {observed!r}."
            )
        observed = {estimators[0]: observed}
    for name in observed:
        _checks.check_choice("the estimator of observed", name, estimators)
    return {name: float(value) for name, value in observed.items()}


def without_missing(
    name: str, values: ByModel, exact: ByModel | None, names: tuple[str, str]
) -> tuple[ByModel, ByModel | None]:
    """Return the estimated and exact log Bayes factors where the estimator gives one; nan says that it does not."""
    known = [~np.isnan(part) for part in values]
    for model, kept in zip(names, known, strict=True):
        if kept.sum() < 2:
            raise ValueError(
                f"log_bf of {name!r} is nan at {len(kept) - kept.sum()} of {len(kept)} data sets of {model}; nothing "
                "is left to measure. Use another estimator, or other settings of it."
            )
    kept_values = values[0][known[0]], values[1][known[1]]
    return kept_values, None if exact is None else (exact[0][known[0]], exact[1][known[1]])
