"""Writing files whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to `path`; a crash while writing leaves no half a file under that name."""
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"{target} is in a folder that does not exist. Create {target.absolute().parent} first."
        )
    unfinished = target.with_name(target.name + ".unfinished")
    unfinished.write_bytes(content)
    os.replace(unfinished, target)
