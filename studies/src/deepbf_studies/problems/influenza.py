"""Influenza in an English boarding school, January and February 1978, with and without a latent stage.

A short report in the British Medical Journal of 4 March 1978, page 587 ("Influenza in a boarding school"), shows how
many of 763 boys were in bed on each of 14 days from 22 January. It shows them as a graph, and readers of the graph
differ by a few boys: `IN_BED` is the usual reading, `OTHER_READING` that of the examples of the R package pomp.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from deepbf.models import Model
from deepbf_studies.problems.epidemic import Epidemic
from deepbf_studies.problems.study import Study
from deepbf_studies.problems.toy_simulators import OfSize

NUM_BOYS = 763
IN_BED = (3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4)
OTHER_READING = (1, 6, 26, 73, 222, 293, 258, 236, 191, 124, 69, 26, 11, 4)
NUM_DAYS = len(IN_BED)

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

    def at(self, standard: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the parameter that lies so many standard deviations above its median, on the normal scale."""
        if self.is_share:
            return expit(logit(self.median) + self.spread * standard)
        return self.median * np.exp(self.spread * standard)

    def standard(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
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
    """Return the epidemic with and without a latent stage, `num_obs` days of boys in bed, and the real outbreak."""
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
    """Return one of the models by name: `NO_LATENT`, `LATENT` or `VARYING`."""
    names = param_names(name)
    epidemic = epidemic_of(name, steps_a_day)
    return Model(
        name,
        prior=partial(draw_params, names=names),
        simulator=OfSize(epidemic, num_obs),
        transform={param: PRIORS[param].transform for param in names},
    )


def epidemic_of(name: str, steps_a_day: int = 6) -> Epidemic:
    """Return how an epidemic of the model of this name runs."""
    return Epidemic(NUM_BOYS, has_latent=name == LATENT, is_varying=name == VARYING, steps_a_day=steps_a_day)


def param_names(name: str) -> tuple[str, ...]:
    """Return the parameters of the model of this name."""
    others = {LATENT: "daily_variation", VARYING: "latent_days"}.get(name)
    left_out = {others} if others else {"daily_variation", "latent_days"}
    return tuple(param for param in PRIORS if param not in left_out)


def draw_params(rng: np.random.Generator, size: int, *, names: Iterable[str]) -> dict[str, NDArray[np.float64]]:
    """Return independent draws of these parameters from their priors."""
    return {name: PRIORS[name].at(rng.standard_normal(size)) for name in names}
