"""The trained map from data to log Bayes factors: how it is fitted, what it answers, and its file."""

from deepbf.estimator.bayes_factor import BayesFactor
from deepbf.estimator.fitting import PartialFitError, StoppedEarlyWarning, fit
from deepbf.estimator.storage import load

__all__ = ["BayesFactor", "PartialFitError", "StoppedEarlyWarning", "fit", "load"]
