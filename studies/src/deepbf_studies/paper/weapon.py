"""The weapon study's steps at every scale: who is asked, how long they train, and how they compare with the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from deepbf import losses
from deepbf.evaluation import measure
from deepbf.evaluation.labels import EXACT
from deepbf.training.schedule import THOROUGH_NAME
from deepbf_studies.paper import weapon_answers as ask
from deepbf_studies.paper import weapon_data as data
from deepbf_studies.paper.methods import BNN, FNN, OURS
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.paper.weapon_answers import FULL, MODELS, SUM

# The Bayes factor of the real data by TreeBUGS: tail areas at a given one depend on the trees alone.
PAPER_BF = 8.10

IMPORTANCE = "importance sampling"
ABC_FULL, ABC_SUM = "ABC-full", "ABC-sum"
PAPER_SUM, PAPER_FULL = "DeepBF-sum", "DeepBF-full"
OUR_SUM, OUR_FULL = "deepbf-sum", "deepbf-full"
OUR_THOROUGH = "deepbf-sum, thorough"
PAPER_GEOMETRIC, PAPER_ARITHMETIC = "DeepGBF", "DeepABF"
OUR_GEOMETRIC, OUR_ARITHMETIC = "deepbf GBF", "deepbf ABF"

# Data sets a model in the mini-batches of the thorough training.
LARGE_BATCH = 2_048

# In words, and whether a method needs every person's counts.
METHODS = {
    ABC_FULL: "ABC by rank, every person's counts",
    ABC_SUM: "ABC by rank, sums over people",
    IMPORTANCE: "prior and Betas, as TreeBUGS does, sums",
    PAPER_SUM: "the paper's FNN and schedule, sums",
    PAPER_FULL: "the paper's BNN and schedule, every person",
    OUR_SUM: "deepbf's defaults, sums",
    OUR_THOROUGH: 'deepbf with schedule="thorough", sums',
    OUR_FULL: "deepbf's defaults, every person",
    PAPER_GEOMETRIC: "geometric intrinsic, BNN of all and FNN of one",
    PAPER_ARITHMETIC: "arithmetic intrinsic, BNN of all and FNN of one",
    OUR_GEOMETRIC: "geometric intrinsic, deepbf's variants",
    OUR_ARITHMETIC: "arithmetic intrinsic, deepbf's variants",
}
NEED_PEOPLE = (ABC_FULL, PAPER_FULL, OUR_FULL, PAPER_GEOMETRIC, PAPER_ARITHMETIC, OUR_GEOMETRIC, OUR_ARITHMETIC)
INTRINSIC = {
    PAPER_GEOMETRIC: "geometric",
    PAPER_ARITHMETIC: "arithmetic",
    OUR_GEOMETRIC: "geometric",
    OUR_ARITHMETIC: "arithmetic",
}


@dataclass(frozen=True)
class Settings:
    """How long everything is trained, and at how much it is asked; repetitions differ in their seed alone."""

    # Of each tree.
    num_datasets: int
    paper_steps_sum: int
    paper_steps_full: int
    paper_steps_person: int
    our_steps_sum: int
    our_steps_thorough: int
    our_steps_full: int
    our_steps_variants: int
    importance_draws: int
    abc_simulations: int
    abc_strata: int
    abc_kept_per_stratum: int = 5
    abc_kept: int = 120
    # Estimates of the observed data, the first included: of methods that take seconds, and of those that take minutes.
    num_repeats: int = 20
    num_slow_repeats: int = 20
    reference_seed: int = 1_000
    seed: int = 1


SCALES = {
    "quick": Settings(
        num_datasets=100,
        paper_steps_sum=1_000,
        paper_steps_full=100,
        paper_steps_person=1_000,
        our_steps_sum=1_000,
        our_steps_thorough=100,
        our_steps_full=150,
        our_steps_variants=150,
        importance_draws=1_000,
        abc_simulations=20_000,
        abc_strata=20,
        abc_kept_per_stratum=10,
        abc_kept=60,
        num_repeats=2,
        num_slow_repeats=1,
    ),
    "standard": Settings(
        num_datasets=1_500,
        paper_steps_sum=20_000,
        paper_steps_full=5_000,
        paper_steps_person=20_000,
        our_steps_sum=20_000,
        our_steps_thorough=6_000,
        our_steps_full=5_000,
        our_steps_variants=5_000,
        importance_draws=10_000,
        abc_simulations=120_000,
        abc_strata=120,
        num_slow_repeats=3,
    ),
    "paper": Settings(
        num_datasets=1_500,
        paper_steps_sum=400_000,
        paper_steps_full=400_000,
        paper_steps_person=400_000,
        our_steps_sum=100_000,
        our_steps_thorough=50_000,
        our_steps_full=50_000,
        our_steps_variants=50_000,
        importance_draws=100_000,
        abc_simulations=1_200_000,
        abc_strata=1_200,
    ),
}


def plan(scale: str, observed: data.Observed | None = None) -> dict[Any, Step]:
    """Return all steps: of each method and repetition, and what is measured of them."""
    settings = SCALES[scale]
    observed = data.simulated_observed() if observed is None else observed
    exact, methods = exact_step(settings, observed), method_steps(settings, observed)
    steps: dict[Any, Step] = {"observed": Step(data.observed_data, observed), (EXACT, 0): exact}
    for method, repeats in methods.items():
        steps |= {(method, k): step for k, step in enumerate(repeats)}
    first = tuple(repeats[0] for repeats in methods.values())
    steps["evaluation"] = Step(measured, {"estimators": list(methods)}, (exact, *first))
    repeated = methods[OUR_SUM]
    names = [f"{OUR_SUM} {k + 1}" for k in range(len(repeated))]
    steps["repeated"] = Step(measured, {"estimators": names, "num_replicates": 100}, (exact, *repeated))
    return steps


def exact_step(settings: Settings, observed: data.Observed) -> Step:
    """Return the step of the exact answers."""
    return Step(ask.exact_answers, _asked_about(settings, observed) | _given(observed, "sums", "people"))


def method_steps(settings: Settings, observed: data.Observed) -> dict[str, tuple[Step, ...]]:
    """Return the steps of every method but the exact one, a step a repetition."""
    seeds = [settings.seed + k for k in range(settings.num_repeats)]
    few_seeds = seeds[: settings.num_slow_repeats]
    # Without people, methods that need them have nothing to repeat.
    slow_seeds = few_seeds if observed["people"] is not None else few_seeds[:1]
    about = _asked_about(settings, observed)
    alone = about | {"num_datasets": 0}

    def abc(view: str, seed: int) -> Step:
        asked = about if seed == settings.seed else alone
        return Step(ask.abc_answers, asked | _in_view(view, observed) | _abc_settings(settings) | {"seed": seed})

    def sampled(seed: int) -> Step:
        drawn = {"num_draws": settings.importance_draws, "seed": seed}
        return Step(
            ask.importance_answers, (about if seed == settings.seed else alone) | _given(observed, "sums") | drawn
        )

    def network(view: str, method: str, num_steps: int, seed: int, **options: Any) -> Step:
        trained = {"method": method, "num_steps": num_steps, "loss": losses.DEFAULT, "seed": seed}
        return Step(ask.network_answers, about | _in_view(view, observed) | trained | options)

    def by_person(compute: Callable[..., xr.Dataset], num_steps: int, seed: int) -> Step:
        return Step(compute, about | _given(observed, "people") | {"num_steps": num_steps, "seed": seed})

    full = [network(FULL, BNN, settings.paper_steps_full, seed) for seed in slow_seeds]
    person = [by_person(ask.person_answers, settings.paper_steps_person, seed) for seed in slow_seeds]
    ours = [by_person(ask.variant_answers, settings.our_steps_variants, seed) for seed in slow_seeds]
    parts = {
        PAPER_GEOMETRIC: list(zip(full, person, strict=True)),
        PAPER_ARITHMETIC: list(zip(full, person, strict=True)),
        OUR_GEOMETRIC: [(one,) for one in ours],
        OUR_ARITHMETIC: [(one,) for one in ours],
    }
    return {
        ABC_FULL: tuple(abc(FULL, seed) for seed in slow_seeds),
        ABC_SUM: tuple(abc(SUM, seed) for seed in seeds),
        IMPORTANCE: tuple(sampled(seed) for seed in seeds),
        PAPER_SUM: tuple(network(SUM, FNN, settings.paper_steps_sum, seed) for seed in seeds),
        PAPER_FULL: tuple(full),
        OUR_SUM: tuple(network(SUM, OURS, settings.our_steps_sum, seed) for seed in few_seeds),
        OUR_THOROUGH: (
            network(
                SUM, OURS, settings.our_steps_thorough, settings.seed, schedule=THOROUGH_NAME, batch_size=LARGE_BATCH
            ),
        ),
        OUR_FULL: tuple(network(FULL, OURS, settings.our_steps_full, seed) for seed in slow_seeds),
        **{
            method: tuple(Step(ask.one_variant, {"variant": variant}, inputs) for inputs in parts[method])
            for method, variant in INTRINSIC.items()
        },
    }


def _asked_about(settings: Settings, observed: data.Observed) -> dict[str, Any]:
    return {
        "num_people": data.counts_of(observed).num_people,
        "num_datasets": settings.num_datasets,
        "reference_seed": settings.reference_seed,
    }


def _given(observed: data.Observed, *names: str) -> dict[str, Any]:
    return {name: observed[name] for name in names}


def _in_view(view: str, observed: data.Observed) -> dict[str, Any]:
    """Return the observed data as settings; people are none of those that look at sums alone."""
    return {"view": view, "sums": observed["sums"], "people": observed["people"] if view == FULL else None}


def _abc_settings(settings: Settings) -> dict[str, Any]:
    return {
        "num_simulations": settings.abc_simulations,
        "num_strata": settings.abc_strata,
        "kept_per_stratum": settings.abc_kept_per_stratum,
        "num_kept": settings.abc_kept,
    }


@step_function("weapon.measured")
def measured(
    exact: xr.Dataset, *answers: xr.Dataset, estimators: Sequence[str], num_replicates: int = 1000
) -> xr.Dataset:
    """Return the whole toolkit's results for the first answers of every method, the exact ones last."""
    observed = {
        name: float(one["observed"])
        for name, one in zip(estimators, answers, strict=True)
        if np.isfinite(one["observed"])
    }
    return measure(
        {name: list(one["log_bf"].values) for name, one in zip(estimators, answers, strict=True)},
        exact=list(exact["log_bf"].values),
        names=MODELS,
        observed=observed or None,
        num_replicates=num_replicates,
    ).results
