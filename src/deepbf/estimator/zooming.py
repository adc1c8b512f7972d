"""compare: the Bayes factor at one observed data set, by zooming in on the parameters that could have made it.

First a short fit on the whole models, if there is no estimator yet. Then the region of each model's parameters that
holds its posterior at the observed data (`regions.py`). Then a fit on the models with their priors narrowed to
these. With y the data::

    log BF(y) = log odds of the narrowed models at y + log P_1 - log P_2,   P_k = E[w_k] / E[w_k | y]

where w_k is a window about the posterior of model k, E[w_k] its mean over the prior, which is counted, and E[w_k | y]
that over the posterior, which is near 1. The narrowed models make data like the observed ones hundreds of times more
often, and their log odds are small even where an Occam factor makes the Bayes factor large.
"""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from scipy.stats import t as student_t

from deepbf import _checks
from deepbf._numerics import ensemble_error, log_evidence, log_posterior_probs
from deepbf.answer import Answer, write_odds
from deepbf.estimator.bayes_factor import FEWEST_FAR_OUT, BayesFactor
from deepbf.estimator.fitting import PartialFitError, fit
from deepbf.estimator.fresh_data import check_models, evaluated_num_obs
from deepbf.estimator.regions import Zoom, counted, locate
from deepbf.estimator.storage import load
from deepbf.layout.data_layout import DATA, Data, DataLayout
from deepbf.layout.structure import find_structure
from deepbf.models.hyperparameters import describe
from deepbf.models.model import Model, ModelSet, SimulationError, masked_where_absent
from deepbf.simulation import check_executor
from deepbf.training.schedule import Budget
from deepbf.training.trained import BudgetTooSmallError

# Of the budget, what the fit on the whole models gets where no estimator is passed.
GLOBAL_SHARE = 0.3
# Of what the budget brings in simulations, what one round of the search for a region takes of each model.
ROUND_SHARE = 0.01
FEWEST_A_ROUND, MOST_A_ROUND = 256, 4096
# Of the seconds that are left, what counting draws of the priors may take.
COUNTING_SHARE = 0.1
# The least simulations in all, and the least of a budget that is worth a second fit.
LEAST_SIMULATIONS = 512
LEAST_LEFT = {"seconds": 3.0, "steps": 50, "num_simulations": 4 * LEAST_SIMULATIONS}
# Log odds of the narrowed models at the data, up to which both make data like them often enough.
MOST_ODDS = 4.0
# A wider interval says little: a factor of 3 in the Bayes factor either way.
WIDE = math.log(3.0)
# Within this share of the posterior near the sides of its region, nothing is said.
MOST_AT_EDGE = 0.05


