"""Metrics against the truth, by hand and by closed form; and paired differences of two estimators."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from deepbf.evaluation import measure, paired_differences
from deepbf.evaluation.accuracy import METRICS, Comparison, Difference, accuracy_statistics
from deepbf.example import counts_example
from tests.evaluation.problems import SHIFT, shifted_normals

PRIOR = np.array([0.25, 0.75])
EQUAL = np.array([0.5, 0.5])
EXACT = shifted_normals(1500, seed=1)


def values(
    estimated: list[list[float]], exact: list[list[float]], prior: NDArray[np.float64] = PRIOR, clip: float = 10.0
) -> dict[str, list[float]]:
    pairs = [(np.array(part[0]), np.array(part[1])) for part in (estimated, exact)]
    ones = tuple(np.ones((1, len(part))) for part in pairs[0])
    statistics = accuracy_statistics(pairs[0], pairs[1], prior, clip)
    return {name: statistic((ones[0], ones[1]))[0].tolist() for name, statistic in statistics.items()}


def test_by_hand() -> None:
    found = values([[1.0, -2.0, 12.0], [-1.0, 0.5]], [[2.0, 1.0, 15.0], [-2.0, 0.25]])
    assert set(found) == set(METRICS)
    # Squared errors 1, 9, 9 and 1, 1/16.
    assert found["mse"] == pytest.approx([19 / 3, 17 / 32, 0.25 * 19 / 3 + 0.75 * 17 / 32])
    # At +-10 the third pair becomes equal.
    assert found["clipped_mse"] == pytest.approx([10 / 3, 17 / 32, 0.25 * 10 / 3 + 0.75 * 17 / 32])
    assert found["spearman"] == pytest.approx([1.0, 1.0, 1.0])
    # Prior log odds of -log 3 = -1.10 move the line: of the first three pairs, the first comes to lie astride it.
    assert found["agreement"] == pytest.approx([2 / 3, 1.0, 0.5 / 3 + 0.75])


def test_excess_loss_by_hand() -> None:
    found = values([[0.0] * 2, [np.log(3)] * 2], [[np.log(3)] * 2, [0.0] * 2], EQUAL)["excess_loss"]
    # -log 1/2 + log 3/4 under the first model, -log 1/4 + log 1/2 under the second.
    assert found == pytest.approx([np.log(1.5), np.log(2), 0.5 * np.log(3)])


def test_divergence_of_model_probabilities_by_hand() -> None:
    found = values([[0.0] * 2, [np.log(3)] * 2], [[np.log(3)] * 2, [0.0] * 2], EQUAL)["posterior_kl"]
    # From 3/4, 1/4 to 1/2, 1/2 and the other way round.
    first = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    second = 0.5 * np.log(2) + 0.5 * np.log(2 / 3)
    assert found == pytest.approx([first, second, (first + second) / 2])


def test_divergence_is_the_excess_loss_in_expectation() -> None:
    exact = [part.tolist() for part in shifted_normals(50_000, seed=5)]
    found = values([[1.5 * x + 0.5 for x in part] for part in exact], exact, EQUAL)
    assert found["posterior_kl"][2] == pytest.approx(found["excess_loss"][2], rel=0.1)
    assert found["posterior_kl"][2] > 0.01


def test_certainty_in_the_wrong_model_is_infinitely_far() -> None:
    # Where the exact answer is certain too, only its own model counts.
    found = values([[np.inf, np.inf], [1.0, 1.0]], [[np.inf, 1.0], [np.inf, -np.inf]], EQUAL)["posterior_kl"]
    assert found[0] == np.inf
    assert found[1] == pytest.approx(0.5 * (np.log1p(np.exp(-1)) + np.log1p(np.exp(1))))


def test_surprise_by_hand() -> None:
    # Under the first model shares at or below: 1/3, 2/3, 1 against 2/3, 1/3, 1; under the second at or above.
    found = values([[1.0, 2.0, 3.0], [1.0, 2.0]], [[2.0, 1.0, 3.0], [2.0, 1.0]], EQUAL)["surprise_mse"]
    assert found == pytest.approx([2 / 27, 0.25, 0.5 * (2 / 27 + 0.25)])


def test_a_line_through_normals_has_closed_forms() -> None:
    # Under the first model log BF ~ N(d^2 / 2, d^2) for means d apart; the estimate is 1.5 log BF + 1.
    exact = shifted_normals(10_000, seed=4)
    estimated = [1.5 * part + 1 for part in exact]
    found = values([part.tolist() for part in estimated], [part.tolist() for part in exact], EQUAL, clip=1e3)
    mean, variance = SHIFT**2 / 2, SHIFT**2
    at_first, at_second = (0.25 * variance + (1 + 0.5 * sign * mean) ** 2 for sign in (1, -1))
    np.testing.assert_allclose(found["mse"], [at_first, at_second, (at_first + at_second) / 2], rtol=0.05)
    # Decisions differ where 0 > log BF > -2/3.
    disagree = norm.cdf(0, mean, SHIFT) - norm.cdf(-2 / 3, mean, SHIFT)
    assert found["agreement"][0] == pytest.approx(1 - disagree, abs=0.02)
    assert found["spearman"] == pytest.approx([1, 1, 1])
    assert found["surprise_mse"] == pytest.approx([0, 0, 0], abs=1e-7)
    # Kullback-Leibler divergence from N(m, v) to N(1.5 m + 1, 2.25 v).
    divergence = np.log(1.5) + (variance + (0.5 * mean + 1) ** 2) / (2 * 2.25 * variance) - 0.5
    assert found["kl"][0] == pytest.approx(divergence, rel=0.1)


def test_infinite_log_bfs_spoil_what_they_must_and_nothing_else() -> None:
    exact = [[1.0, 2.0, 3.0, 4.0], [-1.0, -2.0, -3.0, -4.0]]
    found = values([[1.0, 2.0, 3.0, np.inf], [-np.inf, -2.0, -3.0, np.inf]], exact, EQUAL)
    assert found["mse"] == [np.inf] * 3
    assert found["clipped_mse"] == pytest.approx([36 / 4, (81 + 196) / 4, 313 / 8])
    assert found["spearman"][0] == pytest.approx(1)
    assert np.isfinite(found["spearman"]).all()
    assert np.isfinite(found["kl"]).all()
    assert np.isfinite(found["surprise_mse"]).all()
    # Infinite in the right direction costs nothing, in the wrong one everything.
    assert -0.02 < found["excess_loss"][0] < 0
    assert found["excess_loss"][1] == np.inf
    assert found["agreement"] == pytest.approx([1, 0.75, 0.875])


def test_equal_infinities_are_no_error() -> None:
    found = values([[np.inf, 1.0], [-1.0, -np.inf]], [[np.inf, 1.0], [-1.0, -np.inf]], EQUAL)
    for name in ("mse", "clipped_mse", "kl", "excess_loss", "surprise_mse"):
        assert found[name] == pytest.approx([0, 0, 0], abs=1e-12), name


def counts_log_bfs(num_obs: int, num_datasets: int = 1500) -> list[NDArray[np.float64]]:
    """Return exact log Bayes factors of Data 1 (i): discrete, so that many are equal but for their last digits."""
    example = counts_example(num_obs=num_obs)
    return [
        example.exact_log_bf(model.simulate(num_datasets, seed=1 + k).data) for k, model in enumerate(example.models)
    ]


@pytest.mark.parametrize("num_obs", [2, 4, 8])
def test_the_exact_answer_is_perfect_by_ranks_though_rounding_splits_its_ties(num_obs: int) -> None:
    exact = counts_log_bfs(num_obs)
    found = measure({"exactly": exact, "a line": [1.5 * part + 1 for part in exact]}, exact=exact, num_replicates=2)
    for group in found.results["group"].values:
        assert found.value("spearman", "exactly", group) == 1.0
        assert found.value("surprise_mse", "exactly", group) == 0.0
        assert found.value("spearman", "a line", group) == pytest.approx(1.0, abs=1e-12)
        assert found.value("surprise_mse", "a line", group) < 1e-20


def test_noise_that_only_splits_atoms_costs_no_surprise() -> None:
    # At n = 2 the largest atom is 29% of a model's data sets: spread over it, tail areas cost 0.0114.
    exact, rng = counts_log_bfs(2), np.random.default_rng(0)
    noises = (0.001, 0.01, 0.1)
    noisy_answers = {str(sd): [part + rng.normal(0, sd, len(part)) for part in exact] for sd in noises}
    found = measure(noisy_answers, exact=exact, num_replicates=20)
    costs = [found.value("surprise_mse", str(sd)) for sd in noises]
    # Measured 4e-35, 2.2e-5 and 1.9e-3: it grows with the noise, as it should.
    assert costs[0] < 1e-9
    assert costs[0] < costs[1] < 1e-3 < costs[2] < 0.01
    assert found.value("surprise_mse_error", "0.001") < 1e-9


def test_surprise_of_an_estimator_that_ties_what_differs_is_wrong() -> None:
    # Shares at most are 1 throughout, and should be 1/3, 2/3, 1; under the second model 1/2 and 1.
    found = values([[0.0] * 3, [0.0] * 2], [[1.0, 2.0, 3.0], [1.0, 2.0]], EQUAL)["surprise_mse"]
    assert found[:2] == pytest.approx([(4 / 9 + 1 / 9) / 3, 0.25 / 2])


def test_surprise_at_an_atom_by_hand() -> None:
    # Exact: two of four equal, so tail areas of 1/4 and 1/2 are both allowed there; 3/4 is off by 1/4, and so on.
    exact = [[1.0, 1.0, 2.0, 3.0], [1.0, 2.0]]
    assert values([[1.2, 1.1, 2.0, 3.0], [1.0, 2.0]], exact, EQUAL)["surprise_mse"][0] == 0
    assert values([[2.5, 1.1, 2.0, 3.0], [1.0, 2.0]], exact, EQUAL)["surprise_mse"][0] == pytest.approx(2 / 16 / 4)


def noisy(sd: float, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [part + rng.normal(0, sd, len(part)) for part in EXACT]


def test_differences_are_those_of_the_metrics() -> None:
    one, other = noisy(0.2, 1), noisy(0.3, 2)
    found = paired_differences(one, other, EXACT, num_replicates=20)
    both = measure({"one": one, "other": other}, exact=EXACT, num_replicates=20)
    for metric, difference in found.items():
        assert difference.value == pytest.approx(both.value(metric, "one") - both.value(metric, "other"), abs=1e-12)


def test_errors_are_those_of_fresh_data_sets() -> None:
    """The bootstrap error is the spread over repetitions of everything, to within what 60 of them can tell."""

    def once(seed: int) -> dict[str, Difference]:
        exact = shifted_normals(200, seed=seed)
        rng = np.random.default_rng(seed)
        one, other = ([part + rng.normal(0, sd, len(part)) for part in exact] for sd in (0.3, 0.4))
        return paired_differences(one, other, exact, num_replicates=40)

    repeated = [once(seed) for seed in range(100, 160)]
    for metric in ("clipped_mse", "auc", "posterior_kl"):
        spread = np.std([one[metric].value for one in repeated], ddof=1)
        assert np.mean([one[metric].error for one in repeated]) == pytest.approx(spread, rel=0.4), metric


def test_what_is_shared_is_no_error() -> None:
    one = noisy(0.2, 1)
    nearly = [part + 1e-3 for part in one]
    paired = paired_differences(one, nearly, EXACT, num_replicates=50)["auc"]
    alone = float(measure(one, exact=EXACT, num_replicates=50).results["auc_error"][0])
    assert paired.error < 0.1 * alone


def test_data_sets_that_one_left_unanswered_do_not_count() -> None:
    one, other = noisy(0.2, 1), noisy(0.3, 2)
    holes = [np.where(np.arange(len(part)) < 100, part, np.nan) for part in other]
    found = paired_differences(one, holes, EXACT, num_replicates=10)
    shortened = [[part[:100] for part in parts] for parts in (one, other, EXACT)]
    assert found == paired_differences(*shortened, num_replicates=10)
    with pytest.raises(ValueError, match="at least 2 data sets"):
        paired_differences([np.where(np.isnan(part), 0.0, np.nan) for part in holes], holes, EXACT)


@pytest.mark.parametrize(
    ("value", "error", "higher_is_better", "verdict"),
    [
        (-0.1, 0.01, False, "better"),
        (0.1, 0.01, False, "worse"),
        (0.1, 0.06, False, "tie"),
        (0.1, 0.01, True, "better"),
        (-0.1, 0.01, True, "worse"),
        (0.0, 0.0, True, "tie"),
        (np.nan, np.nan, True, "tie"),
    ],
)
def test_verdicts(value: float, error: float, higher_is_better: bool, verdict: str) -> None:
    found = Difference(value, error, higher_is_better).verdict
    assert found == verdict
    assert found is Comparison(verdict)
