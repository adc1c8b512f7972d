"""Prior recovery, identities and calibration: they hold for the exact Bayes factor, and fail for wrong ones."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest, norm
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

from deepbf.evaluation.log_bf_arrays import ByModel
from deepbf.evaluation.self_consistency import (
    calibration_error,
    estimated_prior,
    mean_bf_identity,
    recalibration,
    reliability_curve,
    tail_index,
)
from tests.evaluation.problems import SHIFT, shifted_normals, stretched

EQUAL = np.array([0.5, 0.5])
SKEWED = np.array([0.2, 0.8])


def pair(parts: list[np.ndarray]) -> ByModel:
    return parts[0], parts[1]


def test_prior_recovery_by_hand() -> None:
    # Posterior probabilities 1/4, 3/4 under the first model and 1/2, 1/4 under the second.
    log_odds = (np.array([-np.log(3), np.log(3)]), np.array([0.0, -np.log(3)]))
    found = estimated_prior(log_odds, SKEWED)
    assert found.prob == pytest.approx(0.2 * 0.5 + 0.8 * 0.375)
    variance = 0.04 * (2 / 16) / 2 + 0.64 * (2 / 64) / 2
    assert found.error == pytest.approx(np.sqrt(variance))
    assert found.z == pytest.approx((0.4 - 0.2) / np.sqrt(variance))


def test_prior_recovery_of_an_estimator_that_is_sure() -> None:
    sure = (np.full(10, np.inf), np.full(10, -np.inf))
    assert estimated_prior(sure, SKEWED) == pytest.approx((0.2, 0.0, 0.0))
    always_first = (np.full(10, np.inf), np.full(10, np.inf))
    assert estimated_prior(always_first, SKEWED) == (1.0, 0.0, np.inf)


def test_prior_recovery_has_a_standard_normal_z_for_the_exact_bayes_factor() -> None:
    shift = float(np.log(0.2 / 0.8))
    z = [estimated_prior(pair([part + shift for part in shifted_normals(300, s)]), SKEWED).z for s in range(400)]
    assert abs(np.mean(z)) < 4 / np.sqrt(400)
    assert np.std(z) == pytest.approx(1, abs=4 / np.sqrt(800))


def test_identity_by_hand() -> None:
    found = mean_bf_identity(np.log([0.5, 1.0, 3.0, 1.5]), np.log([2.0, 4.0]))
    mean, deviation = 1.5, np.std([0.5, 1.0, 3.0, 1.5], ddof=1)
    assert found.log_mean == pytest.approx(np.log(mean))
    assert found.error == pytest.approx(deviation / mean / 2)
    assert found.z == pytest.approx((mean - 1) / (deviation / 2))
    assert found.effective_size == pytest.approx(36 / (0.25 + 1 + 9 + 2.25))
    # One of two Bayes factors under the other model exceeds 3, the largest here.
    assert found.missing == 0.5
    assert not found.usable  # four data sets


def test_bounded_identity_by_hand() -> None:
    # 0.5, 1 and nothing for 20 over data of the denominator; 2 of 4 at most 10 over data of the numerator.
    found = mean_bf_identity(np.log([0.5, 1.0, 20.0]), np.log([2.0, 4.0, 11.0, 12.0]))
    assert found.bounded_gap == pytest.approx(0.5 - 0.5)
    assert found.bounded_z == 0
    found = mean_bf_identity(np.log([2.0, 1.0]), np.log([2.0, 11.0]))
    assert found.bounded_gap == pytest.approx(1.0)
    assert found.bounded_z == pytest.approx(1.0 / np.sqrt(0.5 / 2 + 0.5 / 2))


@pytest.mark.parametrize("model", [0, 1])
def test_identities_hold_for_the_exact_bayes_factor_and_only_for_it(model: int) -> None:
    exact = shifted_normals(1500, seed=5)
    sides = (-exact[0], -exact[1]) if model == 0 else (exact[1], exact[0])
    right = mean_bf_identity(*sides)
    assert right.usable
    assert abs(right.z) < 3
    assert abs(right.bounded_z) < 3
    # Theory: the variance of the Bayes factor is exp(d^2) - 1.
    assert right.error == pytest.approx(np.sqrt(np.expm1(SHIFT**2) / 1500), rel=0.35)
    wrong = mean_bf_identity(*(part + 0.5 for part in sides))
    assert wrong.usable
    assert wrong.z > 3
    assert wrong.bounded_z > 3


@pytest.mark.parametrize("shift", [3.0, 10.0, 100.0])
def test_identities_of_models_told_apart_well_are_called_unusable(shift: float) -> None:
    at_first, at_second = shifted_normals(1500, seed=6, shift=shift)
    found = mean_bf_identity(at_second, at_first)
    assert not found.usable
    # What a reader would have believed: a mean far from 1.
    assert found.log_mean < -0.3
    assert abs(found.bounded_z) < 3


def test_identities_of_right_bayes_factors_seldom_fail() -> None:
    """Also where the tail that was simulated looks short, for the long one was not simulated."""
    whole, bounded = [], []
    for seed in range(150):
        for shift, num_datasets in ((2.0, 150), (2.5, 600)):
            at_first, at_second = shifted_normals(num_datasets, seed=seed, shift=shift)
            found = mean_bf_identity(at_second, at_first)
            whole.append(found.usable and abs(found.z) > 3)
            bounded.append(abs(found.bounded_z) > 3)
    assert np.mean(whole) < 0.02
    assert np.mean(bounded) < 0.02


def test_a_model_that_covers_a_part_of_the_other_breaks_no_bounded_identity() -> None:
    # Uniform on (0, 1) against uniform on (0, 2): the Bayes factor is 2 or 0, and half of M2 is outside M1's support.
    rng = np.random.default_rng(8)
    at_first, at_second = np.full(1500, np.log(2)), np.where(rng.uniform(size=1500) < 0.5, np.log(2), -np.inf)
    assert abs(mean_bf_identity(at_second, at_first).z) < 3
    over_first = mean_bf_identity(-at_first, -at_second)
    # The mean of BF21 over data of M1 is 1/2, rightly, for half of M2 has no data under M1: said to be missing.
    assert over_first.log_mean == pytest.approx(-np.log(2))
    assert not over_first.usable
    assert over_first.missing == pytest.approx(0.5, abs=0.05)
    assert abs(over_first.bounded_z) < 3


def test_identities_of_extreme_log_bayes_factors_are_finite_or_infinite_never_nan() -> None:
    zeros = np.zeros(200)
    assert mean_bf_identity(np.linspace(-1e9, -1e8, 200), zeros).log_mean == pytest.approx(-1e8, rel=1e-6)
    huge = mean_bf_identity(np.linspace(1e8, 1e9, 200), zeros)
    assert huge.log_mean == pytest.approx(1e9, rel=1e-6)
    assert huge.z > 0
    assert mean_bf_identity(np.array([*np.zeros(199), np.inf]), zeros).z == np.inf
    # Bayes factors of 0 alone: the models have nothing in common, and nothing is wrong with that.
    assert not mean_bf_identity(np.full(200, -np.inf), np.full(200, np.inf)).usable
    assert mean_bf_identity(zeros, zeros).z == 0
    assert mean_bf_identity(zeros + 1e-15, zeros).z == 0


@pytest.mark.parametrize("index", [0.3, 1.0, 4.0])
def test_the_tail_index_of_pareto_variables(index: float) -> None:
    # U^-k has Pareto tails of index k; of n values the largest 3 sqrt(n) are used.
    log_values = index * np.random.default_rng(7).exponential(size=10_000)
    assert tail_index(log_values) == pytest.approx(index, rel=4 / np.sqrt(300))


def test_the_reliability_curve_is_that_of_scikit_learn() -> None:
    log_bf = pair(shifted_normals(1000, seed=8, shift=2.0))
    curve = reliability_curve(log_bf, EQUAL)
    labels = np.repeat([1, 0], 1000)
    frequency, predicted = calibration_curve(labels, expit(np.concatenate(log_bf)), n_bins=10)
    kept = curve.num_datasets > 0
    np.testing.assert_allclose(curve.frequency[kept], frequency)
    np.testing.assert_allclose(curve.predicted[kept], predicted)
    assert curve.num_datasets.sum() == 2000


def test_empty_bins_are_nan_without_a_warning() -> None:
    curve = reliability_curve((np.full(5, 20.0), np.full(5, -20.0)), EQUAL)
    assert curve.num_datasets.tolist() == [5, 0, 0, 0, 0, 0, 0, 0, 0, 5]
    assert np.isnan(curve.frequency[1:9]).all()
    assert curve.frequency[[0, 9]].tolist() == [0.0, 1.0]
    assert 0.4 < curve.high[0] < 0.5  # Wilson, no success in 5


def test_reliability_of_the_exact_bayes_factor_lies_on_the_diagonal_under_any_prior() -> None:
    exact = shifted_normals(40_000, seed=9, shift=1.5)
    # Unequal numbers of simulations must not matter either.
    curve = reliability_curve((exact[0], exact[1][:10_000]), SKEWED)
    inside = (curve.low <= curve.predicted) & (curve.predicted <= curve.high)
    assert inside.sum() >= 8
    np.testing.assert_allclose(curve.frequency, curve.predicted, atol=0.05)


def bars_of_one_bin(num_first: int, num_second: int) -> tuple[float, float]:
    # One more data set of each model lies in another bin, so that either number may be 0. All are weighted as they are
    # simulated: the share of the first model in the bin is a plain frequency.
    prior = np.array([num_first + 1, num_second + 1]) / (num_first + num_second + 2)
    log_bf = np.log(prior[1] / prior[0]) + np.log(3)  # a posterior probability of 3/4
    at_first, at_second = np.full(num_first + 1, log_bf), np.full(num_second + 1, log_bf)
    at_first[0], at_second[0] = np.inf, -np.inf
    curve = reliability_curve((at_first, at_second), prior)
    assert curve.num_datasets[7] == num_first + num_second
    assert curve.frequency[7] == pytest.approx(num_first / (num_first + num_second))
    return float(curve.low[7]), float(curve.high[7])


@pytest.mark.parametrize(("num_first", "num_second"), [(0, 20), (20, 0), (2, 48), (25, 25), (700, 3)])
def test_the_bars_of_a_reliability_curve_are_wilson_intervals(num_first: int, num_second: int) -> None:
    expected = binomtest(num_first, num_first + num_second).proportion_ci(method="wilson")
    assert bars_of_one_bin(num_first, num_second) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_bars_of_a_reliability_curve_cover() -> None:
    counts, how_often = np.unique(np.random.default_rng(10).binomial(50, 0.1, 4000), return_counts=True)
    low, high = np.array([bars_of_one_bin(count, 50 - count) for count in counts.tolist()]).T
    covered = np.average((low <= 0.1) & (high >= 0.1), weights=how_often)
    assert covered == pytest.approx(0.95, abs=0.03)


def test_calibration_error_by_hand() -> None:
    # Probability 0.9 for four data sets of which three are the first model's; 0.1 for one of each.
    high, low = np.log(9), -np.log(9)
    found = calibration_error((np.array([high] * 3 + [low]), np.array([high, low, low, low])), EQUAL, num_replicates=10)
    # Bins: |3/4 - 0.9| and |1/4 - 0.1|, each of half the weight.
    assert found.value == pytest.approx(0.15)


def test_calibration_error_of_the_exact_bayes_factor_lies_in_its_interval_95_times_in_100() -> None:
    found = [
        calibration_error(pair(shifted_normals(400, s, shift=1.5)), SKEWED, num_replicates=200, seed=s)
        for s in range(200)
    ]
    covered = np.mean([error.low <= error.value <= error.high for error in found])
    # Labels drawn anew vary in their total, simulated ones do not: a little conservative.
    assert 0.90 <= covered <= 1.0
    assert np.mean([error.p_value < 0.05 for error in found]) < 0.12


def test_calibration_error_of_a_stretched_bayes_factor_lies_outside() -> None:
    found = calibration_error(pair(stretched(shifted_normals(1500, seed=11, shift=1.5))), EQUAL)
    assert found.value > 2 * found.high
    assert found.p_value < 0.0027


def test_recalibration_finds_the_line() -> None:
    exact = shifted_normals(20_000, seed=12, shift=1.5)
    # Estimates a + b x need the line (x' - a) / b; the simulations' proportions must not enter.
    found = recalibration((1.5 * exact[0] + 1, 1.5 * exact[1][:5000] + 1))
    assert found.slope == pytest.approx(1 / 1.5, abs=4 * found.slope_error)
    assert found.intercept == pytest.approx(-1 / 1.5, abs=4 * found.intercept_error)
    assert found.slope_error < 0.02
    assert found.intercept_error < 0.04


def test_recalibration_errors_are_those_of_repeated_simulations() -> None:
    found = [recalibration(pair(shifted_normals(500, seed, shift=1.5))) for seed in range(200)]
    for name, right in (("slope", 1.0), ("intercept", 0.0)):
        values, errors = (np.array([getattr(line, field) for line in found]) for field in (name, f"{name}_error"))
        assert errors.mean() == pytest.approx(values.std(), rel=0.2)
        z = (values - right) / errors
        assert abs(z.mean()) < 0.3
        assert np.mean(np.abs(z) < norm.ppf(0.975)) > 0.9


def test_recalibration_is_scikit_learns_regression() -> None:
    log_bf = pair(shifted_normals(300, seed=13))
    fitted = LogisticRegression(C=np.inf, tol=1e-10).fit(np.concatenate(log_bf)[:, None], np.repeat([1, 0], 300))
    found = recalibration(log_bf)
    assert (found.slope, found.intercept) == pytest.approx((fitted.coef_[0, 0], fitted.intercept_[0]), abs=1e-4)


@pytest.mark.parametrize("log_bf", [([1.0, 2.0], [-1.0, -2.0]), ([1.0, 2.0], [1.0, 0.0]), ([0.0, 0.0], [0.0, 1e-15])])
def test_recalibration_is_undefined_where_nothing_tells(log_bf: tuple[list[float], list[float]]) -> None:
    found = recalibration((np.array(log_bf[0]), np.array(log_bf[1])))
    assert np.isnan(found).all()


def test_recalibration_of_the_reverse_order_is_minus_infinity() -> None:
    assert recalibration((np.array([-1.0, -2.0]), np.array([1.0, 2.0]))).slope == -np.inf


def test_recalibration_of_far_values_is_not_disturbed_by_them() -> None:
    exact = shifted_normals(3000, seed=14, shift=4.0)
    plain = recalibration(pair(exact))
    far = recalibration((np.append(exact[0], 1e6), np.append(exact[1], -np.inf)))
    assert far.slope == pytest.approx(plain.slope, abs=0.05)
    assert plain.slope == pytest.approx(1, abs=4 * plain.slope_error)


def test_rounding_is_no_difference() -> None:
    found = estimated_prior((np.full(1500, np.log(3 / 7)), np.full(1500, np.log(3 / 7))), np.array([0.3, 0.7]))
    assert found.z == 0


def test_calibration_error_is_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    log_bf = pair(shifted_normals(300, seed=15))
    whole = calibration_error(log_bf, EQUAL, num_replicates=40)
    monkeypatch.setattr("deepbf.evaluation.self_consistency.BATCH_ENTRIES", 7 * 600)
    assert calibration_error(log_bf, EQUAL, num_replicates=40) == whole
