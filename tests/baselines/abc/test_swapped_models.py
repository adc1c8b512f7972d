"""Swapping two models flips the sign to the last bit, for every method of ABC: draws belong to names, not to places."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import deepbf
from deepbf.baselines.abc import abc_epsilon, abc_forest, abc_logistic, abc_ranked
from tests.baselines.abc import problems

# An odd number, so that one of two models has a draw more.
NUM_SIMULATIONS = 3003
METHODS: list[Callable[..., Any]] = [
    partial(abc_epsilon, epsilon=1.5),
    partial(abc_ranked, num_strata=21, kept_per_stratum=5, num_kept=60),
    partial(abc_logistic, num_kept=300, num_splits=2),
    partial(abc_forest, num_trees=10, num_splits=1),
]


@pytest.mark.parametrize("method", METHODS, ids=["epsilon", "ranked", "logistic", "forest"])
@pytest.mark.parametrize("models", [problems.NORMALS, problems.COUNTS], ids=["continuous", "ties"])
@pytest.mark.parametrize("num_models", [2, 3])
def test_the_sign_flips_exactly(method: Callable[..., Any], models: list[deepbf.Model], num_models: int) -> None:
    models = models[:num_models]
    swapped = [models[1], models[0], *models[2:]]
    observed = np.concatenate([model.simulate(4, 50).data for model in models])
    forward, backward = (
        method(order, observed, num_simulations=NUM_SIMULATIONS, seed=3) for order in (models, swapped)
    )
    np.testing.assert_array_equal(forward.log_evidence[:, :2], backward.log_evidence[:, 1::-1])
    np.testing.assert_array_equal(forward.log_evidence[:, 2:], backward.log_evidence[:, 2:])
    np.testing.assert_array_equal(forward.log_bf, -backward.log_bf)
    np.testing.assert_array_equal(forward.log_bf_error, backward.log_bf_error)
    if num_models == 2:
        assert np.isfinite(forward.log_bf).all()
        assert np.abs(forward.log_bf).max() > 0.3
