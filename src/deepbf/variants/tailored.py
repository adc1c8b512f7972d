"""fit_tailored: train where the data are (Section 2.2), for a better answer at one observed data set."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.progress import Progress

from deepbf import _checks
from deepbf.estimator import BayesFactor
from deepbf.estimator.bayes_factor import Data
from deepbf.estimator.fitting import fit
from deepbf.estimator.observed_data import check_fixed
from deepbf.models import Model, ModelSet
from deepbf.models.hyperparameters import describe
from deepbf.models.model import masked_where_absent
from deepbf.networks import Structure, check_structure
from deepbf.simulation.stream import check_executor
from deepbf.training import Budget
from deepbf.variants.near_evidence import FEWEST_NEAR, Comparison, NearEvidence, answer_from
from deepbf.variants.region import Region, choose_radius
from deepbf.variants.screening import Near, Simulator, Summary, View, summarise
from deepbf.variants.tailored_answer import TailoredAnswer

# Of the budget, what the global estimator gets where none is passed; of the rest, what the pilot gets.
GLOBAL_SHARE = 0.5
PILOT_SHARE = 0.1
# More would not place the region better.
MOST_PILOT = 50_000
# Measured on Data 1 (i), n = 128: fewer are noisier, more lie further away; see docs/tailoring.md.
NUM_NEAR = 1000
# Simulations a model and a wanted one near: with fewer, the region would be most of the data.
FEWEST_A_NEAR = 5
# Of the seconds left for screening, what is planned: the rest is for what the pilot's timing did not see.
PLANNED_SHARE = 0.9


def fit_tailored(
    models: Sequence[Model],
    observed: Data,
    *,
    structure: str | Mapping[str, str] | None = None,
    summary: Summary | None = None,
    estimator: BayesFactor | None = None,
    prior_probs: ArrayLike | None = None,
    model: int | str | None = None,
    over: int | str | None = None,
    seconds: float | None = None,
    num_simulations: int | None = None,
    num_near: int = NUM_NEAR,
    ensemble: int = 4,
    executor: Executor | None = None,
    seed: int = 0,
    progress: bool = True,
) -> TailoredAnswer:
    """Return the Bayes factor at one observed data set, trained on simulations near it.

    A data set is near if its summary is: A, a ball around the observed summary, whose radius a pilot has fixed before
    the simulations that are screened. With y the observed data and a classifier trained on what is in A alone::

        log BF(y) = log odds(y | A) + log P(A | M1) - log P(A | M2)

    so screening does not bias the answer, and models may be simulated unequally often: the one that comes near least
    often is simulated most, which is what makes strong evidence measurable. The error joins the classifier's, from
    random halves of what is near, with the binomial one of the acceptance rates.

    Parameters
    ----------
    models
        Two or more models, in the order that gives Bayes factors their direction.
    observed
        One data set.
    structure
        As in `deepbf.fit`, "vector" by default; that of the estimator, if one is passed.
    summary
        Maps data sets along a leading axis, as simulators return them, to shape (data sets, columns): what decides
        whether data are near. By default the global estimator's log odds. The classifier sees more in either case: the
        log odds of all members of that estimator, what its networks read, and a given summary besides.
    estimator
        A global estimator of the same models. Without one, half of the budget goes into training it.
    prior_probs, model, over
        As in `deepbf.fit` and `BayesFactor.compare`.
    seconds, num_simulations
        At most one budget, 60 seconds by default; of this call, an estimator that is passed not counted. `seconds` are
        approximate. With `num_simulations` the same seed gives the same answer.
    num_near
        Simulations of each model that should come near; the region is the smallest that promises them.
    ensemble, executor, seed, progress
        As in `deepbf.fit`.

    Returns
    -------
    TailoredAnswer
        An `Answer` with counts and acceptance rates. If a model came near too rarely to train on, the answer is the
        global estimator's, `tailored` is False, and a warning has the bound that the counts give.

    Examples
    --------
    >>> import deepbf
    >>> fair = deepbf.Model("fair", simulator=lambda rng, size: rng.binomial(1, 0.5, (size, 20)))
    >>> loaded = deepbf.Model("loaded", simulator=lambda rng, size: rng.binomial(1, 0.8, (size, 20)))
    >>> answer = deepbf.fit_tailored([fair, loaded], [1] * 17 + [0] * 3, structure="exchangeable",
    ...                              num_simulations=40_000, num_near=500, seed=1, progress=False)
    >>> answer.favours, answer.tailored
    ('loaded', True)
    """
    started = time.monotonic()
    model_set = ModelSet.of(models, prior_probs)
    check_fixed_priors(model_set)
    budget = check_budget(seconds, num_simulations, num_near, len(model_set), trains=estimator is None)
    check_executor(executor, model_set.models)
    check_summary(summary)
    seeds = Seeds.of(_checks.check_seed("seed", seed), len(model_set))
    num_trained = 0
    if estimator is None:
        laid_out = check_structure("vector" if structure is None else structure)
        check_before_training(model_set, observed, laid_out, summary)
        estimator = fit(
            model_set.models, structure=laid_out, ensemble=ensemble, executor=executor, seed=seeds.training,
            progress=progress, **global_budget(budget),
        )  # fmt: skip
        num_trained = estimator.record.num_simulations
    else:
        check_estimator(estimator, model_set, structure)
    prior = estimator.prior_probs if prior_probs is None else model_set.prior_probs
    comparison = Comparison(estimator, observed, prior, model, over)
    # Refuses what cannot be compared before anything is simulated for it.
    comparison.ask()
    view = View(estimator, summary)
    data = estimator.check_data("observed", observed)
    summaries = view.summaries(data)
    check_observed_summary(summaries)
    simulator = Simulator(model_set.models, view, estimator.evaluated_num_obs(None, observed), executor)
    with Progress(disable=not progress) as bar:
        pilot = look_around(simulator, budget_left(budget, num_trained, started), seeds.pilot, bar)
        region, num_screened = choose_region(summaries[0], pilot, num_near)
        near = screen(simulator, region, num_screened, seeds.screening, bar)
    return answer_from(
        comparison,
        NearEvidence.of(near, view.features(data)[0], view.num_leading(data), np.random.default_rng(seeds.halves)),
        radius=region.radius,
        num_simulations=num_trained + pilot.num_datasets + sum(num_screened),
    )


class Seeds(NamedTuple):
    """One seed for each use, so that no use depends on how much another draws."""

    training: int
    halves: int
    pilot: list[int]
    screening: list[int]

    @classmethod
    def of(cls, seed: int, num_models: int) -> Seeds:
        """Return the seeds that follow from the user's."""
        children = np.random.SeedSequence(seed).spawn(2 + 2 * num_models)
        training, halves, *others = (int(child.generate_state(1, np.uint64)[0]) for child in children)
        return cls(training, halves, others[:num_models], others[num_models:])


