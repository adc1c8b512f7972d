"""What a plot reads: the results of one evaluation, or of several by number of observations, checked before drawing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import xarray as xr

from deepbf._checks import check_choice, check_count

# The name that evaluations give to the estimator which is the truth.
EXACT = "exact"


class HasResults(Protocol):
    """Anything that carries the results of an evaluation."""

    @property
    def results(self) -> xr.Dataset:
        """The labelled results."""
        ...


Evaluated = HasResults | xr.Dataset


def results_of(evaluation: Evaluated, needs: Sequence[str] = ()) -> xr.Dataset:
    """Return the results, which hold both models' names and all the variables in `needs`.

    Every plot of an evaluation begins with it. It takes an `Evaluation`, or its dataset, and names what is missing.
    """
    results = evaluation if isinstance(evaluation, xr.Dataset) else getattr(evaluation, "results", None)
    if not isinstance(results, xr.Dataset):
        raise TypeError(
            "evaluation must be an Evaluation or its results, an xarray.Dataset; "
            f"received {type(evaluation).__name__}. Pass what evaluate() returned."
        )
    missing = [name for name in needs if name not in results.variables]
    missing += [name for name in ("first", "second") if name not in results.attrs]
    if missing:
        raise ValueError(
            f"evaluation must hold {', '.join(missing)} for this plot; received the variables "
            f"{', '.join(map(str, results.data_vars)) or 'none'}. Pass what evaluate() returned, unchanged."
        )
    return results


def model_names(results: xr.Dataset) -> tuple[str, str]:
    """Return the names of the first and the second model."""
    return str(results.attrs["first"]), str(results.attrs["second"])


def estimator_names(results: xr.Dataset) -> list[str]:
    """Return the names of all estimators, the exact one included, in their order."""
    return [str(name) for name in results["estimator"].values]


def has_exact(results: xr.Dataset) -> bool:
    """Return whether the exact log Bayes factors were known."""
    return EXACT in estimator_names(results)


def choose_estimator(results: xr.Dataset, estimator: str | None) -> str:
    """Return the name of the estimator asked for, or of the only one besides the exact.

    Where there are several, None is refused, and the message lists them.
    """
    names = [name for name in estimator_names(results) if name != EXACT]
    if not names:
        raise ValueError(
            f"evaluation must hold an estimator besides {EXACT!r}; received none. Evaluate one, then plot it."
        )
    if estimator is not None:
        return check_choice("estimator", estimator, names)
    if len(names) > 1:
        listed = ", ".join(repr(name) for name in names)
        raise ValueError(
            f"estimator must be named where there are several; received None for {listed}. "
            f"Pass, for example, estimator={names[0]!r}."
        )
    return names[0]


def results_by_num_obs(evaluations: Mapping[int, Evaluated], needs: Sequence[str] = ()) -> dict[int, xr.Dataset]:
    """Return the results by number of observations, from few to many, all of the same two models in the same order.

    All hold the variables in `needs`.
    """
    if not isinstance(evaluations, Mapping):
        raise TypeError(
            "evaluations must map numbers of observations to evaluations; "
            f"received {type(evaluations).__name__}. Pass, for example, {{8: evaluation_8, 16: evaluation_16}}."
        )
    if not evaluations:
        raise ValueError(
            "evaluations must hold at least one evaluation; received an empty mapping. "
            "Pass, for example, {8: evaluation_8, 16: evaluation_16}."
        )
    counts = sorted(check_count("a key of evaluations, the number of observations,", key) for key in evaluations)
    by_num_obs = {num_obs: results_of(evaluations[num_obs], needs) for num_obs in counts}
    pairs = {model_names(results): num_obs for num_obs, results in by_num_obs.items()}
    if len(pairs) > 1:
        listed = "; ".join(f"{first} over {second} (n = {num_obs})" for (first, second), num_obs in pairs.items())
        raise ValueError(
            f"evaluations must compare the same two models in the same order; received {listed}. "
            "Draw each comparison on axes of its own."
        )
    return by_num_obs


def union_of_estimators(all_results: Iterable[xr.Dataset]) -> list[str]:
    """Return every estimator that occurs in any of the results, as first met, the exact one last.

    Styles go by the place in this list, so that an estimator looks the same for every number of observations.
    """
    names = dict.fromkeys(name for results in all_results for name in estimator_names(results))
    return sorted(names, key=lambda name: name == EXACT)
