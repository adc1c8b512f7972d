"""evaluate: simulate afresh, ask every estimator, measure; one call for neural estimators, baselines and your own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.progress import Progress

from deepbf import _checks
from deepbf.evaluation import Evaluation, measure
from deepbf.evaluation.log_bf_arrays import EXACT, check_names
from deepbf.evaluation.measuring import as_attribute
from deepbf.layout.data_layout import NumObsRange, describe_shapes, shapes_of
from deepbf.models.model import Model, ModelSet, masked_where_absent
from deepbf.simulation import CHUNK_SIZE, SimulationStream, Source, check_executor

# Mixed into the seed, so that a fit and an evaluation given the same one never see the same simulations.
SEED_OF_EVALUATION = 0x5EED

# From data sets along a leading axis (a dict of arrays, if that is what the models simulate) to natural log Bayes
# factors, first model over second.
LogBf = Callable[[Any], ArrayLike]


def evaluate(
    models: Sequence[Model],
    estimators: Mapping[str, Any],
    *,
    exact: LogBf | None = None,
    observed: Any = None,
    num_obs: int | None = None,
    num_datasets: int = 1500,
    prior_probs: ArrayLike | None = None,
    num_replicates: int = 1000,
    executor: Executor | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Evaluation:
    """Return how good estimators of the Bayes factor of two models are, side by side on the same fresh simulations.

    Parameters
    ----------
    models
        The two models, in the order that gives every Bayes factor its direction.
    estimators
        By name, anything that maps data sets along a leading axis to natural log Bayes factors of the first model over
        the second: a trained `BayesFactor`, or a function, such as
        ``lambda data: baselines.abc_ranked(models, data).log_bf``.
    exact
        The exact log Bayes factor, a function of the same kind, where it is known.
    observed
        One observed data set, for its surprise.
    num_obs
        The number of observations per data set, passed on to simulators that take it.
    num_datasets
        The number of data sets simulated from each model; 1,500 as in the paper's Section 5.
    prior_probs
        Prior probabilities of the models; equal by default.
    num_replicates
        The number of bootstrap replicates behind every error.
    executor
        Any `concurrent.futures.Executor` to simulate on; one background thread by default.
    seed
        The same seed gives the same simulations. They are never those of a fit, even with its seed.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import deepbf
    >>> from deepbf.example import counts_example
    >>> models, exact = counts_example(num_obs=8).models, counts_example(num_obs=8).exact_log_bf
    >>> found = deepbf.evaluate(models, {"half": lambda data: 0.5 * exact(data)}, exact=exact, num_datasets=200,
    ...                         progress=False)
    >>> found.estimators, found.value("spearman")
    (('half',), 1.0)
    """
    model_set = ModelSet.of(models, prior_probs)
    if len(model_set) != 2:
        raise ValueError(
            f"models must be two models, whose Bayes factor is evaluated; received {len(model_set)}: "
            f"{', '.join(model_set.names)}. Pass two of them."
        )
    check_names(model_set.names)
    asked = _check_estimators(estimators, model_set.names)
    if exact is not None and not callable(exact):
        raise TypeError(f"exact must be a function from data sets to log Bayes factors; received {exact!r}.")
    num_datasets = _checks.check_count("num_datasets", num_datasets, least=2)
    if num_obs is not None:
        num_obs = _checks.check_count("num_obs", num_obs)
        for model in model_set.models:
            model.check_takes_num_obs()
    num_replicates = _checks.check_count("num_replicates", num_replicates, least=2)
    seed = _checks.check_seed("seed", seed)
    check_executor(executor, model_set.models)
    observed_log_bfs = None if observed is None else _ask_about_observed(asked, observed, model_set.models[0], num_obs)
    with Progress(disable=not progress, transient=True) as bar:
        data = simulate_afresh(model_set.models, num_datasets, num_obs, seed, executor, bar)
        log_bfs = {name: _ask(name, log_bf, data, bar) for name, log_bf in asked.items()}
        truth = None if exact is None else _ask("exact", exact, data, bar)
        task = bar.add_task("measuring", total=None)
        evaluation = measure(
            log_bfs,
            exact=truth,
            names=model_set.names,
            prior_probs=model_set.prior_probs,
            observed=observed_log_bfs,
            num_replicates=num_replicates,
            seed=seed,
        )
        bar.remove_task(task)
    evaluation.results.attrs["simulation_seed"] = as_attribute(seed)
    if num_obs is not None:
        evaluation.results.attrs["num_obs"] = num_obs
    return evaluation


def _check_estimators(estimators: Mapping[str, Any], names: Sequence[str]) -> dict[str, LogBf]:
    """Return the estimators as functions, by name.

    A trained estimator is asked for the Bayes factor of the first of `names` over the second, and must know both.
    """
    if not isinstance(estimators, Mapping) or not estimators:
        raise TypeError(
            f"estimators must be a dict of at least one estimator by name; received {estimators!r}. "
            "Pass, for example, {'deepbf': bf}."
        )
    functions = {}
    for name, estimator in estimators.items():
        log_bf, known = getattr(estimator, "log_bf", estimator), getattr(estimator, "names", None)
        if not callable(log_bf):
            raise TypeError(
                f"estimators[{name!r}] must be a BayesFactor or a function from data sets to log Bayes factors; "
                f"received {estimator!r}. Wrap a baseline: lambda data: baselines.abc_ranked(models, data).log_bf."
            )
        for model in names:
            if known is not None and model not in known:
                raise ValueError(
                    f"estimators[{str(name)!r}] knows the models {', '.join(known)}, but not {model!r}. Fit it to "
                    "both models."
                )
        if str(name) in functions or str(name) == EXACT:
            raise ValueError(f"estimators need distinct names, none of them {EXACT!r}; received {str(name)!r} again.")
        functions[str(name)] = log_bf
        if known is not None:
            functions[str(name)] = lambda data, ask=log_bf: ask(masked_where_absent(data), names[0], names[1])
    return functions


def simulate_afresh(
    models: Sequence[Model],
    num_datasets: int,
    num_obs: int | None,
    seed: int,
    executor: Executor | None,
    bar: Progress,
) -> list[Any]:
    """Return data sets of each model that no fit has seen: arrays, or dicts of them if the models simulate those.

    They depend on the models, the numbers and the seed alone, whatever the executor.
    """
    fresh_seed = int(np.random.SeedSequence((seed, SEED_OF_EVALUATION)).generate_state(1, np.uint64)[0])
    task = bar.add_task("simulating", total=num_datasets)
    parts: list[list[NDArray[np.generic]]] = []
    numbers = None if num_obs is None else NumObsRange(num_obs, num_obs)
    example = models[0].simulate(1, fresh_seed, num_obs).data
    source = Source.of(models, fresh_seed, num_obs=numbers, example=example)
    with SimulationStream(source, num_datasets=num_datasets, executor=executor) as stream:
        while not stream.exhausted:
            parts.append(stream.take())
            bar.advance(task, min(CHUNK_SIZE, len(parts[-1][0])))
    bar.remove_task(task)
    data = [np.concatenate(model_parts) for model_parts in zip(*parts, strict=True)]
    return [source.layout.as_simulated(model_data) for model_data in data]


def simulate_and_ask(
    models: Sequence[Model],
    log_bf: LogBf,
    numbers: Sequence[int],
    *,
    num_datasets: int,
    executor: Executor | None,
    seed: int,
    progress: bool,
) -> dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return log Bayes factors at fresh data of each model, by number of observations: what `design_from` takes.

    For each of `numbers`, `num_datasets` data sets of that many observations are simulated from each model, which no
    fit has seen, and `log_bf` is asked about them.
    """
    found = {}
    with Progress(disable=not progress, transient=True) as bar:
        task = bar.add_task("sample sizes", total=len(numbers))
        for number in numbers:
            data = simulate_afresh(models, num_datasets, number, seed, executor, bar)
            found[number] = _ask("deepbf", log_bf, data, bar)
            bar.advance(task)
    return found


