"""Every estimator at every sample size: the steps behind the paper's simulation study (Sections 6.1, S6).

Data 1 (i), Data 1 (ii) and Data 3, for n = 2, 4, ..., 128: the paper's networks, ours, ABC and bridge sampling answer
the same questions, and are measured against the exact Bayes factor. At some sizes each estimate is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import xarray as xr

from deepbf.evaluation import measure
from deepbf_studies.paper import methods
from deepbf_studies.paper.methods import (
    ABC,
    BRIDGE,
    WARP,
    Answers,
    Questions,
    bridge_steps,
    by_abc,
    by_training,
    exactly,
)
from deepbf_studies.paper.step import Step, step_function

STUDIES = ("data-1-i", "data-1-ii", "data-3")
TITLES = {"data-1-i": "Data 1 (i)", "data-1-ii": "Data 1 (ii)", "data-3": "Data 3"}
PAPER_SIZES = (2, 4, 8, 16, 32, 64, 128)
PAPER_STEPS = 400_000


@dataclass(frozen=True)
class Settings:
    """How much is computed.

    Parameters
    ----------
    sizes
        Numbers of observations.
    num_datasets
        The number of data sets of each model that estimators are measured on.
    num_steps
        Training steps by method.
    repeated_sizes
        Numbers of observations at which estimates are repeated.
    num_repeats
        How often, by method; 1 where a method is not named.
    num_simulations, num_strata, num_kept
        Of ABC.
    bridged_studies, bridged_sizes
        Where bridge sampling takes part.
    num_bridged
        The number of data sets of each model that it answers.
    num_draws
        Its posterior draws in each of four chains.
    num_replicates
        Bootstrap replicates behind the errors of metrics.
    """

    sizes: tuple[int, ...]
    num_datasets: int
    num_steps: Mapping[str, int]
    repeated_sizes: tuple[int, ...]
    num_repeats: Mapping[str, int]
    num_simulations: int
    num_strata: int
    num_kept: int
    bridged_studies: tuple[str, ...]
    bridged_sizes: tuple[int, ...]
    num_bridged: int
    num_draws: int
    num_replicates: int


SCALES = {
    "quick": Settings(
        sizes=(2, 128),
        num_datasets=300,
        num_steps={methods.FNN: 1000, methods.BNN: 500, methods.DEEPSET2: 20, methods.OURS: 1000},
        repeated_sizes=(128,),
        num_repeats={methods.FNN: 2, methods.BNN: 2, methods.OURS: 2, ABC: 2, BRIDGE: 4, WARP: 4},
        num_simulations=24_000,
        num_strata=24,
        num_kept=60,
        # Its compilation would take longer than everything else.
        bridged_studies=("data-1-i",),
        bridged_sizes=(128,),
        num_bridged=8,
        num_draws=200,
        num_replicates=50,
    ),
    "standard": Settings(
        sizes=PAPER_SIZES,
        num_datasets=1500,
        num_steps={methods.FNN: 10_000, methods.BNN: 5000, methods.DEEPSET2: 500, methods.OURS: 10_000},
        repeated_sizes=(128,),
        # One run of the paper's set network at n = 128 takes minutes.
        num_repeats=dict.fromkeys((*methods.TRAININGS, ABC, BRIDGE, WARP), 20) | {methods.DEEPSET2: 3},
        num_simulations=1_200_000,
        num_strata=1200,
        num_kept=120,
        bridged_studies=STUDIES,
        bridged_sizes=PAPER_SIZES,
        # With the repeats, as many as go through one compiled program.
        num_bridged=40,
        num_draws=1000,
        num_replicates=200,
    ),
    "paper": Settings(
        sizes=PAPER_SIZES,
        num_datasets=1500,
        num_steps=dict.fromkeys(methods.TRAININGS, PAPER_STEPS),
        repeated_sizes=PAPER_SIZES,
        num_repeats=dict.fromkeys((*methods.TRAININGS, ABC, BRIDGE, WARP), 20),
        num_simulations=1_200_000,
        num_strata=1200,
        num_kept=120,
        bridged_studies=STUDIES,
        bridged_sizes=PAPER_SIZES,
        num_bridged=1500,
        # 150,000 iterations, of which the first 10,000 are dropped, in four chains.
        num_draws=35_000,
        num_replicates=1000,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One study at one sample size: who is asked what, and the steps that answer."""

    study: str
    num_obs: int
    settings: Settings

    @property
    def methods(self) -> tuple[str, ...]:
        """The estimators that take part, in the order of figures."""
        bridged = self.study in self.settings.bridged_studies and self.num_obs in self.settings.bridged_sizes
        return (*methods.TRAININGS, ABC, *((BRIDGE, WARP) if bridged else ()))

    def num_repeats(self, method: str) -> int:
        """Return how many estimates of the observed data set's Bayes factor there are."""
        return self.settings.num_repeats.get(method, 1) if self.num_obs in self.settings.repeated_sizes else 1

    def questions(self, **changes: Any) -> dict[str, Any]:
        """Return what is asked, as settings of a step."""
        return asdict(Questions(self.study, self.num_obs, self.settings.num_datasets, **changes))

    def exact_step(self) -> Step:
        """Return the step that computes the exact Bayes factors."""
        return Step(exactly, {"questions": self.questions()})

    def steps(self, method: str) -> list[tuple[Step, ...]]:
        """Return the steps of each repetition: one, or several that share the questions among them."""
        numbers = range(self.num_repeats(method))
        if method in methods.TRAININGS:
            return [(self._training_step(method, number),) for number in numbers]
        if method == ABC:
            return [(self._abc_step(number),) for number in numbers]
        # Bridge sampling answers the same question anew wherever it comes, so one repetition has them all.
        asked = self.questions(num_asked=self.settings.num_bridged, num_repeats=len(numbers))
        return [bridge_steps(asked, warp=method == WARP, num_draws=self.settings.num_draws, seed=1)]

    def _training_step(self, method: str, number: int) -> Step:
        return Step(
            by_training,
            {
                "questions": self.questions(),
                "method": method,
                "num_steps": self.settings.num_steps[method],
                "seed": 1 + number,
            },
        )

    def _abc_step(self, number: int) -> Step:
        how = {name: getattr(self.settings, name) for name in ("num_simulations", "num_strata", "num_kept")}
        # Repetitions are for the observed data alone.
        asked = self.questions() if number == 0 else self.questions(num_asked=0)
        return Step(by_abc, {"questions": asked, **how, "seed": 1 + number})

    def measured_step(self) -> Step:
        """Return the step that measures everyone against the exact Bayes factor."""
        firsts = {method: self.steps(method)[0] for method in self.methods}
        return Step(
            measured,
            {
                "parts": {method: len(steps) for method, steps in firsts.items()},
                "models": [model.name for model in Questions(self.study, self.num_obs, 1).load().models],
                "num_datasets": self.settings.num_datasets,
                "num_replicates": self.settings.num_replicates,
            },
            inputs=(self.exact_step(), *(step for steps in firsts.values() for step in steps)),
            revision=2,
        )


