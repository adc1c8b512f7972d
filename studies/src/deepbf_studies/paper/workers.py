"""Processes that compute steps side by side: each on cores of its own, none of them outliving the command."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

# Not every system says which cores a process may use, or lets it choose.
CAN_CHOOSE_CORES = hasattr(os, "sched_setaffinity")


def pool_of(workers: int) -> AbstractContextManager[ProcessPoolExecutor | None]:
    """Return processes that compute steps, or nothing for one worker, which is this process.

    A context, which ends them. Each has a share of the cores to itself, as far as they go.
    """
    if workers == 1:
        return nullcontext()
    # Fresh processes: a fork would copy JAX's threads in whatever state they are.
    context = get_context("spawn")
    shares: SimpleQueue[list[int]] = context.SimpleQueue()
    for share in shares_of(usable_cores(), workers):
        shares.put(share)
    return ProcessPoolExecutor(workers, context, initializer=_start, initargs=(shares,))


def usable_cores() -> list[int]:
    """Return the cores that this process may use, if the system says so."""
    return sorted(os.sched_getaffinity(0)) if CAN_CHOOSE_CORES else []


def shares_of(cores: Sequence[int], workers: int) -> list[list[int]]:
    """Return the cores of each worker: shared out as evenly as they go, or used by several where there are too few.

    Examples
    --------
    >>> shares_of([0, 1, 2, 3, 4], 2)
    [[0, 1], [2, 3, 4]]
    """
    if len(cores) < workers:
        return [[cores[place % len(cores)]] if cores else [] for place in range(workers)]
    ends = [round(place * len(cores) / workers) for place in range(workers + 1)]
    return [list(cores[begin:end]) for begin, end in pairwise(ends)]


def _start(shares: SimpleQueue[list[int]]) -> None:
    """Set a new worker up, before it loads anything that counts the cores."""
    _end_with_parent()
    keep_to(shares.get())


def keep_to(cores: Sequence[int]) -> None:
    """Keep this process to these cores.

    Free to use all of them, each training starts as many threads as there are, which then stand in each other's way.
    """
    if cores:
        os.sched_setaffinity(0, cores)


def _end_with_parent() -> None:
    """End this process as soon as the one that started it is gone, however it went: nobody waits for its work."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