@dataclass(frozen=True, kw_only=True)
class ZoomedAnswer(Answer):
    """An `Answer` from models cut off outside the parameters that could have made the observed data.

    Its support and surprise are those of the whole models, by the global estimator. `error` and `interval` hold the
    spread of the networks, the error of the prior's shares, and what may lie outside the regions.

    Parameters
    ----------
    zoomed
        Whether any prior was narrowed; else the answer is that of the whole models, after the whole budget.
    regions
        What is known of the region of each model.
    errors
        The parts of `error`: "training", "shares of the priors" and "shares of the posteriors" by standard error, and
        what may be "outside the regions".
    bounded
        Whether the evidence is stronger than simulations can show: `interval` is then open towards stronger evidence.
    global_log_bf, global_error
        What the global estimator says.
    num_simulations
        All simulations of the call.
    """

    zoomed: bool
    regions: tuple[Zoom, ...]
    errors: Mapping[str, float]
    bounded: bool
    global_log_bf: float
    global_error: float | None
    num_simulations: int

    @classmethod
    def from_answer(cls, answer: Answer, **changes: Any) -> Self:
        """Return the zoomed answer that says what `answer` says, except for what is given by name."""
        return cls(**({field.name: getattr(answer, field.name) for field in fields(answer)} | changes))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: the open end of an interval is None."""
        regions = [
            {
                "model": zoom.model,
                "found": zoom.region is not None,
                "log_share": zoom.log_share,
                "share_error": zoom.share_error,
                "log_kept": zoom.log_kept,
                "kept_error": zoom.kept_error,
                "outside": zoom.outside,
                "at_edge": zoom.at_edge,
                "why": zoom.why,
            }
            for zoom in self.regions
        ]
        interval = self.interval and tuple(end if math.isfinite(end) else None for end in self.interval)
        # Regions hold arrays of draws, which are no part of what is told.
        told = super(ZoomedAnswer, replace(self, regions=())).to_dict()
        return {**told, "regions": regions, "interval": interval}

    def _rows(self) -> list[tuple[str, str]]:
        rows = super()._rows()
        if not self.regions:
            return rows
        shares = [
            f"{zoom.model} {math.exp(zoom.log_share):.2g}" if zoom.region is not None else f"{zoom.model} all of it"
            for zoom in self.regions
        ]
        sign = 1.0 if self.log_bf >= 0 else -1.0
        error = "" if self.global_error is None else f" +- {self.global_error:.2g}"
        return [
            *rows,
            ("zoomed in", f"on shares of the priors: {', '.join(shares)}"),
            ("before", f"{sign * self.global_log_bf:.2f}{error}, by the estimator of the whole models"),
        ]

    def _written_log_bf(self) -> str:
        if not self.bounded or self.interval is None:
            return super()._written_log_bf()
        weakest = min(abs(end) for end in self.interval)
        return (
            f"more than {weakest:.2f}, natural log (95%); the value {abs(self.log_bf):.2f} rests on the form of the "
            "networks"
        )


class PartialCompareError(SimulationError):
    """A simulator failed during the comparison; `partial` is the best answer until then, or None."""

    partial: Answer | None = None


def compare(
    models: Sequence[Model],
    observed: Data,
    *,
    structure: str | Mapping[str, str] = "vector",
    covariates: Any = None,
    prior_probs: ArrayLike | None = None,
    model: int | str | None = None,
    over: int | str | None = None,
    estimator: BayesFactor | str | os.PathLike[str] | None = None,
    seconds: float | None = None,
    steps: int | None = None,
    num_simulations: int | None = None,
    executor: Executor | None = None,
    seed: int = 0,
    progress: bool = True,
) -> ZoomedAnswer:
    """Return the Bayes factor at one observed data set: the whole job in one call.

    A short fit on the whole models, unless an estimator of them is passed; the parameters of each model that could have
    made the observed data; a second fit on the models with their priors narrowed to these, by a window w_k about the
    posterior of model k. With y the observed data and E the mean over the prior::

        log BF(y) = log odds of the narrowed models at y + log P_1 - log P_2,   P_k = E[w_k] / E[w_k | y]

    where E[w_k], the share of the prior, is counted, and E[w_k | y], that of the posterior, is near 1. Use it where one
    data set matters; `deepbf.fit` answers for any number of data sets, each less exactly.

    Parameters
    ----------
    models
        Two or more models, in the order that gives Bayes factors their direction. A model without a prior is taken as
        it is.
    observed
        One data set. Simulators that take a number of observations, ``simulator(rng, params, num_obs)``, are told that
        of the data.
    structure, covariates
        As in `deepbf.fit`; those of the estimator, if one is passed.
    prior_probs, model, over
        As in `BayesFactor.compare`.
    estimator
        A trained estimator of the same models, or the path of a saved one, to zoom in from. Without one, three tenths
        of the budget go into training it.
    seconds, steps, num_simulations
        At most one budget, as in `deepbf.fit`, for the whole call; 60 seconds by default. With `steps` or
        `num_simulations` the same seed gives the same answer.
    executor
        Any `concurrent.futures.Executor` to simulate on.
    seed
        Everything depends on it alone, never on the executor or the number of workers.
    progress
        Whether to say what is being done. Ctrl-C returns the best answer so far.

    Returns
    -------
    ZoomedAnswer
        An `Answer`, with the regions and what makes up its error. Where there was nothing to narrow, `zoomed` is False,
        and the rest of the budget went into the whole models.

    Raises
    ------
    PartialCompareError
        If a simulator fails once training has begun; its `partial` holds the best answer until then.

    Examples
    --------
    >>> import deepbf
    >>> fair = deepbf.Model("fair", simulator=lambda rng, size: rng.binomial(1, 0.5, (size, 20)))
    >>> bent = deepbf.Model("bent", prior=lambda rng, size: rng.beta(1, 1, size),
    ...                     simulator=lambda rng, p: rng.binomial(1, p[:, None], (len(p), 20)))
    >>> answer = deepbf.compare([fair, bent], [1] * 17 + [0] * 3, structure="exchangeable", steps=900, seed=1,
    ...                         progress=False)
    >>> answer.favours
    'bent'
    """
    started = time.monotonic()
    if isinstance(estimator, str | os.PathLike):
        estimator = load(estimator)
    model_set = ModelSet.of(models, prior_probs)
    if estimator is None:
        models = [_of_size(one, _num_obs_for(one, observed)) for one in model_set.models]
        model_set = replace(model_set, models=tuple(models))
    budget = Budget.of(seconds, steps, num_simulations, num_models=len(model_set))
    check_executor(executor, model_set.models)
    seed = _checks.check_seed("seed", seed)
    say = Console(quiet=not progress).print
    if estimator is None:
        if model_set.hyperparameters:
            raise ValueError(
                f"models must have fixed priors to be compared at one data set; theirs depend on "
                f"{describe(model_set.hyperparameters)}. Fix them: [model.at(...) for model in models]."
            )
        _check_early(model_set, observed, structure, covariates)
        say("1 of 3: training on the whole models")
        run = partial(
            fit, model_set.models, structure=structure, covariates=covariates, prior_probs=model_set.prior_probs,
            executor=executor, seed=seed, progress=progress,
        )  # fmt: skip
        try:
            try:
                estimator = run(**budget.share(GLOBAL_SHARE))
            except BudgetTooSmallError:
                if budget.seconds is None:
                    raise
                # The first time, compiling takes long; it is done now.
                left = _left_of(budget, started, 0, 0)["seconds"]
                say(f"        preparing took long; training again, with half of the {left:.0f} seconds that are left")
                estimator = run(seconds=left / 2)
        except PartialFitError as error:
            raise _failure(error, None if error.partial is None else error.partial.compare(observed)) from error
        num_trained = estimator.record.num_simulations
    else:
        num_trained = 0
    return zoom_in(
        estimator, observed, models=models, budget=budget, started=started, num_trained=num_trained,
        prior_probs=prior_probs, model=model, over=over, executor=executor, seed=seed, progress=progress,
    )  # fmt: skip


def zoom_in(
    estimator: BayesFactor,
    observed: Data,
    *,
    models: Sequence[Model] | None,
    budget: Budget,
    started: float,
    num_trained: int = 0,
    prior_probs: ArrayLike | None = None,
    model: int | str | None = None,
    over: int | str | None = None,
    executor: Executor | None = None,
    seed: int = 0,
    progress: bool = True,
) -> ZoomedAnswer:
    """Return the answer at one observed data set, from an estimator of the whole models and what is left of a budget.

    `num_trained` counts the simulations of this call that the estimator has used; see `compare` for the rest.
    """
    prior = estimator.prior_or_own(prior_probs)
    before = estimator.compare(observed, prior_probs=prior, model=model, over=over)
    checked = check_models(estimator, models)
    num_obs = evaluated_num_obs(estimator, None, observed)
    say = Console(quiet=not progress).print
    regions_seed, fit_seed = np.random.SeedSequence((seed, 1)).spawn(2)
    not_zoomed = _unzoomed(before, num_trained)
    interrupted = estimator.record.stopped == "interrupted" and num_trained > 0
    left = _left_of(budget, started, num_trained, 0)
    if interrupted or any(number < LEAST_LEFT[name] for name, number in left.items()):
        return not_zoomed
    try:
        say("2 of 3: looking for the parameters that could have made the data")
        zooms = _locate_all(estimator, checked, observed, num_obs, budget, started, num_trained, regions_seed, executor)
        zooms = balanced(zooms, checked, before, regions_seed)
        for zoom in zooms:
            found = zoom.why or f"{math.exp(zoom.log_share):.2g} of its prior"
            say(f"        {zoom.model}: {found}")
        num_looked = sum(zoom.num_simulations for zoom in zooms)
        not_zoomed = replace(not_zoomed, regions=tuple(zooms), num_simulations=num_trained + num_looked)
        say("3 of 3: training where the data are")
        cut = [_of_size(zoom.truncated(one), num_obs) for zoom, one in zip(zooms, checked, strict=True)]
        nearby = fit(
            cut,
            structure=_user_structure(estimator.layout),
            covariates=None if estimator.covariates is None else dict(estimator.covariates.columns),
            prior_probs=estimator.prior_probs,
            executor=executor,
            seed=int(fit_seed.generate_state(1, np.uint64)[0]),
            progress=progress,
            **_left_of(budget, started, num_trained, num_looked),
        )
    except PartialFitError as error:
        kept = not_zoomed if error.partial is None else _zoomed(not_zoomed, error.partial, observed, prior)
        raise _failure(error, kept) from error
    except SimulationError as error:
        raise _failure(error, not_zoomed) from error
    except (KeyboardInterrupt, BudgetTooSmallError) as error:
        why = "the budget ended" if isinstance(error, BudgetTooSmallError) else "it was interrupted"
        return replace(not_zoomed, warnings=(*not_zoomed.warnings, f"{why} before it had zoomed in on the data"))
    return _zoomed(not_zoomed, nearby, observed, prior)


def _check_early(model_set: ModelSet, observed: Data, structure: Any, covariates: Any) -> None:
    """Raise on observed data that cannot be right, after a few simulations of each model: training takes long."""
    from deepbf.models.covariates import Covariates

    table = None if covariates is None else Covariates.of(covariates)
    models = (
        model_set.models if table is None else tuple(one.with_covariates(table.columns) for one in model_set.models)
    )
    found = find_structure("responses" if table is not None and structure == "vector" else structure)
    layout = DataLayout.of(replace(model_set, models=models), found, covariates=table)
    few = [layout.draw(one, 16, np.random.SeedSequence(0)) for one in models]
    # Of data of varying size, a few simulations do not show the range; the estimator will know it.
    if len({one.shape[1:] for one in few}) > 1 or any(one.dtype.kind == "f" and np.isnan(one).any() for one in few):
        return
    layout.seen(few).check_one("observed", observed)


def _left_of(budget: Budget, started: float, num_trained: int, num_looked: int) -> dict[str, Any]:
    """Return what is left of a budget, as `fit` takes it."""
    if budget.steps is not None:
        return {"steps": budget.steps - (math.ceil(GLOBAL_SHARE * budget.steps) if num_trained else 0)}
    if budget.num_simulations is not None:
        return {"num_simulations": max(LEAST_SIMULATIONS, budget.num_simulations - num_trained - num_looked)}
    return {"seconds": max(LEAST_LEFT["seconds"] / 2, (budget.seconds or 0.0) - (time.monotonic() - started))}


def _locate_all(
    estimator: BayesFactor,
    models: Sequence[Model],
    observed: Data,
    num_obs: int | None,
    budget: Budget,
    started: float,
    num_trained: int,
    seed: np.random.SeedSequence,
    executor: Executor | None,
) -> list[Zoom]:
    """Return what is known of the region of each model."""

    def read_packed(packed: NDArray[np.generic]) -> NDArray[np.floating]:
        rows, odds = estimator.summaries_and_log_odds(packed)
        return np.concatenate([rows, odds.mean(axis=0)], axis=1)

    def read(data: Any) -> NDArray[np.floating]:
        return read_packed(estimator.layout.check("data", masked_where_absent(data), values=estimator.values))

    at_observed = read_packed(estimator.layout.check_one("observed", observed, values=estimator.values))
    if budget.num_simulations is not None:
        expected = budget.num_simulations / len(models)
    else:
        # As many as the estimator took, in this call or another one like it.
        expected = estimator.record.num_simulations / len(models)
    each = int(np.clip(ROUND_SHARE * expected, FEWEST_A_ROUND, MOST_A_ROUND))
    count_until = math.inf
    if budget.seconds is not None:
        left = budget.seconds - (time.monotonic() - started)
        count_until = time.monotonic() + COUNTING_SHARE * left
    return [
        locate(
            model, read, at_observed, own, num_datasets=each, num_obs=num_obs, executor=executor,
            count_until=count_until,
        )
        for model, own in zip(models, seed.spawn(len(models)), strict=True)
    ]  # fmt: skip


def balanced(zooms: list[Zoom], models: Sequence[Model], before: Answer, seed: np.random.SeedSequence) -> list[Zoom]:
    """Return the zooms, a wider one of the model whose own leaves the rival far behind.

    Where one model is narrowed and the other cannot be, or less, the narrowed one makes data like these so much more
    often that its rival's hardly count: harder to compare than the whole models. `before` says about how much the data
    favour one of the whole models.
    """
    pair = [before.names.index(before.model), before.names.index(before.against)]
    odds = before.log_bf - (zooms[pair[0]].log_factor - zooms[pair[1]].log_factor)
    if abs(odds) <= MOST_ODDS:
        return zooms
    sign, narrow = (1.0, pair[0]) if odds > 0 else (-1.0, pair[1])
    # Narrowest first: of equals the narrower one.
    stages = (zooms[narrow], *reversed(zooms[narrow].wider))
    best = min(stages, key=lambda stage: abs(odds + sign * (zooms[narrow].log_factor - stage.log_factor)))
    if best is zooms[narrow]:
        return zooms
    chosen = replace(best, num_simulations=zooms[narrow].num_simulations, outside=0.0, at_edge=0.0)
    if chosen.region is None:
        chosen = replace(chosen, why="narrowing it would leave its rival far behind")
    else:
        chosen = counted(chosen, models[narrow], seed.spawn(1)[0])
    return [chosen if k == narrow else zoom for k, zoom in enumerate(zooms)]


@dataclass(frozen=True)
class OfSize:
    """A simulator of data sets with a fixed number of observations, by one that is told how many."""

    simulator: Any
    num_obs: int

    def __call__(self, rng: np.random.Generator, params: Any) -> Any:
        """Return one data set for each of the parameters."""
        return self.simulator(rng, params, self.num_obs)


def _of_size(model: Model, num_obs: int | None) -> Model:
    return model if num_obs is None else replace(model, simulator=OfSize(model.simulator, num_obs))


def _num_obs_for(model: Model, observed: Data) -> int | None:
    """Return how many observations a simulator must be told to draw; None for one that need not be told."""
    try:
        inspect.signature(model.simulator).bind(None, None)
    except TypeError:
        model.check_takes_num_obs()
    except ValueError:
        # Compiled functions may not say what they take; the first call will.
        return None
    else:
        return None
    if isinstance(observed, Mapping):
        raise ValueError(
            f"the simulator of model {model.name!r} is to be told how many observations to draw, and the observed data "
            "are a dict. Fit with num_obs=(fewest, most), and pass the estimator."
        )
    return len(np.asarray(observed))


def _user_structure(layout: DataLayout) -> str | dict[str, str]:
    """Return the structure of the data as a user of models without hyperparameters would pass it."""
    arrays = layout.user_arrays
    if not layout.packed or (layout.hyperparameters and [array.name for array in arrays] == [DATA]):
        return arrays[0].structure.name
    return {array.name: array.structure.name for array in arrays}


def _unzoomed(before: Answer, num_trained: int) -> ZoomedAnswer:
    """Return the global estimator's answer, before anything else is known."""
    return ZoomedAnswer.from_answer(
        before,
        zoomed=False,
        regions=(),
        errors={} if before.error is None else {"training": before.error},
        bounded=False,
        global_log_bf=before.log_bf,
        global_error=before.error,
        num_simulations=num_trained,
    )


