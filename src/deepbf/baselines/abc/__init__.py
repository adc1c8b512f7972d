"""Approximate Bayesian computation: Bayes factors from simulations near the observed data, and from classifiers."""

from deepbf.baselines.abc.epsilon import abc_epsilon
from deepbf.baselines.abc.forest import abc_forest
from deepbf.baselines.abc.logistic import abc_logistic
from deepbf.baselines.abc.ranked import abc_ranked

__all__ = ["abc_epsilon", "abc_forest", "abc_logistic", "abc_ranked"]
