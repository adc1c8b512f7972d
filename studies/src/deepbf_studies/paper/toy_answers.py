"""What estimators answer about two observations: over planes of their values, and at simulated data sets.

Every step here is one training run, or one run of ABC, with everything that the heat maps ask of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from deepbf.baselines import abc_ranked
from deepbf_studies.paper.methods import DEEPSET2, FNN, OURS, train
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.problems import Study, load

TITLES = {"data-1-ii": "Data 1", "data-2": "Data 2", "data-3": "Data 3"}
STUDIES = tuple(TITLES)
# What is asked about two observations: the Bayes factor of both, of either alone, and of both taken twice.
BOTH, FIRST, SECOND, TWICE = "both", "first", "second", "twice"
PARTS = {1: (FIRST, SECOND), 2: (BOTH,), 4: (TWICE,)}

# The lowest and the highest value of an observation.  Narrow: where most data fall, and the outliers of the criticism
# example too (18, 10 and 2.5); wide: two to five times as far.  Counts are whole, all of them are asked about.
NARROW, WIDE = "narrow", "wide"
RANGES = {
    "data-1-ii": {NARROW: (0, 20), WIDE: (0, 40)},
    "data-2": {NARROW: (-11, 11), WIDE: (-20, 20)},
    "data-3": {NARROW: (0, 6), WIDE: (0, 30)},
}
COUNTS = ("data-1-ii",)
# Data sets of each model that scatter plots show, as the paper's do, and that ABC is asked about.
NUM_SCATTERED = 1_500

Floats = NDArray[np.float64]
Entry = TypeVar("Entry", bound=np.generic)
# Of each plane: the lowest value of either observation, the highest, and how many there are.
Planes = Mapping[str, tuple[float, float, int]]
Ask = Callable[[Floats], Mapping[str, Floats]]


@dataclass(frozen=True)
class Settings:
    """How long everything is trained, and at how much it is asked."""

    fnn_steps: int
    deepset_steps: int
    our_steps: int
    our_range_steps: int
    # Of a plane, along each axis, where observations are not counts.
    num_values: int
    # Of each model.
    num_datasets: int
    abc_simulations: int
    abc_strata: int
    abc_kept_per_stratum: int = 5
    abc_kept: int = 100
    seed: int = 1
    sample_seed: int = 1_000_003


SCALES = {
    "quick": Settings(
        fnn_steps=2_000,
        deepset_steps=150,
        our_steps=1_000,
        our_range_steps=500,
        num_values=41,
        num_datasets=15_000,
        abc_simulations=100_000,
        abc_strata=100,
    ),
    "standard": Settings(
        fnn_steps=20_000,
        deepset_steps=5_000,
        our_steps=10_000,
        our_range_steps=4_000,
        num_values=81,
        num_datasets=15_000,
        abc_simulations=1_000_000,
        abc_strata=1_000,
    ),
    "paper": Settings(
        fnn_steps=400_000,
        deepset_steps=400_000,
        our_steps=40_000,
        our_range_steps=40_000,
        num_values=121,
        num_datasets=15_000,
        abc_simulations=1_000_000,
        abc_strata=1_000,
    ),
}


def exact_step(study: str, settings: Settings) -> Step:
    """Return the step of the exact answers, which also keeps the planes and the data sets."""
    return Step(exact_answers, {"study": study, **asked_at(study, settings)})


def network_step(study: str, settings: Settings, method: str, num_obs: int = 2) -> Step:
    """Return the step that trains one network for so many observations."""
    num_steps = {FNN: settings.fnn_steps, DEEPSET2: settings.deepset_steps, OURS: settings.our_steps}[method]
    return Step(
        network_answers,
        {
            "study": study,
            "method": method,
            "num_obs": num_obs,
            "num_steps": num_steps,
            "seed": settings.seed,
            **asked_at(study, settings),
        },
    )


def abc_step(study: str, settings: Settings) -> Step:
    """Return the step that runs ABC, on the narrow plane and at some of the data sets."""
    return Step(
        abc_answers,
        {
            "study": study,
            "num_simulations": settings.abc_simulations,
            "num_strata": settings.abc_strata,
            "kept_per_stratum": settings.abc_kept_per_stratum,
            "num_kept": settings.abc_kept,
            "seed": settings.seed,
            "num_asked": NUM_SCATTERED,
            **asked_at(study, settings),
        },
    )


@step_function("toy_answers.exact_answers")
def exact_answers(study: str, planes: Planes, num_datasets: int, sample_seed: int) -> xr.Dataset:
    """Return exact log Bayes factors of every part of the two observations, and what they were asked at.

    A step. Besides the answers, the simulated data sets, `data`, and the names of the models.
    """
    loaded = load(study, num_obs=2)
    data = simulated(loaded, num_datasets, sample_seed)

    def ask(pairs: Floats) -> dict[str, Floats]:
        return {part: loaded.exact_log_bf(_part_of(pairs, part)) for part in (BOTH, FIRST, SECOND, TWICE)}

    answers = answers_of(ask, planes, data)
    answers["data"] = (("dataset", "observation"), data)
    answers["model"] = ("model", [model.name for model in loaded.models])
    return answers


@step_function("toy_answers.network_answers")
def network_answers(
    study: str,
    method: str,
    num_obs: int,
    num_steps: int,
    seed: int,
    planes: Planes,
    num_datasets: int,
    sample_seed: int,
) -> xr.Dataset:
    """Return what one network says of those parts of the two observations that have `num_obs` observations.

    A step: one training run, for data sets of exactly `num_obs` observations.
    """
    loaded = load(study, num_obs=num_obs)
    estimator = train(loaded.models, str(loaded.structure), method, num_steps, seed)

    def ask(pairs: Floats) -> dict[str, Floats]:
        return {part: estimator.log_bf(_part_of(pairs, part)) for part in PARTS[num_obs]}

    answers = answers_of(ask, planes, simulated(load(study, num_obs=2), num_datasets, sample_seed))
    answers.attrs["training_seconds"] = estimator.record.seconds
    return answers


@step_function("toy_answers.abc_answers")
def abc_answers(
    study: str,
    num_simulations: int,
    num_strata: int,
    kept_per_stratum: int,
    num_kept: int,
    seed: int,
    num_asked: int,
    planes: Planes,
    num_datasets: int,
    sample_seed: int,
) -> xr.Dataset:
    """Return what ABC says over the narrow plane, and at the first `num_asked` data sets of each model.

    A step. The wide plane is left out: no figure shows what ABC says there.
    """
    loaded = load(study, num_obs=2)
    started = time.perf_counter()

    def ask(pairs: Floats) -> dict[str, Floats]:
        result = abc_ranked(
            loaded.models,
            pairs,
            num_simulations=num_simulations,
            num_strata=num_strata,
            kept_per_stratum=kept_per_stratum,
            num_kept=num_kept,
            seed=seed,
        )
        return {BOTH: result.log_bf}

    data = first_of_each(simulated(loaded, num_datasets, sample_seed), num_asked)
    answers = answers_of(ask, {NARROW: planes[NARROW]}, data)
    answers.attrs["training_seconds"] = time.perf_counter() - started
    return answers


def answers_of(ask: Ask, planes: Planes, data: Floats) -> xr.Dataset:
    """Return answers over planes, dimensions (part, second, first), and at data sets, (part, dataset).

    `ask` maps pairs of observations, shape (many, 2), to log Bayes factors by part. All pairs are asked about at once,
    so that an estimator which starts anew each time does so once.
    """
    # Rounded, so that values are whole where they should be.
    axes = {name: np.round(np.linspace(low, high, number), 10) for name, (low, high, number) in planes.items()}
    # The first observation runs fastest.
    pairs = {name: np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2) for name, values in axes.items()}
    found = ask(np.concatenate([*pairs.values(), data]))
    parts = np.stack([np.asarray(log_bf, dtype=np.float64) for log_bf in found.values()])
    answers = xr.Dataset(coords={"part": list(found)})
    start = 0
    for name, values in axes.items():
        shape = (len(found), len(values), len(values))
        dims = ("part", f"{name}_second", f"{name}_first")
        answers[name] = (dims, parts[:, start : start + len(pairs[name])].reshape(shape))
        answers = answers.assign_coords({dims[1]: values, dims[2]: values})
        start += len(pairs[name])
    answers["samples"] = (("part", "dataset"), parts[:, start:])
    return answers


def _part_of(pairs: Floats, part: str) -> Floats:
    """Return the observations that a part takes."""
    taken = {BOTH: (0, 1), FIRST: (0,), SECOND: (1,), TWICE: (0, 1, 0, 1)}[part]
    return pairs[:, taken]


def simulated(study: Study, num_datasets: int, seed: int) -> Floats:
    """Return `num_datasets` data sets of each model as floats, those of the first model first.

    The model at place k has the seed `seed` + k.
    """
    drawn = [model.simulate(num_datasets, seed=seed + place).data for place, model in enumerate(study.models)]
    # Files hold whole numbers up to 2^31 only, and counts are larger at times.
    return np.concatenate(drawn).astype(np.float64)


def first_of_each(values: NDArray[Entry], number: int) -> NDArray[Entry]:
    """Return the first `number` data sets, or answers, of each model.

    `values` has those of the first model first, and as many of the second after them.
    """
    half = len(values) // 2
    number = min(number, half)
    return np.concatenate([values[:number], values[half : half + number]])


def asked_at(study: str, settings: Settings) -> dict[str, object]:
    """Return the settings of a step that say at what an estimator is asked: planes, and simulated data sets.

    Counts are asked about at every whole value, other observations at `num_values` values along each axis.
    """
    planes = {}
    for name, (low, high) in RANGES[study].items():
        planes[name] = [low, high, high - low + 1 if study in COUNTS else settings.num_values]
    return {"planes": planes, "num_datasets": settings.num_datasets, "sample_seed": settings.sample_seed}
