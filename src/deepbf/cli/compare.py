"""`deepbf compare` and `deepbf sensitivity`: what is said about one observed data set, at once or by zooming in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from deepbf.cli.evaluate import chosen_pair
from deepbf.cli.files import (
    BUDGETS,
    Wanted,
    check_drawable,
    draw_to,
    find_study,
    parse_probs,
    parse_values,
    read_for,
    read_study,
)


def compare(
    estimator: Path = typer.Argument(
        help="A file written by deepbf fit; or a Python file that defines models = [...], to do the whole job at once."
    ),
    observed: Path = typer.Argument(
        help="The observed data: CSV (one observation per row), .npy, JSON or .npz. With covariates: the responses, or "
        "a CSV with named columns that has the covariates too."
    ),
    seconds: float | None = typer.Option(
        None,
        help="Zoom in on these data for so many seconds. Without it a trained estimator answers at once, and a Python "
        "file gets 60.",
    ),
    steps: int | None = typer.Option(None, help="Or: zoom in for so many steps."),
    study: str | None = typer.Option(
        None,
        help="To zoom in from a trained estimator: the Python file of its fit, or a ready-made study. Default: the .py "
        "file of the same name beside it.",
    ),
    structure: str | None = typer.Option(None, help="Of a Python file: how data are laid out, as for deepbf fit."),
    prior_probs: str | None = typer.Option(
        None, help="Prior probabilities of the models in order, such as 0.2,0.8. Default: those of the fit."
    ),
    at: list[str] = typer.Option(
        [], help="The value of a hyperparameter of the models' priors, such as scale=1. May be repeated."
    ),
    extrapolate: bool = typer.Option(False, help="Answer for more or fewer observations than the fit was for, too."),
    seed: int | None = typer.Option(None, help="Seed of the simulations and the networks. Default 0."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for machines, no progress bar."),
) -> None:
    """Say which model the observed data favour, how strongly, and how sure that is.

    \b
    deepbf compare study.deepbf observed.csv                 at once, by a trained estimator
    deepbf compare study.deepbf observed.csv --seconds 60    more exactly: zooming in on the data
    deepbf compare study.py observed.csv                     the whole job, from the models to the answer
    """  # noqa: D301, the help needs a true backspace to keep the lines of the examples
    import deepbf

    probs = None if prior_probs is None else parse_probs(prior_probs)
    values = parse_values(at)
    budget = {name: value for name, value in (("seconds", seconds), ("steps", steps)) if value is not None}
    if estimator.suffix == ".py":
        answer = _from_models(estimator, observed, budget, structure, probs, values, seed, progress=not as_json)
    else:
        bf = deepbf.load(estimator)
        if values:
            bf = bf.at(**values)
        data = read_for(bf, observed)
        zooming: dict[str, Any] = {}
        if budget:
            models = find_study(study, estimator, bf.data_shape)[0].models
            zooming = {**budget, "models": models, "seed": seed or 0, "progress": not as_json}
        answer = bf.compare(data, prior_probs=probs, extrapolate=extrapolate, **zooming)
    typer.echo(json.dumps(answer.to_dict(), indent=2) if as_json else str(answer))


# What a study file may say about a comparison; the other settings are those of a fit alone.
COMPARED_WITH = ("structure", "covariates", "prior_probs", "executor", "seed", *BUDGETS)


def _from_models(
    study: Path,
    observed: Path,
    budget: dict[str, Any],
    structure: str | None,
    prior_probs: list[float] | None,
    values: dict[str, float],
    seed: int | None,
    *,
    progress: bool,
) -> Any:
    """Return the answer by the models of a study file: a fit, and then another one near the data."""
    import deepbf
    from deepbf.models.covariates import Covariates

    found = read_study(study)
    models = [model.at(**values) for model in found.models]
    settings = {name: value for name, value in found.settings.items() if name in COMPARED_WITH}
    if budget:
        settings = {name: value for name, value in settings.items() if name not in BUDGETS}
    given = {"structure": structure, "prior_probs": prior_probs, "seed": seed}
    settings |= {name: value for name, value in given.items() if value is not None}
    num_obs, covariates = found.settings.get("num_obs"), settings.get("covariates")
    first = models[0] if covariates is None else models[0].with_covariates(covariates)
    drawn = first.simulate(1, seed=0, num_obs=None if num_obs is None else num_obs[1]).data
    shape = {name: array.shape[1:] for name, array in drawn.items()} if isinstance(drawn, dict) else drawn.shape[1:]
    table = None if covariates is None else Covariates.of(covariates)
    wanted = Wanted(shape, settings.get("structure", "vector"), num_obs, table)
    return deepbf.compare(models, read_for(wanted, observed), progress=progress, **settings, **budget)


def sensitivity(
    estimator: Path = typer.Argument(help="A file written by deepbf fit, of models with hyperparameters."),
    observed: Path = typer.Argument(help="The observed data: CSV (one observation per row), .npy, JSON or .npz."),
    hyperparameter: str | None = typer.Option(None, help="Its name, if the models have more than one."),
    at: list[str] = typer.Option([], help="The value of another hyperparameter, such as rate=2. May be repeated."),
    num_values: int = typer.Option(50, help="Points on the curve."),
    model: str | None = typer.Option(None, help="Of more than two models: the first of the pair, by name."),
    over: str | None = typer.Option(None, help="Of more than two models: the second of the pair, by name."),
    out: Path | None = typer.Option(None, help="Also draw it: a PNG, PDF or SVG file."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for machines."),
) -> None:
    """Say how the Bayes factor of the observed data depends on a hyperparameter of the models' priors."""
    import deepbf

    bf = deepbf.load(estimator)
    first, second = chosen_pair(bf.names, model, over)
    if out is not None:
        check_drawable(out)
    curve = bf.sensitivity(
        read_for(bf, observed), hyperparameter, num_values=num_values, model=first, over=second, **parse_values(at)
    )
    typer.echo(json.dumps(curve.to_dict(), indent=2) if as_json else str(curve))
    if out is not None:
        draw_to(out, deepbf.plots.sensitivity, curve)
        typer.echo(f"\nDrawn in {out}", err=as_json)
