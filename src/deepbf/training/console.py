"""What a person sees and does during training: the progress bar, and Ctrl-C as a request to stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.text import Text


class StopOnInterrupt:
    """Within the block, the first Ctrl-C sets `requested`; a second one raises KeyboardInterrupt as usual.

    Outside the main thread, where Python delivers no signals, it does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None

    def __enter__(self) -> StopOnInterrupt:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


class TimeLeft(ProgressColumn):
    """Time left as the budget tells it; rich's own guess starts from nothing after compilation."""

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        left = task.fields.get("seconds_left")
        return Text("" if left is None else f"{max(0.0, left):.0f} s left")


class ProgressBar:
    """A bar on the terminal, or nothing at all when not wanted."""

    def __init__(self, wanted: bool) -> None:
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=12),
            TaskProgressColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeLeft(),
            disable=not wanted,
        )
        self._task = self._bar.add_task("simulating", total=1.0, detail="pilot", seconds_left=None)

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(
        self,
        share: float,
        *,
        loss: float,
        held_out: float | None,
        num_simulations: int,
        seconds_left: float,
    ) -> None:
        """Draw the state of training."""
        held_out_text = "" if held_out is None else f", held out {held_out:.4f}"
        self._bar.update(
            self._task,
            description="training",
            completed=min(1.0, share),
            detail=f"loss {loss:.4f}{held_out_text}, {num_simulations / 1000:,.0f}k simulations",
            seconds_left=seconds_left,
        )
