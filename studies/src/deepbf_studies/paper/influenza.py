"""The influenza study, end to end: a real outbreak, two simulators, and how far their Bayes factor can be believed.

The paper has nothing like it. Steps: estimators trained with several seeds and asked about the outbreak; posterior
samplers that criticise each model; ABC as a second opinion; and the evidence of each model by particles and importance
sampling, which is exact but for Monte Carlo error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from deepbf import _checks
from deepbf.answer import Answer
from deepbf.baselines import abc_ranked
from deepbf.criticism import fit_posterior
from deepbf_studies.paper.methods import OURS, train
from deepbf_studies.paper.step import Step, step_function
from deepbf_studies.paper.target import SCALES as SCALE_NAMES
from deepbf_studies.paper.target import Plan
from deepbf_studies.problems.influenza import IN_BED, LATENT, NO_LATENT, OTHER_READING, VARYING, epidemic_model
from deepbf_studies.problems.influenza_evidence import Round, log_evidence

COMPARED = (NO_LATENT, LATENT)

# Draws of equal weight that stand for the weighted ones of importance sampling.
NUM_RESAMPLED = 4000

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

# Readings of the graph that the outbreak was published as.
READINGS = {"usual": np.array(IN_BED), "other": np.array(OTHER_READING)}

STRUCTURE = "series"
# The comparison's own simulator, and one whose steps are half as long: what the length of a step does to the answer.
STEPS_A_DAY = 6
FINER = 12


@dataclass(frozen=True)
class Settings:
    """How much is spent.

    Parameters
    ----------
    num_steps
        Training steps of an estimator.
    num_repetitions
        Estimators trained, with different seeds, for the comparison itself.
    num_datasets
        Fresh simulations of each model that evaluate each.
    num_posterior_steps
        Training steps of a posterior sampler.
    num_predictions
        Data sets from each posterior predictive.
    num_abc, num_strata
        Simulations of ABC, and their strata.
    rounds
        Draws and particles of each round of importance sampling.
    is_thorough
        Whether to train for other choices too: shorter steps, and contact that varies by day.
    """

    num_steps: int
    num_repetitions: int
    num_datasets: int
    num_posterior_steps: int
    num_predictions: int
    num_abc: int
    num_strata: int
    rounds: tuple[tuple[int, int], ...]
    is_thorough: bool = True


SCALES = {
    "quick": Settings(150, 1, 500, 150, 1000, 40_000, 40, ((150, 100), (300, 200)), is_thorough=False),
    "standard": Settings(4000, 3, 1500, 3000, 4000, 400_000, 400, ((300, 200), (300, 400), (1000, 500))),
    "paper": Settings(40_000, 20, 1500, 40_000, 4000, 1_200_000, 1200, ((500, 400), (1000, 600), (10_000, 1000))),
}


def plan(scale: str) -> Plan:
    """Return the steps of the study, by what the drawing calls them."""
    return plan_of(SCALES[_checks.check_choice("scale", scale, SCALE_NAMES)])


def plan_of(chosen: Settings) -> Plan:
    """Return the steps of the study at these settings."""
    trained_step = partial(_trained_step, chosen)
    steps = {f"trained {seed}": trained_step(COMPARED, seed) for seed in range(1, chosen.num_repetitions + 1)}
    steps["abc"] = Step(asked_abc, {"num_simulations": chosen.num_abc, "num_strata": chosen.num_strata, "seed": 1})
    criticism = {
        "structure": STRUCTURE,
        "num_steps": chosen.num_posterior_steps,
        "num_draws": chosen.num_predictions,
        "seed": 1,
    }
    rounds = [list(one) for one in chosen.rounds]
    for name in COMPARED:
        steps[f"criticised {name}"] = Step(criticised, {"name": name, **criticism})
    for name in (*COMPARED, VARYING):
        steps[f"filtered {name}"] = Step(filtered, {"name": name, "reading": "usual", "rounds": rounds, "seed": 1})
    if chosen.is_thorough:
        for name in COMPARED:
            steps[f"reread {name}"] = Step(filtered, {"name": name, "reading": "other", "rounds": rounds, "seed": 1})
        steps["finer"] = trained_step(COMPARED, 1, FINER)
        steps["varying"] = trained_step((NO_LATENT, VARYING), 1)
        steps[f"criticised {VARYING}"] = Step(criticised, {"name": VARYING, **criticism})
    return steps


def _trained_step(chosen: Settings, compared: Sequence[str], seed: int, steps_a_day: int = STEPS_A_DAY) -> Step:
    return Step(
        trained,
        {
            "compared": list(compared),
            "structure": STRUCTURE,
            "steps_a_day": steps_a_day,
            "num_steps": chosen.num_steps,
            "num_datasets": chosen.num_datasets,
            "seed": seed,
        },
    )


# The steps.


@step_function("influenza_steps.trained")
def trained(
    *, compared: Sequence[str], structure: str, steps_a_day: int, num_steps: int, num_datasets: int, seed: int
) -> xr.Dataset:
    """Return one estimator's evaluation on fresh simulations, and its answer at the outbreak.

    A step. The answer is by the usual reading of the graph; `other_reading` has that of the other one.
    """
    models = [epidemic_model(name, steps_a_day=steps_a_day) for name in compared]
    bf = train(models, structure, OURS, num_steps, seed)
    outbreak = READINGS["usual"]
    # The evaluation's own simulations: the same ones for every seed of the training.
    results = bf.evaluate(num_datasets, models=models, observed=outbreak, seed=1, progress=False).results
    other = bf.compare(READINGS["other"])
    return results.assign(
        {
            **answer_variables(bf.compare(outbreak)),
            "members": ("member", bf.log_bf_members(outbreak[None])[:, 0]),
            "other_reading": ("other_part", [other.log_bf, np.nan if other.error is None else other.error]),
        }
    )


def answer_variables(answer: Answer) -> dict[str, tuple[tuple[str, ...], Floats]]:
    """Return what an answer says, as variables of a dataset.

    `answer` holds log Bayes factor, error and the interval's ends; areas hold (probability, low, high) for each model.
    """
    interval = (np.nan, np.nan) if answer.interval is None else answer.interval
    one = np.array([answer.log_bf, np.nan if answer.error is None else answer.error, *interval])
    areas = {
        name: np.full((2, 3), np.nan) if found is None else np.array([found[model] for model in answer.names])
        for name, found in (("answer_surprise", answer.surprise), ("answer_support", answer.support))
    }
    return {
        "answer": (("answer_part",), one),
        "answer_probs": (("compared",), np.array(answer.posterior_probs)),
        **{name: (("compared", "area_part"), values) for name, values in areas.items()},
    }


@step_function("influenza_steps.asked_abc")
def asked_abc(*, num_simulations: int, num_strata: int, seed: int) -> xr.Dataset:
    """Return the log Bayes factor of the outbreak by ABC, a second opinion that needs no network.

    A step. On square roots of the counts, which vary about as much on every day.
    """
    found = abc_ranked(
        [epidemic_model(name) for name in COMPARED],
        READINGS["usual"],
        num_simulations=num_simulations,
        num_strata=num_strata,
        summary=np.sqrt,
        seed=seed,
    )
    return xr.Dataset({"log_bf": float(found.log_bf[0]), "error": float(found.log_bf_error[0])})


@step_function("influenza_steps.filtered")
def filtered(*, name: str, reading: str, rounds: Sequence[Sequence[int]], seed: int) -> xr.Dataset:
    """Return one model's log evidence by particles, and what it predicts after the data, by the same particles.

    A step; exact but for Monte Carlo error, which it reports. `rounds` are pairs of draws and particles.
    """
    observed = READINGS[reading]
    found = log_evidence(name, observed, [Round(*one) for one in rounds], seed=seed)
    chosen = np.random.default_rng(seed).choice(len(found.weights), size=NUM_RESAMPLED, p=found.weights)
    posterior = {param: values[chosen] for param, values in found.params.items()}
    predicted = np.asarray(epidemic_model(name).simulate_given(posterior, seed))
    return predictions(posterior, predicted, observed).assign(
        log_evidence=found.log_evidence, error=found.error, num_effective=found.num_effective
    )


@step_function("influenza_steps.criticised")
def criticised(*, name: str, structure: str, num_steps: int, num_draws: int, seed: int) -> xr.Dataset:
    """Return what one model predicts after the data, by a trained sampler of its posterior.

    A step, laid out by `predictions`, as those by particles are.
    """
    model, observed = epidemic_model(name), READINGS["usual"]
    sampler = fit_posterior(model, structure=structure, steps=num_steps, seed=seed, progress=False)
    posterior = sampler.sample(observed, num_draws, seed=seed)
    assert isinstance(posterior, dict)
    return predictions(posterior, np.asarray(sampler.predictive(observed, num_draws, seed=seed)), observed)


def predictions(posterior: Mapping[str, Floats], predicted: Counts, observed: Counts) -> xr.Dataset:
    """Return draws of the parameters, the courses that they predict, and statistics of those and of the data.

    `posterior` (parameter, draw), `predicted` (draw, day), and the `STATISTICS` of predictions and of the data.
    """
    statistics = np.stack([statistic(predicted) for statistic in STATISTICS.values()])
    return xr.Dataset(
        {
            "posterior": (("parameter", "draw"), np.stack(list(posterior.values()))),
            "predicted": (("draw", "day"), predicted),
            "statistic_draws": (("statistic", "draw"), statistics),
            "statistic_observed": ("statistic", [float(fn(observed[None])[0]) for fn in STATISTICS.values()]),
        },
        coords={"statistic": list(STATISTICS), "parameter": list(posterior)},
    )


def _peak_height(data: NDArray[np.generic]) -> Floats:
    """Return the largest number in bed."""
    return data.max(axis=1).astype(np.float64)


def _day_of_peak(data: NDArray[np.generic]) -> Floats:
    """Return the day of the peak, the first of equals; the first day is 1."""
    return data.argmax(axis=1) + 1.0


def _days_in_bed(data: NDArray[np.generic]) -> Floats:
    """Return the days in bed of all boys together."""
    return data.sum(axis=1).astype(np.float64)


def _early_growth(data: NDArray[np.generic]) -> Floats:
    """Return the mean daily growth of the log number in bed over the first four steps, one boy added throughout."""
    logs = np.log1p(data.astype(np.float64))
    return (logs[:, 4] - logs[:, 0]) / 4


def days_of_decline(data: NDArray[np.generic]) -> Floats:
    """Return the days from the peak until fewer than a tenth of it are in bed, or until the record ends."""
    peak = data.argmax(axis=1)[:, None]
    after = np.arange(data.shape[1])[None, :] > peak
    low = after & (data < 0.1 * data.max(axis=1, keepdims=True))
    return np.where(low.any(axis=1), low.argmax(axis=1), data.shape[1]) - peak[:, 0].astype(np.float64)


def roughness(data: NDArray[np.generic]) -> Floats:
    """Return the root mean square of second differences of the square roots: how far from smooth."""
    return np.sqrt((np.diff(np.sqrt(data.astype(np.float64)), n=2, axis=1) ** 2).mean(axis=1))


STATISTICS = {
    "peak height": _peak_height,
    "day of the peak": _day_of_peak,
    "days in bed, of all boys": _days_in_bed,
    "early growth of the log a day": _early_growth,
    "days from the peak to a tenth of it": days_of_decline,
    "roughness of the curve": roughness,
}
