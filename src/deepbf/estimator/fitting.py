"""fit: from competing models to a trained Bayes factor, in one call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any

import jax
from numpy.typing import ArrayLike

from deepbf import _checks, losses
from deepbf.estimator.bayes_factor import BayesFactor
from deepbf.estimator.storage import load
from deepbf.layout.data_layout import DataLayout, NumObsRange
from deepbf.layout.structure import Responses, Structure, Vector, find_structure
from deepbf.models.covariates import Covariates
from deepbf.models.model import Model, ModelSet, SimulationError
from deepbf.networks.base import Link, NetworkKind
from deepbf.networks.ensemble import Committee, blank_ensemble
from deepbf.networks.registry import AUTO, COMMITTEE, JOINED, NETWORKS, check_network, choose_network, network_kind
from deepbf.simulation import check_executor
from deepbf.training.optimise import classification
from deepbf.training.schedule import AUTO_NAME, PAPER_NAME, PAPER_STEPS, THOROUGH_NAME, Budget, named_schedule
from deepbf.training.trained import PartialTrainingError, TrainedEnsemble
from deepbf.training.trainer import train

# Enough for a standard error of the mean, few enough to train at once on two cores.
NUM_MEMBERS = 4


class PartialFitError(SimulationError):
    """A simulator failed during the fit; `partial` is the estimator trained until then, or None."""

    partial: BayesFactor | None = None


def fit(
    models: Sequence[Model],
    *,
    structure: str | Mapping[str, str] = "vector",
    covariates: Any = None,
    num_obs: tuple[int, int] | None = None,
    prior_probs: ArrayLike | None = None,
    training_probs: ArrayLike | None = None,
    network: str = "auto",
    loss: str = losses.DEFAULT,
    seconds: float | None = None,
    steps: int | None = None,
    num_simulations: int | None = None,
    ensemble: int | None = None,
    start: BayesFactor | str | os.PathLike[str] | None = None,
    schedule: str = "auto",
    batch_size: int | None = None,
    executor: Executor | None = None,
    seed: int = 0,
    progress: bool = True,
) -> BayesFactor:
    """Return an estimator of the models' Bayes factors, trained on their simulations (Algorithm 1).

    Parameters
    ----------
    models
        Two or more models, in the order that gives Bayes factors their direction.
    structure
        "vector": data sets of fixed length, order matters. "exchangeable": axis 1 of the simulated data runs over
        exchangeable observations, scalars or vectors. "nested": axis 1 runs over exchangeable groups and axis 2 over
        the exchangeable observations of a group; simulators mask (`numpy.ma`) the observations that smaller groups
        lack, and whole groups that smaller data sets lack. "series": axis 1 runs over time, and order matters;
        simulators mask what shorter series lack. "image": axis 1 runs over rows of pixels and axis 2 over columns, and
        axis 3, if there is one, over channels; all images have one size. A dict such as
        ``{"trials": "exchangeable", "age": "vector"}`` for simulators that return a dict of arrays: the structure of
        each.
    covariates
        For regressions: a table of what is fixed by design, one row per response, as a dict from names to columns, a
        data frame, or an array of shape (rows, columns). Numbers are covariates, words and whole numbers that repeat
        are groups. Simulators return responses, shape (size, rows), and get the table if they have an argument called
        `covariates`. The estimator then reads the responses against it, and answers for this table alone. Where
        covariates are random and differ from data set to data set, return them with the responses instead, as rows of
        an "exchangeable" structure.
    num_obs
        The smallest and the largest number of observations, both included, to train one estimator for every number in
        between. Simulators then take it: ``simulator(rng, params, num_obs)``. By default each simulator draws as many
        observations as it does. Of a dict of arrays, those grow whose shape follows it.
    prior_probs
        One probability per model, for the posterior probabilities. Equal by default. Bayes factors do not depend on it.
    training_probs
        The mixture of models that the classifier is trained at, one probability per model. Equal by default, which is
        the best start: another mixture aims at the same Bayes factors, and moves the effort to where its posterior
        probabilities are in doubt.
    network
        "auto" is "committee": networks with built-in knowledge of the structure beside one that reads the plain values,
        each believed as far as simulations set aside support it; up to 50,000 simulations in all, simple classifiers
        join them. Or one network by name, for comparison: "free", "head", "gated", "mlp", "fnn", "bnn" for vectors;
        "free", "deepset", "deepset2", "sorted", "set-attention" for exchangeable observations; "free", "deepset" for
        nested ones; "free", "summary", "conv" for series and images.
    loss
        "balanced": cross-entropy plus a fifth of the squared Hellinger loss, which knows better how strong strong
        evidence is. Or "cross_entropy"; an f-divergence (Remark 1), "kl", "reverse_kl", "jensen_shannon",
        "squared_hellinger" or "pearson"; or one of Evidence Networks, "exponential" or "leaky_pop". All aim at the same
        Bayes factors.
    seconds, steps, num_simulations
        At most one budget; 60 seconds by default. `seconds`: wall time of the whole call, compilation included;
        simulations arrive all the while, and each is used about twice. `steps`: every step brings fresh simulations;
        the same seed gives the same estimator. `num_simulations`: so many in all, shared equally by the models and
        reused over epochs; the same seed gives the same estimator.
    ensemble
        Members trained together, 4 by default. Their spread is the answer's error. Where simulations are few, at least
        five, each trained without one fold of them.
    start
        A trained estimator, or the path of a saved one, to go on from: with more time, after a change of a prior, or
        with a dearer simulator after a cheap one. The models have the same names, and data look the same; everything
        else may differ. Scales, summaries and the ensemble stay those of `start`; all simulations are new.
    schedule
        "auto" adapts the learning rate to the budget. "thorough", for simulators that cost next to nothing and budgets
        of minutes: simulates five times as much, trains on those simulations that teach most, weighted so that they
        stand for all, and takes steps (Muon's) that learn rare data sooner. "paper" is the paper's own (Section S3), of
        400,000 steps unless a budget is given.
    batch_size
        The number of data sets per model in a mini-batch; fewer where there are few simulations. By default 256, 512
        if thorough, and 200 by the paper's schedule. Larger ones learn from more simulations in as many steps: worth
        their time where simulating is cheap and small errors of strong evidence matter.
    executor
        Any `concurrent.futures.Executor` to simulate on; one background thread by default.
    seed
        Simulations depend on it alone, never on the executor or the number of workers.
    progress
        Whether to show a progress bar. Ctrl-C stops training and returns the best estimator so far.

    Raises
    ------
    PartialFitError
        If a simulator fails once training has begun; its `partial` holds the estimator trained until then.

    Examples
    --------
    >>> import deepbf
    >>> fair = deepbf.Model("fair", simulator=lambda rng, size: rng.binomial(1, 0.5, (size, 20)))
    >>> loaded = deepbf.Model("loaded", simulator=lambda rng, size: rng.binomial(1, 0.8, (size, 20)))
    >>> bf = deepbf.fit([fair, loaded], structure="exchangeable", steps=300, seed=1, progress=False)
    >>> bf.compare([1] * 17 + [0] * 3).favours
    'loaded'
    """
    started = time.monotonic()
    model_set = ModelSet.of(models, prior_probs)
    found = find_structure(structure)
    table = None
    if covariates is not None:
        table = Covariates.of(covariates)
        found = _with_covariates(structure, num_obs)
        model_set = replace(model_set, models=tuple(model.with_covariates(table.columns) for model in model_set.models))
    unseen = DataLayout.unseen(found, model_set, table)
    check_network(network, unseen)
    chosen_schedule = named_schedule(schedule, batch_size)
    budget = _check_budget(schedule, seconds, steps, num_simulations, len(model_set))
    loss_kind = losses.by_name(loss)
    mixture = None if training_probs is None else _checks.check_probs("training_probs", training_probs, model_set.names)
    num_obs_range = None if num_obs is None else check_num_obs(num_obs, model_set, found, network)
    num_members = NUM_MEMBERS if ensemble is None else _checks.check_count("ensemble", ensemble)
    check_executor(executor, model_set.models)
    seed = _checks.check_seed("seed", seed)

    earlier = None
    if start is not None:
        begun = load(start) if isinstance(start, str | os.PathLike) else start
        earlier = _check_start(begun, model_set, unseen, num_obs_range, network, ensemble, loss_kind.link)
        network, num_members = begun.network.split(JOINED)[0], earlier.num_members

    def kind_of(layout: DataLayout) -> NetworkKind:
        return network_kind(layout, network, loss_kind.link)

    def as_estimator(trained: TrainedEnsemble) -> BayesFactor:
        chosen = JOINED.join([choose_network(trained.layout, network), *trained.simple])
        return BayesFactor(model_set.names, model_set.prior_probs, chosen, trained, loss, model_set.models)

    goal = classification(
        kind_of,
        loss_kind.of_log_odds if mixture is None else losses.at_mixture(loss_kind.of_log_odds, mixture),
        weighted=chosen_schedule.thin,
        stacks=schedule == AUTO_NAME and choose_network(unseen, network) == COMMITTEE,
    )
    layout = DataLayout.of(model_set, found, num_obs_range, covariates=table, seed=seed)
    run = partial(
        train, model_set, layout, network=network, goal=goal, schedule=chosen_schedule, budget=budget,
        num_members=num_members, executor=executor, seed=seed, progress=progress, started=started,
        start=earlier,
    )  # fmt: skip
    return kept_if_stopped(run, as_estimator, PartialFitError, "estimator")


def _with_covariates(structure: object, num_obs: object) -> Structure:
    """Return the structure of responses to covariates, if what else the user asked for can go with it."""
    if structure not in (Vector.name, Responses.name):
        raise ValueError(
            f"covariates belong to responses in fixed places; received structure={structure!r} with them. Leave "
            "structure out. For rows that differ from data set to data set, leave covariates out instead."
        )
    if num_obs is not None:
        raise ValueError(
            f"covariates fix the number of responses; received num_obs={num_obs!r} with them. Leave one of them out."
        )
    return Responses()


def _check_start(
    start: object,
    model_set: ModelSet,
    unseen: DataLayout,
    num_obs: NumObsRange | None,
    network: str,
    ensemble: int | None,
    link: Link | None,
) -> TrainedEnsemble:
    """Return what a fit of these models can go on from: the trained networks of `start`, simple classifiers left out.

    `unseen` is the layout as far as it is known before anything is simulated; `network` and `ensemble` are what the
    user asked for.
    """
    if not isinstance(start, BayesFactor):
        raise TypeError(
            f"start must be a trained estimator or the path of a saved one; received {type(start).__name__}. Pass what "
            "deepbf.fit or deepbf.load returned."
        )
    layout = start.layout
    name, *simple = start.network.split(JOINED)
    same = {
        "models": (start.names, model_set.names),
        "structure": (layout.structure, unseen.structure),
        "num_obs": (layout.asked, num_obs),
        "hyperparameters": (layout.hyperparameters, unseen.hyperparameters),
        "network": (name, name if network == AUTO else network),
        "ensemble": (start.num_members, start.num_members if ensemble is None else ensemble),
    }
    for what, (trained, asked) in same.items():
        if trained != asked:
            raise ValueError(
                f"start must have been fitted with the same {what}: it has {trained!r}, and this fit {asked!r}. "
                f"Make the {what} the same, or leave start out."
            )
    if (layout.covariates is None) != (unseen.covariates is None):
        has, lacks = ("start", "this fit") if unseen.covariates is None else ("this fit", "start")
        raise ValueError(f"{has} has covariates and {lacks} has none. Pass the same covariates, or leave start out.")
    if layout.covariates is not None and unseen.covariates is not None:
        layout.covariates.check_same("this fit", unseen.covariates.columns)
    trained = start.ensemble
    if isinstance(trained.networks, Committee):
        trained = replace(trained, networks=trained.networks.without_simple(len(simple)), simple=())
    inputs = trained.preparation.layout(layout.shape)
    blank = blank_ensemble(network_kind(layout, name, link), inputs, len(model_set), trained.num_members, settled=False)
    if jax.tree.structure(blank) != jax.tree.structure(trained.networks):
        raise ValueError(
            f"start has networks that cannot be trained any further (network={name!r}, loss={start.loss!r}): they were "
            "settled after training, or their loss has another form. Leave start out."
        )
    return trained


class StoppedEarlyWarning(UserWarning):
    """Training was interrupted: what it returns is the best so far, not what its budget would give."""


def kept_if_stopped(
    run: Callable[[], TrainedEnsemble], build: Callable[[TrainedEnsemble], Any], failure: type[Any], what: str
) -> Any:
    """Return what is built of the trained ensemble; where training stops early, keep what there is.

    If a simulator fails in the middle, a `failure` is raised with it as `partial`; after Ctrl-C a warning tells.
    """
    try:
        trained = run()
    except PartialTrainingError as error:
        kept = None if error.partial is None else build(error.partial)
        rest = "" if kept is None else f" (the {what} trained until then is in the exception's `partial`)"
        raised = failure(f"{error}{rest}")
        raised.partial = kept
        raise raised from error
    if trained.record.stopped == "interrupted":
        _checks.warn_user(
            f"training was interrupted after {trained.record.seconds:.0f} s; this is the best {what} so far.",
            StoppedEarlyWarning,
        )
    return build(trained)


def check_num_obs(
    num_obs: tuple[int, int], model_set: ModelSet, structure: Structure | Mapping[str, Structure], network: str
) -> NumObsRange:
    """Return the range of the number of observations, if structure, network and every simulator can do with one.

    `num_obs` is what the user passed, `network` a name or "auto".
    """
    checked = NumObsRange.of(num_obs)
    structures = [structure] if isinstance(structure, Structure) else list(structure.values())
    if not any(one.num_axes == 1 for one in structures):
        named = structure.name if isinstance(structure, Structure) else {k: one.name for k, one in structure.items()}
        raise ValueError(
            f"num_obs needs data with one axis of observations, structure='exchangeable' or 'series'; received "
            f"structure={named!r}. Leave num_obs out, or change the structure."
        )
    if (
        isinstance(structure, Structure)
        and network not in (AUTO, COMMITTEE)
        and not NETWORKS[structure.name][network].any_num_obs
    ):
        able = [name for name, kind in NETWORKS[structure.name].items() if kind.any_num_obs]
        raise ValueError(
            f"network={network!r} reads a fixed number of observations; received num_obs={tuple(checked)}. "
            f"Pass network={able[0]!r}, or leave num_obs out."
        )
    for model in model_set.models:
        model.check_takes_num_obs()
    return checked


def _check_budget(
    schedule: str, seconds: float | None, steps: int | None, num_simulations: int | None, num_models: int
) -> Budget:
    """Return the checked budget; the paper's schedule brings its own number of steps."""
    if schedule == PAPER_NAME and seconds is None and steps is None and num_simulations is None:
        steps = PAPER_STEPS
    if schedule == THOROUGH_NAME and num_simulations is not None:
        raise ValueError(
            f"schedule={schedule!r} simulates more than it trains on, as much as it likes; received "
            f"num_simulations={num_simulations!r}. Pass seconds or steps, or schedule={AUTO_NAME!r}."
        )
    return Budget.of(seconds, steps, num_simulations, num_models=num_models)
