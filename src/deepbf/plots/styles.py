"""How models and estimators look: told apart by colour, by lightness, and by line, marker or hatch.

Colours are those of Okabe and Ito (2008, "Color universal design"), which colour-blind readers can tell apart, and a
dark red of Tol's ("Colour schemes", 2021).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from deepbf.plots.results import EXACT

# A matplotlib line style: a name, or an offset and the lengths of dashes and gaps.
LineStyle = str | tuple[float, tuple[float, ...]]

BLACK = "#000000"
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
SKY = "#56B4E9"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
WINE = "#882255"

# For what only helps to read a plot: the diagonal, shaded areas, lines at a threshold.
GUIDE = "0.45"
SHADE = "0.90"

# Dark and light take turns, so that neighbours also differ in greyscale.  The palette's yellow is too light for a line.
COLOURS = (BLUE, ORANGE, GREEN, SKY, VERMILLION, PURPLE, WINE)
LINE_STYLES: tuple[LineStyle, ...] = (
    "solid",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (6, 1, 1, 1, 1, 1)),
    (0, (10, 2)),
    (0, (2.5, 2.5)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True)
class Style:
    """The looks of one model or estimator."""

    colour: str
    line_style: LineStyle
    marker: str
    hatch: str = ""


MODEL_STYLES = (
    Style(BLUE, "solid", "o", "////"),
    Style(ORANGE, (0, (5, 1.5)), "^", "...."),
)
EXACT_STYLE = Style(BLACK, (0, (1, 1.5)), "*")


def estimator_styles(names: Iterable[str]) -> dict[str, Style]:
    """Return a style for each estimator by its place among `names`, and always the same one for the exact.

    Examples
    --------
    >>> [style.marker for style in estimator_styles(["deep set", "exact", "forest"]).values()]
    ['o', '*', 's']
    """
    styles: dict[str, Style] = {}
    place = 0
    for name in names:
        if name == EXACT:
            styles[name] = EXACT_STYLE
        else:
            # Each time that the colours begin again, lines and markers are one further: 49 combinations.
            colour, shape = place % len(COLOURS), (place + place // len(COLOURS)) % len(MARKERS)
            styles[name] = Style(COLOURS[colour], LINE_STYLES[shape], MARKERS[shape])
            place += 1
    return styles
