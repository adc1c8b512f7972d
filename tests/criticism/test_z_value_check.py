"""Z is what its definition says, lies about 1/2 where the model is right, and far from it at outliers."""

import json
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from deepbf.criticism import z_values
from tests.criticism.sources import Fixed, coins, data_of, exact

OUTLIERS = {"data-1-i": 18.0, "data-2": 10.0, "data-3": 2.5}


@pytest.mark.parametrize("num_heads", [20, 26])
def test_for_coins_z_has_the_mean_of_its_closed_form(num_heads: int) -> None:
    # Of a classifier with one coefficient per value, the probability at heads is heads / (heads + predicted heads).
    n, num_replicates = 40, 4000
    observed = np.repeat([1, 0], [num_heads, n - num_heads])
    found = z_values(coins(n), observed, num_replicates=num_replicates, seed=1)
    heads = np.arange(n + 1)
    at_heads, at_tails = num_heads / (num_heads + heads), (n - num_heads) / (2 * n - num_heads - heads)
    # The fresh draw is independent of the training draw, and half of it is heads.
    expected = (binom.pmf(heads, n, 0.5) * (at_heads + at_tails) / 2).sum()
    error = found.z.std() / np.sqrt(num_replicates)
    assert abs(found.mean - expected) < 4 * error
    assert error < 5e-4


def test_the_default_is_scikit_learns_regression_on_a_quadratic() -> None:
    sampler, observed = exact("data-1-i", 1), data_of("data-1-i", 0, seed=11)
    by_hand = make_pipeline(
        PolynomialFeatures(2, include_bias=False), StandardScaler(), LogisticRegression(C=1e6, tol=1e-10, max_iter=1000)
    )
    ours = z_values(sampler, observed, num_replicates=20, seed=3)
    theirs = z_values(sampler, observed, num_replicates=20, classifier=by_hand, seed=3)
    np.testing.assert_allclose(ours.z, theirs.z, atol=1e-5)
    assert "LogisticRegression" not in str(ours)
    assert "Pipeline" in theirs.classifier


@pytest.mark.parametrize(("study", "k"), [("data-1-i", 0), ("data-1-ii", 1), ("data-3", 0), ("data-3", 1)])
def test_one_half_is_covered_where_the_model_is_right(study: str, k: int) -> None:
    # A careful check: measured on 1,500 data sets of the model itself, none excluded 1/2.
    excluded = 0
    for seed in range(15):
        found = z_values(exact(study, k), data_of(study, k, seed), num_replicates=300, seed=seed)
        excluded += not found.covers_half
        assert abs(found.mean - 0.5) < 0.04
    assert excluded == 0


@pytest.mark.parametrize("study", OUTLIERS)
@pytest.mark.parametrize("k", [0, 1])
def test_outliers_are_far_from_one_half(study: str, k: int) -> None:
    found = z_values(exact(study, k), np.full(128, OUTLIERS[study]), num_replicates=300)
    assert found.high < 0.25
    assert not found.covers_half
    assert "it does not fit them" in found.verdict
    assert found.num_unconverged == 0


def test_the_wrong_model_is_told() -> None:
    observed = data_of("data-1-i", 0, seed=11)
    wrong, right = (z_values(exact("data-1-i", k), observed, num_replicates=500) for k in (1, 0))
    assert wrong.high < 0.48
    assert wrong.verdict == "predictions of Poisson are told from the observed data: it does not fit them"
    assert "1/2 lies outside" in str(wrong)
    assert "no sign against it here" in str(right)


def test_counts_in_the_millions() -> None:
    observed = np.random.default_rng(4).geometric(1e-7, 128)
    right = z_values(exact("data-1-ii", 0), observed, num_replicates=200)
    wrong = z_values(exact("data-1-ii", 1), observed, num_replicates=200)
    assert right.covers_half
    assert np.isfinite(wrong.z).all()
    assert wrong.high < 0.1


