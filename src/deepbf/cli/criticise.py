"""`deepbf criticise`: whether any of the models fits the observed data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from deepbf.cli.files import Wanted, check_folder, draw_to, named_or_file, read_for


def criticise(
    study: str = typer.Argument(help="A Python file that defines `models`, or the name of a ready-made study."),
    observed: Path = typer.Argument(help="The observed data: CSV (one observation per row), JSON or .npy."),
    seconds: float = typer.Option(60.0, help="How long to train the posterior samplers, all together."),
    steps: int | None = typer.Option(None, help="Train each for so many steps instead."),
    method: str = typer.Option("flow", help="How to sample posteriors: flow or gan."),
    statistic: list[str] = typer.Option(
        [],
        help="What predictions should agree with: mean, sd, min, max, zeros or autocorrelation. May be repeated; by "
        "default the first four.",
    ),
    seed: int = typer.Option(0, help="Seed of simulations and networks."),
    out: Path | None = typer.Option(None, help="Also draw every check into this folder."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for machines, no progress bar."),
) -> None:
    """Say what speaks against each model, whatever it is compared with."""
    import deepbf
    from deepbf.criticism.model_criticism import USUAL_STATISTICS, check_one_array

    found = named_or_file(study)
    structure = check_one_array(found.settings.get("structure", "vector")).name
    num_obs = found.settings.get("num_obs")
    shape = found.models[0].simulate(1, seed=0, num_obs=None if num_obs is None else num_obs[1]).data.shape[1:]
    data = read_for(Wanted(shape, structure, num_obs), observed)
    if out is not None:
        check_folder(out)
    result = deepbf.criticise(
        found.models,
        data,
        structure=structure,
        # Simulators that take the number of observations are told that of the data.
        num_obs=None if num_obs is None else (max(1, len(data) - 1), len(data)),
        statistics=statistic or USUAL_STATISTICS,
        method=method,
        seconds=seconds if steps is None else None,
        steps=steps,
        seed=seed,
        progress=not as_json,
    )
    typer.echo(json.dumps(result.to_dict(), indent=2) if as_json else str(result))
    if out is not None:
        drawings: list[tuple[str, Any, Any]] = []
        for number, one in enumerate(result, start=1):
            if one.z is not None:
                drawings.append((f"model-{number}-z-values.png", deepbf.plots.z_values, one.z))
            drawings += [(f"model-{number}-{c.name}.png", deepbf.plots.predictive_check, c) for c in one.check.checks]
        for name, plot, what in drawings:
            draw_to(out / name, plot, what)
        typer.echo(f"\nWrote {', '.join(name for name, _, _ in drawings)} to {out}", err=as_json)
