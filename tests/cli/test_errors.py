"""What a failing command shows: one line for what its user can mend, the traceback of everything else."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from deepbf import SimulationError
from deepbf._checks import check_count
from deepbf.cli.app import build_app
from deepbf.cli.errors import explain
from tests.cli.test_commands import STUDY, run

compare_module = importlib.import_module("deepbf.cli.compare")


def failing_with(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def test_a_users_error_is_one_line(tmp_path: Path) -> None:
    code, output, error = run("compare", tmp_path / "missing", tmp_path / "missing.csv")
    assert code == 2
    assert output == ""
    assert error.startswith("error: there is no file")
    assert error.count("\n") == 1


@pytest.mark.parametrize("bug", [TypeError, ValueError, RuntimeError, KeyError, AssertionError])
def test_a_bug_of_another_library_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, bug: type[Exception]) -> None:
    monkeypatch.setattr("deepbf.load", failing_with(bug("deep inside")))
    code, output, error = run("compare", "a", "b")
    assert code == 1
    assert output == ""
    assert error.startswith(f"error: {bug.__name__}, a bug in deepbf. If it is deepbf's, please report it")
    assert "Traceback (most recent call last)" in error
    assert "deep inside" in error
    # From the command on; what called it is of no interest.
    assert "cli/compare.py" in error
    assert "_click" not in error


def test_a_slip_in_deepbf_itself_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepbf.load", failing_with)
    monkeypatch.setattr(compare_module, "read_for", None)
    code, _, error = run("compare", "a", "b")
    assert code == 1
    assert "Traceback" in error
    assert "'NoneType' object is not callable" in error


def test_numpys_errors_are_bugs_unless_deepbf_explains_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepbf.load", lambda _: np.zeros(2) + np.zeros(3))
    code, _, error = run("compare", "a", "b")
    assert code == 1
    assert "Traceback" in error
    assert "could not be broadcast" in error


def test_a_message_that_cannot_be_written_is_a_bug() -> None:
    # The line holds a raise statement, but it is the message that failed.
    source = 'def check(value):\n    raise ValueError(f"received {value.shape}")\n'
    own: dict[str, Any] = {"__name__": "deepbf.nowhere"}
    exec(source, own)
    with pytest.raises(AttributeError) as failed:
        own["check"](1)
    assert explain(failed.value).status == 1
    with pytest.raises(ValueError, match="received") as raised:
        own["check"](np.zeros(2))
    assert explain(raised.value) == ("error: received (2,)", 2)


def test_deepbf_raising_for_what_it_cannot_do_yet_is_a_bug() -> None:
    own: dict[str, Any] = {"__name__": "deepbf.nowhere"}
    exec("def check():\n    raise NotImplementedError\n", own)
    with pytest.raises(NotImplementedError) as failed:
        own["check"]()
    assert explain(failed.value).status == 1


def test_debug_always_shows_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, error = run("--debug", "compare", tmp_path / "missing", "b")
    assert code == 2
    assert error.startswith("error: there is no file")
    assert "Traceback (most recent call last)" in error
    monkeypatch.setenv("DEEPBF_DEBUG", "1")
    code, _, error = run("compare", tmp_path / "missing", "b")
    assert code == 2
    assert "Traceback" in error


BROKEN = {
    "syntax": ("import deepbf\nmodels = [\n", ["study.py is not Python", 'study.py", line 2', "SyntaxError"]),
    "name": ("import deepbf\n\nmodels = [coin]\n", ["NameError (", "study.py, line 3)", "name 'coin' is not defined"]),
    "import": ("import no_such_library\n", ["ModuleNotFoundError (", "study.py, line 1)", "no_such_library"]),
    "own check": ("def f():\n    raise ValueError('odd')\n\nf()\n", ["ValueError (", "study.py, line 2)", "odd"]),
    "missing file": ("open('/no/such/file')\n", ["FileNotFoundError (", "study.py, line 1)", "/no/such/file"]),
}


@pytest.mark.parametrize("case", BROKEN)
def test_errors_in_the_study_file_show_its_line(tmp_path: Path, case: str) -> None:
    source, words = BROKEN[case]
    study = tmp_path / "study.py"
    study.write_text(source)
    code, _, error = run("fit", study, "--out", tmp_path / "x")
    assert code == 1
    for word in words:
        assert word in error
    # It begins in the file: what ran it is of no interest.
    assert "runpy" not in error


def test_what_deepbf_refuses_in_a_study_file_is_one_line_with_its_place(tmp_path: Path) -> None:
    study = tmp_path / "study.py"
    study.write_text("import deepbf\n\nmodels = [deepbf.Model('', simulator=len)]\n")
    code, _, error = run("fit", study, "--out", tmp_path / "x")
    assert code == 2
    assert error.count("\n") == 1
    assert error.endswith(f"({study}, line 3)\n")


def test_a_simulator_that_fails_shows_where(tmp_path: Path) -> None:
    study = tmp_path / "study.py"
    study.write_text(STUDY.replace("rng.binomial(1, 0.8, (size, 20))", "rng.binomial(1, 0.8, size + None)"))
    code, _, error = run("fit", study, "--out", tmp_path / "x")
    assert code == 1
    assert error.startswith("error: Model 'loaded' failed")
    assert f'{study}", line 10' in error
    assert "unsupported operand" in error.splitlines()[-1]
    study.write_text(STUDY.replace("rng.binomial(1, 0.8, (size, 20))", "rng.binomial(1, 0.8, 3)"))
    code, _, error = run("fit", study, "--out", tmp_path / "x")
    assert code == 2
    assert "Traceback" not in error


def test_a_worker_that_died_is_told_with_its_cause() -> None:
    try:
        try:
            raise OSError("killed")
        except OSError as cause:
            raise SimulationError("A worker died.") from cause
    except SimulationError as error:
        shown = explain(error)
    assert shown.status == 1
    assert shown.text.startswith("error: A worker died.")
    assert "OSError: killed" in shown.text


def test_a_file_that_the_system_refuses_is_the_users_to_mend(tmp_path: Path) -> None:
    refused = PermissionError(13, "Permission denied", str(tmp_path / "out" / "evaluation.nc"))
    for words, status in [
        (["evaluate", "a", "--out", str(tmp_path / "out")], 2),
        (["evaluate", "a", f"--out={tmp_path / 'out'}"], 2),
        (["evaluate", "a"], 1),
    ]:
        with pytest.raises(PermissionError) as raised:
            failing_with(refused)()
        assert explain(raised.value, words).status == status


def test_wrong_options_are_explained_as_before() -> None:
    for arguments in (["compare", "--nonsense"], ["no-such-command"], ["fit", "x", "--steps", "many", "--out", "x"]):
        code, _, error = run(*arguments)
        assert code == 2
        assert "Usage: " in error
        assert "Traceback" not in error


def test_reproduce_says_what_is_missing() -> None:
    app = build_app([])
    for arguments in (["reproduce"], ["reproduce", "figure-1", "--scale", "quick"]):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: deepbf reproduce is part of the package deepbf-studies, which is not")
        assert "pip install ./studies" in result.stderr
    result = CliRunner().invoke(app, ["--help"])
    assert "needs the package" in " ".join(result.stdout.split())


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from deepbf.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print([name for name in ('jax', 'pandas', 'matplotlib', 'xarray', 'scipy') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_check_of_deepbf_is_on_purpose_wherever_it_is_called_from() -> None:
    with pytest.raises(ValueError, match="at least 1") as raised:
        check_count("steps", 0)
    assert explain(raised.value).status == 2
