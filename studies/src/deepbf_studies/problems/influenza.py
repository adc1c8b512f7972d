"""Influenza in an English boarding school, January and February 1978, with and without a latent stage.

A short report in the British Medical Journal of 4 March 1978, page 587 ("Influenza in a boarding school"), shows how
many of 763 boys were in bed on each of 14 days from 22 January. It shows them as a graph, and readers of the graph
differ by a few boys: `IN_BED` is the usual reading, `OTHER_READING` that of the examples of the R package pomp.

Epidemics are chain binomials: boys fall ill, go about infectious, take to bed and get up again. Susceptible ->
(latent ->) infectious -> in bed -> up again; a boy who is not ill enough for bed goes from infectious to up again on
his feet. Boys in bed are kept apart, so they infect nobody. All numbers are whole and add up to the school.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from deepbf.models import Model
from deepbf_studies.problems.study import OfSize, Study

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

NUM_BOYS = 763
IN_BED = (3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4)
OTHER_READING = (1, 6, 26, 73, 222, 293, 258, 236, 191, 124, 69, 26, 11, 4)
NUM_DAYS = len(IN_BED)

# A stay in bed is a sum of so many exponential stages: nobody gets up within hours, few stay for twice the mean.
NUM_BED_STAGES = 3
# Of the log of a day's contact factor; beyond it a day's contacts infect nobody or everybody.
LARGEST_LOG_FACTOR = 5.0

NO_LATENT, LATENT, VARYING = "no latent stage", "latent stage", "no latent stage, contact varies by day"


class NormalPrior(NamedTuple):
    """A parameter whose logarithm, or log odds if it is a share, is normal about that of its median."""

    median: float
    spread: float
    is_share: bool = False

    @property
    def transform(self) -> str:
        """Where the parameter lives."""
        return "unit" if self.is_share else "positive"

    def at(self, standard: Floats) -> Floats:
        """Return the parameter that lies so many standard deviations above its median, on the normal scale."""
        if self.is_share:
            return expit(logit(self.median) + self.spread * standard)
        return self.median * np.exp(self.spread * standard)

    def standard(self, values: Floats) -> Floats:
        """Return how many standard deviations above the median values lie, on the normal scale."""
        moved = logit(values) - logit(self.median) if self.is_share else np.log(values / self.median)
        return moved / self.spread


# Each about as wide as what was known before this outbreak; 95% ranges in brackets. docs/influenza.md gives reasons.
PRIORS = {
    "reproduction": NormalPrior(3.0, 0.7),  # boys that one infects among the susceptible (0.8 to 12)
    "infectious_days": NormalPrior(1.5, 0.5),  # on his feet, before bed (0.6 to 4)
    "bed_days": NormalPrior(4.0, 0.4),  # in bed (1.8 to 8.8)
    "share_to_bed": NormalPrior(0.8, 0.8, is_share=True),  # of the infected, ill enough for bed (0.45 to 0.95)
    "first_cases": NormalPrior(4.0, 0.8),  # infected on 21 January, besides the first (0.8 to 19)
    "latent_days": NormalPrior(1.2, 0.5),  # infected, not yet infectious (0.45 to 3.2)
    "daily_variation": NormalPrior(0.2, 0.7),  # spread of the log of a day's contacts (0.05 to 0.8)
}


def influenza_study(name: str, num_obs: int) -> Study:
    """Return the epidemic with and without a latent stage, `num_obs` days of boys in bed, and the real outbreak.

    Nobody knows the exact answer; `deepbf_studies.problems.influenza_evidence` estimates it without a network.
    """
    return Study(
        name=name,
        title=f"Influenza in a boarding school of {NUM_BOYS} boys: no latent stage or one, {num_obs} days",
        num_obs=num_obs,
        models=(epidemic_model(NO_LATENT, num_obs=num_obs), epidemic_model(LATENT, num_obs=num_obs)),
        # As a vector of 14 numbers the same training leaves a larger loss (benchmarks/influenza.py).
        structure="series",
        observed=np.array(IN_BED[:num_obs]) if num_obs <= NUM_DAYS else None,
    )


def epidemic_model(name: str, *, num_obs: int = NUM_DAYS, steps_a_day: int = 6) -> Model:
    """Return one of the models by name: `NO_LATENT`, `LATENT` or `VARYING`.

    Data are boys in bed at the end of each of `num_obs` days. `steps_a_day` is the number of steps in which the chain
    goes through a day: more are nearer to an epidemic in continuous time, and take longer.

    Examples
    --------
    >>> epidemic_model(LATENT, num_obs=5).simulate(2, seed=1).data.shape
    (2, 5)
    """
    names = param_names(name)
    epidemic = epidemic_of(name, steps_a_day)
    return Model(
        name,
        prior=partial(draw_params, names=names),
        simulator=OfSize(epidemic, num_obs),
        transform={param: PRIORS[param].transform for param in names},
    )


def epidemic_of(name: str, steps_a_day: int = 6) -> Epidemic:
    """Return how an epidemic of the model of this name runs, given its parameters.

    The simulator behind `epidemic_model`; the evidence by particles takes its single steps.
    """
    return Epidemic(NUM_BOYS, has_latent=name == LATENT, is_varying=name == VARYING, steps_a_day=steps_a_day)


def param_names(name: str) -> tuple[str, ...]:
    """Return the parameters of the model of this name, in the order of `PRIORS`.

    Examples
    --------
    >>> set(param_names(LATENT)) - set(param_names(NO_LATENT))
    {'latent_days'}
    """
    others = {LATENT: "daily_variation", VARYING: "latent_days"}.get(name)
    left_out = {others} if others else {"daily_variation", "latent_days"}
    return tuple(param for param in PRIORS if param not in left_out)


def draw_params(rng: np.random.Generator, size: int, *, names: Iterable[str]) -> dict[str, Floats]:
    """Return `size` independent draws of each of these parameters from its prior.

    Examples
    --------
    >>> draw_params(np.random.default_rng(1), 3, names=["bed_days"])["bed_days"].shape
    (3,)
    """
    return {name: PRIORS[name].at(rng.standard_normal(size)) for name in names}


class School(NamedTuple):
    """Numbers of boys, each of the same shape; `in_bed` has one array for each stage. The rest are up again."""

    susceptible: Counts
    latent: Counts
    infectious: Counts
    in_bed: tuple[Counts, ...]

    @property
    def num_in_bed(self) -> Counts:
        """Boys in bed, in whichever stage of their stay."""
        return np.sum(self.in_bed, axis=0)


class Chances(NamedTuple):
    """What the parameters mean for one step: chances that a boy moves on, and infections per infectious boy."""

    contacts: Floats
    end_latent: Floats | None
    to_bed: Floats
    on_his_feet: Floats
    next_bed_stage: Floats
    daily_variation: Floats | None


@dataclass(frozen=True)
class Epidemic:
    """How an epidemic runs, given its parameters.

    Parameters
    ----------
    num_boys
        The school.
    has_latent
        Whether the infected are latent for a time, `latent_days`, before they are infectious.
    is_varying
        Whether contacts vary from day to day, by a log-normal factor of mean 1 and spread `daily_variation`.
    steps_a_day
        Steps of the chain: within one, everybody's chances are those at its beginning.
    """

    num_boys: int
    has_latent: bool = False
    is_varying: bool = False
    steps_a_day: int = 6

    def __call__(self, rng: np.random.Generator, params: Mapping[str, Any], *, num_obs: int) -> Counts:
        """Return the number in bed at the end of each of `num_obs` days, shape (epidemics, num_obs)."""
        chances = self.chances(params)
        school = self.start(rng, params, np.shape(params["reproduction"]))
        in_bed = np.empty((len(school.infectious), num_obs), dtype=np.int64)
        for day in range(num_obs):
            contacts = self.contacts_of_a_day(rng, chances, school)
            for _ in range(self.steps_a_day):
                school = self.step(rng, school, chances, contacts)
            in_bed[:, day] = school.num_in_bed
        return in_bed

    def chances(self, params: Mapping[str, Any]) -> Chances:
        """Return the chances of one step; arrays of the parameters' shape."""
        length = 1.0 / self.steps_a_day
        leaving = -np.expm1(-length / params["infectious_days"])
        to_bed = leaving * params["share_to_bed"]
        return Chances(
            contacts=length * params["reproduction"] / params["infectious_days"] / self.num_boys,
            end_latent=-np.expm1(-length / params["latent_days"]) if self.has_latent else None,
            to_bed=to_bed,
            # Of those who do not take to bed in this step.
            on_his_feet=(leaving - to_bed) / (1.0 - to_bed),
            next_bed_stage=-np.expm1(-length * NUM_BED_STAGES / params["bed_days"]),
            daily_variation=np.asarray(params["daily_variation"]) if self.is_varying else None,
        )

    def start(self, rng: np.random.Generator, params: Mapping[str, Any], shape: tuple[int, ...]) -> School:
        """Return the school on the eve of the first day: one boy infected, and some more, and nobody in bed."""
        infected = np.minimum(1 + rng.poisson(params["first_cases"], shape), self.num_boys)
        latent = np.zeros_like(infected)
        if self.has_latent:
            # Met at any time of their infection: in either stage in proportion to its length.
            days = params["latent_days"] + params["infectious_days"]
            latent = rng.binomial(infected, params["latent_days"] / days)
        nobody = np.zeros_like(infected)
        return School(self.num_boys - infected, latent, infected - latent, (nobody,) * NUM_BED_STAGES)

    def contacts_of_a_day(self, rng: np.random.Generator, chances: Chances, school: School) -> Floats:
        """Return infections per susceptible and infectious boy in each step of one day."""
        if chances.daily_variation is None:
            return chances.contacts
        spread = chances.daily_variation
        log_factor = spread * rng.standard_normal(school.infectious.shape) - 0.5 * spread**2
        return chances.contacts * np.exp(np.clip(log_factor, -LARGEST_LOG_FACTOR, LARGEST_LOG_FACTOR))

    def step(self, rng: np.random.Generator, school: School, chances: Chances, contacts: Floats) -> School:
        """Return the school one step later."""
        moving = self.moving_in_bed(rng, school, chances)
        to_bed = rng.binomial(school.infectious, chances.to_bed)
        return self.after(rng, school, chances, contacts, moving, to_bed)

    @staticmethod
    def moving_in_bed(rng: np.random.Generator, school: School, chances: Chances) -> list[Counts]:
        """Return how many finish each stage of their stay; those of the last stage get up."""
        return [rng.binomial(stage, chances.next_bed_stage) for stage in school.in_bed]

    def after(
        self,
        rng: np.random.Generator,
        school: School,
        chances: Chances,
        contacts: Floats,
        moving: list[Counts],
        to_bed: Counts,
    ) -> School:
        """Return the school one step later, given who takes to bed and who moves on in bed."""
        infected = rng.binomial(school.susceptible, -np.expm1(-contacts * school.infectious))
        on_his_feet = rng.binomial(school.infectious - to_bed, chances.on_his_feet)
        onset, latent = infected, school.latent
        if chances.end_latent is not None:
            onset = rng.binomial(school.latent, chances.end_latent)
            latent = school.latent + infected - onset
        arriving = [to_bed, *moving[:-1]]
        return School(
            school.susceptible - infected,
            latent,
            school.infectious + onset - to_bed - on_his_feet,
            tuple(s - gone + come for s, gone, come in zip(school.in_bed, moving, arriving, strict=True)),
        )
