"""Figures in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def draw_to(out: Path, plot: Callable[..., Any], result: Any) -> None:
    """Write what `plot` draws of a result to a file, without a window."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.8), layout="constrained")
    plot(result, ax=axes)
    figure.savefig(out, dpi=150)
    pyplot.close(figure)


def check_folder(out: Path) -> None:
    """Raise now rather than after the work if nothing could be written there."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder; {out} is a file. Pass another name.")
    out.mkdir(parents=True, exist_ok=True)
