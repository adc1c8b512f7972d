"""Target: a figure or a table by name, the steps that it needs, and how it is drawn from their results."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from deepbf._files import write_whole
from deepbf_studies.paper.step import Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# quick: minutes, for a look and for tests; standard: hours, what the documentation shows; paper: its own, days.
SCALES = ("quick", "standard", "paper")
# Characters that fit a terminal.
LINE_WIDTH = 110

# Steps by what a drawing calls them, and results by the same.
Plan = Mapping[Any, Step]
Results = Mapping[Any, xr.Dataset]


@dataclass(frozen=True)
class Drawing:
    """What a target shows.

    Parameters
    ----------
    text
        Tables and sentences; printed, and written beside the figures.
    figures
        By what is added to the target's name: {"": figure} if there is just one.
    numbers
        What the text says, for machines: what JSON can hold.
    """

    text: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write the text, the numbers and the figures; return the files."""
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / f"{name}.txt", folder / f"{name}.json"]
        write_whole(written[0], f"{self.text.rstrip()}\n".encode())
        write_whole(written[1], f"{json.dumps(self.numbers, indent=1)}\n".encode())
        for added, figure in self.figures.items():
            written.append(folder / f"{name}{'-' if added else ''}{added}.png")
            figure.savefig(written[-1], dpi=130)
        return written


@dataclass(frozen=True)
class Target:
    """A figure or a table.

    Parameters
    ----------
    name
        What `deepbf reproduce` calls it.
    title
        One line in words.
    paper
        Where it stands in the paper; empty for what the paper does not have.
    plan
        ``plan(scale)``, or ``plan(scale, observed)`` with what `read` returned: steps by any labels.
    draw
        ``draw(results)``: the results under the labels of the plan. Computes nothing that takes long.
    read
        Reads observed data from a user's file into what JSON can hold; None if the target takes none.
    """

    name: str
    title: str
    paper: str
    plan: Callable[..., Plan]
    draw: Callable[[Results], Drawing]
    read: Callable[[Path], Any] | None = None


def paragraph(*sentences: str, indent: int = 0) -> str:
    r"""Return sentences as lines of at most 110 characters, all indented by so many blanks.

    Examples
    --------
    >>> paragraph("A short one.", "And another.", indent=2)
    '  A short one. And another.'
    """
    blanks = " " * indent
    return textwrap.fill(" ".join(sentences), LINE_WIDTH, initial_indent=blanks, subsequent_indent=blanks)
