"""`deepbf fit`: train on the models that a Python file defines."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from deepbf.cli.files import BUDGETS, check_writable, read_covariates, read_study


def fit(
    study: Path = typer.Argument(help="A Python file that defines models = [deepbf.Model(...), ...]."),
    out: Path = typer.Option(..., help="Where to save the trained estimator."),
    structure: str | None = typer.Option(None, help="How data are laid out: vector, exchangeable, series or nested."),
    covariates: Path | None = typer.Option(
        None, help="For regressions: a CSV of what is fixed by design, with named columns, one row per response."
    ),
    response: str | None = typer.Option(None, help="The column of that CSV that holds responses, no covariate."),
    num_obs: str | None = typer.Option(
        None, help="Fewest and most observations, such as 2,256, for simulators that take num_obs."
    ),
    network: str | None = typer.Option(None, help="The network by name; by default the best for the structure."),
    seconds: float | None = typer.Option(None, help="Train for so many seconds of wall time. Default 60."),
    steps: int | None = typer.Option(None, help="Or: train for so many steps."),
    num_simulations: int | None = typer.Option(None, help="Or: train on so many simulations in all, reused."),
    ensemble: int | None = typer.Option(None, help="Networks trained together; their spread is the error. Default 4."),
    schedule: str | None = typer.Option(None, help="auto; thorough, if simulating costs next to nothing; or paper."),
    start: Path | None = typer.Option(None, help="A saved estimator of the same models to go on from."),
    seed: int | None = typer.Option(None, help="Seed of the simulations and the networks. Default 0."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for machines, no progress bar."),
) -> None:
    """Train an estimator of the Bayes factors among the models in a Python file.

    The file defines `models`, a list of two or more deepbf.Model, and may define `structure`, `prior_probs`,
    `network`, `seconds`, `seed` and any other argument of deepbf.fit. Options given here win.

    \b
    Example of a study file:
        import deepbf
        structure = "exchangeable"
        models = [
            deepbf.Model("A", prior=lambda rng, size: ..., simulator=lambda rng, params: ...),
            deepbf.Model("B", prior=lambda rng, size: ..., simulator=lambda rng, params: ...),
        ]

    Then: deepbf compare OUT observed.csv
    """  # noqa: D301, the help needs a true backspace to keep the lines of the example
    import deepbf

    try:
        num_obs_range = None if num_obs is None else tuple(int(part) for part in num_obs.split(","))
    except ValueError as error:
        raise ValueError(f"--num-obs must be two whole numbers, such as 2,256; received {num_obs!r}.") from error
    if response is not None and covariates is None:
        raise ValueError(
            f"--response names a column of the table of covariates; received {response!r} without a table."
        )
    options = {
        "structure": structure,
        "covariates": None if covariates is None else read_covariates(covariates, response),
        "num_obs": num_obs_range,
        "network": network,
        "seconds": seconds,
        "steps": steps,
        "num_simulations": num_simulations,
        "ensemble": ensemble,
        "schedule": schedule,
        "start": start,
        "seed": seed,
    }
    models, settings, _ = read_study(study)
    given = {name: value for name, value in options.items() if value is not None}
    if any(name in given for name in BUDGETS):
        settings = {name: value for name, value in settings.items() if name not in BUDGETS}
    check_writable(out)
    bf = deepbf.fit(models, progress=not as_json, **{**settings, **given})
    bf.save(out)
    if as_json:
        typer.echo(json.dumps({"saved": str(out), "models": list(bf.names), "held_out_loss": bf.record.held_out_loss,
                               "steps": bf.record.num_steps, "simulations": bf.record.num_simulations,
                               "seconds": bf.record.seconds, "stopped": bf.record.stopped}, indent=2))  # fmt: skip
        return
    typer.echo(f"{bf}\nSaved to {out}. Next: deepbf compare {out} observed.csv")
