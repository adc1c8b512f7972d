"""How good a Bayes factor estimator is, where the truth is known and where it is not; on plain arrays."""

from deepbf.evaluation.measure import measure
from deepbf.evaluation.result import Evaluation
from deepbf.evaluation.surprise import Surprise, surprise

__all__ = ["Evaluation", "Surprise", "measure", "surprise"]
