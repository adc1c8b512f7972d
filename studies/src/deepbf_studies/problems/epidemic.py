"""Epidemics in a closed school, as chain binomials: boys fall ill, go about infectious, take to bed and get up again.

Susceptible -> (latent ->) infectious -> in bed -> up again; a boy who is not ill enough for bed goes from infectious to
up again on his feet. Boys in bed are kept apart, so they infect nobody. All numbers are whole and add up to the school.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

# A stay in bed is a sum of so many exponential stages: nobody gets up within hours, few stay for twice the mean.
NUM_BED_STAGES = 3
# Of the log of a day's contact factor; beyond it a day's contacts infect nobody or everybody.
LARGEST_LOG_FACTOR = 5.0


class School(NamedTuple):
    """Numbers of boys, each of the same shape; `in_bed` has one array a stage. The rest are up again."""

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
