"""Logistic regression and forests: truth on an easy problem, identities, and what is said where there is no answer."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from deepbf.baselines.abc import abc_forest, abc_logistic, forest
from deepbf.baselines.abc.acceptance import half_sampling_error
from deepbf.baselines.abc.logistic import _Local
from deepbf.baselines.abc.nearest import Nearest, Table
from deepbf_studies.problems import normal_mean_log_bf
from tests.baselines.abc import problems

FOREST: dict[str, Any] = {"num_simulations": 3_000, "num_trees": 50, "num_splits": 2}


def mean(data: np.ndarray) -> np.ndarray:
    return data.mean(axis=1)


def observed_means(*means: float) -> np.ndarray:
    """Data sets with these means."""
    return np.asarray(means)[:, None] + np.array([-1.0, -0.5, 0.5, 1.0])


def test_logistic_finds_the_exact_bayes_factor() -> None:
    observed = observed_means(0.0, 0.4, -0.8, 1.1, 1.4)
    result = abc_logistic(problems.NORMALS[:2], observed, num_simulations=60_000, summary=mean, seed=1)
    exact = normal_mean_log_bf(observed, prior_scale=2.0)
    assert (np.abs(result.log_bf - exact) < 4 * result.log_bf_error + 0.05).all()
    assert result.log_bf_error.max() < 0.3
    assert problems.diagnostic(result, "converged").all()
    assert not result.warnings


def test_logistic_three_models_and_prior_odds() -> None:
    observed = observed_means(0.0, 0.9)
    equal, unequal = (
        abc_logistic(
            problems.NORMALS, observed, num_simulations=60_000, num_kept=2_000, summary=mean, prior_probs=probs, seed=2
        )
        for probs in (None, [0.5, 0.2, 0.3])
    )
    exact = normal_mean_log_bf(observed, prior_scale=2.0)
    exact_middle = normal_mean_log_bf(observed, prior_scale=1.0)
    for result in (equal, unequal):
        assert (np.abs(result.log_bf - exact) < 4 * result.log_bf_error + 0.05).all()
        middle = result.log_evidence[:, 2] - result.log_evidence[:, 1]
        np.testing.assert_allclose(middle, exact_middle, atol=0.4)
        np.testing.assert_allclose(result.posterior_probs().sum(axis=1), 1)


def test_logistic_error_is_the_spread_over_seeds() -> None:
    observed = observed_means(0.7)
    settings: dict[str, Any] = {"num_simulations": 5_000, "num_kept": 200, "num_splits": 4, "summary": mean}
    results = [abc_logistic(problems.NORMALS[:2], observed, seed=seed, **settings) for seed in range(20)]
    spread = np.std([result.log_bf[0] for result in results], ddof=1)
    reported = np.mean([result.log_bf_error[0] for result in results])
    assert 0.6 < spread / reported < 1.6


def test_logistic_with_one_model_kept_gives_a_bound() -> None:
    result = abc_logistic(problems.NORMALS[:2], observed_means(8.0), num_simulations=20_000, num_kept=50, summary=mean)
    assert problems.diagnostic(result, "accepted").tolist() == [[50, 0]]
    # The farthest of the kept has weight 0, which leaves 49.
    assert result.log_bf[0] == pytest.approx(np.log(2 * 49))
    assert result.log_bf_error[0] > 1
    assert problems.diagnostic(result, "bound").tolist() == [True]
    assert "bound" in result.warnings[0]


def test_logistic_with_equal_distances_and_constant_features() -> None:
    """Every kept draw has the observed total: plain counts, with half of what plain counts would not divide by."""
    models = problems.COUNTS[:2]
    result = abc_logistic(
        models, np.array([0, 1, 1, 1]), num_simulations=20_000, num_kept=200, summary=lambda d: d.sum(axis=1)
    )
    accepted = problems.diagnostic(result, "accepted")[0]
    assert problems.diagnostic(result, "largest_distance")[0] == 0
    assert result.log_bf[0] == pytest.approx(np.log(accepted[0] / accepted[1]), abs=1e-3)


def test_logistic_is_antisymmetric() -> None:
    models, observed = problems.NORMALS[:2], observed_means(0.3, 1.2)
    reference = problems.draw_reference(models, [3000, 2000], seed=1)
    settings: dict[str, Any] = {"num_kept": 300, "summary": mean}
    forward = abc_logistic(models, observed, reference=reference, **settings)
    backward = abc_logistic(models[::-1], observed, reference=reference[::-1], **settings)
    np.testing.assert_allclose(forward.log_bf, -backward.log_bf, atol=1e-3)


def test_epanechnikov_weights() -> None:
    def weights_at(squared: list[float]) -> np.ndarray:
        # The draws 0, 2 and 5 of the reference have summaries, and all are kept; a fourth place stays empty.
        table = Table(np.arange(3.0)[:, None], np.array([0, 1, 0], np.int16), np.array([0, 2, 5]), num_undefined=3)
        nearest = Nearest(1, 4)
        nearest.squared[0, :3], nearest.draws[0, :3] = squared, [5, 2, 0]
        local = _Local.of(table, nearest, 0)
        np.testing.assert_array_equal(local.points[:, 0], [2.0, 1.0, 0.0])
        return local.weights

    np.testing.assert_allclose(weights_at([0.0, 1.0, 4.0]), np.array([1.0, 0.75, 0.0]) / (1.75 / 3))
    np.testing.assert_array_equal(weights_at([0.0, 0.0, 0.0]), np.ones(3))
    np.testing.assert_array_equal(weights_at([2.0, 2.0, 2.0]), np.ones(3))


def test_half_sampling_finds_the_error_of_a_mean() -> None:
    values = np.random.default_rng(0).standard_normal(1000)
    error = half_sampling_error(lambda rows: values[rows].mean(), 1000, 400, np.random.default_rng(1))
    assert error == pytest.approx(values.std() / np.sqrt(1000), rel=0.1)


def test_forest_finds_the_exact_bayes_factor() -> None:
    observed = observed_means(0.0, 0.3, -0.5, 1.8)
    result = abc_forest(problems.NORMALS[:2], observed, summary=mean, seed=1, **FOREST)
    exact = normal_mean_log_bf(observed, prior_scale=2.0)
    assert (np.abs(result.log_bf - exact) < 4 * result.log_bf_error).all()
    assert np.median(result.log_bf_error) < 0.6
    assert problems.diagnostic(result, "chosen").tolist() == [1, 1, 1, 0]
    np.testing.assert_allclose(problems.diagnostic(result, "vote_shares").sum(axis=1), 1)
    chosen = result.posterior_probs()[np.arange(4), problems.diagnostic(result, "chosen")]
    np.testing.assert_allclose(chosen, problems.diagnostic(result, "chosen_prob"))


def test_forest_divides_out_prior_odds() -> None:
    observed = observed_means(0.2, 2.0)
    results = [
        abc_forest(problems.NORMALS[:2], observed, summary=mean, prior_probs=probs, **FOREST)
        for probs in ([0.5, 0.5], [0.7, 0.3])
    ]
    error = np.hypot(results[0].log_bf_error, results[1].log_bf_error)
    assert (np.abs(results[0].log_bf - results[1].log_bf) < 4 * error).all()


def test_forest_of_three_models_answers_for_the_chosen_one() -> None:
    observed = observed_means(0.0, 4.0)
    result = abc_forest(problems.NORMALS, observed, summary=mean, **FOREST)
    again = abc_forest(problems.NORMALS, observed, summary=mean, **FOREST)
    np.testing.assert_array_equal(result.log_evidence, again.log_evidence)
    np.testing.assert_array_equal(np.isnan(result.log_evidence), [[True, False, True], [False, True, True]])
    exact = np.stack([normal_mean_log_bf(observed, prior_scale=2.0), np.zeros(2)], axis=1)
    exact = np.column_stack([exact, normal_mean_log_bf(observed, prior_scale=1.0)])
    probs = np.exp(exact) / np.exp(exact).sum(axis=1, keepdims=True)
    chosen = probs[np.arange(2), problems.diagnostic(result, "chosen")]
    error = problems.diagnostic(result, "chosen_prob_error")
    assert (np.abs(problems.diagnostic(result, "chosen_prob") - chosen) < 4 * error + 0.02).all()
    assert "chosen model alone" in result.warnings[0]


def test_forest_where_one_model_is_impossible_stays_finite() -> None:
    result = abc_forest(problems.NORMALS[:2], observed_means(9.0, 1e60), summary=mean, **FOREST)
    assert np.isfinite(result.log_bf).all()
    assert (result.log_bf > 4).all()
    assert problems.diagnostic(result, "bound").any()
    assert (result.log_bf_error[problems.diagnostic(result, "bound")] >= 1).all()


def test_forest_judges_its_errors_by_the_rule_that_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The majority of trees chooses at the observed data, and the majority of those that left a draw out judges it."""
    classifiers: list[Any] = []
    learned: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    class Classifier(RandomForestClassifier):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            classifiers.append(super().fit(X, y, sample_weight))
            learned.append((np.asarray(X), np.asarray(y), np.empty(0)))
            return self

    class Regressor(RandomForestRegressor):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            learned[-1] = (*learned[-1][:2], np.asarray(y))
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(forest, "RandomForestClassifier", Classifier)
    monkeypatch.setattr(forest, "RandomForestRegressor", Regressor)
    settings: dict[str, Any] = {**FOREST, "num_trees": 9}
    result = abc_forest(problems.NORMALS[:2], observed_means(0.0, 1.0), summary=mean, **settings)
    points, labels, wrong = learned[0]
    votes = np.zeros((len(labels), 2))
    for tree, in_bag in zip(classifiers[0].estimators_, classifiers[0].estimators_samples_, strict=True):
        left_out = np.setdiff1d(np.arange(len(labels)), in_bag)
        votes[left_out, tree.predict(points[left_out]).astype(int)] += 1
    judged = votes.sum(axis=1) > 0
    expected = votes[judged].argmax(axis=1) != labels[judged]
    np.testing.assert_array_equal(wrong, expected)
    assert problems.diagnostic(result, "out_of_bag_error")[0] == expected.mean()