class Pilot(NamedTuple):
    """Summaries of some data sets of each model; what each costs, and what all that are screened may cost."""

    summaries: list[NDArray[np.float64]]
    costs: NDArray[np.float64]
    budget: float

    @property
    def num_datasets(self) -> int:
        """Data sets of all models."""
        return sum(len(of_model) for of_model in self.summaries)


def look_around(simulator: Simulator, budget: Budget, seeds: Sequence[int], bar: Progress) -> Pilot:
    """Return the pilot, drawn apart from all that is screened later: the region must not depend on that."""
    num_models = len(seeds)
    most, seconds = MOST_PILOT, None
    if budget.num_simulations is not None:
        most = min(most, math.ceil(PILOT_SHARE * budget.num_simulations / num_models))
    if budget.seconds is not None:
        seconds = PILOT_SHARE * budget.seconds / num_models
    task = bar.add_task("looking around", total=num_models * most)
    begin = time.monotonic()
    drawn = [
        simulator.pilot(k, seed, most, seconds, lambda count: bar.advance(task, count)) for k, seed in enumerate(seeds)
    ]
    bar.update(task, completed=num_models * most)
    elapsed = time.monotonic() - begin
    summaries = [of_model for of_model, _ in drawn]
    check_defined(summaries, [model.name for model in simulator.models])
    if budget.seconds is not None:
        # A pilot that took all the time still leaves one more like it.
        affordable = max(PLANNED_SHARE * (budget.seconds - elapsed), elapsed)
        return Pilot(summaries, np.array([seconds_each for _, seconds_each in drawn]), affordable)
    num_left = (budget.num_simulations or 0) - sum(len(of_model) for of_model in summaries)
    return Pilot(summaries, np.ones(num_models), float(num_left))


def choose_region(observed: NDArray[np.float64], pilot: Pilot, num_near: int) -> tuple[Region, list[int]]:
    """Return the region around the observed summary, and how many data sets of each model to screen."""
    everything = Region.around(observed, pilot.summaries)
    distances = [everything.distance(of_model) for of_model in pilot.summaries]
    radius, num_screened = choose_radius(distances, pilot.costs, pilot.budget, num_near)
    return replace(everything, radius=radius), num_screened.tolist()


def screen(
    simulator: Simulator, region: Region, num_screened: Sequence[int], seeds: Sequence[int], bar: Progress
) -> list[Near]:
    """Return what of each model's simulations came near."""
    task = bar.add_task("simulating nearby", total=sum(num_screened))
    return [
        simulator.screen(k, seed, num_datasets, region, lambda count: bar.advance(task, count))
        for k, (seed, num_datasets) in enumerate(zip(seeds, num_screened, strict=True))
    ]


