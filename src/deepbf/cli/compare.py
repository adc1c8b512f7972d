"""`deepbf compare` and `deepbf sensitivity`: what a trained estimator says about one observed data set."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from deepbf.cli.evaluate import chosen_pair
from deepbf.cli.files import check_drawable, draw_to, parse_probs, parse_values, read_for


def compare(
    estimator: Path = typer.Argument(help="A file written by deepbf fit."),
    observed: Path = typer.Argument(
        help="The observed data: CSV (one observation per row), .npy, JSON or .npz. With covariates: the responses, or "
        "a CSV with named columns that has the covariates too."
    ),
    prior_probs: str | None = typer.Option(
        None, help="Prior probabilities of the models in order, such as 0.2,0.8. Default: those of the fit."
    ),
    at: list[str] = typer.Option(
        [], help="The value of a hyperparameter of the models' priors, such as scale=1. May be repeated."
    ),
    extrapolate: bool = typer.Option(False, help="Answer for more or fewer observations than the fit was for, too."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for machines."),
) -> None:
    """Say which model the observed data favour, how strongly, and how sure that is."""
    import deepbf

    bf = deepbf.load(estimator)
    if at:
        bf = bf.at(**parse_values(at))
    data = read_for(bf, observed)
    answer = bf.compare(
        data, prior_probs=None if prior_probs is None else parse_probs(prior_probs), extrapolate=extrapolate
    )
    typer.echo(json.dumps(answer.to_dict(), indent=2) if as_json else str(answer))


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
