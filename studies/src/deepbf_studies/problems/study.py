"""A study: competing models, the shape of their data, and the exact answer where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepbf.criticism.predictive_source import ExactPosterior
from deepbf.models import Model

# Any stands for None: almost every study has an exact answer, and whoever loads one of those by name may call it.
ExactLogBf = Callable[[Any], NDArray[np.float64]] | Any


@dataclass(frozen=True)
class Study:
    """A ready-made comparison of models.

    Parameters
    ----------
    name
        What `problems.load` calls it.
    title
        One line in words.
    num_obs
        Observations a data set.
    models
        The competing models, in the order that gives every Bayes factor its direction.
    structure
        What `deepbf.fit` should assume about the data.
    exact_log_bf
        Maps data sets along a leading axis to exact natural log Bayes factors, first model over second; None where
        nobody knows them.
    exact_log_evidence
        Of more than two models: to exact natural log evidences, shape (data sets, models).
    exact_posteriors
        Exact posterior samplers, one a model, where they are known.
    observed
        The real data set, where there is one, laid out as the models simulate it.
    """

    name: str
    title: str
    num_obs: int
    models: tuple[Model, ...]
    structure: str | dict[str, str]
    exact_log_bf: ExactLogBf = None
    exact_log_evidence: Callable[[Any], NDArray[np.float64]] | None = None
    exact_posteriors: tuple[ExactPosterior, ...] | None = None
    observed: NDArray[Any] | None = None
