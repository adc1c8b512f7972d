"""`deepbf evaluate` and `deepbf design`: how good estimators are, and how many data are needed."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from deepbf.cli.files import check_drawable, check_folder, draw_to, find_study, parse_probs, read_for


def evaluate(
    estimators: list[Path] = typer.Argument(help="One or more files written by deepbf fit, for the same models."),
    study: str | None = typer.Option(
        None,
        help="Where the models are: the Python file of the fit, or a ready-made study such as data-1-i. "
        "Default: the .py file of the same name beside the first estimator.",
    ),
    baseline: list[str] = typer.Option([], help="Also evaluate this baseline, such as abc_ranked; may be repeated."),
    observed: Path | None = typer.Option(None, help="Observed data, CSV or .npy, for their surprise."),
    num_obs: int | None = typer.Option(
        None, help="Observations per data set, for an estimator of any number; those of --observed by default."
    ),
    num_datasets: int = typer.Option(1500, help="Data sets to simulate from each of the two models."),
    model: str | None = typer.Option(None, help="Of more than two models: the first of the pair, by name."),
    over: str | None = typer.Option(None, help="Of more than two models: the second of the pair, by name."),
    prior_probs: str | None = typer.Option(
        None, help="Prior probabilities of all models in order, such as 0.2,0.8. Default: those of the fit."
    ),
    seed: int = typer.Option(0, help="Seed of the simulations, which are never those of a fit."),
    out: Path | None = typer.Option(None, help="A folder for the numbers (netCDF, JSON) and the plots (PNG)."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for machines, no progress bar."),
) -> None:
    """Simulate afresh and measure how far the Bayes factors can be trusted.

    Prints prior recovery, calibration, identities that any right Bayes factor obeys, error rates and ROC. Against the
    exact Bayes factor too, if the study file defines `exact_log_bf`, a function from data sets along a leading axis to
    natural log Bayes factors of the first model over the second. Several estimators are compared side by side.
    """
    import deepbf
    from deepbf import _checks

    # The shortest names that tell the files apart.
    stems = Counter(path.stem for path in estimators)
    named = {path.stem if stems[path.stem] == 1 else str(path): path for path in estimators}
    if len(named) < len(estimators):
        raise ValueError(f"each estimator may be named once; received {', '.join(str(path) for path in estimators)}.")
    loaded = {name: deepbf.load(path) for name, path in named.items()}
    first_estimator = next(iter(loaded.values()))
    found, where = find_study(study, estimators[0], first_estimator.data_shape)
    models = first_estimator.check_models(found.models)
    for bf in loaded.values():
        bf.check_models(models)
    pair = chosen_pair(first_estimator.names, model, over)
    data = None if observed is None else read_for(first_estimator, observed)
    for bf in loaded.values():
        num_obs = bf.evaluated_num_obs(num_obs, data)
    prior = first_estimator.prior_probs if prior_probs is None else parse_probs(prior_probs)
    if out is not None:
        check_folder(out)
    if not as_json:
        typer.echo(f"Simulating {num_datasets:,} data sets of each model, from {where}", err=True)
    asked: dict[str, Any] = dict(loaded)
    for name, function in as_functions(baseline, [models[k] for k in pair]).items():
        if name in asked:
            raise ValueError(
                f"an estimator is called {name}, like a baseline; rename its file, or leave one of them out."
            )
        asked[name] = function
    # Given that one of the two is true.
    prior_of_pair = _checks.check_probs("--prior-probs", prior, first_estimator.names)[list(pair)]
    evaluation = deepbf.evaluate(
        [models[k] for k in pair],
        asked,
        exact=directed_exact(found.exact_log_bf, pair),
        observed=data,
        num_obs=num_obs,
        num_datasets=num_datasets,
        prior_probs=prior_of_pair / prior_of_pair.sum(),
        seed=seed,
        progress=not as_json,
    )
    typer.echo(json.dumps(evaluation.to_dict()) if as_json else str(evaluation))
    if out is not None:
        written = write_all(evaluation, out)
        typer.echo(f"\nWrote {', '.join(path.name for path in written)} to {out}", err=as_json)


def design(
    estimator: Path = typer.Argument(help="A file written by deepbf fit with a range of --num-obs."),
    study: str | None = typer.Option(
        None, help="The Python file of the fit. Default: the .py file of the same name beside the estimator."
    ),
    threshold: float = typer.Option(10.0, help="The Bayes factor, or one over it, from which on evidence counts."),
    power: float = typer.Option(0.8, help="The wanted probability of evidence for the model that is true."),
    num_datasets: int = typer.Option(1000, help="Data sets to simulate from each model at each sample size."),
    model: str | None = typer.Option(None, help="Of more than two models: the first of the pair, by name."),
    over: str | None = typer.Option(None, help="Of more than two models: the second of the pair, by name."),
    seed: int = typer.Option(0, help="Seed of the simulations."),
    out: Path | None = typer.Option(None, help="Also draw it: a PNG, PDF or SVG file."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for machines, no progress bar."),
) -> None:
    """Say how many observations are needed, under each model, and how often evidence misleads."""
    import deepbf

    bf = deepbf.load(estimator)
    found, where = find_study(study, estimator, bf.data_shape)
    first, second = chosen_pair(bf.names, model, over)
    if out is not None:
        check_drawable(out)
    if not as_json:
        typer.echo(f"Simulating {num_datasets:,} data sets of each model at each sample size, from {where}", err=True)
    result = bf.design(
        threshold,
        power,
        models=found.models,
        model=first,
        over=second,
        num_datasets=num_datasets,
        seed=seed,
        progress=not as_json,
    )
    typer.echo(json.dumps(result.to_dict(), indent=2) if as_json else str(result))
    if out is not None:
        draw_to(out, deepbf.plots.design, result)
        typer.echo(f"\nDrawn in {out}", err=as_json)


def chosen_pair(names: Sequence[str], model: str | None, over: str | None) -> tuple[int, int]:
    """Return which two models to evaluate, by their positions.

    Of two models, one name settles both, and without a name the first is over the second.
    """
    from deepbf import _checks

    if len(names) > 2 and (model is None or over is None):
        raise ValueError(
            f"--model and --over must name two of the {len(names)} models, whose Bayes factor to evaluate: "
            f"{', '.join(names)}."
        )
    chosen = [None if name is None else _checks.check_choice(option, name, names)
              for option, name in (("--model", model), ("--over", over))]  # fmt: skip
    first = chosen[0] or next(name for name in names if name != chosen[1])
    second = chosen[1] or next(name for name in names if name != first)
    if first == second:
        raise ValueError(f"--model and --over must differ; both are {first!r}.")
    return names.index(first), names.index(second)


def directed_exact(exact: Callable[[Any], Any] | None, pair: tuple[int, int]) -> Callable[[Any], Any] | None:
    """Return the exact log Bayes factor of a pair: a study file's is that of its first model over its second.

    None comes back for a pair of other models, whose exact answer is not known.
    """
    if exact is None or pair == (0, 1):
        return exact

    def other_way_round(data: Any) -> Any:
        return -exact(data)

    return other_way_round if pair == (1, 0) else None


def as_functions(names: Sequence[str], models: Sequence[Any]) -> Mapping[str, Callable[[Any], Any]]:
    """Return the baselines as functions from data sets to log Bayes factors.

    Baselines with a setting that has no default are refused; in Python they can be passed with it.
    """
    from deepbf import _checks, baselines

    methods = {name: getattr(baselines, _checks.check_choice("--baseline", name, baselines.METHODS)) for name in names}
    for name, method in methods.items():
        needed = [p.name for p in inspect.signature(method).parameters.values() if p.default is p.empty][2:]
        if needed:
            raise ValueError(
                f"--baseline {name} needs {', '.join(needed)}, which has no default; in Python, pass deepbf.evaluate "
                f"{{'{name}': lambda data: deepbf.baselines.{name}(models, data, {needed[0]}=...).log_bf}}."
            )

    def log_bf_by(method: Callable[..., Any], data: Any) -> Any:
        return method(models, data).log_bf

    return {name: partial(log_bf_by, method) for name, method in methods.items()}


def write_all(evaluation: Any, out: Path) -> list[Path]:
    """Write the numbers and every plot of an evaluation into the folder `out`; return the files.

    Densities and scatter plots are of one estimator each, whose name is in the file's where there are several.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from deepbf import plots

    drawn: dict[str, Callable[[], Any]] = {
        "roc.png": lambda: plots.roc(evaluation),
        "reliability.png": lambda: plots.reliability(evaluation),
    }
    for name in evaluation.estimators:
        ending = "" if len(evaluation.estimators) == 1 else f"-{re.sub('[^0-9A-Za-z_-]+', '-', name).strip('-')}"
        drawn[f"densities{ending}.png"] = partial(_draw_densities, evaluation, name)
        if evaluation.has_exact:
            drawn[f"scatter{ending}.png"] = partial(plots.scatter, evaluation, name)
    written = [out / "evaluation.nc", out / "evaluation.json"]
    for path in written:
        evaluation.save(path)
    for name, draw in drawn.items():
        figure = draw().figure
        figure.savefig(out / name, dpi=150)
        plt.close(figure)
        written.append(out / name)
    return written


def _draw_densities(evaluation: Any, estimator: str) -> Any:
    """Return the densities of log Bayes factors with the observed one marked, if there is one."""
    from deepbf import plots

    results = evaluation.results
    observed = float(results["observed_log_bf"].sel(estimator=estimator)) if "observed_log_bf" in results else math.nan
    # Where posterior odds are even.
    threshold = float(results["prior_prob"][1] / results["prior_prob"][0])
    return plots.densities(
        evaluation, estimator, observed=None if math.isnan(observed) else observed, threshold=threshold
    )
