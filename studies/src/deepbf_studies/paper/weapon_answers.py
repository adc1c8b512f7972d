"""What every method answers in the weapon study: at data sets simulated from either tree, and at the observed one.

Every step here is one training run, one run of ABC, or one sweep of an integral, with everything asked of it. Answers
are log Bayes factors, natural log, process dissociation over Stroop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from deepbf.baselines import abc_ranked, importance
from deepbf.variants import fit_variants
from deepbf.variants.splitting import log_mean_inverse, mean_inverse_log
from deepbf_studies.paper.methods import FNN, train
from deepbf_studies.paper.step import step_function
from deepbf_studies.paper.weapon_data import Counts
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


def study_of(view: str, num_people: int) -> Study:
    """Return the study of sums over people, or of people one by one."""
    return load(f"weapon-{view}", num_obs=num_people)


def reference(view: str, num_people: int, num_datasets: int, seed: int) -> list[NDArray[np.integer]]:
    """Return the simulated data sets that all methods are asked about, of each tree; the same people in both views."""
    models = study_of(FULL, num_people).models
    people = [np.asarray(model.simulate(num_datasets, seed + k).data) for k, model in enumerate(models)]
    return people if view == FULL else [trees.sum_over_people(one, num_trials=NUM_TRIALS) for one in people]


def in_view(view: str, counts: Counts) -> NDArray[np.integer] | None:
    """Return the observed data set as the study has it, with a leading axis; None where people are not known."""
    data = counts.sums if view == SUM else counts.people
    return None if data is None else data[None]


@step_function("weapon_answers.exact_answers")
def exact_answers(
    *, num_people: int, num_datasets: int, reference_seed: int, sums: Sequence[int], people: People
) -> xr.Dataset:
    """Return exact log Bayes factors by integration; of the observed data, if people are known, intrinsic ones too."""
    counts = counts_from(sums, people)
    exact_log_bf = study_of(SUM, num_people).exact_log_bf
    data = reference(SUM, num_people, num_datasets, reference_seed)
    result = answers([exact_log_bf(one) for one in data], exact_log_bf(counts.sums[None]))
    for name, average in AVERAGES.items():
        result[f"observed_{name}"] = np.nan
        if counts.people is not None:
            alone = study_of(FULL, NUM_TRAINING).exact_log_bf(counts.people[:, None])
            result[f"observed_{name}"] = float(result["observed"]) + float(average(alone)[0])
    return result


@step_function("weapon_answers.importance_answers")
def importance_answers(
    *, num_people: int, num_datasets: int, reference_seed: int, sums: Sequence[int], num_draws: int, seed: int
) -> xr.Dataset:
    """Return log Bayes factors by importance sampling; of the observed data alone if `num_datasets` is 0."""
    models = study_of(SUM, num_people).models
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
    """Return log Bayes factors by ranked ABC; of the observed data alone if `num_datasets` is 0."""
    data = reference(view, num_people, num_datasets, reference_seed) if num_datasets else []
    observed = in_view(view, counts_from(sums, people))
    asked = data if observed is None else [*data, observed]
    found = abc_ranked(
        study_of(view, num_people).models,
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
    """Return log Bayes factors of one trained estimator."""
    study = study_of(view, num_people)
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
    observed = in_view(view, counts_from(sums, people))
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
    models = study_of(FULL, NUM_TRAINING).models
    estimator = train(models, "exchangeable", FNN, num_steps, seed)

    def averaged(sets: NDArray[np.integer], variant: str) -> Floats:
        alone = estimator.log_bf(sets.reshape(-1, NUM_TRAINING, trees.NUM_CELLS))
        return AVERAGES[variant](alone.reshape(len(sets), -1))[0]

    return variant_results(averaged, reference(FULL, num_people, num_datasets, reference_seed), people)


@step_function("weapon_answers.variant_answers")
def variant_answers(
    *, num_people: int, num_datasets: int, reference_seed: int, people: People, num_steps: int, seed: int
) -> xr.Dataset:
    """Return intrinsic log Bayes factors of one estimator for all numbers of people from one to all."""
    models = study_of(FULL, num_people).models
    variants = fit_variants(
        models, num_people, NUM_TRAINING, posterior=False, steps=num_steps, seed=seed, progress=False
    )

    def intrinsic(sets: NDArray[np.integer], variant: str) -> Floats:
        compute = variants.geometric if variant == "geometric" else variants.arithmetic
        return compute(sets, NUM_TRAINING).log_bf

    return variant_results(intrinsic, reference(FULL, num_people, num_datasets, reference_seed), people)


def variant_results(
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
    """Return the answers for one variant, added up over the parts; those without variants count as they are."""
    chosen = [part.sel(variant=variant) if "variant" in part.dims else part for part in parts]
    log_bf, observed = (np.sum([part[name].values for part in chosen], axis=0) for name in ("log_bf", "observed"))
    return answers(list(log_bf), observed[None])


def answers(log_bf: Sequence[Floats], observed: Floats | None = None, error: Floats | None = None) -> xr.Dataset:
    """Return log Bayes factors by tree and data set, if any were asked about, and the observed one, or nan."""
    result = xr.Dataset(
        {
            "observed": np.nan if observed is None else float(observed[0]),
            "observed_error": np.nan if error is None else float(error[0]),
        }
    )
    if len(log_bf):
        result["log_bf"] = xr.DataArray(np.stack(log_bf), {"model": list(MODELS)}, ("model", "dataset"))
    return result


def counts_from(sums: Sequence[int], people: People) -> Counts:
    """Return the observed counts as arrays."""
    return Counts(np.array(sums), None if people is None else np.array(people))
