"""`deepbf compare`: the answer of a trained estimator for one observed data set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer


def compare(
    estimator: Path = typer.Argument(help="A file written by deepbf fit."),
    observed: Path = typer.Argument(help="The observed data: CSV (one observation a row), .npy, JSON or .npz."),
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
    from deepbf.cli.observed import read_for

    bf = deepbf.load(estimator)
    if at:
        bf = bf.at(**parse_values(at))
    data = read_for(bf, observed)
    answer = bf.compare(
        data, prior_probs=None if prior_probs is None else parse_probs(prior_probs), extrapolate=extrapolate
    )
    typer.echo(json.dumps(answer.to_dict(), indent=2) if as_json else str(answer))


def parse_values(pairs: Sequence[str]) -> dict[str, float]:
    """Return numbers by name from texts such as scale=1."""
    found = {}
    for pair in pairs:
        name, _, number = pair.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError as error:
            raise ValueError(f"--at must be a name and a number, such as scale=1; received {pair!r}.") from error
    return found


def parse_probs(text: str) -> list[float]:
    """Return the numbers in a comma-separated list."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ValueError(f"--prior-probs must be numbers separated by commas; received {text!r}.") from error
