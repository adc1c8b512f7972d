"""Gamma or Weibull waiting times: quadrature on shared nodes against brute force over shape and mean."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import gamma, logsumexp

from deepbf_studies import problems
from deepbf_studies.problems import gamma_waits
from deepbf_studies.problems.gamma_waits import (
    GAMMA_SHAPE,
    WEIBULL_SHAPE,
    gamma_log_evidence,
    gamma_waits_log_bf,
    weibull_log_evidence,
)

STUDY = problems.load("gamma-waits")


def by_brute_force(waits: np.ndarray, weibull: bool) -> float:
    """Return the log evidence by a fine grid of the logarithms of shape and mean."""
    centre, scale = WEIBULL_SHAPE if weibull else GAMMA_SHAPE
    log_shapes = np.linspace(centre - 6 * scale, centre + 6 * scale, 301)[:, None]
    log_means = np.linspace(-7, 7, 1401)
    shapes, means = np.exp(log_shapes), np.exp(log_means)
    log_joint = stats.norm.logpdf(log_shapes, centre, scale) + stats.norm.logpdf(log_means)
    for y in waits:
        if weibull:
            log_joint = log_joint + stats.weibull_min.logpdf(y, shapes, scale=means / gamma(1 + 1 / shapes))
        else:
            log_joint = log_joint + stats.gamma.logpdf(y, shapes, scale=means / shapes)
    cell = (log_shapes[1, 0] - log_shapes[0, 0]) * (log_means[1] - log_means[0])
    return float(np.asarray(logsumexp(log_joint))) + float(np.log(cell))


@pytest.mark.parametrize("waits", [[0.7], [0.7, 0.8, 1.0, 1.1, 3.5], [0.02, 1.0, 5.3, 1.4]], ids=str)
def test_evidences_agree_with_brute_force(waits: list[float]) -> None:
    data = np.array([waits])
    assert gamma_log_evidence(data)[0] == pytest.approx(by_brute_force(data[0], False), abs=1e-5)
    assert weibull_log_evidence(data)[0] == pytest.approx(by_brute_force(data[0], True), abs=1e-5)


def test_finer_nodes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.concatenate([model.simulate(100, seed=1).data for model in STUDY.models])
    usual = gamma_waits_log_bf(data)
    monkeypatch.setattr(gamma_waits, "STEP_IN_WIDTHS", 0.5)
    monkeypatch.setattr(gamma_waits, "LARGEST_IN_SCALES", 6.5)
    monkeypatch.setattr(gamma_waits, "U_NODES", np.linspace(-18, 18, 91))
    assert_allclose(gamma_waits_log_bf(data), usual, rtol=0, atol=1e-4)


@pytest.mark.parametrize("model", [0, 1])
def test_simulated_waits_follow_their_distribution(model: int) -> None:
    params = {"mean": np.full(2_000, 2.0), "shape": np.full(2_000, 1.7)}
    waits = STUDY.models[model].simulator(np.random.default_rng(1), params).ravel()
    expected = [stats.gamma(1.7, scale=2 / 1.7), stats.weibull_min(1.7, scale=2 / gamma(1 + 1 / 1.7))][model]
    assert expected.mean() == pytest.approx(2.0)
    assert stats.kstest(waits, expected.cdf).pvalue > 1e-6


def test_one_wait_averages_to_one() -> None:
    """The evidences of one waiting time are densities: they integrate to 1."""
    log_waits = np.linspace(-22, 8, 3_000)
    data = np.exp(log_waits)[:, None]
    for log_evidence_fn in (gamma_log_evidence, weibull_log_evidence):
        area = np.exp(log_evidence_fn(data) + log_waits).sum() * (log_waits[1] - log_waits[0])
        assert area == pytest.approx(1.0, abs=1e-4)


def test_what_are_no_waits_is_refused() -> None:
    with pytest.raises(ValueError, match="waiting times above 0; received 0"):
        gamma_waits_log_bf([[0.0, 1.0]])
