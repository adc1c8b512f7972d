"""Paragraphs of a drawing's text, in lines that fit a terminal."""

from __future__ import annotations

import textwrap

LINE_WIDTH = 110


def paragraph(*sentences: str, indent: int = 0) -> str:
    r"""Return sentences as lines of at most 110 characters, all indented by so many blanks.

    Examples
    --------
    >>> paragraph("A short one.", "And another.", indent=2)
    '  A short one. And another.'
    """
    blanks = " " * indent
    return textwrap.fill(" ".join(sentences), LINE_WIDTH, initial_indent=blanks, subsequent_indent=blanks)
