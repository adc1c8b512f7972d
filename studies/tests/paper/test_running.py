"""What is kept is never computed again; an interruption loses the step that was running, and nothing else."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

import pytest
import xarray as xr
from matplotlib.figure import Figure

from deepbf_studies import problems
from deepbf_studies.paper import Cache, Drawing, Step, Target, reproduce, running
from deepbf_studies.paper.running import plan_of, run
from deepbf_studies.paper.step import step_function
from studies.tests.paper.recorded import interrupted, number_step, total_step


def sum_target(log: Path, name: str = "sum", *values: float) -> Target:
    return Target(
        name,
        "a sum",
        "",
        plan=lambda scale: {"total": total_step(log, *(values or (1.0, 2.0)))},
        draw=lambda results: Drawing(f"{float(results['total']['value']):g}", {"": Figure()}, {"total": 3}),
    )


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    """Let the catalogue hold these targets instead of its own."""
    return lambda *targets: monkeypatch.setattr(running, "_TARGETS", targets)


def test_computes_once_and_draws_from_the_cache(tmp_path: Path, use) -> None:
    log = tmp_path / "log"
    use(sum_target(log))
    for _ in range(2):
        drawings = reproduce(["sum"], out=tmp_path, progress=False)
        assert drawings["sum"].text == "3"
    assert sorted(log.read_text().split("\n")) == ["", "number 1", "number 2", "total"]
    assert sorted(path.name for path in (tmp_path / "quick").iterdir()) == ["sum.json", "sum.png", "sum.txt"]
    assert (tmp_path / "quick" / "sum.txt").read_text() == "3\n"


def test_targets_share_what_they_have_in_common(tmp_path: Path, use) -> None:
    log = tmp_path / "log"
    use(sum_target(log, "one", 1.0, 2.0), sum_target(log, "two", 2.0, 3.0))
    drawings = reproduce(["one", "two"], out=tmp_path, progress=False)
    assert [drawing.text for drawing in drawings.values()] == ["3", "5"]
    assert log.read_text().count("number 2") == 1


@pytest.mark.parametrize("side_by_side", [False, True])
def test_an_interruption_loses_at_most_the_step_that_was_running(tmp_path: Path, use, side_by_side: bool) -> None:
    log = tmp_path / "log"
    steps = {1: number_step(1.0, log), 2: Step(interrupted, {"log": str(log)}), 3: number_step(3.0, log)}
    use(Target("broken", "stops once", "", plan=lambda scale: steps, draw=lambda results: Drawing("done")))
    executor = ThreadPoolExecutor(1) if side_by_side else None
    with pytest.raises(KeyboardInterrupt):
        reproduce(["broken"], out=tmp_path, executor=executor, progress=False)
    cache = Cache(tmp_path / "cache")
    assert steps[1] in cache
    assert steps[2] not in cache
    assert reproduce(["broken"], out=tmp_path, executor=executor, progress=False)["broken"].text == "done"
    assert log.read_text().count("number 1") == 1
    assert log.read_text().count("interrupted") == 2


def test_an_executor_computes_inputs_before_what_needs_them(tmp_path: Path, use) -> None:
    log = tmp_path / "log"
    use(sum_target(log))
    with ThreadPoolExecutor(2) as executor:
        assert reproduce(["sum"], out=tmp_path, executor=executor, progress=False)["sum"].text == "3"
    assert log.read_text().split()[-1] == "total"


class AtOnce(Executor):
    """Runs what it is given before `submit` returns."""

    def submit(self, fn, /, *args, **kwargs) -> Future:
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.mark.parametrize("executor", [None, AtOnce()])
def test_a_target_is_drawn_before_the_last_of_all_steps(tmp_path: Path, use, executor) -> None:
    log = tmp_path / "log"
    use(sum_target(log, "one", 1.0, 2.0), sum_target(log, "two", 3.0, 4.0))
    known = {}
    reproduce(
        ["one", "two"],
        out=tmp_path,
        executor=executor,
        num_submitted=1,
        progress=False,
        on_drawn=lambda target, drawing, files: known.update({target.name: log.read_text().split("\n")[:-1]}),
    )
    assert sorted(known["one"]) == ["number 1", "number 2", "total"]
    assert known["two"][3:] == ["number 3", "number 4", "total"]


def test_a_failing_step_keeps_what_was_done_before_it(tmp_path: Path, use) -> None:
    log = tmp_path / "log"
    steps = {1: number_step(1.0, log), 2: Step(failing, {})}
    use(Target("broken", "fails", "", plan=lambda scale: steps, draw=lambda results: Drawing("done")))
    with pytest.raises(ValueError, match="no luck"):
        reproduce(["broken"], out=tmp_path, progress=False)
    assert steps[1] in Cache(tmp_path / "cache")


@step_function(f"{__name__}.failing")
def failing() -> xr.Dataset:
    raise ValueError("no luck")


def test_a_fit_that_ctrl_c_cut_short_is_no_result(tmp_path: Path) -> None:
    step = Step(cut_short, {})
    cache = Cache(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(step, cache)
    assert step not in cache


@step_function(f"{__name__}.cut_short")
def cut_short() -> xr.Dataset:
    """Train until Ctrl-C comes, as a fit that keeps the best so far."""
    import os
    import signal
    import threading

    import deepbf

    study = problems.load("data-3", num_obs=2)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    deepbf.fit(study.models, structure="exchangeable", steps=10**7, ensemble=1, progress=False)
    return xr.Dataset()


def test_unknown_names_and_scales_are_told_before_anything_runs(tmp_path: Path, use) -> None:
    log = tmp_path / "log"
    use(sum_target(log))
    with pytest.raises(ValueError, match="target"):
        reproduce(["sum", "figure-99"], out=tmp_path, progress=False)
    with pytest.raises(ValueError, match="scale"):
        reproduce(["sum"], scale="huge", out=tmp_path, progress=False)
    assert not log.exists()


def test_observed_data_go_only_to_targets_that_take_them(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sum takes none"):
        plan_of(sum_target(tmp_path / "log"), "quick", tmp_path / "observed.csv")
