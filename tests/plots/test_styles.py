"""Styles are told apart without colour: by lightness between neighbours, and by line and marker among all."""

from itertools import pairwise

import pytest
from matplotlib.colors import to_rgb

from deepbf.plots.styles import (
    COLOURS,
    EXACT_STYLE,
    GUIDE,
    LINE_STYLES,
    MARKERS,
    MODEL_STYLES,
    estimator_styles,
)


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it: 0 is black, 1 white."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_neighbouring_colours_differ_in_luminance() -> None:
    for one, other in pairwise([*COLOURS, COLOURS[0]]):
        assert contrast(one, other) > 1.25, (one, other)
    # The two that are drawn most often.
    assert contrast(COLOURS[0], COLOURS[1]) > 2
    assert contrast(MODEL_STYLES[0].colour, MODEL_STYLES[1].colour) > 2


@pytest.mark.parametrize("colour", [*COLOURS, EXACT_STYLE.colour, GUIDE])
def test_every_colour_shows_on_white(colour: str) -> None:
    assert contrast(colour, "white") > 2


def test_models_differ_in_everything() -> None:
    first, second = MODEL_STYLES
    assert first.line_style != second.line_style
    assert first.marker != second.marker
    assert first.hatch != second.hatch


def test_the_first_seven_estimators_differ_in_colour_and_in_line_and_in_marker() -> None:
    styles = list(estimator_styles([f"estimator {number}" for number in range(7)] + ["exact"]).values())
    assert len({style.line_style for style in styles}) == 8
    assert len({style.marker for style in styles}) == 8
    assert len({style.colour for style in styles}) == 8


def test_no_style_comes_twice_among_forty_nine() -> None:
    styles = estimator_styles(f"estimator {number}" for number in range(49)).values()
    assert len({(style.colour, style.line_style) for style in styles}) == 49
    assert len({(style.colour, style.marker) for style in styles}) == 49
    assert len(LINE_STYLES) == len(MARKERS) == len(COLOURS)


def test_the_exact_one_looks_the_same_wherever_it_stands() -> None:
    assert estimator_styles(["exact", "a"])["exact"] == estimator_styles(["a", "b", "exact"])["exact"]
    assert estimator_styles(["exact", "a"])["a"] == estimator_styles(["a"])["a"]
