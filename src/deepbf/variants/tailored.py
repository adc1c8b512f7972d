"""fit_tailored: train where the data are (Section 2.2), for a better answer at one observed data set."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.progress import Progress

from deepbf import _checks
from deepbf._numerics import log_posterior_probs
from deepbf.answer import Answer
from deepbf.estimator.bayes_factor import BayesFactor
from deepbf.estimator.fitting import fit
from deepbf.layout.data_layout import Data
from deepbf.layout.structure import Structure, find_structure
from deepbf.models.hyperparameters import describe
from deepbf.models.model import Model, ModelSet, masked_where_absent
from deepbf.simulation import check_executor
from deepbf.training.schedule import Budget
from deepbf.variants.local_odds import FEWEST_NEAR, NearEvidence
from deepbf.variants.screening import Region, Simulator, Summary, View, summarise

# Of the budget, what the global estimator gets where none is passed.
GLOBAL_SHARE = 0.5
# Measured on Data 1 (i), n = 128: fewer are noisier, more lie further away; see docs/tailoring.md.
NUM_NEAR = 1000
# Simulations of a model for each that should come near: with fewer, the region would be most of the data.
FEWEST_PER_NEAR = 5


@dataclass(frozen=True, kw_only=True)
class TailoredAnswer(Answer):
    """An `Answer` from simulations near the observed data, with how many of each model came near.

    Where a model that the Bayes factor is about came near too rarely, `tailored` is False, `log_bf`, `error` and
    `interval` are those of the global estimator, and a warning says so, with the bound that the counts do give.
    `surprise` and `support` are always those of the global estimator. `log_evidence` holds that of the simulations near
    the data for the models that came near often enough, and that of the global estimator for the others; it always
    agrees with `log_bf` and with `posterior_probs`.

    Parameters
    ----------
    tailored
        Whether `log_bf` comes from the simulations near the observed data.
    global_log_bf, global_error
        What the global estimator says, in the same direction.
    num_near, num_screened
        Simulations of each model that came near, and of how many.
    radius
        How near that is: distance between summaries, each column in units of its interquartile range over all models.
    num_simulations
        All simulations of the call, those of the global estimator and of the pilot included.
    """

    tailored: bool
    global_log_bf: float
    global_error: float | None
    num_near: tuple[int, ...]
    num_screened: tuple[int, ...]
    radius: float
    num_simulations: int

    @classmethod
    def from_answer(cls, answer: Answer, **changes: Any) -> Self:
        """Return the tailored answer that says what `answer` says, except for what is given by name.

        Every field of `answer` is carried along, also those that a later version of `Answer` adds.
        """
        return cls(**({field.name: getattr(answer, field.name) for field in fields(answer)} | changes))

    @property
    def acceptance_rates(self) -> tuple[float, ...]:
        """The share of each model's simulations that came near."""
        return tuple(near / screened for near, screened in zip(self.num_near, self.num_screened, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {**super().to_dict(), "acceptance_rates": self.acceptance_rates}

    def _rows(self) -> list[tuple[str, str]]:
        counts = zip(self.names, self.num_near, self.num_screened, strict=True)
        near = ", ".join(f"{name} {count:,} of {screened:,}" for name, count, screened in counts)
        rows = [*super()._rows(), ("near the data", near)]
        if self.tailored:
            sign = 1.0 if self.log_bf >= 0 else -1.0
            error = "" if self.global_error is None else f" +- {self.global_error:.2g}"
            rows.append(("trained globally", f"{sign * self.global_log_bf:.2f}{error}"))
        return rows


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
    ...                              num_simulations=20_000, num_near=300, seed=1, progress=False)
    >>> answer.favours, answer.tailored
    ('loaded', True)
    """
    started = time.monotonic()
    model_set = ModelSet.of(models, prior_probs)
    _check_request(model_set, summary, estimator, structure)
    plan = _BudgetPlan.of(seconds, num_simulations, num_near, len(model_set), trains=estimator is None)
    check_executor(executor, model_set.models)
    seeds = _Seeds.of(_checks.check_seed("seed", seed), len(model_set))
    num_trained = 0
    if estimator is None:
        wanted = "vector" if structure is None else structure
        _check_before_training(model_set, observed, find_structure(wanted), summary)
        estimator = fit(
            model_set.models, structure=wanted, ensemble=ensemble, executor=executor, seed=seeds.training,
            progress=progress, **plan.for_training(),
        )  # fmt: skip
        num_trained = estimator.record.num_simulations
    prior = estimator.prior_probs if prior_probs is None else model_set.prior_probs
    comparison = _Comparison(estimator, observed, prior, model, over)
    # Refuses what cannot be compared before anything is simulated for it.
    global_evidence = np.array(comparison.ask(model, over).log_evidence)
    view = View(estimator, summary)
    data = estimator.layout.check_one("observed", observed)
    summaries = view.summaries(data)
    _check_observed_summary(summaries)
    simulator = Simulator(model_set.models, view, estimator.evaluated_num_obs(None, observed), executor)
    with Progress(disable=not progress) as bar:
        pilot = simulator.pilot(plan.left(num_trained, time.monotonic() - started), seeds.pilot, bar)
        region, num_screened = Region.choose(summaries[0], pilot, num_near)
        near = simulator.screen(region, num_screened, seeds.screening, bar)
    rng = np.random.default_rng(seeds.halves)
    return comparison.answer(
        global_evidence,
        NearEvidence.of(near, view.features(data)[0], view.num_leading(data), rng),
        radius=region.radius,
        num_simulations=num_trained + pilot.num_datasets + sum(num_screened),
    )


class _Seeds(NamedTuple):
    """One seed for each use, so that no use depends on how much another draws."""

    training: int
    halves: int
    pilot: list[int]
    screening: list[int]

    @classmethod
    def of(cls, seed: int, num_models: int) -> _Seeds:
        children = np.random.SeedSequence(seed).spawn(2 + 2 * num_models)
        training, halves, *others = (int(child.generate_state(1, np.uint64)[0]) for child in children)
        return cls(training, halves, others[:num_models], others[num_models:])


@dataclass(frozen=True)
class _BudgetPlan:
    """The budget of the call, divided between training the global estimator and simulating near the data."""

    budget: Budget

    @classmethod
    def of(
        cls, seconds: float | None, num_simulations: int | None, num_near: int, num_models: int, *, trains: bool
    ) -> _BudgetPlan:
        """Return the plan, if the budget can bring as many simulations near as wanted."""
        wanted = _checks.check_count("num_near", num_near, least=FEWEST_NEAR)
        budget = Budget.of(seconds, None, num_simulations, num_models=num_models)
        least = math.ceil(num_models * wanted * FEWEST_PER_NEAR / (GLOBAL_SHARE if trains else 1.0))
        if budget.num_simulations is not None and budget.num_simulations < least:
            shared = "half of which train the global estimator, " if trains else ""
            raise ValueError(
                f"num_simulations must be at least {least:,}, {shared}to bring num_near={wanted:,} of each model near; "
                f"received {budget.num_simulations:,}. Pass more, or a smaller num_near."
            )
        return cls(budget)

    def for_training(self) -> dict[str, Any]:
        """Return the global estimator's share, as `fit` takes it."""
        if self.budget.num_simulations is not None:
            return {"num_simulations": math.ceil(GLOBAL_SHARE * self.budget.num_simulations)}
        return {"seconds": GLOBAL_SHARE * (self.budget.seconds or 0.0)}

    def left(self, num_trained: int, elapsed: float) -> Budget:
        """Return what is left for the pilot and for screening."""
        if self.budget.num_simulations is not None:
            return Budget(num_simulations=self.budget.num_simulations - num_trained)
        # Training may have taken all of it under load: a tenth is used in any case.
        seconds = self.budget.seconds or 0.0
        return Budget(seconds=max(seconds - elapsed, seconds / 10))


@dataclass(frozen=True)
class _Comparison:
    """What was asked: the data, the prior, and perhaps the two models that the Bayes factor is about."""

    estimator: BayesFactor
    observed: Data
    prior_probs: NDArray[np.float64]
    model: int | str | None
    over: int | str | None

    def ask(self, model: int | str | None, over: int | str | None) -> Answer:
        """Return the global estimator's answer about two models; None leaves one of them to `BayesFactor.compare`."""
        return self.estimator.compare(self.observed, prior_probs=self.prior_probs, model=model, over=over)

    def pair(self, evidence: NDArray[np.float64]) -> tuple[int, int]:
        """Return which models the Bayes factor is about, by the rule of `BayesFactor.compare`."""
        return self.estimator.compared_pair(evidence, self.prior_probs, self.model, self.over)

    def answer(
        self, global_evidence: NDArray[np.float64], near: NearEvidence, *, radius: float, num_simulations: int
    ) -> TailoredAnswer:
        """Return what is known: of models that came near from what did, of others from the global estimator."""
        names = self.estimator.names
        evidence = near.joined_with(global_evidence)
        known = set(self.pair(evidence)) & set(near.known.tolist())
        if len(known) == 1:
            # Their Bayes factor is the global one. The scales meet there, so that the evidences agree with it.
            evidence = near.joined_with(global_evidence, *known)
        first, second = self.pair(evidence)
        compared = self.ask(first, second)
        tailored = first in near.known and second in near.known
        warnings = near.count_warnings(names)
        found: dict[str, Any] = {}
        if tailored:
            found = dict(zip(("log_bf", "error", "interval"), near.log_bf(first, second), strict=True))
            warnings += near.beyond_warnings(names, first, second)
        else:
            warnings += ["this is the answer of the global estimator", *compared.warnings]
        return TailoredAnswer.from_answer(
            compared,
            **found,
            log_evidence=tuple((evidence - evidence.max()).tolist()),
            posterior_probs=tuple(np.exp(log_posterior_probs(evidence, np.log(self.prior_probs))).tolist()),
            warnings=tuple(warnings),
            tailored=tailored,
            global_log_bf=compared.log_bf,
            global_error=compared.error,
            num_near=tuple(near.num_near.tolist()),
            num_screened=tuple(near.num_screened.tolist()),
            radius=radius,
            num_simulations=num_simulations,
        )


def _check_request(
    model_set: ModelSet, summary: object, estimator: object, structure: str | Mapping[str, str] | None
) -> None:
    """Raise unless the priors are fixed, `summary` is a function, and `estimator` is one of these models, if given."""
    if model_set.hyperparameters:
        raise ValueError(
            f"models must have fixed priors to be tailored to one data set; theirs depend on "
            f"{describe(model_set.hyperparameters)}. Fix them: [model.at(...) for model in models]."
        )
    if summary is not None and not callable(summary):
        raise TypeError(
            f"summary must be a function of data sets or None; received {summary!r}. "
            "Pass, for example, summary=lambda data: data.mean(axis=1, keepdims=True)."
        )
    if estimator is None:
        return
    if not isinstance(estimator, BayesFactor):
        raise TypeError(
            f"estimator must be what deepbf.fit or deepbf.load returns; received {type(estimator).__name__}. "
            "Leave it out to have one trained."
        )
    if structure is not None and structure != estimator.structure:
        raise ValueError(
            f"structure={structure!r} is not that of the estimator, {estimator.structure!r}; leave it out."
        )
    estimator.check_models(model_set.models)


def _check_before_training(
    model_set: ModelSet, observed: Data, structure: Structure | Mapping[str, Structure], summary: Summary | None
) -> None:
    """Raise on what is plainly wrong, after two data sets of each model: training takes long."""
    for model in model_set.models:
        simulated = model.simulate(2, seed=0).data
        given = masked_where_absent(simulated)
        if summary is not None:
            summarise(summary, given)
        # Data of varying size are checked by the estimator, which knows their range.
        if isinstance(structure, Structure) and isinstance(given, np.ndarray) and not np.ma.isMaskedArray(given):
            data = structure.check_observed("observed", observed, given.shape[1:], (), varies=False, extrapolate=False)
            if len(data) != 1:
                raise ValueError(
                    f"observed must be one data set of shape {given.shape[1:]}; received {len(data)}. Pass one of them."
                )
            if summary is not None:
                _check_observed_summary(summarise(summary, data))


def _check_observed_summary(summaries: NDArray[np.float64]) -> None:
    """Raise unless the observed data have a finite summary."""
    nonfinite = _checks.describe_nonfinite(summaries)
    if nonfinite is not None:
        raise ValueError(
            f"summary of observed has {nonfinite} (leading axis: data sets). "
            "Choose a summary that is defined for the observed data."
        )
