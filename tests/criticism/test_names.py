"""What deepbf.criticism exports is what users find there, in whatever order modules are imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import deepbf.criticism

FOLDER = Path(str(deepbf.criticism.__file__)).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
FUNCTIONS = ("criticise", "fit_posterior", "leave_one_out", "predictive_check", "z_values")


def test_no_module_bears_the_name_of_an_export() -> None:
    # Importing a module sets its name in the package, where it would hide the function.
    assert set(MODULES).isdisjoint(vars(deepbf.criticism)["__all__"])
    assert deepbf.criticise is deepbf.criticism.criticise


@pytest.mark.parametrize("first", [MODULES, MODULES[::-1]], ids=["in order", "in reverse"])
def test_functions_stay_functions_after_their_modules_were_imported(first: list[str]) -> None:
    imports = "; ".join(f"import deepbf.criticism.{name}" for name in first)
    checks = "; ".join(f"assert callable(deepbf.criticism.{name}), '{name}'" for name in FUNCTIONS)
    paths = os.pathsep.join(path for path in sys.path if path)
    subprocess.run(
        [sys.executable, "-c", f"{imports}; {checks}"],
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
