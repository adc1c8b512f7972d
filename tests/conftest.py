"""Trained estimators that many tests ask, each trained once per session and by steps, so always the same."""

import pytest

import deepbf
from deepbf_studies import problems
from tests import simulators


@pytest.fixture(scope="session")
def normal_mean() -> deepbf.BayesFactor:
    """Exchangeable scalars, trained well: the mean of a normal, unknown against 0."""
    return deepbf.fit(simulators.NORMAL_MEAN, structure="exchangeable", steps=2500, seed=1, progress=False)


@pytest.fixture(scope="session")
def any_number() -> deepbf.BayesFactor:
    """The mean of a normal, unknown against 0, for every number of observations from 1 to 24."""
    return deepbf.fit(
        simulators.ANY_NUMBER, structure="exchangeable", num_obs=(1, 24), steps=1500, seed=1, progress=False
    )


@pytest.fixture(scope="session")
def walk_or_noise() -> deepbf.BayesFactor:
    """Vectors: a random walk against white noise."""
    return deepbf.fit(simulators.WALK_OR_NOISE, structure="vector", steps=600, seed=2, progress=False)


@pytest.fixture(scope="session")
def three_means() -> deepbf.BayesFactor:
    """Three models, with prior probabilities of their own."""
    return deepbf.fit(
        simulators.THREE_MEANS,
        structure="exchangeable",
        prior_probs=[0.5, 0.3, 0.2],
        steps=400,
        seed=3,
        progress=False,
    )


@pytest.fixture(scope="session")
def pairs() -> deepbf.BayesFactor:
    """Exchangeable vectors: correlated against independent pairs."""
    return deepbf.fit(simulators.PAIRS, structure="exchangeable", steps=300, seed=4, progress=False)


@pytest.fixture(scope="session")
def mixed() -> deepbf.BayesFactor:
    """Mixed data: a set of 2 to 20 trials, a vector and a covariate."""
    study = problems.load("covariate", num_obs=20)
    return deepbf.fit(
        study.models, structure=study.structure, num_obs=(2, 20), steps=2500, ensemble=2, seed=5, progress=False
    )
