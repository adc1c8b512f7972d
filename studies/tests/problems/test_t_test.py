"""The t-test: one-dimensional integrals of Voigt profiles against integrals over effect size and scale."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from deepbf_studies import problems
from deepbf_studies.problems.t_test import t_test_log_bf

DATA = np.array([[1.2, 0.8, 1.1, 0.9], [1.2, -0.8, -1.1, 0.9], [4.0, 0.1, -2.0, 9.0], [0.02, 0.01, 0.03, 0.05]])


@pytest.mark.parametrize("row", DATA, ids=str)
@pytest.mark.parametrize("effect_scale", [0.707, 2.0])
def test_agrees_with_integrals_over_effect_and_scale(row: np.ndarray, effect_scale: float) -> None:
    def likelihood(delta: float, log_sigma: float) -> float:
        sigma = np.exp(log_sigma)
        return float(np.exp(stats.norm.logpdf(row, sigma * delta, sigma).sum() + stats.norm.logpdf(log_sigma)))

    # delta = tan(angle) spreads the Cauchy evenly.
    angles, log_sigmas = np.linspace(-np.pi / 2, np.pi / 2, 2_001)[1:-1], np.linspace(-9, 9, 361)
    deltas = np.tan(angles)
    sigmas = np.exp(log_sigmas)[:, None]
    log_likelihood = sum(stats.norm.logpdf(y, sigmas * deltas, sigmas) for y in row)
    weights = stats.cauchy.pdf(deltas, scale=effect_scale) * (1 + deltas**2)
    joint = np.exp(log_likelihood) * weights * stats.norm.pdf(log_sigmas)[:, None]
    first = joint.sum() * (angles[1] - angles[0]) * (log_sigmas[1] - log_sigmas[0])
    second, _ = integrate.quad(lambda s: likelihood(0.0, s), -9, 9, epsabs=0, epsrel=1e-10, limit=200)
    found = t_test_log_bf(row[None], effect_scale=effect_scale)[0]
    assert found == pytest.approx(np.log(first / second), abs=1e-5)


def test_one_value_tells_little_and_a_vanishing_effect_nothing() -> None:
    # 0 divided by any sigma is 0, so V(0) does not depend on sigma: one Voigt profile over one normal density.
    profile, _ = integrate.quad(lambda d: stats.cauchy.pdf(d, scale=0.707) * stats.norm.pdf(d), -60, 60, limit=400)
    assert t_test_log_bf([[0.0]])[0] == pytest.approx(np.log(profile / stats.norm.pdf(0.0)), abs=1e-5)
    assert_allclose(t_test_log_bf(DATA, effect_scale=1e-9), 0.0, atol=1e-6)


def test_the_sign_of_the_data_changes_nothing() -> None:
    assert_allclose(t_test_log_bf(-DATA), t_test_log_bf(DATA), rtol=1e-12)


def test_values_far_out_are_finite() -> None:
    far = 1e6 * DATA
    assert np.isfinite(t_test_log_bf(np.concatenate([far, 1e-6 * DATA]))).all()
    # Far out the Cauchy is the flatter the further, and the evidence for an effect grows without end.
    growing = t_test_log_bf(DATA[0] + 10.0 ** np.arange(7)[:, None])
    assert (np.diff(growing) > 0).all()


def test_inverse_bayes_factors_average_to_one_under_an_effect() -> None:
    data = problems.load("t-test", num_obs=4).models[0].simulate(5_000, seed=6).data
    inverse = np.exp(-t_test_log_bf(data))
    error = inverse.std() / np.sqrt(len(data))
    assert error < 0.03
    assert abs(inverse.mean() - 1) < 5 * error


def test_what_is_no_data_set_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(num_datasets, num_obs\)"):
        t_test_log_bf([1.0, 2.0])
    with pytest.raises(ValueError, match="effect_scale"):
        t_test_log_bf(DATA, effect_scale=-1.0)
