"""Posterior predictive checks with statistics of the user's own (Guttman, 1967; Rubin, 1984)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from deepbf import _checks
from deepbf.criticism.check_result import PredictiveCheck, StatisticCheck
from deepbf.criticism.predictive_source import PredictiveSource, check_observed, check_source, draw_predictive
from deepbf.criticism.statistics import check_statistics, evaluate_statistic

Statistics = str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | Mapping[str, str | Callable[..., Any]]


def predictive_check(
    sampler: PredictiveSource,
    observed: ArrayLike,
    statistics: Statistics = ("mean", "sd", "min", "max"),
    *,
    num_draws: int = 2000,
    seed: int = 0,
) -> PredictiveCheck:
    """Return where statistics of the observed data stand among those of data sets from the posterior predictive.

    The posterior has seen the observed data, so tail areas are closer to 1/2 than they would be without that: what
    they find is real, what they do not find may still be there, above all in statistics that a parameter fits.

    Parameters
    ----------
    sampler
        A posterior sampler of the model in question.
    observed
        One data set.
    statistics
        Functions by name, a list of functions, or names of built-in ones: "mean", "sd", "min", "max", "zeros" (the
        share of zeros), "autocorrelation" (of each value with the next). A function takes many data sets along a
        leading axis and returns one number for each: ``{"variance": lambda data: data.var(axis=1)}``.
    num_draws
        Data sets from the posterior predictive.
    seed
        The same seed gives the same result.

    Examples
    --------
    >>> from deepbf.criticism import ExactPosterior
    >>> from deepbf.example import counts_example
    >>> negbin, poisson = counts_example().models
    >>> counts = negbin.simulate(1, seed=11).data[0]
    >>> def draw_rate(rng, counts, num_draws, left_out):
    ...     return rng.gamma(4 + counts.sum(), 1 / (4 + len(counts)), (1, num_draws))
    >>> check = predictive_check(ExactPosterior(poisson, draw_rate), counts,
    ...                          {"variance": lambda data: data.var(axis=1), "mean": "mean"})
    >>> check["variance"].verdict, check["mean"].verdict
    ('too large', 'as predicted')
    """
    sampler = check_source(sampler)
    num_draws = _checks.check_count("num_draws", num_draws)
    seed = _checks.check_seed("seed", seed)
    functions = check_statistics(statistics)
    values = check_observed(sampler.model, observed, least=1, why="")
    at_observed = {name: evaluate_statistic(name, fn, values[None], "the data") for name, fn in functions.items()}
    predicted = draw_predictive(sampler, values, num_draws, seed)
    model = sampler.model.name
    checks = tuple(
        StatisticCheck(
            name=name,
            observed=float(at_observed[name][0]),
            draws=evaluate_statistic(name, fn, predicted, "predictions"),
            model=model,
        )
        for name, fn in functions.items()
    )
    return PredictiveCheck(checks, model, num_draws)
