"""The estimators that are compared: how each is trained, what all of them are asked, and the steps that answer.

The same questions go to every estimator of a comparison: simulations of either model, and one observed data set. A step
is one training run, one ABC reference, or some data sets by bridge sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from deepbf import baselines
from deepbf.estimator import BayesFactor
from deepbf.estimator.fitting import fit
from deepbf.models import Model
from deepbf_studies import problems
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.problems import Study

FNN, BNN, DEEPSET2, OURS = "DeepBF-FNN", "DeepBF-BNN", "DeepBF-DeepSet", "deepbf"
ABC, BRIDGE, WARP = "ABC", "bridge", "warp bridge"

# Far from the seeds of training, which are small numbers.
_SEEDS_OF_MODELS = (8_100_001, 8_100_002)
_SEED_OF_OBSERVED = 8_200_001
# Bridge sampling takes so many data sets through one compiled program.
BRIDGE_AT_ONCE = 100


@dataclass(frozen=True)
class Training:
    """How one kind of network is trained: the paper's by the paper's schedule, ours by our own."""

    network: str
    schedule: str
    ensemble: int


TRAININGS = {
    FNN: Training("fnn", "paper", 1),
    BNN: Training("bnn", "paper", 1),
    DEEPSET2: Training("deepset2", "paper", 1),
    OURS: Training("auto", "auto", 4),
}


# Algorithm 1's, for all methods alike.
PAPER_LOSS = "cross_entropy"


def train(
    models: Sequence[Model],
    structure: str,
    method: str,
    num_steps: int | None,
    seed: int,
    *,
    num_simulations: int | None = None,
    num_obs: tuple[int, int] | None = None,
    loss: str = PAPER_LOSS,
    schedule: str | None = None,
    batch_size: int | None = None,
) -> BayesFactor:
    """Return the estimator that `method` trains in so many steps, each with fresh simulations.

    With `num_simulations`, and no number of steps, on a table of so many simulations, which is used again and again.
    With `num_obs`, for every number of observations in that range. With `schedule`, by that and not the method's own.
    """
    how = TRAININGS[method]
    return fit(
        models,
        structure=structure,
        network=how.network,
        schedule=schedule or how.schedule,
        ensemble=how.ensemble,
        steps=num_steps,
        num_simulations=num_simulations,
        num_obs=num_obs,
        loss=loss,
        batch_size=batch_size,
        seed=seed,
        progress=False,
    )


@dataclass(frozen=True)
class Questions:
    """Data sets in a row: so many of the first model, as many of the second, then the observed one, repeated.

    Parameters
    ----------
    study, num_obs
        The study and its number of observations.
    num_datasets
        The number of simulated data sets of each model, of which `num_asked` are asked about: slow estimators see the
        first few of what the others see.
    num_asked
        None for all.
    num_repeats
        How often the observed data set comes at the end, for estimators that answer differently every time.
    """

    study: str
    num_obs: int
    num_datasets: int
    num_asked: int | None = None
    num_repeats: int = 1

    @property
    def asked(self) -> int:
        """The number of data sets of each model that are asked about."""
        return self.num_datasets if self.num_asked is None else min(self.num_asked, self.num_datasets)

    def __len__(self) -> int:
        return 2 * self.asked + self.num_repeats

    def load(self) -> Study:
        """Return the study."""
        return problems.load(self.study, num_obs=self.num_obs)

    def data(self) -> NDArray[Any]:
        """Return all data sets, shape (questions, num_obs)."""
        models = self.load().models
        simulated = [
            model.simulate(self.num_datasets, seed).data[: self.asked]
            for model, seed in zip(models, _SEEDS_OF_MODELS, strict=True)
        ]
        observed = models[1].simulate(1, _SEED_OF_OBSERVED).data
        return np.concatenate([*simulated, np.repeat(observed, self.num_repeats, axis=0)])


@dataclass(frozen=True)
class Answers:
    """What one estimator says: at data of either model, nan where it was not asked, and at the observed data set."""

    by_model: tuple[NDArray[np.float64], NDArray[np.float64]]
    observed: NDArray[np.float64]
    seconds: float

    @classmethod
    def of(cls, parts: xr.Dataset | list[xr.Dataset], num_datasets: int) -> Answers:
        """Return the answers kept by one step, or by several that shared the questions among them."""
        listed = parts if isinstance(parts, list) else [parts]
        log_bf = np.concatenate([np.asarray(part["log_bf"], dtype=np.float64) for part in listed])
        num_repeats = int(listed[0].attrs["num_repeats"])
        asked = (len(log_bf) - num_repeats) // 2
        rest = np.full(num_datasets - asked, np.nan)
        return cls(
            by_model=(np.append(log_bf[:asked], rest), np.append(log_bf[asked : 2 * asked], rest)),
            observed=log_bf[2 * asked :],
            seconds=sum(float(part.attrs["seconds"]) for part in listed),
        )


def answered(log_bf: NDArray[np.float64], questions: Questions, **attributes: Any) -> xr.Dataset:
    """Return answers as a step keeps them: `log_bf` by question, with what `Answers.of` needs to tell them apart.

    Further `attributes` say how the answers came about.
    """
    return xr.Dataset(
        {"log_bf": ("question", log_bf)},
        attrs={"num_obs": questions.num_obs, "num_repeats": questions.num_repeats, **attributes},
    )


@step_function("answering.exactly")
def exactly(*, questions: dict[str, Any]) -> xr.Dataset:
    """Return the exact log Bayes factors of all questions.

    A step; `questions` are the fields of `Questions`, as are those of every step here.
    """
    asked = Questions(**questions)
    return answered(np.asarray(asked.load().exact_log_bf(asked.data()), dtype=np.float64), asked)


@step_function("answering.by_training")
def by_training(*, questions: dict[str, Any], method: str, num_steps: int, seed: int) -> xr.Dataset:
    """Return what one training run of one of the `TRAININGS` answers, and how many simulations it took.

    A step. For studies whose data are one array; those of several raise `TypeError`.
    """
    asked = Questions(**questions)
    study = asked.load()
    if not isinstance(study.structure, str):
        raise TypeError(f"{study.name} must have data of one array; received {study.structure}.")
    estimator = train(study.models, study.structure, method, num_steps, seed)
    return answered(estimator.log_bf(asked.data()), asked, num_simulations=estimator.record.num_simulations)


@step_function("answering.by_abc")
def by_abc(*, questions: dict[str, Any], num_simulations: int, num_strata: int, num_kept: int, seed: int) -> xr.Dataset:
    """Return what ranked ABC answers, on the data themselves as the paper has it.

    A step. One table of `num_simulations` simulations, in `num_strata` strata, serves all questions; each keeps the
    `num_kept` nearest.
    """
    asked = Questions(**questions)
    found = baselines.abc_ranked(
        asked.load().models,
        asked.data(),
        num_simulations=num_simulations,
        num_strata=num_strata,
        num_kept=num_kept,
        seed=seed,
    )
    return answered(found.log_bf, asked)


@step_function("answering.by_bridge")
def by_bridge(*, questions: dict[str, Any], warp: bool, num_draws: int, part: int, seed: int) -> xr.Dataset:
    """Return what bridge sampling answers at one part of the questions, by the simple or the warped proposal.

    A step. Parts have `BRIDGE_AT_ONCE` questions, and a seed of their own.
    """
    asked = Questions(**questions)
    method = baselines.warp_bridge if warp else baselines.bridge
    begin = part * BRIDGE_AT_ONCE
    data = asked.data()[begin : begin + BRIDGE_AT_ONCE]
    found = method(asked.load().models, data, num_draws=num_draws, seed=seed + part)
    return answered(found.log_bf, asked, warnings="; ".join(found.warnings))


def bridge_steps(questions: dict[str, Any], *, warp: bool, num_draws: int, seed: int) -> tuple[Step, ...]:
    """Return the steps that together answer all questions by bridge sampling, in the order of the questions.

    `Answers.of` puts their results together again.
    """
    num_parts = -(-len(Questions(**questions)) // BRIDGE_AT_ONCE)
    return tuple(
        Step(by_bridge, {"questions": questions, "warp": warp, "num_draws": num_draws, "part": part, "seed": seed})
        for part in range(num_parts)
    )
