"""One change or none, of a variance or of a rate: against adaptive integration, and identities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy import integrate, stats

from deepbf_studies import problems
from deepbf_studies.problems import change_counts_log_bf, variance_change_log_bf

Floats = NDArray[np.float64]


def noise_evidence(stretch: Floats) -> float:
    def integrand(log_variance: float) -> float:
        variance = np.exp(log_variance)
        likelihood = np.prod(np.exp(-0.5 * stretch**2 / variance) / np.sqrt(2 * np.pi * variance))
        # Inverse gamma of shape 1 and rate 1, times the variance, for the change to its logarithm.
        return likelihood * np.exp(-1 / variance) / variance

    return integrate.quad(integrand, -12, 30, epsabs=0, epsrel=1e-10, limit=400)[0]


def counts_evidence(stretch: Floats) -> float:
    def integrand(log_rate: float) -> float:
        rate = np.exp(log_rate)
        return stats.gamma.pdf(rate, 1.5, scale=1 / 0.15) * stats.poisson.pmf(stretch, rate).prod() * rate

    return integrate.quad(integrand, -25, 6, epsabs=0, epsrel=1e-10, limit=400)[0]


NOISE = 2 * np.random.default_rng(1).standard_normal((3, 5)) * np.array([1, 1, 1, 0.1, 0.1])
COUNTS = np.array([[0, 0, 0, 0], [3, 1, 9, 14], [7, 4, 5, 6]])


@pytest.mark.parametrize(
    ("log_bf_fn", "evidence_fn", "data"),
    [(variance_change_log_bf, noise_evidence, NOISE), (change_counts_log_bf, counts_evidence, COUNTS)],
)
def test_the_log_bf_is_a_ratio_of_integrals(log_bf_fn, evidence_fn, data: Floats) -> None:
    for row, found in zip(data, log_bf_fn(data), strict=True):
        changes = [evidence_fn(row[:k]) * evidence_fn(row[k:]) for k in range(1, len(row))]
        assert found == pytest.approx(np.log(np.mean(changes) / evidence_fn(row)), abs=1e-7)


@pytest.mark.parametrize(("log_bf_fn", "data"), [(variance_change_log_bf, NOISE), (change_counts_log_bf, COUNTS)])
def test_time_has_no_direction(log_bf_fn, data: Floats) -> None:
    assert_allclose(log_bf_fn(data[:, ::-1]), log_bf_fn(data), atol=1e-10)


def test_the_sign_says_nothing_about_the_variance() -> None:
    assert_allclose(variance_change_log_bf(np.abs(NOISE)), variance_change_log_bf(NOISE), atol=1e-10)


@pytest.mark.parametrize("name", ["series-variance-change", "change-counts"])
def test_the_change_comes_at_each_time_with_the_same_probability(name: str) -> None:
    model = problems.load(name, num_obs=4).models[0]
    size = 9000
    # Evenly spread places are evenly spread times; a rate or variance of almost 0 before marks the change.
    place = (np.arange(size) + 0.5) / size
    params = {"first": np.full(size, 1e-12), "second": np.full(size, 1e4), "place": place}
    data = model.simulator(np.random.default_rng(2), params)
    num_before = (np.abs(data) < 1e-3).sum(axis=1)
    # A normal value within a millionth of its scale about 0 may be mistaken for one before the change.
    assert_allclose(np.bincount(num_before, minlength=5), [0, 3000, 3000, 3000, 0], atol=2)


def test_counts_of_any_size_are_summed_without_wrapping() -> None:
    large = np.full((1, 4), 2**62, np.int64)
    assert np.isfinite(change_counts_log_bf(large)).all()
