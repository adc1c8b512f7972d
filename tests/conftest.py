"""Trained estimators that many tests ask, each trained once per session and by steps, so always the same."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

import deepbf
from deepbf_studies import problems
from tests import simulators

FitOnce = Callable[..., deepbf.BayesFactor]


@pytest.fixture(scope="session")
def fit_once(tmp_path_factory: pytest.TempPathFactory) -> FitOnce:
    """Fit, or load what another worker of this session has fitted: files answer bit for bit the same."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def fit(name: str, models: Sequence[deepbf.Model], **options: Any) -> deepbf.BayesFactor:
        path = folder / f"{name}.deepbf"
        if path.exists():
            return replace(deepbf.load(path), models=tuple(models))
        fitted = deepbf.fit(models, progress=False, **options)
        fitted.save(path)
        return fitted

    return fit


@pytest.fixture(scope="session")
def normal_mean(fit_once: FitOnce) -> deepbf.BayesFactor:
    """Exchangeable scalars, trained well: the mean of a normal, unknown against 0."""
    return fit_once("normal-mean", simulators.NORMAL_MEAN, structure="exchangeable", steps=1500, seed=1)


@pytest.fixture(scope="session")
def any_number(fit_once: FitOnce) -> deepbf.BayesFactor:
    """The mean of a normal, unknown against 0, for every number of observations from 1 to 24."""
    return fit_once("any-number", simulators.ANY_NUMBER, structure="exchangeable", num_obs=(1, 24), steps=1000, seed=1)


@pytest.fixture(scope="session")
def walk_or_noise(fit_once: FitOnce) -> deepbf.BayesFactor:
    """Vectors: a random walk against white noise."""
    return fit_once("walk-or-noise", simulators.WALK_OR_NOISE, structure="vector", steps=600, seed=2)


@pytest.fixture(scope="session")
def three_means(fit_once: FitOnce) -> deepbf.BayesFactor:
    """Three models, with prior probabilities of their own."""
    options: dict[str, Any] = {"structure": "exchangeable", "prior_probs": [0.5, 0.3, 0.2], "steps": 400, "seed": 3}
    return fit_once("three-means", simulators.THREE_MEANS, **options)


@pytest.fixture(scope="session")
def pairs(fit_once: FitOnce) -> deepbf.BayesFactor:
    """Exchangeable vectors: correlated against independent pairs."""
    return fit_once("pairs", simulators.PAIRS, structure="exchangeable", steps=300, seed=4)


@pytest.fixture(scope="session")
def mixed(fit_once: FitOnce) -> deepbf.BayesFactor:
    """Mixed data: a set of 2 to 20 trials, a vector and a covariate."""
    study = problems.load("covariate", num_obs=20)
    return fit_once("mixed", study.models, structure=study.structure, num_obs=(2, 20), steps=1200, ensemble=2, seed=5)
