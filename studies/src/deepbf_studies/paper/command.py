"""`deepbf reproduce`: the paper's figures and tables, and some that it lacks, computed here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepbf_studies.paper import Drawing, Target

ALL = "all"
# Each takes a gigabyte or two; whoever has the memory may ask for more.
MOST_WORKERS = 4


def reproduce(
    names: list[str] | None = typer.Argument(None, metavar="NAME...", help="Figures and tables by name, or `all`."),
    scale: str = typer.Option("quick", help="quick (minutes), standard (hours), paper (the paper's settings, days)."),
    listed: bool = typer.Option(False, "--list", help="Name all figures and tables, and stop."),
    data: Path | None = typer.Option(None, help="Observed data to use instead of simulated ones (weapon targets)."),
    out: Path = typer.Option(Path("reproduction"), help="Folder of the drawings; results are kept inside it."),
    workers: int = typer.Option(
        min(MOST_WORKERS, os.cpu_count() or 1), min=1, help="Processes that compute steps side by side."
    ),
) -> None:
    """Recompute figures and tables; interrupt at any time, and the same command goes on where it stopped."""
    from deepbf_studies import paper
    from deepbf_studies.paper.workers import pool_of

    if listed or not names:
        typer.echo(_written_list(paper.targets()))
        return
    wanted = paper.names() if names == [ALL] else names
    try:
        with pool_of(workers) as executor:
            paper.reproduce(
                wanted,
                scale=scale,
                out=out,
                observed=data,
                executor=executor,
                num_submitted=workers,
                on_drawn=_show,
            )
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. What is done is kept in {out}: the same command goes on from there.", err=True)
        raise typer.Exit(130) from None


def _show(target: Target, drawing: Drawing, files: list[Path]) -> None:
    """Print one target as soon as it is drawn."""
    where = f" ({target.paper} of the paper)" if target.paper else ""
    typer.echo(f"\n{target.name}: {target.title}{where}\n\n{drawing.text.rstrip()}\n")
    typer.echo(f"Wrote {', '.join(path.name for path in files)} to {files[0].parent}")


def _written_list(targets: Sequence[Target]) -> str:
    """Return all targets, a line each."""
    widest = max((len(one.name) for one in targets), default=0)
    return "\n".join(f"{one.name:<{widest}}  {one.title}{f' ({one.paper})' if one.paper else ''}" for one in targets)
