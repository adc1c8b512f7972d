"""The `deepbf` command: collects the commands, those of deepbf and those that other packages add."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

import typer

from deepbf import __version__
from deepbf.cli.compare import compare, sensitivity
from deepbf.cli.criticise import criticise
from deepbf.cli.demo import demo
from deepbf.cli.errors import COMMANDS, ClearErrors
from deepbf.cli.evaluate import design, evaluate
from deepbf.cli.fit import fit


def build_app(added: Iterable[EntryPoint]) -> typer.Typer:
    """Return the command line with deepbf's own commands and those that are `added`.

    `reproduce` is known by name: whoever lacks the package that adds it is told so.
    """
    app = typer.Typer(
        cls=ClearErrors,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        # Square brackets in the help are Python lists, not markup.
        rich_markup_mode=None,
        help="Bayes factors for models you can only simulate. Start with: deepbf demo",
    )
    for command in (demo, fit, compare, evaluate, design, criticise, sensitivity):
        app.command()(command)
    others = {entry.name: entry for entry in added}
    if "reproduce" in others:
        app.command("reproduce")(others.pop("reproduce").load())
    else:
        # Whatever is asked of it, the answer is the same.
        @app.command("reproduce", context_settings={"ignore_unknown_options": True})
        def needs_studies(
            names: list[str] | None = typer.Argument(
                None, metavar="NAME...", help="Figures and tables by name, or `all`."
            ),
        ) -> None:
            """Recompute the paper's figures and tables (needs the package deepbf-studies)."""
            raise RuntimeError(
                "deepbf reproduce is part of the package deepbf-studies, which is not installed. "
                "In a clone of the repository: pip install ./studies"
            )

    for name, entry in sorted(others.items()):
        app.command(name)(entry.load())
    app.callback()(main)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deepbf {__version__}")
        raise typer.Exit


def main(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
    ),
    debug: bool = typer.Option(
        False, "--debug", envvar="DEEPBF_DEBUG", help="Show the whole traceback of every error."
    ),
) -> None:
    """Bayes factors for models you can only simulate. Start with: deepbf demo."""


app = build_app(entry_points(group=COMMANDS))
