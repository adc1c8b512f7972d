"""Exact posteriors have the moments of their closed forms, and predict what a model without data predicts."""

import numpy as np
import pytest

from deepbf.criticism import ExactPosterior
from deepbf_studies.problems import load

NUM_DRAWS = 20_000
# Each of some forty comparisons is off by this many standard errors in one of 2 million runs; seeds are fixed.
MOST_ERRORS = 5.0


def exact(study: str, k: int, num_obs: int = 128) -> ExactPosterior:
    found = load(study, num_obs=num_obs).exact_posteriors
    assert found is not None
    return found[k]


def assert_moments(draws: np.ndarray, mean: np.ndarray | float, var: np.ndarray | float, extra: float = 0.0) -> None:
    """Draws along axis 0 have this mean, and this variance up to a share `extra`."""
    error = np.sqrt(np.asarray(var) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < MOST_ERRORS * error)
    fourth = ((draws - draws.mean(axis=0)) ** 4).mean(axis=0)
    var_error = np.sqrt((fourth - np.asarray(var) ** 2) / len(draws))
    assert np.all(np.abs(draws.var(axis=0) - var) < MOST_ERRORS * var_error + extra * np.asarray(var))


def gamma_moments(shape: float, rate: float) -> tuple[float, float]:
    return shape / rate, shape / rate**2


def test_conjugate_posteriors_have_their_moments() -> None:
    counts, times = np.array([3.0, 0.0, 1.0, 7.0, 2.0]), np.array([0.3, 1.2, 0.1, 2.0])
    a, b = 2 + 5, 2 + 13
    beta_var = a * b / ((a + b) ** 2 * (a + b + 1))
    assert_moments(exact("data-1-i", 0).sample(counts, NUM_DRAWS, seed=1), a / (a + b), beta_var)
    assert_moments(exact("data-1-i", 1).sample(counts, NUM_DRAWS, seed=1), *gamma_moments(4 + 13, 4 + 5))
    assert_moments(exact("data-1-ii", 1).sample(counts, NUM_DRAWS, seed=1), *gamma_moments(1 + 13, 1 + 5))
    assert_moments(exact("data-3", 0).sample(times, NUM_DRAWS, seed=1), *gamma_moments(2 + 4, 2 + 3.6))
    precision = 1 + 4 / 2.5**2
    assert_moments(exact("data-2", 1).sample(times, NUM_DRAWS, seed=1), 3.6 / 2.5**2 / precision, 1 / precision)


def mixture_moments(observed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the two means, summing over all ways to share observations between the components."""
    weights, means, variances = [], [], []
    for code in range(2 ** len(observed)):
        in_upper = (code >> np.arange(len(observed)) & 1).astype(bool)
        log_weight, mean, var = 0.0, [], []
        for members, prior_mean in ((in_upper, 2.0), (~in_upper, -2.0)):
            values = observed[members] - prior_mean
            precision = 1 / 1.5**2 + len(values) / 4
            mean.append(prior_mean + values.sum() / 4 / precision)
            var.append(1 / precision)
            log_weight += -0.5 * (values**2).sum() / 4 + (values.sum() / 4) ** 2 / 2 / precision - np.log(precision) / 2
        weights.append(log_weight)
        means.append(mean)
        variances.append(var)
    weight = np.exp(np.array(weights) - max(weights))
    weight = (weight / weight.sum())[:, None]
    mean = (weight * means).sum(axis=0)
    return mean, (weight * (np.array(variances) + np.array(means) ** 2)).sum(axis=0) - mean**2


@pytest.mark.parametrize("observed", [[1.0, -3.0, 2.5, 0.2, 4.0, -1.0], [10.0] * 6, [0.0], [40.0, -1.0, 0.0]], ids=str)
def test_the_mixtures_means_are_those_of_all_its_assignments(observed: list[float]) -> None:
    values = np.array(observed)
    draws = exact("data-2", 0).sample(values, NUM_DRAWS, seed=2)
    mean, var = mixture_moments(values)
    # The interpolated grid is allowed 2% of the variance.
    assert_moments(draws, mean, var, extra=0.02)


@pytest.mark.parametrize("study", ["data-1-i", "data-2", "data-3"])
@pytest.mark.parametrize("k", [0, 1])
def test_leaving_one_out_is_conditioning_on_the_others(study: str, k: int) -> None:
    posterior = exact(study, k, num_obs=6)
    observed = posterior.model.simulate(1, seed=3).data[0]
    left_out = posterior.leave_one_out(observed, 4000, seed=4)
    assert left_out.shape == (6, 4000)
    for i in (0, 5):
        rest = np.delete(observed, i)
        direct = posterior.predictive(rest, 4000, seed=5)[:, 0]
        error = np.sqrt(direct.var() / 4000 + left_out[i].var() / 4000)
        assert abs(left_out[i].mean() - direct.mean()) < MOST_ERRORS * error


@pytest.mark.parametrize("study", ["data-1-i", "data-2", "data-3"])
def test_parameters_rank_evenly_among_their_posterior_draws(study: str) -> None:
    # Simulation-based calibration: the prior's own draw has a uniform rank, at any n.
    posterior = exact(study, 0, num_obs=20)
    params, data = posterior.model.simulate(100, seed=6)
    ranks = []
    for k, (truth, observed) in enumerate(zip(np.asarray(params).reshape(100, -1), data, strict=True)):
        draws = posterior.sample(observed, 99, seed=100 + k).reshape(99, -1)
        ranks.append((draws < truth).sum(axis=0))
    ranks = np.array(ranks) / 99
    # The mean of 100 uniform ranks has the standard error 0.029, and of their squared distances from 1/2 0.0075.
    assert np.all(np.abs(ranks.mean(axis=0) - 0.5) < 4 * 0.029)
    assert np.all(np.abs(((ranks - 0.5) ** 2).mean(axis=0) - 1 / 12) < 4 * 0.0075)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="has no parameters to draw; call predictive"):
        exact("data-3", 1).sample([1.0], 5)
    with pytest.raises(ValueError, match="one data set of finite numbers"):
        exact("data-1-i", 0).predictive([[1.0, 2.0]], 5)
    assert exact("data-3", 1).predictive([1.0, 2.0], 5, seed=1).shape == (5, 2)