def test_products_of_columns_show_what_marginals_hide() -> None:
    # Pairs with standard normal columns: independent under the model, correlated in the data.
    rng = np.random.default_rng(5)
    independent = Fixed("independent pairs", lambda rng, size: rng.normal(size=(size, 100, 2)))
    first = rng.normal(size=100)
    correlated = np.stack([first, 0.8 * first + 0.6 * rng.normal(size=100)], axis=1)
    assert z_values(independent, correlated, num_replicates=200).high < 0.48
    assert z_values(independent, rng.normal(size=(100, 2)), num_replicates=200).covers_half


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that learns nothing and keeps the predictions it was trained on."""

    seen: ClassVar[list[np.ndarray]] = []
    classes_ = (0, 1)

    def fit(self, rows: np.ndarray, labels: np.ndarray) -> "Recorder":
        self.seen.append(rows[labels == 0, 0])
        return self

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        return np.full((len(rows), 2), 0.5)


def test_shuffled_draws_are_independent_and_all_used() -> None:
    # Data sets whose observations share a mean: their means vary as much as one value, shuffled a hundredth as much.
    n, num_replicates = 100, 1000
    shared = Fixed("shared", lambda rng, size: rng.normal(size=(size, 1)) + np.zeros((1, n)))
    found = {}
    for draws in ("joint", "independent"):
        Recorder.seen.clear()
        z_values(shared, np.linspace(-1, 1, n), num_replicates=num_replicates, classifier=Recorder(), draws=draws)
        found[draws] = np.array(Recorder.seen)
    joint, shuffled = found["joint"], found["independent"]
    assert shuffled.shape == (num_replicates, n)
    # A variance from 1,000 values has the relative standard error 0.045.
    assert joint.mean(axis=1).var() == pytest.approx(1.0, rel=0.18)
    assert n * shuffled.mean(axis=1).var() == pytest.approx(1.0, rel=0.18)
    # Every posterior draw gives its k-th observation to one data set alone.
    assert all(len(np.unique(column)) == num_replicates for column in shuffled.T)
    everything = shared.predictive(None, 2 * num_replicates)
    assert all(np.isin(column, everything[:, 0]).all() for column in shuffled.T)


def test_joint_draws_are_wider_for_what_the_posterior_leaves_open() -> None:
    sampler, observed = exact("data-1-i", 0), data_of("data-1-i", 0, seed=11)
    independent, joint = (z_values(sampler, observed, num_replicates=1000, draws=d) for d in ("independent", "joint"))
    assert joint.high - joint.low > 1.2 * (independent.high - independent.low)
    # Without parameters there is nothing to share: both are draws of the same distribution.
    sampler, observed = exact("data-3", 1), data_of("data-3", 1, seed=1)
    independent, joint = (z_values(sampler, observed, num_replicates=1000, draws=d) for d in ("independent", "joint"))
    assert joint.high - joint.low == pytest.approx(independent.high - independent.low, rel=0.15)


@pytest.mark.parametrize("classifier", [None, RandomForestClassifier(n_estimators=10)], ids=["quadratic", "forest"])
def test_trained_once(classifier: RandomForestClassifier | None) -> None:
    sampler, observed = exact("data-1-i", 1), data_of("data-1-i", 0, seed=11)
    found = z_values(sampler, observed, num_replicates=100, classifier=classifier, refit=False, seed=2)
    assert found.high < 0.48
    assert "trained once" in str(found)
    assert "shifts every Z alike" in str(found)
    again = z_values(sampler, observed, num_replicates=100, classifier=classifier, refit=False, seed=2)
    np.testing.assert_array_equal(found.z, again.z)


@pytest.mark.parametrize("refit", [True, False])
def test_constant_data_give_a_finite_clear_answer(refit: bool) -> None:
    n = 30
    constant = Fixed("constant", lambda rng, size: np.full((size, n), 7.0))
    same = z_values(constant, np.full(n, 7.0), num_replicates=50, refit=refit)
    np.testing.assert_array_equal(same.z, 0.5)
    assert same.covers_half
    assert "no sign against" in same.verdict
    other = z_values(constant, np.full(n, 8.0), num_replicates=50, refit=refit)
    assert other.high < 0.01
    grid, density = other.density()
    assert np.isfinite(grid).all()
    assert np.isfinite(density).all()


def test_a_model_that_is_nearly_told_is_borderline() -> None:
    # Poisson counts under the negative binomial: the paper's "barely included".
    found = z_values(exact("data-1-i", 0), data_of("data-1-i", 1, seed=11), seed=3)
    assert 0 < found.tail_of_half < 0.1
    assert found.covers_half
    assert found.borderline
    assert found.verdict == "borderline: predictions of negative binomial are nearly told from the observed data"


def test_plain_data() -> None:
    found = z_values(exact("data-3", 0), data_of("data-3", 0, seed=1), num_replicates=20)
    said = json.loads(json.dumps(found.to_dict()))
    assert said["z"] == found.z.tolist()
    assert said["covers_half"] is True
    one = z_values(exact("data-3", 0), data_of("data-3", 0, seed=1), num_replicates=1)
    assert one.low == one.high == one.mean
    assert np.isfinite(one.density()[1]).all()
