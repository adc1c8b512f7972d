"""The weapon study's steps: what every method answers, how long it trains at every scale, and how near it comes.

Every step is one training run, one run of ABC, or one sweep of an integral, with everything asked of it: data sets
simulated from either tree, and the observed one. Answers are log Bayes factors, natural log, process dissociation over
Stroop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from deepbf.baselines import abc_ranked, importance
from deepbf.evaluation import measure
from deepbf.evaluation.log_bf_arrays import EXACT
from deepbf.training.schedule import THOROUGH_NAME
from deepbf.variants import fit_variants
from deepbf.variants.intrinsic import log_mean_inverse, mean_inverse_log
from deepbf_studies.paper.methods import BNN, FNN, OURS, PAPER_LOSS, train
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.paper.weapon_data import Counts, Observed, observed_data, simulated_observed
from deepbf_studies.problems import Study, load
from deepbf_studies.problems import weapon as trees
from deepbf_studies.problems.weapon import NUM_TRIALS, TREES

SUM, FULL = "sum", "full"
MODELS = tuple(TREES)
# People whose answers the prior learns from before the others compare the trees: n_x of the paper.
NUM_TRAINING = 1
# The variants by name: what the Bayes factors of single people are averaged as.
AVERAGES = {"geometric": mean_inverse_log, "arithmetic": log_mean_inverse}

Floats = NDArray[np.float64]
People = Sequence[Sequence[int]] | None

# The Bayes factor of the real data by TreeBUGS: tail areas at a given one depend on the trees alone.
PAPER_BF = 8.10

IMPORTANCE = "importance sampling"
ABC_FULL, ABC_SUM = "ABC-full", "ABC-sum"
PAPER_SUM, PAPER_FULL = "DeepBF-sum", "DeepBF-full"
OUR_SUM, OUR_FULL = "deepbf-sum", "deepbf-full"
OUR_THOROUGH = "deepbf-sum, thorough"
PAPER_GEOMETRIC, PAPER_ARITHMETIC = "DeepGBF", "DeepABF"
OUR_GEOMETRIC, OUR_ARITHMETIC = "deepbf GBF", "deepbf ABF"

# Data sets of each model in the mini-batches of the thorough training.
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


def plan(scale: str, observed: Observed | None = None) -> dict[Any, Step]:
    """Return all steps: those of each method and repetition, and what is measured of them.

    Without `observed`, what `weapon_data.read_observed` returns, the observed data are simulated, and said to be. A
    result stands under (method, repetition), the evaluation of first answers under "evaluation", and that of our
    repeated training under "repeated".
    """
    settings = SCALES[scale]
    observed = simulated_observed() if observed is None else observed
    known = {"sums": observed["sums"], "people": observed["people"]}
    exact, methods = Step(exact_answers, _asked_about(settings, observed) | known), _method_steps(settings, observed)
    steps: dict[Any, Step] = {"observed": Step(observed_data, observed), (EXACT, 0): exact}
    for method, repeats in methods.items():
        steps |= {(method, k): step for k, step in enumerate(repeats)}
    first = tuple(repeats[0] for repeats in methods.values())
    steps["evaluation"] = Step(measured, {"estimators": list(methods)}, (exact, *first))
    repeated = methods[OUR_SUM]
    names = [f"{OUR_SUM} {k + 1}" for k in range(len(repeated))]
    steps["repeated"] = Step(measured, {"estimators": names, "num_replicates": 100}, (exact, *repeated))
    return steps


def _method_steps(settings: Settings, observed: Observed) -> dict[str, tuple[Step, ...]]:
    """Return the steps of every method but the exact one, a step for each repetition."""
    seeds = [settings.seed + k for k in range(settings.num_repeats)]
    few_seeds = seeds[: settings.num_slow_repeats]
    # Without people, methods that need them have nothing to repeat.
    slow_seeds = few_seeds if observed["people"] is not None else few_seeds[:1]
    about = _asked_about(settings, observed)
    alone = about | {"num_datasets": 0}

    simulated = {
        "num_simulations": settings.abc_simulations,
        "num_strata": settings.abc_strata,
        "kept_per_stratum": settings.abc_kept_per_stratum,
        "num_kept": settings.abc_kept,
    }

    def abc(view: str, seed: int) -> Step:
        asked = about if seed == settings.seed else alone
        return Step(abc_answers, asked | _seen(view, observed) | simulated | {"seed": seed})

    def sampled(seed: int) -> Step:
        drawn = {"sums": observed["sums"], "num_draws": settings.importance_draws, "seed": seed}
        return Step(importance_answers, (about if seed == settings.seed else alone) | drawn)

    def network(view: str, method: str, num_steps: int, seed: int, **options: Any) -> Step:
        trained = {"method": method, "num_steps": num_steps, "loss": PAPER_LOSS, "seed": seed}
        return Step(network_answers, about | _seen(view, observed) | trained | options)

    def by_person(compute: Callable[..., xr.Dataset], num_steps: int, seed: int) -> Step:
        return Step(compute, about | {"people": observed["people"], "num_steps": num_steps, "seed": seed})

    full = [network(FULL, BNN, settings.paper_steps_full, seed) for seed in slow_seeds]
    person = [by_person(person_answers, settings.paper_steps_person, seed) for seed in slow_seeds]
    ours = [by_person(variant_answers, settings.our_steps_variants, seed) for seed in slow_seeds]
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
            method: tuple(Step(one_variant, {"variant": variant}, inputs) for inputs in parts[method])
            for method, variant in INTRINSIC.items()
        },
    }


def _asked_about(settings: Settings, observed: Observed) -> dict[str, Any]:
    return {
        "num_people": Counts.of(observed["sums"], observed["people"]).num_people,
        "num_datasets": settings.num_datasets,
        "reference_seed": settings.reference_seed,
    }


def _seen(view: str, observed: Observed) -> dict[str, Any]:
    """Return the observed data as settings; people are none of those that look at sums alone."""
    return {"view": view, "sums": observed["sums"], "people": observed["people"] if view == FULL else None}


@step_function("weapon.measured")
def measured(
    exact: xr.Dataset, *answers: xr.Dataset, estimators: Sequence[str], num_replicates: int = 1000
) -> xr.Dataset:
    """Return the whole toolkit's results for the answers of some estimators, the exact ones last.

    A step. `answers` come in the order of the names in `estimators`; errors of metrics are by `num_replicates`
    bootstrap replicates.
    """
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


# What every method answers.


def _study_of(view: str, num_people: int) -> Study:
    """Return the study of sums over people, or of people one by one."""
    return load(f"weapon-{view}", num_obs=num_people)


def reference(view: str, num_people: int, num_datasets: int, seed: int) -> list[NDArray[np.integer]]:
    """Return the simulated data sets that all methods are asked about: one array for each tree.

    The same people in both views: shape (num_datasets, num_people, 6) in full, (num_datasets, 12) as sums.
    """
    models = _study_of(FULL, num_people).models
    people = [np.asarray(model.simulate(num_datasets, seed + k).data) for k, model in enumerate(models)]
    return people if view == FULL else [trees.sum_over_people(one, num_trials=NUM_TRIALS) for one in people]


def _in_view(view: str, counts: Counts) -> NDArray[np.integer] | None:
    """Return the observed data set as the study has it, with a leading axis; None where people are not known."""
    data = counts.sums if view == SUM else counts.people
    return None if data is None else data[None]


@step_function("weapon_answers.exact_answers")
def exact_answers(
    *, num_people: int, num_datasets: int, reference_seed: int, sums: Sequence[int], people: People
) -> xr.Dataset:
    """Return exact log Bayes factors by integration, of the simulated data sets and of the observed one.

    A step. Where the observed people are known, their exact geometric and arithmetic intrinsic ones too.
    """
    counts = Counts.of(sums, people)
    exact_log_bf = _study_of(SUM, num_people).exact_log_bf
    data = reference(SUM, num_people, num_datasets, reference_seed)
    result = answers([exact_log_bf(one) for one in data], exact_log_bf(counts.sums[None]))
    for name, average in AVERAGES.items():
        result[f"observed_{name}"] = np.nan
        if counts.people is not None:
            alone = _study_of(FULL, NUM_TRAINING).exact_log_bf(counts.people[:, None])
            result[f"observed_{name}"] = float(result["observed"]) + float(average(alone)[0])
    return result


@step_function("weapon_answers.importance_answers")
def importance_answers(
    *, num_people: int, num_datasets: int, reference_seed: int, sums: Sequence[int], num_draws: int, seed: int
) -> xr.Dataset:
    """Return log Bayes factors by importance sampling with `num_draws` draws.

    A step. Repetitions are asked about the observed data alone, with `num_datasets` 0.
    """
    models = _study_of(SUM, num_people).models
    data = reference(SUM, num_people, num_datasets, reference_seed) if num_datasets else []
    observed = importance(models, np.array(sums)[None], num_draws=num_draws, seed=seed)
    return answers(
        [importance(models, one, num_draws=num_draws, seed=seed).log_bf for one in data],
        observed.log_bf,
        observed.log_bf_error,
    )


@step_function("weapon_answers.abc_answers")
def abc_answers(
    *,
    view: str,
    num_people: int,
    num_datasets: int,
    reference_seed: int,
    sums: Sequence[int],
    people: People,
    num_simulations: int,
    num_strata: int,
    kept_per_stratum: int,
    num_kept: int,
    seed: int,
) -> xr.Dataset:
    """Return log Bayes factors by ranked ABC, in one of the two views of the data.

    A step. Repetitions are asked about the observed data alone, with `num_datasets` 0. All data sets are asked about in
    one call, which shares the simulations among them.
    """
    data = reference(view, num_people, num_datasets, reference_seed) if num_datasets else []
    observed = _in_view(view, Counts.of(sums, people))
    asked = data if observed is None else [*data, observed]
    found = abc_ranked(
        _study_of(view, num_people).models,
        np.concatenate(asked),
        num_simulations=num_simulations,
        num_strata=num_strata,
        kept_per_stratum=kept_per_stratum,
        num_kept=num_kept,
        seed=seed,
    )
    parts = np.split(found.log_bf, np.cumsum([len(one) for one in data]))[: len(data)]
    if observed is None:
        return answers(parts)
    return answers(parts, found.log_bf[-1:], found.log_bf_error[-1:])


@step_function("weapon_answers.network_answers")
def network_answers(
    *,
    view: str,
    method: str,
    num_people: int,
    num_datasets: int,
    reference_seed: int,
    sums: Sequence[int],
    people: People,
    num_steps: int,
    loss: str,
    seed: int,
    schedule: str | None = None,
    batch_size: int | None = None,
) -> xr.Dataset:
    """Return log Bayes factors of one trained estimator, in one of the two views of the data.

    A step. The error of the observed one is the spread over the ensemble's members, where there are several.
    """
    study = _study_of(view, num_people)
    estimator = train(
        study.models,
        str(study.structure),
        method,
        num_steps,
        seed,
        loss=loss,
        schedule=schedule,
        batch_size=batch_size,
    )
    observed = _in_view(view, Counts.of(sums, people))
    members = None if observed is None else estimator.log_bf_members(observed)
    return answers(
        [estimator.log_bf(data) for data in reference(view, num_people, num_datasets, reference_seed)],
        None if members is None else members.mean(axis=0),
        None if members is None or len(members) < 2 else members.std(axis=0, ddof=1),
    )


@step_function("weapon_answers.person_answers")
def person_answers(
    *, num_people: int, num_datasets: int, reference_seed: int, people: People, num_steps: int, seed: int
) -> xr.Dataset:
    """Return what the paper's network for one person says of the people of every data set, averaged for each variant.

    Added to the log Bayes factor of all people, these give the intrinsic ones.
    """
    # Six counts of one person: the network flattens them to a vector.
    models = _study_of(FULL, NUM_TRAINING).models
    estimator = train(models, "exchangeable", FNN, num_steps, seed)

    def averaged(sets: NDArray[np.integer], variant: str) -> Floats:
        alone = estimator.log_bf(sets.reshape(-1, NUM_TRAINING, trees.NUM_CELLS))
        return AVERAGES[variant](alone.reshape(len(sets), -1))[0]

    return _variant_results(averaged, reference(FULL, num_people, num_datasets, reference_seed), people)


@step_function("weapon_answers.variant_answers")
def variant_answers(
    *, num_people: int, num_datasets: int, reference_seed: int, people: People, num_steps: int, seed: int
) -> xr.Dataset:
    """Return intrinsic log Bayes factors of one estimator for all numbers of people from one to all.

    A step. Geometric and arithmetic ones side by side, along the dimension "variant".
    """
    models = _study_of(FULL, num_people).models
    variants = fit_variants(
        models, num_people, NUM_TRAINING, posterior=False, steps=num_steps, seed=seed, progress=False
    )

    def intrinsic(sets: NDArray[np.integer], variant: str) -> Floats:
        compute = variants.geometric if variant == "geometric" else variants.arithmetic
        return compute(sets, NUM_TRAINING).log_bf

    return _variant_results(intrinsic, reference(FULL, num_people, num_datasets, reference_seed), people)


def _variant_results(
    ask: Callable[[NDArray[np.integer], str], Floats], data: list[NDArray[np.integer]], people: People
) -> xr.Dataset:
    """Return what is answered for each variant, side by side."""
    observed = None if people is None else np.array(people)[None]
    found = [
        answers([ask(sets, variant) for sets in data], None if observed is None else ask(observed, variant))
        for variant in AVERAGES
    ]
    return xr.concat(found, xr.Variable("variant", list(AVERAGES)))


@step_function("weapon_answers.one_variant")
def one_variant(*parts: xr.Dataset, variant: str) -> xr.Dataset:
    """Return the answers for one variant, added up over the parts.

    A step. Parts without variants count as they are: the log Bayes factor of all people is added to what a network for
    one person says on average.
    """
    chosen = [part.sel(variant=variant) if "variant" in part.dims else part for part in parts]
    log_bf, observed = (np.sum([part[name].values for part in chosen], axis=0) for name in ("log_bf", "observed"))
    return answers(list(log_bf), observed[None])


def answers(log_bf: Sequence[Floats], observed: Floats | None = None, error: Floats | None = None) -> xr.Dataset:
    """Return answers as every step of the study keeps them.

    `log_bf` by tree and data set, if any were asked about; `observed` and `observed_error`, nan where there is none.
    """
    result = xr.Dataset(
        {
            "observed": np.nan if observed is None else float(observed[0]),
            "observed_error": np.nan if error is None else float(error[0]),
        }
    )
    if len(log_bf):
        result["log_bf"] = xr.DataArray(np.stack(log_bf), {"model": list(MODELS)}, ("model", "dataset"))
    return result
