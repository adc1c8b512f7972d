"""Workers: cores of their own, and an end with the command that started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepbf_studies.paper.workers import CAN_CHOOSE_CORES, pool_of, shares_of, usable_cores

# A parent that starts a worker, says which one, and then waits for it for a minute.
PARENT = """
import os, time
from deepbf_studies.paper.workers import pool_of
with pool_of(2) as executor:
    print(executor.submit(os.getpid).result(), flush=True)
    executor.submit(time.sleep, 60).result()
"""


@pytest.mark.parametrize(
    ("num_cores", "workers", "sizes"),
    [(2, 2, [1, 1]), (8, 4, [2, 2, 2, 2]), (8, 3, [3, 2, 3]), (5, 2, [2, 3]), (7, 7, [1] * 7)],
)
def test_every_core_goes_to_one_worker(num_cores: int, workers: int, sizes: list[int]) -> None:
    shares = shares_of(range(num_cores), workers)
    assert [len(share) for share in shares] == sizes
    assert sorted(core for share in shares for core in share) == list(range(num_cores))


def test_more_workers_than_cores_share_them() -> None:
    assert shares_of([3, 7], 5) == [[3], [7], [3], [7], [3]]


def test_where_the_system_names_no_cores_workers_are_left_free() -> None:
    assert shares_of([], 2) == [[], []]


def test_one_worker_is_the_command_itself() -> None:
    with pool_of(1) as executor:
        assert executor is None


@pytest.mark.skipif(not CAN_CHOOSE_CORES, reason="this system does not let a process choose its cores")
def test_workers_keep_to_their_share() -> None:
    cores = usable_cores()
    with pool_of(2) as executor:
        assert executor is not None
        used = sorted(executor.submit(os.sched_getaffinity, 0).result())
    assert used in shares_of(cores, 2)
    assert usable_cores() == cores


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_worker_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert is_running(worker)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(worker)


def is_running(pid: int) -> bool:
    """Whether a process is there, other than as an entry that nobody has read yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
