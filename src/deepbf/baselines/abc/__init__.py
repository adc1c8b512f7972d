"""Approximate Bayesian computation: Bayes factors from simulations near the observed data, and from classifiers."""

from deepbf.baselines.abc.acceptance import abc_epsilon, abc_ranked
from deepbf.baselines.abc.forest import abc_forest
from deepbf.baselines.abc.logistic import abc_logistic

__all__ = ["abc_epsilon", "abc_forest", "abc_logistic", "abc_ranked"]
