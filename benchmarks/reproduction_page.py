"""Brings docs/reproduction.md up to date: the text and the pictures of every target that is computed at a scale.

The page has a marker for each target, `<!-- reproduced: figure-4 -->`; what stands between it and `<!-- end -->` is
replaced by the target's text and pictures. What is not computed yet is said to be so.

Run: deepbf reproduce all --scale standard --workers 2      hours; interrupt it at any time, it goes on where it was
     python benchmarks/reproduction_page.py                 seconds; reads reproduction/standard
     python benchmarks/reproduction_page.py --only table-1  leaves everything else on the page as it is
"""

import argparse
import io
import re
from pathlib import Path

from PIL import Image

from deepbf_studies import paper

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
PICTURES = ROOT / "docs" / "pictures" / "reproduction"
BLOCK = re.compile(r"<!-- reproduced: ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)
# Pixels across, and colours: enough for a page, and small enough for a repository.
WIDEST = 1400
NUM_COLOURS = 256


def small_copy(picture: Path, target: Path) -> None:
    """Write a copy of a picture that a repository can hold."""
    image = Image.open(picture).convert("RGB")
    if image.width > WIDEST:
        image = image.resize((WIDEST, round(image.height * WIDEST / image.width)), Image.Resampling.LANCZOS)
    content = io.BytesIO()
    # Other methods leave out colours that few pixels have, such as those of markers.
    small = image.quantize(NUM_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    small.save(content, "PNG", optimize=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.getvalue())


def block_of(name: str, drawn: Path) -> str:
    """Return what the page shows of one target."""
    text = drawn / f"{name}.txt"
    lines = [f"<!-- reproduced: {name} -->"]
    if not text.is_file():
        lines.append(f"Not computed yet at this scale: `deepbf reproduce {name} --scale {drawn.name}`.")
    else:
        pictures = sorted(path for path in drawn.glob("*.png") if re.fullmatch(rf"{name}(-.+)?\.png", path.name)
                          and owner_of(path.stem) == name)  # fmt: skip
        for picture in pictures:
            small_copy(picture, PICTURES / picture.name)
            lines.append(f"![{picture.stem}]({(PICTURES / picture.name).relative_to(PAGE.parent)})\n")
        lines += ["```text", text.read_text().rstrip(), "```"]
    return "\n".join([*lines, "<!-- end -->"])


def owner_of(stem: str) -> str:
    """Return the target that a picture belongs to: the longest name that it begins with."""
    return max((name for name in paper.names() if stem == name or stem.startswith(f"{name}-")), key=len)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawn", type=Path, default=Path("reproduction/standard"), help="folder of the drawings")
    parser.add_argument("--only", nargs="+", choices=paper.names(), metavar="NAME", help="bring up to date alone")
    options = parser.parse_args()
    page = PAGE.read_text()
    shown = BLOCK.findall(page)
    missing = set(paper.names()) - set(shown)
    if missing:
        raise SystemExit(f"{PAGE.name} has no marker for {', '.join(sorted(missing))}")
    wanted = shown if options.only is None else options.only
    PAGE.write_text(
        BLOCK.sub(lambda found: block_of(found[1], options.drawn) if found[1] in wanted else found[0], page)
    )
    done = sum((options.drawn / f"{name}.txt").is_file() for name in wanted)
    print(f"{done} of {len(wanted)} targets of {options.drawn} are on {PAGE.name}")


if __name__ == "__main__":
    main()