def _ask(
    name: str, log_bf: LogBf, data: Sequence[Any], bar: Progress
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return an estimator's log Bayes factors at the data of each model, one number per data set."""
    task = bar.add_task(f"asking {name}", total=len(data))
    answers = []
    for model_data in data:
        answers.append(_answer(name, log_bf, model_data))
        bar.advance(task)
    bar.remove_task(task)
    return answers[0], answers[1]


def _ask_about_observed(
    estimators: Mapping[str, LogBf], observed: Any, model: Model, num_obs: int | None
) -> dict[str, float]:
    """Return each estimator's log Bayes factor at the observed data set, if it is one such as the model simulates."""
    example = model.simulate(1, seed=0, num_obs=num_obs).data
    # Estimators are asked about data sets along a leading axis: here, one.
    if isinstance(example, Mapping):
        shapes = shapes_of(example)
        received = {str(k): np.shape(v) for k, v in observed.items()} if isinstance(observed, Mapping) else None
        if received != shapes:
            raise ValueError(
                f"observed must be one data set with the arrays {describe_shapes(shapes)}, as {model.name} simulates "
                f"them; received {type(observed).__name__ if received is None else describe_shapes(received)}."
            )
        data: Any = {name: np.asarray(observed[name])[None] for name in shapes}
    else:
        array = _checks.check_numeric_array("observed", observed)
        if len(array) == 1 and array.ndim > 1:
            array = array[0]
        if array.shape != example.shape[1:]:
            raise ValueError(
                f"observed must be one data set of shape {example.shape[1:]}, as {model.name} simulates them; received "
                f"shape {array.shape}. Pass the observations alone, without further axes."
            )
        data = array[None]
    return {name: float(_answer(name, log_bf, data)[0]) for name, log_bf in estimators.items()}


def _answer(name: str, log_bf: LogBf, data: Any) -> NDArray[np.float64]:
    """Return what an estimator answers, if it is one number per data set."""
    is_mixed = isinstance(data, Mapping)
    described = describe_shapes(shapes_of(data)) if is_mixed else data.shape
    num_datasets = len(next(iter(data.values()))) if is_mixed else len(data)
    try:
        answered = log_bf(data)
    except Exception as error:
        raise RuntimeError(
            f"estimator {name!r} failed at data of shape {described} ({type(error).__name__}: {error})."
        ) from error
    array = _checks.check_numeric_array(f"the answer of estimator {name!r}", answered).astype(np.float64)
    if array.shape != (num_datasets,):
        raise ValueError(
            f"estimator {name!r} must return one log Bayes factor per data set, shape ({num_datasets},); it returned "
            f"shape {array.shape}. Return natural logs, first model over second."
        )
    return array
