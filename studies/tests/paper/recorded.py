"""Steps that write down how often they were computed."""

from pathlib import Path

import numpy as np
import xarray as xr

from deepbf_studies.paper import Step
from deepbf_studies.paper.step import step_function


@step_function(f"{__name__}.number")
def number(*, value: float, log: str) -> xr.Dataset:
    """Return a number, and note in a file that it was computed."""
    note(log, f"number {value:g}")
    return xr.Dataset({"value": ((), value)})


@step_function(f"{__name__}.total")
def total(*numbers: xr.Dataset, log: str) -> xr.Dataset:
    """Return the sum of the inputs."""
    note(log, "total")
    return xr.Dataset({"value": ((), np.sum([float(one["value"]) for one in numbers]))})


@step_function(f"{__name__}.interrupted")
def interrupted(*, log: str) -> xr.Dataset:
    """Stop as Ctrl-C does, the first time."""
    note(log, "interrupted")
    if Path(log).read_text().count("interrupted") == 1:
        raise KeyboardInterrupt
    return xr.Dataset({"value": ((), 0.0)})


def note(log: str, what: str) -> None:
    with Path(log).open("a") as file:
        file.write(f"{what}\n")


def number_step(value: float, log: Path, revision: int = 1) -> Step:
    return Step(number, {"value": value, "log": str(log)}, revision=revision)


def total_step(log: Path, *values: float) -> Step:
    return Step(total, {"log": str(log)}, tuple(number_step(value, log) for value in values))