def check_budget(
    seconds: float | None, num_simulations: int | None, num_near: int, num_models: int, *, trains: bool
) -> Budget:
    """Return the checked budget, if it can bring as many simulations near as wanted."""
    wanted = _checks.check_count("num_near", num_near, least=FEWEST_NEAR)
    budget = Budget.of(seconds, None, num_simulations, num_models=num_models)
    least = math.ceil(num_models * wanted * FEWEST_A_NEAR / (GLOBAL_SHARE if trains else 1.0))
    if budget.num_simulations is not None and budget.num_simulations < least:
        shared = "half of which train the global estimator, " if trains else ""
        raise ValueError(
            f"num_simulations must be at least {least:,}, {shared}to bring num_near={wanted:,} of each model near; "
            f"received {budget.num_simulations:,}. Pass more, or a smaller num_near."
        )
    return budget


def global_budget(budget: Budget) -> dict[str, Any]:
    """Return the global estimator's share, as `fit` takes it."""
    if budget.num_simulations is not None:
        return {"num_simulations": math.ceil(GLOBAL_SHARE * budget.num_simulations)}
    return {"seconds": GLOBAL_SHARE * (budget.seconds or 0.0)}


def budget_left(budget: Budget, num_trained: int, started: float) -> Budget:
    """Return what is left for the pilot and for screening."""
    if budget.num_simulations is not None:
        return Budget(num_simulations=budget.num_simulations - num_trained)
    # Training may have taken all of it under load: a tenth is used in any case.
    seconds = budget.seconds or 0.0
    return Budget(seconds=max(seconds - (time.monotonic() - started), seconds / 10))


def check_summary(summary: object) -> None:
    """Raise unless `summary` is a function, or none."""
    if summary is not None and not callable(summary):
        raise TypeError(
            f"summary must be a function of data sets or None; received {summary!r}. "
            "Pass, for example, summary=lambda data: data.mean(axis=1, keepdims=True)."
        )


def check_before_training(model_set: ModelSet, observed: Data, structure: Structure, summary: Summary | None) -> None:
    """Raise on what is plainly wrong, after two data sets of each model: training takes long."""
    for model in model_set.models:
        simulated = model.simulate(2, seed=0).data
        given = masked_where_absent(simulated)
        if summary is not None:
            summarise(summary, given)
        # Data of varying size are checked by the estimator, which knows their range.
        if isinstance(structure, str) and structure != "nested" and isinstance(given, np.ndarray):
            if np.ma.isMaskedArray(given):
                continue
            data = check_fixed("observed", observed, structure, given.shape[1:])
            if len(data) != 1:
                raise ValueError(
                    f"observed must be one data set of shape {given.shape[1:]}; received {len(data)}. Pass one of them."
                )
            if summary is not None:
                check_observed_summary(summarise(summary, data))


def check_fixed_priors(model_set: ModelSet) -> None:
    """Raise if priors have hyperparameters that are still open."""
    if model_set.hyperparameters:
        raise ValueError(
            f"models must have fixed priors to be tailored to one data set; theirs depend on "
            f"{describe(model_set.hyperparameters)}. Fix them: [model.at(...) for model in models]."
        )


def check_estimator(estimator: object, model_set: ModelSet, structure: str | Mapping[str, str] | None) -> None:
    """Raise unless `estimator` is one of these models, and of the structure if one is given."""
    if not isinstance(estimator, BayesFactor):
        raise TypeError(
            f"estimator must be what deepbf.fit or deepbf.load returns; received {type(estimator).__name__}. "
            "Leave it out to have one trained."
        )
    if structure is not None and check_structure(structure) != estimator.structure:
        raise ValueError(
            f"structure={structure!r} is not that of the estimator, {estimator.structure!r}; leave it out."
        )
    estimator.check_models(model_set.models)


def check_observed_summary(summaries: NDArray[np.float64]) -> None:
    """Raise unless the observed data have a finite summary."""
    nonfinite = _checks.describe_nonfinite(summaries)
    if nonfinite is not None:
        raise ValueError(
            f"summary of observed has {nonfinite} (leading axis: data sets). "
            "Choose a summary that is defined for the observed data."
        )


def check_defined(summaries: Sequence[NDArray[np.float64]], names: Sequence[str]) -> None:
    """Raise if a model's data never have a summary."""
    for of_model, name in zip(summaries, names, strict=True):
        if not np.isfinite(of_model).all(axis=1).any():
            raise ValueError(
                f"summary is nan or inf for all {len(of_model):,} simulations of model {name!r} in the pilot; "
                "choose one that is defined for the data of every model."
            )
