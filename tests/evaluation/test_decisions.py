"""ROC curves, thresholds, decisions and Jeffreys' categories, by hand and against scikit-learn."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from deepbf._jeffreys import jeffreys_category, strength_on_jeffreys_scale
from deepbf.evaluation import measure
from deepbf.evaluation.decisions import (
    CONVENTIONAL_THRESHOLDS,
    BalancedThreshold,
    area_under_roc,
    decision_rates,
)
from deepbf.evaluation.log_bf_arrays import ByModel
from tests.evaluation.problems import SHIFT, shifted_normals


def ones(log_bf: ByModel) -> tuple[np.ndarray, np.ndarray]:
    return np.ones((1, len(log_bf[0]))), np.ones((1, len(log_bf[1])))


def area(log_bf: ByModel) -> float:
    return float(area_under_roc(log_bf)(ones(log_bf))[0, 0])


def curve(log_bf: ByModel) -> tuple[np.ndarray, np.ndarray]:
    results = measure(log_bf, num_replicates=2).results.sel(estimator="estimate")
    return results["false_positive_rate"].values, results["true_positive_rate"].values


def balance(log_bf: ByModel) -> tuple[float, float]:
    threshold, rate = BalancedThreshold(log_bf)(ones(log_bf))[0]
    return float(threshold), float(rate)


@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_area_and_curve_are_those_of_scikit_learn_with_and_without_ties(decimals: int) -> None:
    first, second = (np.round(part, decimals) for part in shifted_normals(300, seed=1, shift=1.2))
    labels, scores = np.repeat([1, 0], 300), np.concatenate([first, second])
    assert area((first, second)) == pytest.approx(roc_auc_score(labels, scores))
    expected = roc_curve(labels, scores)
    false_positive_rate, true_positive_rate = curve((first, second))
    np.testing.assert_array_equal(false_positive_rate, expected[0])
    np.testing.assert_array_equal(true_positive_rate, expected[1])
    assert np.trapezoid(true_positive_rate, false_positive_rate) == pytest.approx(area((first, second)))


def test_area_of_normals_is_the_closed_form() -> None:
    first, second = shifted_normals(20_000, seed=2)
    assert area((first, second)) == pytest.approx(norm.cdf(SHIFT / math.sqrt(2)), abs=0.01)


def test_infinite_bayes_factors_are_ranked() -> None:
    log_bf = (np.array([np.inf, 1.0]), np.array([-np.inf, 2.0]))
    assert area(log_bf) == pytest.approx(0.75)
    false_positive_rate, true_positive_rate = curve(log_bf)
    assert true_positive_rate.tolist() == [0, 0.5, 0.5, 1, 1]
    assert false_positive_rate.tolist() == [0, 0, 0.5, 0.5, 1]
    assert np.isfinite(balance(log_bf)).all()


def test_balanced_threshold_by_hand() -> None:
    # Between 0 and 1: one of four of the first is below, one of four of the second is above.
    assert balance((np.array([-1.0, 1.0, 2.0, 3.0]), np.array([-3.0, -2.0, 0.0, 2.5]))) == (0.5, 0.25)
    # Told apart without error: the middle of the gap.
    assert balance((np.array([4.0, 5.0]), np.array([-2.0, 1.0]))) == (2.5, 0.0)


def test_balanced_threshold_of_symmetric_normals_is_zero_and_of_shifted_log_bfs_the_shift() -> None:
    first, second = shifted_normals(20_000, seed=3)
    threshold, rate = balance((first, second))
    assert threshold == pytest.approx(0, abs=0.03)
    assert rate == pytest.approx(norm.cdf(-SHIFT / 2), abs=0.01)
    assert balance((first + 1, second + 1))[0] == pytest.approx(threshold + 1)


def test_balanced_threshold_under_weights_is_that_of_repeated_data_sets() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.normal(0.5, 1, 40), rng.normal(-0.5, 1, 30)
    weights = tuple(rng.multinomial(size, np.full(size, 1 / size), 5).astype(float) for size in (40, 30))
    found = BalancedThreshold((first, second))((weights[0], weights[1]))
    for row in range(5):
        repeated = (np.repeat(first, weights[0][row].astype(int)), np.repeat(second, weights[1][row].astype(int)))
        _, rate = balance(repeated)
        assert found[row, 1] == pytest.approx(rate)


def test_equal_error_rates_are_equal() -> None:
    first, second = shifted_normals(1000, seed=5, shift=1.0)
    threshold, rate = balance((first, second))
    assert np.mean(first <= threshold) == pytest.approx(np.mean(second >= threshold), abs=0.002)
    assert rate == pytest.approx(np.mean(first <= threshold), abs=0.001)


def test_decision_rates_by_hand() -> None:
    first, second = np.log([0.5, 2.0, 5.0, 50.0]), np.log([0.5, 20.0])
    found = decision_rates((first, second), thresholds=(1.0, 3.0))
    # Right, misleading, undecided: at 1, then at 3.
    np.testing.assert_allclose(found.rate[0], [[0.75, 0.25, 0.0], [0.5, 0.0, 0.5]])
    np.testing.assert_allclose(found.rate[1], [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    assert np.all((found.low <= found.rate) & (found.rate <= found.high))
    assert found.low[0, 0, 2] == 0.0
    assert found.high[0, 0, 2] == pytest.approx(1 - 0.025**0.25)  # Clopper and Pearson, none of four


def test_decision_rates_of_normals_are_the_closed_form() -> None:
    found = decision_rates((lambda parts: (parts[0], parts[1]))(shifted_normals(20_000, seed=6, shift=2.0)))
    cuts = np.log(CONVENTIONAL_THRESHOLDS)
    np.testing.assert_allclose(found.rate[0, :, 0], norm.sf(cuts, 2, 2), atol=0.015)
    np.testing.assert_allclose(found.rate[0, :, 1], norm.cdf(-cuts, 2, 2), atol=0.015)
    np.testing.assert_allclose(found.rate.sum(axis=-1), 1)
    # Misleading evidence of strength c is never more probable than 1 / c (Royall, 2000).
    assert np.all(found.rate[:, :, 1] <= 1 / np.array(CONVENTIONAL_THRESHOLDS))


def test_exactly_even_odds_are_undecided() -> None:
    found = decision_rates((np.array([0.0, 1.0]), np.array([0.0, -1.0])), thresholds=(1.0,))
    assert found.rate[:, 0, 2].tolist() == [0.5, 0.5]


def test_ten_categories_agree_with_the_words() -> None:
    measured = measure((np.arange(3.0), -np.arange(3.0)), names=("A", "B"), num_replicates=2)
    names = [str(name) for name in measured.results["category"].values]
    assert len(names) == 10
    for log_bf in [*np.linspace(-6, 6, 241), -np.inf, np.inf, *(math.log(10) * np.arange(-2, 2.5, 0.5))]:
        category = names[int(jeffreys_category(log_bf))]
        assert category == f"{strength_on_jeffreys_scale(log_bf)} for {'A' if log_bf >= 0 else 'B'}"


def test_category_tables_by_hand() -> None:
    exact = (np.log([1.5, 5.0, 200.0]), np.log([0.9, 0.05]))
    estimated = (np.log([0.8, 5.0, 20.0]), np.log([0.9, 0.05]))
    found = measure(estimated, exact=exact, names=("A", "B"), num_replicates=10).results.sel(estimator="estimate")
    words = ["decisive", "very strong", "strong", "substantial", "barely worth mentioning"]
    assert found["category"].values.tolist() == [f"{w} for B" for w in words] + [f"{w} for A" for w in reversed(words)]
    assert found["category_count"].values.tolist() == [[0, 0, 0, 0, 1, 0, 1, 1, 0, 0], [0, 0, 1, 0, 1, 0, 0, 0, 0, 0]]
    table = found["category_confusion"].values
    assert {tuple(int(i) for i in where) for where in np.argwhere(table)} == {
        (0, 5, 4), (0, 6, 6), (0, 9, 7), (1, 4, 4), (1, 2, 2),
    }  # fmt: skip
    assert table.sum() == 5