def _zoomed(before: ZoomedAnswer, nearby: BayesFactor, observed: Data, prior: NDArray[np.float64]) -> ZoomedAnswer:
    """Return what an estimator of the truncated models and the shares of the priors say together."""
    log_factors = np.array([zoom.log_factor for zoom in before.regions])
    data = nearby.layout.check_one("observed", observed)
    members = log_evidence(nearby.log_odds_members(data)[:, 0]) + log_factors
    evidence = members.mean(axis=0)
    names = list(before.names)
    pair = [names.index(before.model), names.index(before.against)]
    log_bfs = members[:, pair[0]] - members[:, pair[1]]
    log_bf = float(log_bfs.mean())
    training = float(ensemble_error(log_bfs) or 0.0)
    shares = math.hypot(*(before.regions[k].share_error for k in pair))
    kept = math.hypot(*(before.regions[k].kept_error for k in pair))
    # What lies outside a region adds to the evidence of its model, never takes from it.
    missed = [-math.log1p(-before.regions[k].outside) for k in pair]
    degrees = max(nearby.num_members - 1, 1)
    half = math.hypot(student_t.ppf(0.975, degrees) * training, 1.96 * math.hypot(shares, kept))
    interval = (log_bf - half - missed[1], log_bf + half + missed[0])
    errors = {
        "training": training,
        "shares of the priors": shares,
        "shares of the posteriors": kept,
        "outside the regions": max(missed),
    }
    # Of so many simulations of the disfavoured model, some must be as much against it as the observed data.
    truncated = log_bf - float(log_factors[pair[0]] - log_factors[pair[1]])
    num_each = nearby.record.num_simulations / len(names) / 2
    reach = math.log(max(1.0, num_each / FEWEST_FAR_OUT))
    bounded = abs(truncated) > reach
    if bounded:
        sign = math.copysign(1.0, truncated)
        shown = min(abs(truncated), reach) * sign + (log_bf - truncated)
        # How far networks differ so far out says nothing: the bound rests on the simulations alone.
        bound = shown - sign * 1.96 * math.hypot(shares, kept)
        interval = (bound, math.inf) if sign > 0 else (-math.inf, bound)
    answered = replace(
        before,
        zoomed=any(zoom.region is not None for zoom in before.regions),
        log_bf=log_bf,
        error=math.hypot(training, shares, kept),
        interval=interval,
        errors=errors,
        bounded=bounded,
        log_evidence=tuple((evidence - evidence.max()).tolist()),
        posterior_probs=tuple(np.exp(log_posterior_probs(evidence, np.log(prior))).tolist()),
        num_simulations=before.num_simulations + nearby.record.num_simulations,
    )
    return replace(answered, warnings=_zoomed_warnings(answered, nearby, pair))


