"""What every baseline takes and returns: observed data, checked; log Bayes factors, errors and diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf._numerics import log_posterior_probs
from deepbf.models.model import ModelSet

_MOST_ROWS_PRINTED = 10
# Data sets drawn from each model to learn their shape; two, since one might hide a missing leading axis.
_NUM_TRIED = 2


@dataclass(frozen=True)
class BaselineResult:
    """The answer of one baseline at one or many observed data sets.

    Parameters
    ----------
    method
        The baseline, in words.
    names
        The models' names, in the order that gives every Bayes factor its direction.
    log_evidence
        Log evidence of each model, shape (data sets, K), up to one constant per data set; nan where the method
        says nothing about a model.
    log_bf_error
        Standard error of `log_bf`, one entry per data set: Monte Carlo error alone, not what the method gets wrong.
    diagnostics
        Arrays by name, each with one entry or one row per data set.
    warnings
        What a reader has to know before using the numbers.
    """

    method: str
    names: tuple[str, ...]
    log_evidence: NDArray[np.float64]
    log_bf_error: NDArray[np.float64]
    diagnostics: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def log_bf(self) -> NDArray[np.float64]:
        """Natural log Bayes factor of the first model over the second, one entry per data set."""
        # Data impossible under both models have no Bayes factor: nan.
        with np.errstate(invalid="ignore"):
            return self.log_evidence[:, 0] - self.log_evidence[:, 1]

    def posterior_probs(self, prior_probs: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the models' posterior probabilities, shape (data sets, K); equal prior probabilities if none given."""
        prior = _checks.check_probs("prior_probs", prior_probs, self.names)
        return np.exp(log_posterior_probs(self.log_evidence, np.log(prior)))

    def __str__(self) -> str:
        """Return a few lines: direction, one line per log Bayes factor, warnings."""
        lines = [f"{self.method}: log Bayes factor of {self.names[0]} over {self.names[1]}"]
        for log_bf, error in list(zip(self.log_bf, self.log_bf_error, strict=True))[:_MOST_ROWS_PRINTED]:
            lines.append(f"  {log_bf:.3f} +- {error:.3f}")
        if len(self.log_bf) > _MOST_ROWS_PRINTED:
            lines.append(f"  and {len(self.log_bf) - _MOST_ROWS_PRINTED} more data sets")
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


def check_observed(model_set: ModelSet, observed: ArrayLike, *, seed: int) -> NDArray[np.generic]:
    """Return the observed data with a leading axis of data sets, after checking shape and finiteness.

    Two data sets simulated from each model say what shape one data set has; all models must agree on it. A single
    observed data set of that shape gets a leading axis of length 1.
    """
    drawn = [model.simulate(_NUM_TRIED, seed).data for model in model_set.models]
    for model, data in zip(model_set.models, drawn, strict=True):
        if isinstance(data, Mapping):
            raise TypeError(
                f"baselines compare data sets of one array; model {model.name!r} simulates a dict of "
                f"{', '.join(data)}. Pass models whose simulators join them into one array, or summarise them."
            )
    shape = drawn[0].shape[1:]
    for model, data in zip(model_set.models, drawn, strict=True):
        if data.shape[1:] != shape:
            raise ValueError(
                f"models must simulate data sets of one shape; {model_set.models[0].name!r} gives {shape}, "
                f"{model.name!r} gives {data.shape[1:]}. Change one of the simulators."
            )
    array = _checks.check_numeric_array("observed", observed)
    if array.shape == shape:
        array = array[None]
    if array.ndim == 0 or array.shape[1:] != shape:
        raise ValueError(
            f"observed has shape {array.shape}; the models simulate data sets of shape {shape}. "
            "Pass one such data set, or many along a leading axis."
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
