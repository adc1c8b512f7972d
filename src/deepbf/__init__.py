"""deepbf: Bayes factors for models that can only be simulated."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from deepbf._version import __version__

if TYPE_CHECKING:
    from deepbf import baselines, evaluation, plots, studies
    from deepbf.answer import Answer
    from deepbf.estimator import BayesFactor, load
    from deepbf.evaluating import evaluate
    from deepbf.evaluation import Evaluation
    from deepbf.fitting import fit
    from deepbf.models import Model, ModelSet, SimulationError, Simulations


__all__ = [
    "Answer",
    "BayesFactor",
    "Evaluation",
    "Model",
    "ModelSet",
    "SimulationError",
    "Simulations",
    "__version__",
    "baselines",
    "evaluate",
    "evaluation",
    "fit",
    "load",
    "plots",
    "studies",
]

# Names are looked up when first used: a worker process that only simulates never loads the neural side.
_HOMES = {
    "Answer": "deepbf.answer",
    "baselines": "deepbf.baselines",
    "BayesFactor": "deepbf.estimator",
    "Evaluation": "deepbf.evaluation",
    "Model": "deepbf.models",
    "ModelSet": "deepbf.models",
    "SimulationError": "deepbf.models",
    "Simulations": "deepbf.models",
    "evaluate": "deepbf.evaluating",
    "evaluation": "deepbf.evaluation",
    "fit": "deepbf.fitting",
    "load": "deepbf.estimator",
    "plots": "deepbf.plots",
    "studies": "deepbf.studies",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'deepbf' has no attribute {name!r}; it has {', '.join(sorted(_HOMES))}.")
    home = importlib.import_module(_HOMES[name])
    return home if home.__name__ == f"deepbf.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
