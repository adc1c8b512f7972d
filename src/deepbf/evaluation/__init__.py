"""How good a Bayes factor estimator is, where the truth is known and where it is not; on plain arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepbf._lazy import lazy_names

if TYPE_CHECKING:
    from deepbf.evaluation.accuracy import Difference, paired_differences
    from deepbf.evaluation.design import Design, design_from
    from deepbf.evaluation.evaluation_result import Evaluation
    from deepbf.evaluation.measuring import measure
    from deepbf.evaluation.tail_areas import Surprise, surprise

__all__ = ["Design", "Difference", "Evaluation", "Surprise", "design_from", "measure", "paired_differences", "surprise"]

# Looked up when first used: an answer needs its surprise, and should not wait for xarray and scikit-learn.
_HOMES = {
    "Design": "design",
    "Difference": "accuracy",
    "Evaluation": "evaluation_result",
    "Surprise": "tail_areas",
    "design_from": "design",
    "measure": "measuring",
    "paired_differences": "accuracy",
    "surprise": "tail_areas",
}


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