@step_function("sample_sizes.measured")
def measured(
    exact: xr.Dataset,
    *answers: xr.Dataset,
    parts: Mapping[str, int],
    models: Sequence[str],
    num_datasets: int,
    num_replicates: int,
) -> xr.Dataset:
    """Return the evaluation of all estimators against the exact answers, and the seconds that each took.

    A step. `answers` are the results of the steps that answered, in the order of `parts`, which says how many of them
    belong to each method; `models` names the two models.
    """
    remaining = iter(answers)
    by_method = {
        method: Answers.of([next(remaining) for _ in range(num_parts)], num_datasets)
        for method, num_parts in parts.items()
    }
    evaluation = measure(
        {method: found.by_model for method, found in by_method.items()},
        exact=Answers.of(exact, num_datasets).by_model,
        names=models,
        num_replicates=num_replicates,
    )
    seconds = [*(found.seconds for found in by_method.values()), float(exact.attrs["seconds"])]
    return evaluation.results.assign(answer_seconds=("estimator", seconds))


def comparisons(scale: str, studies: Sequence[str]) -> Iterator[Comparison]:
    """Yield the comparisons of these studies at all sample sizes of a scale, studies first, then sizes.

    Every figure of the simulation study takes its steps from these, so what several figures need is computed once.
    """
    settings = SCALES[scale]
    for study in studies:
        for num_obs in settings.sizes:
            yield Comparison(study, num_obs, settings)
