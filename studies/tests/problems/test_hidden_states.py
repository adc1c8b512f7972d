"""Counts of two hidden states: the recursion against a sum over all paths, and identities."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from deepbf_studies import problems
from deepbf_studies.problems import hidden_states, hidden_states_log_bf

COUNTS = np.array([[0, 0, 4, 6, 5], [0, 7, 0, 6, 1], [2, 2, 3, 2, 2], [0, 0, 0, 0, 0]])


def likelihoods_by_paths(row, low: float, ratio: float, stay_low: float, stay_high: float) -> tuple[float, float]:
    """Return the likelihood of the chain and of independent states, summed over every path of states."""
    start = np.linalg.matrix_power([[stay_low, 1 - stay_low], [1 - stay_high, stay_high]], 2000)[0]
    move = np.array([[stay_low, 1 - stay_low], [1 - stay_high, stay_high]])
    chain = independent = 0.0
    for path in itertools.product((0, 1), repeat=len(row)):
        emitted = stats.poisson.pmf(row, np.where(path, low * ratio, low)).prod()
        chain += emitted * start[path[0]] * np.prod([move[pair] for pair in itertools.pairwise(path)])
        independent += emitted * np.prod([start[state] for state in path])
    return chain, independent


def test_the_recursion_is_the_sum_over_all_paths() -> None:
    by_paths = np.array([[likelihoods_by_paths(row, *point) for point in hidden_states.GRID] for row in COUNTS])
    counts = COUNTS.astype(float)
    assert_allclose(hidden_states.chain_log_likelihood(counts), np.log(by_paths[:, :, 0]), rtol=1e-10)
    assert_allclose(hidden_states.independent_log_likelihood(counts), np.log(by_paths[:, :, 1]), rtol=1e-10)
    expected = np.log(by_paths[:, :, 0].mean(axis=1) / by_paths[:, :, 1].mean(axis=1))
    assert_allclose(hidden_states_log_bf(COUNTS), expected, atol=1e-10)


def test_one_count_cannot_tell_the_models_apart() -> None:
    # At any one time, both have the same distribution.
    assert_allclose(hidden_states_log_bf(np.arange(40)[:, None]), 0, atol=1e-12)


def test_time_has_no_direction() -> None:
    # Every stationary chain of two states is reversible.
    assert_allclose(hidden_states_log_bf(COUNTS[:, ::-1]), hidden_states_log_bf(COUNTS), atol=1e-10)


def test_counts_far_beyond_the_rates_have_finite_answers() -> None:
    assert np.isfinite(hidden_states_log_bf([[0, 100_000, 0, 5], [10**9, 10**9, 0, 0]])).all()


@pytest.mark.parametrize("model", [0, 1])
def test_states_last_as_long_as_the_model_says(model: int) -> None:
    size = 20_000
    chosen = problems.load("series-hidden-states", num_obs=3).models[model]
    values = {"low": 1e-9, "high": 1e4, "stay_low": 0.9, "stay_high": 0.7}
    is_high = chosen.simulator(np.random.default_rng(3), {k: np.full(size, v) for k, v in values.items()}) > 100
    # Stationary: 0.1 / (0.1 + 0.3).
    assert_allclose(is_high.mean(axis=0), 0.25, atol=5 * np.sqrt(0.25 * 0.75 / size))
    expected = 0.25 * (0.7, 0.25)[model]
    assert_allclose((is_high[:, 1] & is_high[:, 2]).mean(), expected, atol=5 * np.sqrt(expected / size))
