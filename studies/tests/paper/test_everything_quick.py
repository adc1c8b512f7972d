"""The command as a user runs it: everything at the quick scale, and an interruption in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepbf_studies import paper
from deepbf_studies.paper import Cache

COMMAND = [sys.executable, "-m", "deepbf", "reproduce"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_everything_is_reproduced_at_the_quick_scale(tmp_path: Path) -> None:
    started = time.perf_counter()
    shown = subprocess.run(
        [*COMMAND, "all", "--scale", "quick", "--out", str(tmp_path)], capture_output=True, text=True
    )
    seconds = time.perf_counter() - started
    assert shown.returncode == 0, shown.stderr[-2000:]
    # Minutes on an idle machine; how many is told, not asserted, for the machine may be busy.
    print(f"everything at the quick scale took {seconds:.0f} s")
    for target in paper.targets():
        assert f"{target.name}: {target.title}" in shown.stdout
        assert (tmp_path / "quick" / f"{target.name}.txt").stat().st_size > 0
        json.loads((tmp_path / "quick" / f"{target.name}.json").read_text())
    again = subprocess.run(
        [*COMMAND, "all", "--scale", "quick", "--out", str(tmp_path)], capture_output=True, text=True
    )
    assert again.stdout == shown.stdout


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_was_done_before_an_interruption_is_kept(how: signal.Signals, tmp_path: Path) -> None:
    command = [*COMMAND, "figure-s24", "figure-5", "--out", str(tmp_path)]
    plan = paper.find_target("figure-s24").plan("quick")
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    # As soon as the first of the longer steps is done, the next one is running.
    while len(list((tmp_path / "cache").glob("*.nc"))) <= len(plan) and time.monotonic() < deadline:
        time.sleep(0.2)
    os.kill(running.pid, how)
    _, errors = running.communicate(timeout=60)
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*.nc")}
    assert len(kept) > len(plan)
    assert all(step in Cache(tmp_path / "cache") for step in plan.values())
    if how == signal.SIGINT:
        assert running.returncode == 130
        assert "the same command goes on from there" in errors
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr[-2000:]
    unchanged = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*.nc") if path.name in kept}
    assert unchanged == kept
