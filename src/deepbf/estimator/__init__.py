"""The trained map from data to log Bayes factors: its fit, its answers, its file; and zooming in on one data set."""

from deepbf.estimator.bayes_factor import BayesFactor
from deepbf.estimator.fitting import PartialFitError, StoppedEarlyWarning, fit
from deepbf.estimator.storage import load
from deepbf.estimator.zooming import PartialCompareError, ZoomedAnswer, compare

__all__ = [
    "BayesFactor",
    "PartialCompareError",
    "PartialFitError",
    "StoppedEarlyWarning",
    "ZoomedAnswer",
    "compare",
    "fit",
    "load",
]
