"""`deepbf sensitivity`: the Bayes factor as a curve over a hyperparameter of the prior."""

from __future__ import annotations

import json
from pathlib import Path

import typer


def sensitivity(
    estimator: Path = typer.Argument(help="A file written by deepbf fit, of models with hyperparameters."),
    observed: Path = typer.Argument(help="The observed data: CSV (one observation a row), .npy, JSON or .npz."),
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
    from deepbf.cli.compare import parse_values
    from deepbf.cli.drawing import draw_to
    from deepbf.cli.evaluate import chosen_pair
    from deepbf.cli.fit import check_writable
    from deepbf.cli.observed import read_for

    bf = deepbf.load(estimator)
    first, second = chosen_pair(bf.names, model, over)
    if out is not None:
        check_writable(out)
    curve = bf.sensitivity(
        read_for(bf, observed), hyperparameter, num_values=num_values, model=first, over=second, **parse_values(at)
    )
    typer.echo(json.dumps(curve.to_dict(), indent=2) if as_json else str(curve))
    if out is not None:
        draw_to(out, deepbf.plots.sensitivity, curve)
        typer.echo(f"\nDrawn in {out}", err=as_json)
