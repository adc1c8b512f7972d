"""Probit regressions with group effects: quadrature against mean likelihoods and against all outcomes of small data."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy import integrate, stats
from scipy.special import ndtr

from deepbf_studies import problems
from deepbf_studies.problems import probit_groups
from deepbf_studies.problems.probit_groups import COEFFICIENT_SCALE, EFFECT_SCALE, design, probit_groups_log_bf

STUDY = problems.load("probit-groups")
TWO_GROUPS = np.array([[0, 0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1, 0, 1], [0, 0, 0, 1, 1, 0, 0, 0, 0, 1]])


def mean_likelihood(responses: NDArray[np.int64], group_effects: bool, num_draws: int = 400_000) -> tuple[float, float]:
    """Return the mean likelihood of one data set over draws of the prior, and its standard error."""
    rng = np.random.default_rng(1)
    columns = design(len(responses))
    a, b = COEFFICIENT_SCALE * rng.standard_normal((2, num_draws, 1))
    tau = EFFECT_SCALE * np.abs(rng.standard_normal((num_draws, 1))) * group_effects
    effects = tau * rng.standard_normal((num_draws, columns["group"][-1] + 1))
    probs = ndtr((2 * responses - 1) * (a + b * columns["x"] + effects[:, columns["group"]])).prod(axis=1)
    return float(probs.mean()), float(probs.std() / np.sqrt(num_draws))


@pytest.mark.parametrize("responses", TWO_GROUPS, ids=str)
def test_agrees_with_the_mean_likelihood_over_the_prior(responses: NDArray[np.int64]) -> None:
    (first, first_error), (second, second_error) = (mean_likelihood(responses, effects) for effects in (True, False))
    error = np.hypot(first_error / first, second_error / second)
    assert error < 0.01
    assert abs(probit_groups_log_bf(responses[None])[0] - np.log(first / second)) < 5 * error


def test_agrees_with_nested_adaptive_quadrature_for_one_group() -> None:
    """The probability of a 0 in every place of one group, by integrals over intercept and slope."""
    x = design(5)["x"]

    def probability(b: float, a: float) -> float:
        return float(ndtr(-(a + b * x)).prod() * stats.norm.pdf([a, b], scale=COEFFICIENT_SCALE).prod())

    area: float = integrate.dblquad(probability, -5, 5, -5, 5, epsabs=1e-9, epsrel=1e-7)[0]
    counts = np.zeros((1, 96))
    counts[0, 0] = 1.0
    found = probit_groups._log_evidence(counts, probit_groups._nodes(5, False))[0]
    assert found == pytest.approx(np.log(area), abs=1e-5)


def test_probabilities_of_all_outcomes_of_two_groups_sum_to_one() -> None:
    outcomes = np.array(list(itertools.product([0, 1], repeat=10)), np.float64)
    counts = probit_groups._counts_of_outcomes(outcomes, design(10)["group"])
    for group_effects in (True, False):
        probs = np.exp(probit_groups._log_evidence(counts, probit_groups._nodes(10, group_effects)))
        assert probs.sum() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.slow
def test_finer_steps_change_nothing() -> None:
    data = np.concatenate([model.simulate(50, seed=1).data for model in STUDY.models])
    extremes = [np.zeros(60), np.tile([1, 1, 1, 1, 1, 0, 0, 0, 0, 0], 6), np.tile([1, 1, 0, 0, 0], 12)]
    counts = probit_groups._counts_of_outcomes(np.concatenate([data, extremes]).astype(float), design(60)["group"])
    for group_effects in (True, False):
        usual = probit_groups._log_evidence(counts, probit_groups._nodes(60, group_effects))
        for num_taus, step in ((27, 1.25), (14, 0.9)):
            finer = probit_groups._log_evidence(counts, probit_groups._nodes(60, group_effects, num_taus, step))
            assert_allclose(usual, finer, rtol=0, atol=1e-4)


def test_opposite_groups_speak_for_effects_and_like_groups_against() -> None:
    opposite = np.tile([1, 1, 1, 1, 1, 0, 0, 0, 0, 0], 6)
    alike = np.tile([0, 1, 0, 1, 0], 12)
    log_bf = probit_groups_log_bf([opposite, alike, 1 - opposite])
    assert log_bf[0] > 10
    assert log_bf[1] < -1
    # Zeros for ones and the order of the design reversed would be the same problem; zeros for ones alone nearly.
    assert log_bf[2] == pytest.approx(log_bf[0], abs=0.5)


def test_turning_the_design_round_and_swapping_zeros_and_ones_change_nothing() -> None:
    """With three groups the design is symmetric: reversed, x becomes -x, and only the sign of the slope changes."""
    data = problems.load("probit-groups", num_obs=15).models[0].simulate(20, seed=3).data
    expected = probit_groups_log_bf(data)
    for other in (data[:, ::-1], 1 - data):
        assert_allclose(probit_groups_log_bf(other), expected, rtol=0, atol=1e-8)


def test_what_are_no_binary_groups_is_refused() -> None:
    with pytest.raises(ValueError, match="num_obs must be a multiple of 5, the size of each group; received 7"):
        problems.load("probit-groups", num_obs=7)
    with pytest.raises(ValueError, match="binary responses, 0 or 1; received 2"):
        probit_groups_log_bf([[0, 1, 2, 0, 0]])
