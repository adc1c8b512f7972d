"""The trained map from data to log Bayes factors, and its file."""

from deepbf.estimator.bayes_factor import BayesFactor
from deepbf.estimator.storage import load

__all__ = ["BayesFactor", "load"]
