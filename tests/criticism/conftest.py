"""Posterior samplers that many tests ask, each trained once a session and by steps, so always the same."""

import numpy as np
import pytest

import deepbf
from tests.criticism.models import BOUNDED, MIXED, NORMAL, QUICK, RANGE


@pytest.fixture(scope="session")
def quick_sampler() -> deepbf.PosteriorSampler:
    """The mean of eight normal observations, hardly trained."""
    return deepbf.fit_posterior(NORMAL, **QUICK)


@pytest.fixture(scope="session")
def normal_sampler() -> deepbf.PosteriorSampler:
    """The mean of normal data, for every number of observations in the range."""
    return deepbf.fit_posterior(NORMAL, structure="exchangeable", num_obs=RANGE, steps=1500, seed=1, progress=False)


@pytest.fixture(scope="session")
def normal_gan() -> deepbf.PosteriorSampler:
    """The same by a GAN."""
    return deepbf.fit_posterior(
        NORMAL, structure="exchangeable", num_obs=RANGE, method="gan", steps=1500, seed=1, progress=False
    )


@pytest.fixture(scope="session")
def bounded_sampler() -> deepbf.PosteriorSampler:
    """Parameters in a dict, of several columns, with bounds; vectors."""
    return deepbf.fit_posterior(BOUNDED, steps=500, seed=1, progress=False)


@pytest.fixture(scope="session")
def mixed_sampler() -> deepbf.PosteriorSampler:
    """Data in a dict, of which one array grows."""
    structure = {"trials": "exchangeable", "about": "vector"}
    return deepbf.fit_posterior(MIXED, structure=structure, num_obs=(3, 6), steps=100, seed=1, progress=False)


@pytest.fixture(scope="session")
def observed() -> np.ndarray:
    """Nine observations of the normal model."""
    return np.array([0.3, 1.2, -0.4, 2.2, 0.9, 1.6, 0.1, 1.1, 0.7])
