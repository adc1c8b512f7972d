"""Posterior samplers for tests: exact ones, and models without parameters, which predict the same whatever was seen."""

from typing import Any

import numpy as np

from deepbf.criticism import ExactPosterior
from deepbf.models import Model
from deepbf_studies.problems import load


def exact(study: str, k: int, num_obs: int = 128) -> ExactPosterior:
    found = load(study, num_obs=num_obs).exact_posteriors
    assert found is not None
    return found[k]


def data_of(study: str, k: int, seed: int, num_obs: int = 128) -> np.ndarray:
    return load(study, num_obs=num_obs).models[k].simulate(1, seed).data[0]


def coins(num_obs: int, prob: float = 0.5) -> ExactPosterior:
    """Tosses of a coin of known probability."""
    model = Model("coins", simulator=lambda rng, size, n=num_obs: rng.binomial(1, prob, (size, n)))
    return ExactPosterior(model, None)


class Fixed:
    """A model without parameters, of data sets of any shape."""

    def __init__(self, name: str, draw: Any) -> None:
        self.model = Model(name, simulator=draw)

    def predictive(self, observed: Any, num_draws: int, *, seed: int = 0) -> Any:
        return self.model.simulate(num_draws, seed).data

    def leave_one_out(self, observed: Any, num_draws: int, *, seed: int = 0) -> Any:
        return np.swapaxes(self.model.simulate(num_draws, seed).data, 0, 1)
