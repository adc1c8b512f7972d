"""`deepbf design`: how many observations make strong evidence probable."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from deepbf.cli.study_file import find_study


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
    from deepbf.cli.drawing import draw_to
    from deepbf.cli.evaluate import chosen_pair
    from deepbf.cli.fit import check_writable

    bf = deepbf.load(estimator)
    found, where = find_study(study, estimator, bf.data_shape)
    first, second = chosen_pair(bf.names, model, over)
    if out is not None:
        check_writable(out)
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
