"""deepbf: Bayes factors for models that can only be simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names
from deepbf._version import __version__

if TYPE_CHECKING:
    from deepbf import baselines, criticism, evaluation, plots
    from deepbf.answer import Answer
    from deepbf.criticism import PosteriorSampler, criticise, fit_posterior
    from deepbf.estimator import BayesFactor, load
    from deepbf.estimator.fitting import fit
    from deepbf.evaluating import evaluate
    from deepbf.evaluation import Evaluation
    from deepbf.models import Model, ModelSet, SimulationError, Simulations
    from deepbf.variants import TailoredAnswer, VariantBayesFactor, Variants, fit_tailored, fit_variants


__all__ = [
    "Answer",
    "BayesFactor",
    "Evaluation",
    "Model",
    "ModelSet",
    "PosteriorSampler",
    "SimulationError",
    "Simulations",
    "TailoredAnswer",
    "VariantBayesFactor",
    "Variants",
    "__version__",
    "baselines",
    "criticise",
    "criticism",
    "evaluate",
    "evaluation",
    "fit",
    "fit_posterior",
    "fit_tailored",
    "fit_variants",
    "load",
    "plots",
]

# Names are looked up when first used: a worker process that only simulates never loads the neural side.
_HOMES = {
    "Answer": "answer",
    "baselines": "baselines",
    "BayesFactor": "estimator",
    "criticise": "criticism",
    "criticism": "criticism",
    "Evaluation": "evaluation",
    "Model": "models",
    "ModelSet": "models",
    "PosteriorSampler": "criticism",
    "SimulationError": "models",
    "Simulations": "models",
    "TailoredAnswer": "variants",
    "VariantBayesFactor": "variants",
    "Variants": "variants",
    "evaluate": "evaluating",
    "evaluation": "evaluation",
    "fit": "estimator",
    "fit_posterior": "criticism",
    "fit_tailored": "variants",
    "fit_variants": "variants",
    "load": "estimator",
    "plots": "plots",
}


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
