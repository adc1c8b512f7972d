"""Evidences of five models for counts: quadrature against brute force, and simulators against both."""

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from deepbf_studies import problems
from deepbf_studies.problems.five_counts import (
    negbin_log_evidence,
    poisson_log_evidence,
    zero_inflated_log_evidence,
)

COUNTS = np.array([[0, 1, 3, 0, 2], [0, 0, 0, 0, 0], [7, 9, 2, 4, 30]])
STUDY = problems.load("five-counts")


def by_brute_force(likelihood: Any, row: Any) -> float:
    """Return the log of the mean likelihood over a Gamma(2, 1) mean, by adaptive quadrature."""
    area, _ = integrate.quad(
        lambda mean: likelihood(mean) * stats.gamma.pdf(mean, 2), 0, 60, points=[row.mean() + 0.1], limit=400,
        epsabs=0, epsrel=1e-11,
    )  # fmt: skip
    return float(np.log(area))


@pytest.mark.parametrize("row", COUNTS, ids=str)
def test_evidences_agree_with_brute_force(row: Any) -> None:
    expected = by_brute_force(lambda mean: stats.poisson.pmf(row, mean).prod(), row)
    assert poisson_log_evidence(row[None])[0] == pytest.approx(expected, abs=1e-9)
    for size in (1.0, 2.0, 6.0):
        expected = by_brute_force(lambda mean, s=size: stats.nbinom.pmf(row, s, s / (s + mean)).prod(), row)
        assert negbin_log_evidence(row[None], size=size)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("row", COUNTS[:2], ids=str)
def test_extra_zeros_agree_with_brute_force_in_two_dimensions(row: Any) -> None:
    zeros, above = int((row == 0).sum()), row[row > 0]

    def density(extra: float, mean: float) -> float:
        given = (extra + (1 - extra) * np.exp(-mean)) ** zeros * (1 - extra) ** len(above)
        return (
            given
            * np.prod(np.exp(-mean + above * np.log(mean)) / [np.prod(np.arange(1, y + 1)) for y in above])
            * (mean * np.exp(-mean))
        )

    area: Any = integrate.dblquad(density, 1e-12, 40, 0, 1, epsabs=0, epsrel=1e-8)[0]
    assert zero_inflated_log_evidence(row[None])[0] == pytest.approx(np.log(area), abs=1e-7)


@pytest.mark.slow
def test_evidences_of_all_small_data_sets_sum_to_one() -> None:
    """Two counts from 0 to 150 hold all but a sliver of the probability of every model."""
    pairs = np.stack(np.triu_indices(151), axis=1)
    # In either order, unless they are equal.
    times = np.where(pairs[:, :1] == pairs[:, 1:], 1.0, 2.0)
    evidences = problems.load("five-counts", num_obs=2).exact_log_evidence
    assert evidences is not None
    np.testing.assert_allclose((times * np.exp(evidences(pairs))).sum(axis=0), 1.0, atol=2e-4)


def test_simulators_follow_the_evidences() -> None:
    """Frequencies of the first two counts against their evidences."""
    study = problems.load("five-counts", num_obs=2)
    assert study.exact_log_evidence is not None
    cells = np.array([[0, 0], [0, 1], [1, 1], [0, 2], [2, 3], [5, 0]])
    probs = np.exp(study.exact_log_evidence(cells))
    for k, model in enumerate(study.models):
        data = model.simulate(40_000, seed=k).data
        found = (data[:, None, :] == cells).all(axis=2).mean(axis=0)
        np.testing.assert_allclose(found, probs[:, k], atol=6 * np.sqrt(0.25 / 40_000))


def test_extremes_are_finite() -> None:
    evidences = STUDY.exact_log_evidence
    assert evidences is not None
    counts = np.zeros((4, 50))
    counts[1], counts[2, 0], counts[3] = 900, 9_000, np.arange(50)
    assert np.isfinite(evidences(counts)).all()
    np.testing.assert_allclose(STUDY.exact_log_bf(counts), evidences(counts)[:, 0] - evidences(counts)[:, 1])


def test_what_are_no_counts_is_refused() -> None:
    for bad in ([[0.5, 1.0]], [[-1, 2]], [1, 2, 3]):
        with pytest.raises(ValueError, match="data must be counts of shape"):
            poisson_log_evidence(bad)


def test_three_of_the_five_keep_their_evidences() -> None:
    three, five = problems.load("three-counts", num_obs=50), STUDY
    assert [model.name for model in three.models] == [five.models[k].name for k in (0, 1, 4)]
    assert three.exact_log_evidence is not None
    assert five.exact_log_evidence is not None
    for model in three.models:
        data = model.simulate(20, seed=1).data
        np.testing.assert_array_equal(three.exact_log_evidence(data), five.exact_log_evidence(data)[:, [0, 1, 4]])
