"""What a command shows when it fails: one line for what its user can mend, the traceback for everything else.

An error is for the user if a ``raise`` statement of deepbf, or of a package that adds commands or studies to it, raised
it: then somebody wrote the message for whoever reads it. What NumPy, JAX, the user's own file, or a slip in deepbf
raises says little without its traceback.
"""

from __future__ import annotations

import dis
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from deepbf.cli.files import STUDIES

# Commands that other packages add.
COMMANDS = "deepbf.commands"
# What deepbf raises on purpose when it cannot go on with what it was given.
ON_PURPOSE = (ValueError, TypeError, OSError, RuntimeError, ImportError)
# The module that a study file is while it runs.
STUDY_MODULE = "<run_path>"

USER_ERROR, BUG = 2, 1
WORDS = "deepbf.words"


class Shown(NamedTuple):
    """What goes to the standard error, and the exit status."""

    text: str
    status: int


class ClearErrors(TyperGroup):
    """A group of commands that explains the errors of each."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words of the command line for `explain`."""
        ctx.meta[WORDS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; on an error show what `explain` says of it, and exit with that status."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if hasattr(error, "show"):
                # Options that do not exist, and the like: the parser's own errors know how to show themselves.
                raise
            shown = explain(error, ctx.meta[WORDS], debug=ctx.params.get("debug", False))
            typer.echo(shown.text, err=True)
            raise typer.Exit(shown.status) from error


def explain(error: Exception, words: Sequence[str] = (), *, debug: bool = False) -> Shown:
    """Return what to show for an error: one line and status 2 if its user can mend it, else a traceback and status 1.

    Parameters
    ----------
    error
        What was raised.
    words
        The words of the command line: an error of the system about a file that they name is the user's to mend.
    debug
        Whether to show the whole traceback, whatever the error is.
    """
    from deepbf.models.model import SimulationError

    # The lines of the user's study on the way to the error; the innermost is where it came up.
    study_lines = [
        (at.tb_frame.f_code.co_filename, at.tb_lineno) for at in _frames(error) if _module_of(at) == STUDY_MODULE
    ]
    at = f" ({study_lines[-1][0]}, line {study_lines[-1][1]})" if study_lines else ""
    is_about_a_named_file = False
    if isinstance(error, OSError) and isinstance(error.filename, str) and not study_lines:
        # The system may have refused a file that the command line names, or one in a folder that it names.
        refused = Path(error.filename).absolute()
        named = [Path(word.rpartition("=")[2]).absolute() for word in words if not word.startswith("-") or "=" in word]
        is_about_a_named_file = any(path == refused or path in refused.parents for path in named)
    # What a prior or a simulator raised, where that is why a simulation failed, is known by its own traceback.
    failed: BaseException = error
    while isinstance(error, SimulationError) and failed.__cause__ is not None:
        failed = failed.__cause__
    if failed is not error and not isinstance(failed, SimulationError) and not _is_on_purpose(failed):
        line, details = f"error: {error}\n\nHere is where that happened:", _short_traceback(failed)
    elif isinstance(error, SyntaxError) and _module_of(list(_frames(error))[-1]) == "runpy":
        # The study did not begin to run, so that no line of it is in the traceback; the error itself names the line.
        line, details = f"error: {error.filename} is not Python:", "".join(traceback.format_exception_only(error))
    elif _is_on_purpose(error) or is_about_a_named_file:
        line, details = f"error: {error}{at}", ""
    else:
        line = (
            f"error: {type(error).__name__}{at}, a bug in {'that file or in ' if study_lines else ''}deepbf. "
            "If it is deepbf's, please report it to its developers, with the command and what follows:"
        )
        details = _short_traceback(error)
    status = BUG if details else USER_ERROR
    if debug:
        details = "".join(traceback.format_exception(error))
    return Shown(f"{line}\n\n{details.rstrip()}" if details else line, status)


def _frames(error: BaseException) -> Iterator[TracebackType]:
    at = error.__traceback__
    while at is not None:
        yield at
        at = at.tb_next


def _module_of(at: TracebackType) -> str:
    return str(at.tb_frame.f_globals.get("__name__", ""))


def _is_own(at: TracebackType) -> bool:
    """Return whether a frame is of deepbf, or of a package that adds commands or studies to it."""
    added = [*entry_points(group=COMMANDS), *entry_points(group=STUDIES)]
    own = {"deepbf", *(entry.module.partition(".")[0] for entry in added)}
    return _module_of(at).partition(".")[0] in own


def _is_on_purpose(error: BaseException) -> bool:
    """Return whether a ``raise`` statement of deepbf's own raised this, and not a call that failed there."""
    if not isinstance(error, ON_PURPOSE) or isinstance(error, NotImplementedError):
        return False
    last = next(reversed(list(_frames(error))), None)
    if last is None or not _is_own(last):
        return False
    # The instruction at which the innermost frame stopped.
    return last.tb_frame.f_code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def _short_traceback(error: BaseException) -> str:
    """Return the traceback from the user's study on, or else from the command on, without what called that."""
    frames = list(_frames(error))
    inside = [at for at in frames if _is_own(at) and _module_of(at) != __name__]
    start = next((at for at in frames if _module_of(at) == STUDY_MODULE), inside[0] if inside else None)
    return "".join(traceback.format_exception(type(error), error, start or error.__traceback__))
