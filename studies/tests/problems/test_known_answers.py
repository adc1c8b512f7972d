"""What every problem with a known answer must satisfy: shapes, pickling, and the identities of posterior probabilities.

The formulas themselves are tested against brute force in the file of each problem.
"""

import pickle
import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.special import log_softmax

from deepbf_studies import problems


class Expected(NamedTuple):
    shape: tuple[int, ...]
    structure: str
    other_num_obs: int


PROBLEMS = {
    "t-test": Expected((10,), "exchangeable", 3),
    "pairs": Expected((40, 2), "exchangeable", 7),
    "correlated-covariates": Expected((40,), "vector", 5),
    "regression-rows": Expected((40, 3), "exchangeable", 5),
    "probit-groups": Expected((60,), "vector", 10),
    "heavy-counts": Expected((32,), "exchangeable", 4),
    "gamma-waits": Expected((64,), "exchangeable", 5),
    "logistic-fixed": Expected((30,), "vector", 7),
    "three-counts": Expected((40,), "exchangeable", 3),
    "normal-mean": Expected((50,), "exchangeable", 4),
    "grouped-counts": Expected((60,), "vector", 10),
    "image-blob": Expected((16, 16), "image", 5),
}
NUM_DRAWS = 1_200
# Nats; equal priors and no knowledge would be log(2) = 0.69, and log(3) = 1.1 for three models.
LEAST_CROSS_ENTROPY, LARGEST_CROSS_ENTROPY = 0.1, 0.55

each = pytest.mark.parametrize("name", PROBLEMS)


def log_evidence(study: problems.Study, data: Any) -> NDArray[np.float64]:
    """Return log evidences, up to a constant of each data set, shape (data sets, models)."""
    if study.exact_log_evidence is not None:
        return study.exact_log_evidence(data)
    log_bf = study.exact_log_bf(data)
    return np.stack([log_bf, np.zeros_like(log_bf)], axis=1)


@cache
def log_posterior_probs(name: str) -> NDArray[np.float64]:
    """Return log posterior probabilities under equal priors, shape (models simulated, data sets, models)."""
    study = problems.load(name)
    simulated = [model.simulate(NUM_DRAWS, seed=20 + k).data for k, model in enumerate(study.models)]
    return np.stack([log_softmax(log_evidence(study, data), axis=1) for data in simulated])


@each
def test_a_problem_is_complete_and_pickles(name: str) -> None:
    study, expected = problems.load(name), PROBLEMS[name]
    assert (study.name, study.structure) == (name, expected.structure)
    assert "\n" not in study.title
    copy = pickle.loads(pickle.dumps(study))
    for model, copied in zip(study.models, copy.models, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = model.simulate(10, seed=4).data
            log_bf = study.exact_log_bf(data)
        assert data.shape == (10, *expected.shape)
        assert (log_bf.shape, log_bf.dtype) == ((10,), np.float64)
        assert np.isfinite(log_bf).all()
        assert_array_equal(copied.simulate(10, seed=4).data, data)
        assert_array_equal(copy.exact_log_bf(data), log_bf)
        # One at a time, and none at all. Sums of matrix products may differ in their last digits.
        assert_allclose([study.exact_log_bf(data[i : i + 1])[0] for i in range(10)], log_bf, rtol=1e-9, atol=1e-9)
        assert study.exact_log_bf(data[:0]).shape == (0,)


@each
def test_any_number_of_observations_can_be_asked_for(name: str) -> None:
    expected = PROBLEMS[name]
    # Images are square.
    fixed = expected.shape[1:] if expected.structure != "image" else (expected.other_num_obs,)
    shape = (expected.other_num_obs, *fixed)
    study = problems.load(name, num_obs=expected.other_num_obs)
    for model, usual in zip(study.models, problems.load(name).models, strict=True):
        data = model.simulate(5, seed=1).data
        assert data.shape == (5, *shape)
        assert np.isfinite(study.exact_log_bf(data)).all()
        params = None if usual.prior is None else usual.prior(np.random.default_rng(1), 5)
        asked = usual.simulator(np.random.default_rng(1), 5 if params is None else params, expected.other_num_obs)
        assert asked.shape == (5, *shape)


@each
def test_a_design_has_an_entry_for_each_observation_and_a_set_has_none(name: str) -> None:
    study, expected = problems.load(name), PROBLEMS[name]
    assert (study.covariates is not None) == (expected.structure == "vector")
    for column in (study.covariates or {}).values():
        assert column.shape == expected.shape
        assert np.isfinite(column).all()


@pytest.mark.parametrize("name", [name for name, expected in PROBLEMS.items() if expected.structure == "exchangeable"])
def test_the_order_of_a_set_changes_nothing(name: str) -> None:
    study = problems.load(name)
    for model in study.models:
        data = model.simulate(20, seed=2).data
        turned = data[:, np.random.default_rng(1).permutation(data.shape[1])]
        assert_allclose(study.exact_log_bf(turned), study.exact_log_bf(data), rtol=1e-9, atol=1e-9)


@each
def test_posterior_probabilities_are_right_on_average(name: str) -> None:
    log_probs = log_posterior_probs(name)
    probs = np.exp(log_probs)
    num_models = len(log_probs)
    # The mean posterior probability equals the prior.
    error = np.sqrt((probs.var(axis=1) / NUM_DRAWS).sum(axis=0)) / num_models
    assert error.max() < 0.01
    assert (np.abs(probs.mean(axis=(0, 1)) - 1 / num_models) < 5 * error).all()
    # Given model j, model k is on average as probable as j is given k: swapping models swaps their probabilities.
    for j in range(num_models):
        for k in range(j):
            gap = probs[j, :, k].mean() - probs[k, :, j].mean()
            gap_error = np.sqrt((probs[j, :, k].var() + probs[k, :, j].var()) / NUM_DRAWS)
            assert abs(gap) < 5 * gap_error
    # The Bayes-optimal loss.
    cross_entropy = -np.mean([log_probs[k, :, k].mean() for k in range(num_models)])
    assert LEAST_CROSS_ENTROPY < cross_entropy < LARGEST_CROSS_ENTROPY


@each
def test_posterior_probabilities_are_calibrated(name: str) -> None:
    """Among data sets to which the first model gives about the same probability, it made that share of them."""
    probs = np.exp(log_posterior_probs(name))[:, :, 0]
    made = np.zeros(probs.shape)
    made[0] = 1.0
    edges = np.quantile(probs, np.linspace(0, 1, 9)[1:-1])
    bins = np.digitize(probs, edges)
    for b in np.unique(bins):
        inside = bins == b
        error = np.sqrt((probs[inside] * (1 - probs[inside])).sum())
        assert abs((made[inside] - probs[inside]).sum()) < 5 * error + 1


def test_problems_kept_out_of_development_are_in_the_catalogue() -> None:
    assert set(problems.KEPT_OUT) <= set(problems.names())
    assert {"gamma-waits", "regression-rows", "probit-groups", "image-blob"} <= set(problems.KEPT_OUT)
