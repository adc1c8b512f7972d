"""The `deepbf` command: collects the commands and turns user errors into one clear line."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from deepbf import __version__
from deepbf.cli.compare import compare
from deepbf.cli.criticise import criticise
from deepbf.cli.demo import demo
from deepbf.cli.design import design
from deepbf.cli.evaluate import evaluate
from deepbf.cli.fit import fit
from deepbf.cli.sensitivity import sensitivity
from deepbf.models import SimulationError


class ClearErrors(TyperGroup):
    """Shows the message of an expected error, without the traceback that a newcomer cannot use."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit with status 2 and the message on a user error."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except (ValueError, TypeError, OSError, SimulationError, RuntimeError) as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from error


app = typer.Typer(
    cls=ClearErrors,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Square brackets in the help are Python lists, not markup.
    rich_markup_mode=None,
    help="Bayes factors for models you can only simulate. Start with: deepbf demo",
)
app.command()(demo)
app.command()(fit)
app.command()(compare)
app.command()(evaluate)
app.command()(design)
app.command()(criticise)
app.command()(sensitivity)


# Commands that other packages add. `reproduce` is known by name, so that whoever lacks its package is told.
COMMANDS = "deepbf.commands"


def needs_studies(
    names: list[str] | None = typer.Argument(None, metavar="NAME...", help="Figures and tables by name, or `all`."),
) -> None:
    """Recompute the paper's figures and tables (needs the package deepbf-studies)."""
    raise RuntimeError(
        "deepbf reproduce is part of the package deepbf-studies, which is not installed. "
        "In a clone of the repository: pip install ./studies"
    )


added = {entry.name: entry for entry in entry_points(group=COMMANDS)}
app.command("reproduce", context_settings={"ignore_unknown_options": "reproduce" not in added})(
    added.pop("reproduce").load() if "reproduce" in added else needs_studies
)
for name, entry in sorted(added.items()):
    app.command(name)(entry.load())


def print_version(wanted: bool) -> None:
    """Print the version and stop, if wanted."""
    if wanted:
        typer.echo(f"deepbf {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=print_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Bayes factors for models you can only simulate. Start with: deepbf demo."""
