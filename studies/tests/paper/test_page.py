"""docs/reproduction.md shows every target, and no picture that is not there."""

import re
from pathlib import Path

from deepbf_studies import paper

PAGE = Path(__file__).parents[3] / "docs" / "reproduction.md"


def test_every_target_has_its_place_on_the_page() -> None:
    shown = re.findall(r"<!-- reproduced: ([\w-]+) -->", PAGE.read_text())
    assert sorted(shown) == sorted(paper.names())


def test_every_picture_of_the_page_is_there() -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", PAGE.read_text())
    assert [picture for picture in pictures if not (PAGE.parent / picture).is_file()] == []
