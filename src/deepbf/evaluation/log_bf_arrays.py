"""Log Bayes factors at data of two models: the arrays that the toolkit works on, checked before it measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks

# Natural log Bayes factors, first model over second: at data of the first model, and at data of the second.
ByModel = tuple[NDArray[np.float64], NDArray[np.float64]]

# Two labels of results, tables and plots, which no estimator and no model may bear.
# The estimator under which exact log Bayes factors appear.
EXACT = "exact"
# The group that averages over models by their prior probabilities.
WEIGHTED = "weighted"


def check_names(names: Sequence[str]) -> tuple[str, str]:
    """Return the names of the two models, or raise `ValueError`.

    They must be two distinct strings, and neither may be "weighted", which labels the average over both models.
    """
    if isinstance(names, str) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be the names of two models; received {names!r}. Pass, for example, ('A', 'B').")
    if names[0] == names[1] or WEIGHTED in names:
        raise ValueError(f"names must be distinct, and not {WEIGHTED!r}; received {tuple(names)!r}. Rename a model.")
    return names[0], names[1]


def check_estimates(
    log_bf: Mapping[str, Sequence[ArrayLike]] | Sequence[ArrayLike], names: tuple[str, str]
) -> dict[str, ByModel]:
    """Return the log Bayes factors of each estimator by its name, or raise an error.

    A bare pair of arrays is called "estimate". All estimators must have been asked about the same data sets, as far as
    their number tells.
    """
    by_name = log_bf if isinstance(log_bf, Mapping) else {"estimate": log_bf}
    if not by_name:
        raise ValueError("log_bf must hold at least one estimator; received an empty dict.")
    if EXACT in by_name:
        raise ValueError(f"no estimator may be called {EXACT!r}; pass the exact values as exact=, or rename it.")
    estimates = {
        str(name): _checks.check_log_bfs("log_bf" if len(by_name) == 1 else f"log_bf of {name!r}", values, names)
        for name, values in by_name.items()
    }
    (first_name, first), *others = estimates.items()
    for name, values in others:
        for model, part, before in zip(names, values, first, strict=True):
            if len(part) != len(before):
                raise ValueError(
                    f"all estimators must be asked about the same data sets; at data of {model}, {first_name!r} has "
                    f"{len(before)} entries and {name!r} has {len(part)}."
                )
    return estimates


def check_exact(exact: Sequence[ArrayLike], estimates: Mapping[str, ByModel], names: tuple[str, str]) -> ByModel:
    """Return the exact log Bayes factors, or raise an error.

    There must be as many of them as of every estimate, and none may be nan: an exact Bayes factor is known everywhere.
    """
    checked = _checks.check_log_bfs("exact", exact, names)
    for name, values in estimates.items():
        for model, estimated_part, exact_part in zip(names, values, checked, strict=True):
            if len(estimated_part) != len(exact_part):
                raise ValueError(
                    f"log_bf of {name!r} and exact must be at the same data sets; at data of {model}, log_bf of "
                    f"{name!r} has {len(estimated_part)} entries and exact has {len(exact_part)}. Evaluate both on "
                    "the same simulations."
                )
    for model, part in zip(names, checked, strict=True):
        if np.isnan(part).any():
            raise ValueError(
                f"exact has {int(np.isnan(part).sum())} nan of {len(part)} at data of {model}, the first at index "
                f"{int(np.flatnonzero(np.isnan(part))[0])}. Leave out exact, or these data "
                "sets: an exact Bayes factor is known everywhere."
            )
    return checked


def answered_by(*estimates: ByModel) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two masks, for each model: True at the data sets that all of the estimators answer.

    An estimator says by nan that it has no answer; an infinite log Bayes factor is an answer.
    """
    first, second = (
        np.logical_and.reduce([~np.isnan(part) for part in parts]) for parts in zip(*estimates, strict=True)
    )
    return first, second


def posterior_log_odds(log_bf: ByModel, prior_probs: NDArray[np.float64]) -> ByModel:
    """Return the log posterior odds of the first model over the second: log BF plus the log prior odds.

    They are at the same data sets as the log Bayes factors. Infinite ones stay infinite.
    """
    log_prior_odds = float(np.log(prior_probs[0]) - np.log(prior_probs[1]))
    return log_bf[0] + log_prior_odds, log_bf[1] + log_prior_odds


def log_losses(log_odds: ByModel) -> ByModel:
    """Return the negative log posterior probability of the model that each data set came from, from log odds.

    Their mean is the cross-entropy that a classifier of the two models is trained to reduce.
    """
    # log(1 + exp(-x)) is 0 at +inf and inf at -inf: no probability is formed that could round to 0.
    return np.logaddexp(0.0, -log_odds[0]), np.logaddexp(0.0, log_odds[1])
