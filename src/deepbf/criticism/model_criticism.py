"""criticise: whether any of the models fits the observed data, in one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deepbf import _checks
from deepbf.answer import written_list
from deepbf.criticism.posterior_fitting import METHODS, check_model, fit_posterior
from deepbf.criticism.posterior_predictive_check import (
    USUAL_STATISTICS,
    PredictiveCheck,
    Statistics,
    check_statistics,
    predictive_check,
)
from deepbf.criticism.posterior_sampler import PosteriorSampler
from deepbf.criticism.predictive_source import check_observed
from deepbf.criticism.z_value_check import ZValues, z_values
from deepbf.layout.structure import Structure, find_structure
from deepbf.models.model import Model
from deepbf.simulation import check_executor
from deepbf.training.schedule import Budget


@dataclass(frozen=True)
class ModelCriticism:
    """What was found about one model.

    Parameters
    ----------
    sampler
        The model's posterior sampler, which can be asked for more.
    z
        Whether predictions of single observations can be told from the observed ones; None where data are not made of
        exchangeable observations.
    check
        Statistics of the observed data among those of predictions.
    """

    sampler: PosteriorSampler
    z: ZValues | None
    check: PredictiveCheck

    @property
    def name(self) -> str:
        """The model, by name."""
        return self.sampler.model.name

    @property
    def fits(self) -> bool:
        """Whether nothing here speaks against the model."""
        told_apart = self.z is not None and not self.z.covers_half
        return not told_apart and not any(check.verdict.fails for check in self.check.checks)


@dataclass(frozen=True)
class Criticism:
    """What was found about each of several models, at one observed data set.

    Ask it for one model by name, ``found["Poisson"]``, or go through all: ``for one in found``.

    Parameters
    ----------
    models
        What was found about each model, in the order given.
    """

    models: tuple[ModelCriticism, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The models, by name."""
        return tuple(one.name for one in self.models)

    def __getitem__(self, name: str) -> ModelCriticism:
        return self.models[self.names.index(_checks.check_choice("model", name, self.names))]

    def __iter__(self) -> Iterator[ModelCriticism]:
        return iter(self.models)

    @property
    def verdict(self) -> str:
        """Which of the models fit the observed data, in words."""
        fitting = [one.name for one in self.models if one.fits]
        if len(fitting) == len(self.models):
            return f"nothing here speaks against {written_list(fitting)}"
        failing = [name for name in self.names if name not in fitting]
        said = f"{written_list(failing)} {'does' if len(failing) == 1 else 'do'} not fit the data"
        return f"{said}; nothing here speaks against {written_list(fitting)}" if fitting else said

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "verdict": self.verdict,
            "models": {
                one.name: {
                    "fits": one.fits,
                    "z": None if one.z is None else one.z.to_dict(),
                    "check": one.check.to_dict(),
                }
                for one in self.models
            },
        }

    def __str__(self) -> str:
        parts = [self.verdict[0].upper() + self.verdict[1:]]
        for one in self.models:
            parts += ["", *([] if one.z is None else [str(one.z)]), str(one.check)]
        return "\n".join(parts)


def criticise(
    models: Model | Sequence[Model],
    observed: ArrayLike,
    *,
    structure: str = "vector",
    num_obs: tuple[int, int] | None = None,
    statistics: Statistics = USUAL_STATISTICS,
    method: str = "flow",
    seconds: float | None = None,
    steps: int | None = None,
    num_replicates: int = 3000,
    num_draws: int = 2000,
    executor: Executor | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Criticism:
    """Return what speaks against each model as a description of one observed data set, before they are compared.

    A sampler of each model's posterior is trained on its simulations; then its predictions are held against the data,
    by a classifier (`z_values`, for exchangeable observations) and by statistics (`predictive_check`).

    Parameters
    ----------
    models
        One model or several; those without parameters need no training.
    observed
        One data set, of the shape that the models simulate.
    structure
        How it is laid out, as in `deepbf.fit`: "vector", "exchangeable", "series", "nested" or "image".
    num_obs
        For simulators that take the number of observations, a range that includes that of the data.
    statistics
        What of the data the predictions should agree with, as in `predictive_check`.
    method
        "flow" or "gan", as in `deepbf.fit_posterior`.
    seconds, steps
        At most one budget: seconds for all samplers together, 60 by default, or steps for each.
    num_replicates, num_draws
        The number of draws of Z, and of predictions for the statistics.
    executor, seed, progress
        As in `deepbf.fit_posterior`.

    Examples
    --------
    >>> import numpy as np
    >>> import deepbf
    >>> narrow = deepbf.Model("narrow", simulator=lambda rng, size: rng.normal(0.0, 1.0, (size, 50)))
    >>> wide = deepbf.Model("wide", simulator=lambda rng, size: rng.normal(0.0, 3.0, (size, 50)))
    >>> observed = np.random.default_rng(1).normal(0.0, 3.0, 50)
    >>> deepbf.criticise([narrow, wide], observed, structure="exchangeable", progress=False).verdict
    'narrow does not fit the data; nothing here speaks against wide'
    """
    chosen = [check_model(model) for model in ([models] if isinstance(models, Model) else models)]
    laid_out = check_one_array(structure)
    # All that can be seen to be wrong, before minutes of training.
    if not chosen:
        raise ValueError("models must hold at least one model; received none.")
    _checks.check_choice("method", method, METHODS)
    check_statistics(statistics)
    check_executor(executor, chosen)
    for model in chosen:
        check_observed(model, observed, least=1, why="")
    _checks.check_count("num_replicates", num_replicates)
    _checks.check_count("num_draws", num_draws)
    _checks.check_seed("seed", seed)
    if laid_out.any_order and len(np.asarray(observed)) < 2:
        raise ValueError(
            "observed holds 1 observation; a classifier needs at least 2 to learn from. Call fit_posterior, then "
            "predictive_check."
        )
    trained = sum(model.prior is not None for model in chosen)
    budget = Budget.of(seconds, steps, None, num_models=1)
    each = None if budget.seconds is None else budget.seconds / max(1, trained)
    found = []
    for model in chosen:
        sampler = fit_posterior(
            model, structure=laid_out.name, num_obs=num_obs, method=method, seconds=each, steps=steps,
            executor=executor, seed=seed, progress=progress,
        )  # fmt: skip
        z = z_values(sampler, observed, num_replicates=num_replicates, seed=seed) if laid_out.any_order else None
        check = predictive_check(sampler, observed, statistics, num_draws=num_draws, seed=seed)
        found.append(ModelCriticism(sampler, z, check))
    return Criticism(tuple(found))


def check_one_array(structure: object) -> Structure:
    """Return the structure, if data sets of it are one array.

    Z-values and statistics are of one array; the error for several says how to look at their predictions.
    """
    laid_out = find_structure(structure)
    if not isinstance(laid_out, Structure):
        raise ValueError(
            f"structure must be that of one array; received {structure!r}. For data of several arrays, call "
            "fit_posterior for each model, and look at its predictive draws."
        )
    return laid_out
