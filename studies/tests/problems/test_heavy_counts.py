"""Counts with heavy tails: quadrature against adaptive quadrature, sums of probabilities, and simulators."""

import numpy as np
import pytest
from scipy import integrate, stats

from deepbf_studies import problems
from deepbf_studies.problems.heavy_counts import LARGEST_SHARED, heavy_counts_log_bf, lognormal_log_probs

STUDY = problems.load("heavy-counts")


@pytest.mark.parametrize("count", [0, 1, 7, 50, 51, 900, 20_000])
def test_poisson_lognormal_probabilities_agree_with_adaptive_quadrature(count: int) -> None:
    for log_mean in (0.5, 3.0, 6.0):
        centre = log_mean - 1.5**2 / 2

        def density(t: float, centre: float = centre) -> float:
            return float(np.exp(stats.poisson.logpmf(count, np.exp(t)) + stats.norm.logpdf(t, centre, 1.5)))

        # About the likelihood and about the prior.
        around = np.log(count + 0.5) + np.array([-1, 1]) * 8 / np.sqrt(count + 1)
        area, _ = integrate.quad(density, centre - 13, centre + 20, points=[*around, centre], limit=800, epsabs=0)
        found = lognormal_log_probs(np.array([float(count)]), np.array([log_mean]))[0, 0]
        assert found == pytest.approx(np.log(area), abs=1e-7)


def test_probabilities_of_all_counts_sum_to_one() -> None:
    counts = np.arange(4_000.0)
    probs = np.exp(lognormal_log_probs(counts, np.array([1.0, 2.0])))
    # Beyond are rates that are 5 standard deviations out: 1e-5 and less.
    np.testing.assert_allclose(probs.sum(axis=0), 1.0, atol=1e-4)
    # The nodes of small and of large counts meet without a step.
    ratios = np.diff(np.log(probs[LARGEST_SHARED - 3 : LARGEST_SHARED + 5]), axis=0)
    assert np.abs(np.diff(ratios, n=2, axis=0)).max() < 1e-4


@pytest.mark.parametrize("row", [[0, 0, 1, 40], [12, 9, 30, 700]], ids=str)
def test_agrees_with_adaptive_quadrature_over_the_mean(row: list[int]) -> None:
    counts = np.array(row)

    def negbin(log_mean: float) -> float:
        return float(stats.nbinom.pmf(counts, 0.5, 0.5 / (0.5 + np.exp(log_mean))).prod())

    def lognormal(log_mean: float) -> float:
        return float(np.exp(lognormal_log_probs(counts.astype(float), np.array([log_mean])).sum()))

    first, second = (
        integrate.quad(lambda v, f=f: f(v) * stats.norm.pdf(v, 3, 1), -6, 12, epsabs=0, epsrel=1e-7, limit=200)[0]
        for f in (negbin, lognormal)
    )
    assert heavy_counts_log_bf(counts[None])[0] == pytest.approx(np.log(first / second), abs=1e-6)


@pytest.mark.parametrize("model", [0, 1])
def test_simulated_counts_have_the_right_mean_and_heavy_tails(model: int) -> None:
    log_means = np.full(20_000, 3.0)
    counts = STUDY.models[model].simulator(np.random.default_rng(1), log_means)
    error = counts.std() / np.sqrt(counts.size)
    assert abs(counts.mean() - np.exp(3.0)) < 5 * error
    assert error < 0.2
    share_of_zeros = [
        stats.nbinom.pmf(0, 0.5, 0.5 / (0.5 + np.exp(3.0))),
        np.exp(lognormal_log_probs(np.zeros(1), np.array([3.0]))[0, 0]),
    ][model]
    assert abs((counts == 0).mean() - share_of_zeros) < 5 * np.sqrt(0.25 / counts.size)
    assert counts.max() > 300


def test_extremes_are_finite_and_what_are_no_counts_is_refused() -> None:
    assert np.isfinite(heavy_counts_log_bf([[0] * 32, [10**6] * 32, [0] * 31 + [10**8]])).all()
    for bad in ([[0.5, 1.0]], [[-1, 2]]):
        with pytest.raises(ValueError, match="data must be counts"):
            heavy_counts_log_bf(bad)
