"""Steps that answer questions: one training run, one ABC reference, or some data sets by bridge sampling each."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from deepbf import baselines
from deepbf_studies.paper.methods import train
from deepbf_studies.paper.questions import Questions, answered
from deepbf_studies.paper.step import Step, step_function

# Bridge sampling takes so many data sets through one compiled program.
BRIDGE_AT_ONCE = 100


@step_function("answering.exactly")
def exactly(*, questions: dict[str, Any]) -> xr.Dataset:
    """Return the exact log Bayes factors."""
    asked = Questions(**questions)
    return answered(np.asarray(asked.load().exact_log_bf(asked.data()), dtype=np.float64), asked)


@step_function("answering.by_training")
def by_training(*, questions: dict[str, Any], method: str, num_steps: int, seed: int) -> xr.Dataset:
    """Return what one training run answers."""
    asked = Questions(**questions)
    study = asked.load()
    if not isinstance(study.structure, str):
        raise TypeError(f"{study.name} must have data of one array; received {study.structure}.")
    estimator = train(study.models, study.structure, method, num_steps, seed)
    return answered(estimator.log_bf(asked.data()), asked, num_simulations=estimator.record.num_simulations)


@step_function("answering.by_abc")
def by_abc(*, questions: dict[str, Any], num_simulations: int, num_strata: int, num_kept: int, seed: int) -> xr.Dataset:
    """Return what ranked ABC answers, on the data themselves as the paper has it."""
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
    """Return what bridge sampling answers at one part of the questions."""
    asked = Questions(**questions)
    method = baselines.warp_bridge if warp else baselines.bridge
    begin = part * BRIDGE_AT_ONCE
    data = asked.data()[begin : begin + BRIDGE_AT_ONCE]
    found = method(asked.load().models, data, num_draws=num_draws, seed=seed + part)
    return answered(found.log_bf, asked, warnings="; ".join(found.warnings))


def bridge_steps(questions: dict[str, Any], *, warp: bool, num_draws: int, seed: int) -> tuple[Step, ...]:
    """Return the steps that together answer all questions by bridge sampling."""
    num_parts = -(-len(Questions(**questions)) // BRIDGE_AT_ONCE)
    return tuple(
        Step(by_bridge, {"questions": questions, "warp": warp, "num_draws": num_draws, "part": part, "seed": seed})
        for part in range(num_parts)
    )
