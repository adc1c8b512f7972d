"""The influenza study, end to end: a real outbreak, two simulators, and how far their Bayes factor can be believed.

The paper has nothing like it. Steps: estimators trained with several seeds and asked about the outbreak; posterior
samplers that criticise each model; ABC as a second opinion; and the evidence of each model by particles and importance
sampling, which is exact but for Monte Carlo error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from deepbf import _checks
from deepbf_studies.paper.influenza_drawing import draw
from deepbf_studies.paper.influenza_steps import COMPARED, asked_abc, criticised, filtered, trained
from deepbf_studies.paper.step import Step
from deepbf_studies.paper.target import SCALES as SCALE_NAMES
from deepbf_studies.paper.target import Plan, Target
from deepbf_studies.problems.influenza import NO_LATENT, VARYING

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


TARGETS = (
    Target(
        name="influenza",
        title="Influenza in a boarding school, 1978: a latent stage or none, with criticism and an independent check",
        paper="",
        plan=plan,
        draw=draw,
    ),
)
