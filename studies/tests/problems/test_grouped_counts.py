"""Counts in groups: against an integral by SciPy, and as expectations that any Bayes factor has."""

import numpy as np
import pytest
from scipy import integrate, stats

from deepbf_studies import problems
from deepbf_studies.problems.grouped_counts import EXPOSURES, design, grouped_counts_log_bf


def evidence_given_mean(counts: np.ndarray, mean: float, *, varying: bool) -> float:
    """Return the density of the counts at a common mean, group rates integrated by quadrature."""
    total = 1.0
    for group in counts.reshape(-1, len(EXPOSURES)):

        def likelihood(rate: float, group: np.ndarray = group) -> float:
            return float(stats.poisson.pmf(group, rate * np.array(EXPOSURES)).prod())

        total *= (
            integrate.quad(
                lambda rate, fn=likelihood: fn(rate) * stats.gamma.pdf(rate, 4, scale=mean / 4),
                0,
                30,
                points=[1, 3],
                limit=200,
            )[0]
            if varying
            else likelihood(mean)
        )
    return total


@pytest.mark.parametrize("counts", [[0, 1, 0, 2, 3, 4, 3, 9, 8, 12], [1, 1, 2, 2, 3, 1, 0, 2, 3, 3]])
def test_it_is_a_ratio_of_integrals(counts: list[int]) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(60)
    means = 4.0 * (nodes + 1)
    first, second = (
        sum(
            4.0
            * weight
            * stats.gamma.pdf(mean, 4, scale=1 / 4)
            * evidence_given_mean(np.array(counts), mean, varying=varying)
            for mean, weight in zip(means, weights, strict=True)
        )
        for varying in (True, False)
    )
    assert grouped_counts_log_bf([counts])[0] == pytest.approx(np.log(first / second), abs=1e-5)


def test_the_mean_bayes_factor_under_the_second_model_is_one() -> None:
    data = problems.load("grouped-counts", num_obs=10).models[1].simulate(200_000, seed=1).data
    bf = np.exp(grouped_counts_log_bf(data))
    assert abs(bf.mean() - 1) < 4 * bf.std() / np.sqrt(len(bf))
    assert bf.std() / np.sqrt(len(bf)) < 0.02


def test_groups_are_whole() -> None:
    with pytest.raises(ValueError, match="multiple of 5"):
        design(12)
