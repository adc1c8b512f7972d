"""The bootstrap gives the standard errors that theory knows."""

import numpy as np
import pytest

from deepbf.evaluation.bootstrap import BATCH_ENTRIES, by_model, draw_weights, mean_of, with_errors

PRIOR = np.array([0.3, 0.7])


def test_the_error_of_a_mean_is_its_standard_error() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(2, 3, 500), rng.exponential(1, 800)
    statistics = {"mean": by_model(mean_of(first), mean_of(second), PRIOR)}
    estimate, error = with_errors(statistics, (500, 800), num_replicates=4000, seed=2)["mean"]
    variances = np.array([first.var() / 500, second.var() / 800])
    np.testing.assert_allclose(estimate, [first.mean(), second.mean(), 0.3 * first.mean() + 0.7 * second.mean()])
    # The bootstrap's own relative error is 1 / sqrt(2 x 4000) = 1.1%.
    expected = np.sqrt([*variances, (PRIOR**2 * variances).sum()])
    np.testing.assert_allclose(error, expected, rtol=0.045)


def test_weights_count_every_data_set_once_on_average_and_keep_the_total() -> None:
    batches = list(draw_weights((300, 7), 5000, seed=1))
    first, second = (np.concatenate([batch[k] for batch in batches]) for k in range(2))
    assert len(batches) == -(-5000 // (BATCH_ENTRIES // 300))
    assert first.shape == (5000, 300)
    assert second.shape == (5000, 7)
    assert set(first.sum(axis=1)) == {300.0}
    np.testing.assert_allclose(first.mean(axis=0), 1, atol=5 / np.sqrt(5000))


def test_the_same_seed_draws_the_same_replicates() -> None:
    values = np.random.default_rng(0).normal(size=50)
    statistics = {"mean": by_model(mean_of(values), mean_of(values), PRIOR)}
    a, b, c = (with_errors(statistics, (50, 50), num_replicates=20, seed=seed)["mean"][1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert np.all(a != c)


def test_an_infinite_mean_is_infinite_without_error_and_leaves_the_other_model_alone() -> None:
    with_infinity, plain = np.array([1.0, np.inf, 3.0]), np.array([1.0, 2.0, 3.0])
    statistics = {"mean": by_model(mean_of(with_infinity), mean_of(plain), PRIOR)}
    estimate, error = with_errors(statistics, (3, 3), num_replicates=50, seed=1)["mean"]
    assert estimate.tolist() == [np.inf, 2.0, np.inf]
    assert np.isnan(error).tolist() == [True, False, True]


def test_an_infinite_value_that_is_not_drawn_does_not_count() -> None:
    statistic = mean_of(np.array([1.0, np.inf, 3.0]))
    assert statistic(np.array([[2.0, 0.0, 1.0], [1.0, 1.0, 1.0]])) == pytest.approx([5 / 3, np.inf])