def _zoomed_warnings(answer: ZoomedAnswer, nearby: BayesFactor, pair: Sequence[int]) -> tuple[str, ...]:
    """Return what should make a reader of a zoomed answer careful, in words."""
    said = []
    assert answer.interval is not None
    if nearby.record.hardly_begun:
        said.append(f"training near the data has hardly begun ({nearby.record.num_steps} steps); give it more time")
    if answer.bounded:
        weakest = min(answer.interval, key=abs)
        said.append(
            f"evidence this strong is beyond what the simulations show: more than "
            f"{write_odds(max(0.0, math.copysign(weakest, weakest * answer.log_bf)))} for {answer.favours}"
        )
    elif answer.interval[1] - answer.interval[0] > 2 * WIDE:
        said.append("the interval is wider than a factor of 3 either way; give it more time")
    for k in pair:
        zoom = answer.regions[k]
        if zoom.at_edge > MOST_AT_EDGE:
            said.append(f"the posterior of {zoom.model} may reach beyond its region ({zoom.at_edge:.0%} at its sides)")
    if nearby.record.stopped != "budget":
        said.append(f"training did not run to its end ({nearby.record.stopped})")
    return tuple(said)


def _failure(error: SimulationError, partial: Answer | None) -> PartialCompareError:
    """Return the error that a simulator's failure becomes, with the best answer until then."""
    rest = "" if partial is None else " (the best answer until then is in the exception's `partial`)"
    raised = PartialCompareError(f"{error}{rest}")
    raised.partial = partial
    return raised
