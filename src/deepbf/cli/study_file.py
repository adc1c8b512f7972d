"""Studies on the command line: models from a Python file, or a ready-made study by its name."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

# What a study file may define besides `models`; options given on the command line win.
SETTINGS = (
    "structure",
    "num_obs",
    "prior_probs",
    "training_probs",
    "network",
    "loss",
    "seconds",
    "steps",
    "num_simulations",
    "ensemble",
    "schedule",
    "batch_size",
    "executor",
    "seed",
)


class StudyFile(NamedTuple):
    """What a study brings to the command line."""

    models: Sequence[Any]
    settings: dict[str, Any]
    exact_log_bf: Callable[..., Any] | None


def read_study(path: Path) -> StudyFile:
    """Return the models, the settings, and the exact log Bayes factor if there is one, that a study file defines."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no study file {path}. Pass a Python file that defines models = [...].")
    defined = runpy.run_path(str(path))
    if "models" not in defined:
        raise ValueError(f"{path} defines no `models`. Add: models = [deepbf.Model(...), deepbf.Model(...)].")
    settings = {name: defined[name] for name in SETTINGS if name in defined}
    return StudyFile(defined["models"], settings, defined.get("exact_log_bf"))


# Packages with ready-made studies, such as deepbf-studies, enter `names` and `load` of theirs under this group.
STUDIES = "deepbf.studies"


def ready_made() -> dict[str, Callable[..., Any]]:
    """Return, by name, how to load every study that an installed package brings: ``load(name, num_obs=...)``."""
    catalogues = [entry.load() for entry in entry_points(group=STUDIES)]
    return {name: catalogue.load for catalogue in catalogues for name in catalogue.names()}


def named_or_file(wanted: str) -> StudyFile:
    """Return the ready-made study of this name, or what the Python file of this name defines."""
    if not Path(wanted).is_file() and wanted in ready_made():
        study = ready_made()[wanted](wanted)
        return StudyFile(study.models, {"structure": study.structure}, study.exact_log_bf)
    return read_study(Path(wanted))


def find_study(wanted: str | None, estimator: Path, data_shape: Any) -> tuple[StudyFile, str]:
    """Return the study to simulate from, and where it was found: a file, a name, or the file beside the estimator."""
    if wanted is None:
        beside = estimator.with_suffix(".py")
        if not beside.is_file():
            named = ", ".join(ready_made()) or "a study of the package deepbf-studies"
            raise FileNotFoundError(
                f"--study must say which models to simulate from, there is no {beside.name} beside {estimator.name}. "
                f"Pass the Python file of the fit, or one of {named}."
            )
        return read_study(beside), str(beside)
    if not Path(wanted).is_file() and wanted in ready_made():
        load = ready_made()[wanted]
        study = load(wanted)
        is_array = isinstance(study.structure, str) and isinstance(data_shape, tuple)
        if is_array and data_shape and study.models[0].simulate(1, seed=0).data.shape[1:] != data_shape:
            study = load(wanted, num_obs=data_shape[0])
        return StudyFile(study.models, {}, study.exact_log_bf), f"the ready-made study {wanted}"
    return read_study(Path(wanted)), wanted
