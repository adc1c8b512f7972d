"""What a reader finds on axes."""

from matplotlib.axes import Axes


def legend_texts(ax: Axes) -> list[str]:
    """The legend's entries, each on one line."""
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text().replace("\n", " ") for text in legend.get_texts()]


def render(ax: Axes) -> Axes:
    """Draw for good: only then does matplotlib find most of what it warns of, or cannot draw."""
    ax.figure.canvas.draw()
    return ax


def one_line(text: str) -> str:
    return text.replace("\n", " ")
