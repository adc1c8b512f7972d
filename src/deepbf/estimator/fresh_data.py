"""An estimator on fresh simulations: how good it is, and what it would say of data yet to be collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from deepbf import _checks
from deepbf.estimator.curves import need_range
from deepbf.layout.data_layout import Data, shapes_of
from deepbf.models.model import Model, ModelSet

if TYPE_CHECKING:
    from deepbf.estimator.bayes_factor import BayesFactor
    from deepbf.evaluating import LogBf
    from deepbf.evaluation import Evaluation
    from deepbf.evaluation.design import Design

# Sample sizes that a design tries.
NUM_DESIGNS = 20


def evaluate_afresh(
    bf: BayesFactor,
    num_datasets: int,
    *,
    models: Sequence[Model] | None,
    exact: LogBf | None,
    observed: Data | None,
    num_obs: int | None,
    model: int | str,
    over: int | str,
    prior_probs: ArrayLike | None,
    num_replicates: int,
    executor: Executor | None,
    seed: int,
    progress: bool,
) -> Evaluation:
    """Return how good the estimator is; see `BayesFactor.evaluate`."""
    # The toolkit brings xarray and scikit-learn along; a comparison should not wait for them.
    from deepbf.evaluating import evaluate

    first, second = bf.index_of("model", model), bf.index_of("over", over)
    if first == second:
        raise ValueError(f"model and over must differ; both are {bf.names[first]!r}.")
    num_obs = evaluated_num_obs(bf, num_obs, observed)
    if observed is not None and num_obs is None and not bf.layout.packed:
        # As simulators pad it, so that the toolkit finds the shape that it expects.
        observed = np.asarray(bf.layout.check("observed", observed)[0])
    checked = check_models(bf, models)
    prior = bf.prior_or_own(prior_probs)[[first, second]]
    return evaluate(
        [checked[k] for k in (first, second)],
        {"deepbf": bf},
        exact=exact,
        observed=observed,
        num_obs=num_obs,
        num_datasets=num_datasets,
        prior_probs=prior / prior.sum(),
        num_replicates=num_replicates,
        executor=executor,
        seed=seed,
        progress=progress,
    )


def design_afresh(
    bf: BayesFactor,
    threshold: float,
    power: float,
    *,
    num_obs: Sequence[int] | None,
    num_datasets: int,
    models: Sequence[Model] | None,
    model: int | str,
    over: int | str,
    executor: Executor | None,
    seed: int,
    progress: bool,
) -> Design:
    """Return how many observations make strong evidence probable; see `BayesFactor.design`."""
    from deepbf.evaluating import simulate_and_ask
    from deepbf.evaluation.design import design_from

    fewest, most = need_range(bf, "design")
    tried = np.unique(np.geomspace(fewest, most, NUM_DESIGNS).round().astype(int)).tolist()
    numbers = [evaluated_num_obs(bf, number, None) for number in (tried if num_obs is None else num_obs)]
    first, second = bf.index_of("model", model), bf.index_of("over", over)
    checked = check_models(bf, models)
    log_bf = simulate_and_ask(
        [checked[k] for k in (first, second)],
        lambda data: bf.log_bf(data, first, second),
        [number for number in numbers if number is not None],
        num_datasets=_checks.check_count("num_datasets", num_datasets, least=2),
        executor=executor,
        seed=_checks.check_seed("seed", seed),
        progress=progress,
    )
    return design_from(log_bf, names=[bf.names[first], bf.names[second]], threshold=threshold, power=power)


def evaluated_num_obs(bf: BayesFactor, num_obs: int | None, observed: Data | None) -> int | None:
    """Return how many observations to simulate, or None if the estimator is for data of a fixed shape.

    It is `num_obs`, if given, or else the number in `observed`. Raises a ValueError if neither says, if `num_obs` lies
    outside the range of the fit, or if there is nothing to choose.
    """
    data = None if observed is None else bf.layout.check("observed", observed, values=bf.values)
    if bf.layout.num_obs is None or bf.layout.asked is None:
        if num_obs is not None:
            raise ValueError(f"num_obs cannot be chosen: this estimator is for data of shape {bf.data_shape}.")
        return None
    if num_obs is None and data is not None:
        return int(bf.layout.count(data)[0])
    low, high = bf.layout.num_obs
    if num_obs is None or not low <= _checks.check_count("num_obs", num_obs) <= high:
        raise ValueError(
            f"num_obs must say how many observations to evaluate at, from {low} to {high}; received {num_obs}."
        )
    return num_obs


def check_models(bf: BayesFactor, models: Sequence[Model] | None) -> tuple[Model, ...]:
    """Return the models to simulate from, with hyperparameters fixed as answers are.

    `models` may be None for an estimator that still has those of its fit. Raises a ValueError if they are not those of
    the fit by name, order, and shape of their data, which is found by simulating one data set of each.
    """
    if models is None and bf.models is None:
        raise ValueError(
            "models are needed to simulate, and an estimator's file does not hold them; pass models=[...], "
            f"those of the fit: {', '.join(bf.names)}."
        )
    bf.layout.need_values(bf.values)
    given = ModelSet.of((bf.models or ()) if models is None else models)
    if bf.layout.covariates is not None:
        table = bf.layout.covariates.columns
        given = replace(given, models=tuple(model.with_covariates(table) for model in given.models))
    if given.names != bf.names:
        raise ValueError(
            f"models must be those of the fit, in its order: {', '.join(bf.names)}; received {', '.join(given.names)}."
        )
    fixed = given.models if bf.values is None else tuple(model.at(**bf.values) for model in given.models)
    most = None if bf.layout.asked is None else bf.layout.asked.high
    for model in fixed:
        if most is not None:
            model.check_takes_num_obs()
        data = model.simulate(1, seed=0, num_obs=most).data
        shape = shapes_of(data) if isinstance(data, Mapping) else data.shape[1:]
        if shape != bf.data_shape:
            raise ValueError(
                f"models must simulate data sets of shape {bf.data_shape}, as in the fit; {model.name} simulates "
                f"shape {shape}. Fit them anew, or pass the models of the fit."
            )
    return fixed
