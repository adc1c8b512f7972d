"""Bridge sampling against densities whose integral is known, and against closed-form Bayes factors."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy import stats

import deepbf
from deepbf.baselines import bridge, integrate, warp_bridge
from deepbf.baselines.baseline_result import BaselineResult
from deepbf.baselines.bridge_sampling import bridge_evidence, solve_bridge
from deepbf_studies.problems import normal_mean_log_bf

Floats = NDArray[np.float64]
Method = Callable[..., BaselineResult]
METHODS = [bridge, warp_bridge]
SMALL = {"num_draws": 500, "num_chains": 2}


def draw_mean(rng: np.random.Generator, size: int) -> Floats:
    return rng.normal(0.0, 2.0, size)


def around_mean(rng: np.random.Generator, mean: Floats) -> Floats:
    return rng.normal(mean[:, None], 1.0, (len(mean), 5))


def around_zero(rng: np.random.Generator, size: int) -> Floats:
    return rng.normal(0.0, 1.0, (size, 5))


def log_normal(deviation: Any, scale: float = 1.0) -> Any:
    return -0.5 * (deviation / scale) ** 2 - 0.5 * np.log(2 * np.pi * scale**2)


FREE_MEAN = deepbf.Model(
    "free mean",
    prior=draw_mean,
    simulator=around_mean,
    log_prior=lambda mean: log_normal(mean, 2.0),
    log_likelihood=lambda mean, data: log_normal(data - mean[:, None]).sum(axis=-1),
)
ZERO_MEAN = deepbf.Model(
    "zero mean", simulator=around_zero, log_likelihood=lambda params, data: log_normal(data).sum(axis=-1)
)
DATA = FREE_MEAN.simulate(6, seed=3).data


@pytest.mark.parametrize("proposal", ["normal", "warp"])
def test_evidence_of_a_correlated_normal(proposal: str) -> None:
    covariance = np.array([[2.0, 1.2], [1.2, 1.0]])
    draws = np.random.default_rng(1).multivariate_normal([3.0, -4.0], covariance, 4000)

    def log_density(points: Floats) -> Floats:
        deviation = points - np.array([3.0, -4.0])
        squares = np.einsum("ni,ij,nj->n", deviation, np.linalg.inv(covariance), deviation)
        return -0.5 * squares - 0.5 * np.log(np.linalg.det(2 * np.pi * covariance)) + 7.5

    evidence = bridge_evidence(draws, log_density, proposal=proposal)
    assert evidence.converged.all()
    assert_allclose(evidence.log_evidence, 7.5, atol=max(4 * evidence.error[0], 1e-6))
    assert evidence.error[0] < 0.01


@pytest.mark.parametrize("proposal", ["normal", "warp"])
def test_evidence_of_a_skewed_density_on_the_log_scale(proposal: str) -> None:
    # A Gamma(0.5, 1) on the log scale has a long left tail.
    draws = np.log(np.random.default_rng(2).gamma(0.5, 1.0, (20_000, 1)))
    evidence = bridge_evidence(draws, lambda x: stats.gamma.logpdf(np.exp(x[:, 0]), 0.5) + x[:, 0], proposal=proposal)
    assert abs(evidence.log_evidence[0]) < 4 * evidence.error[0]
    assert evidence.error[0] < 0.02


def test_warping_a_skewed_posterior_shrinks_the_error() -> None:
    draws = np.log(np.random.default_rng(2).gamma(0.5, 1.0, (20_000, 1)))

    def log_density(x: Floats) -> Floats:
        return stats.gamma.logpdf(np.exp(x[:, 0]), 0.5) + x[:, 0]

    plain, warped = (bridge_evidence(draws, log_density, proposal=p) for p in ("normal", "warp"))
    assert warped.error[0] < plain.error[0]


@pytest.mark.slow
def test_the_reported_error_is_that_of_repeated_runs() -> None:
    def log_density(x: Floats) -> Floats:
        return stats.t.logpdf(x[:, 0], 3)

    runs = [
        bridge_evidence(stats.t.rvs(3, size=(1000, 1), random_state=seed), log_density, seed=seed) for seed in range(50)
    ]
    errors = np.array([run.log_evidence[0] for run in runs])
    reported = np.sqrt(np.mean([run.error[0] ** 2 for run in runs]))
    # The standard deviation of 50 runs is known to about 10%.
    assert 0.65 < errors.std(ddof=1) / reported < 1.5
    assert abs(errors.mean()) < 4 * errors.std(ddof=1) / np.sqrt(50)


def test_correlated_draws_count_for_less() -> None:
    rng = np.random.default_rng(4)
    chain = np.zeros((4, 4000, 1))
    for step in range(1, 4000):
        chain[:, step] = 0.95 * chain[:, step - 1] + np.sqrt(1 - 0.95**2) * rng.standard_normal((4, 1))
    evidence = bridge_evidence(chain, lambda x: stats.t.logpdf(x[:, 0], 5))
    # Half of 16,000 draws, worth (1 - 0.95) / (1 + 0.95) as many independent ones.
    assert 100 < evidence.effective_draws[0] < 500


def test_the_iteration_finds_the_ratio_of_known_constants() -> None:
    rng = np.random.default_rng(5)
    constants = np.array([-300.0, 0.0, 800.0])
    posterior, proposal = rng.normal(0.3, 1.0, (3, 5000)), rng.normal(0.0, 1.0, (3, 5000))

    def log_ratio(x: Floats) -> Floats:
        return 0.3 * x - 0.045 + constants[:, None]

    solved = solve_bridge(log_ratio(posterior), log_ratio(proposal), np.full(3, 0.5), num_chains=1)
    assert solved.converged.all()
    assert_allclose(solved.log_evidence, constants, atol=0.02)
    assert (np.abs(solved.log_evidence - constants) < 4 * solved.error).all()
    assert (solved.error < 0.01).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.slow
def test_models_against_the_closed_form(method: Method) -> None:
    result = method([FREE_MEAN, ZERO_MEAN], DATA, seed=1, **SMALL)
    exact = normal_mean_log_bf(DATA, prior_scale=2.0)
    assert_allclose(result.log_bf, exact, atol=0.02)
    assert (np.abs(result.log_bf - exact) < 4 * result.log_bf_error + 1e-6).all()
    assert result.warnings == ()
    assert result.diagnostics["converged"].all()


@pytest.mark.slow
def test_swapping_the_models_flips_the_sign_to_the_last_bit() -> None:
    # Two models with parameters: each has draws of its own, which must not depend on where the model stands.
    wide = deepbf.Model(
        "wide mean",
        prior=lambda rng, size: rng.normal(0.0, 5.0, size),
        simulator=around_mean,
        log_prior=lambda mean: log_normal(mean, 5.0),
        log_likelihood=FREE_MEAN.log_likelihood,
    )
    forward = bridge([FREE_MEAN, wide], DATA, seed=1, num_draws=100, num_chains=2)
    backward = bridge([wide, FREE_MEAN], DATA, seed=1, num_draws=100, num_chains=2)
    assert_array_equal(forward.log_bf, -backward.log_bf)
    assert_array_equal(forward.log_bf_error, backward.log_bf_error)
    for name, values in forward.diagnostics.items():
        assert_array_equal(values, backward.diagnostics[name][:, ::-1])
    # And the answer is right: each evidence against a mean of 0 is known.
    exact = normal_mean_log_bf(DATA, prior_scale=2.0) - normal_mean_log_bf(DATA, prior_scale=5.0)
    assert (np.abs(forward.log_bf - exact) < 4 * forward.log_bf_error + 1e-6).all()
    assert (forward.log_bf_error < 0.1).all()


@pytest.mark.slow
def test_bounded_parameters_in_a_dict() -> None:
    coin = deepbf.Model(
        "coin",
        prior=lambda rng, size: {"p": rng.beta(1, 1, size), "rate": rng.gamma(2, 1, size)},
        simulator=lambda rng, params: np.stack([rng.binomial(10, params["p"]), rng.poisson(params["rate"])], axis=1),
        log_prior=lambda params: jnp.log(params["rate"]) - params["rate"],
        log_likelihood=lambda params, data: (
            data[:, 0] * jnp.log(params["p"])
            + (10 - data[:, 0]) * jnp.log1p(-params["p"])
            + data[:, 1] * jnp.log(params["rate"])
            - params["rate"]
        ),
        transform={"p": "unit", "rate": "positive"},
    )
    fair = deepbf.Model(
        "fair",
        simulator=lambda rng, size: np.stack([rng.binomial(10, 0.5, size), rng.poisson(2, size)], axis=1),
        log_likelihood=lambda params, data: np.zeros(len(data)),
    )
    result = bridge([coin, fair], [[7, 3], [10, 0]], seed=1, **SMALL)
    # Beta(y + 1, 11 - y) and Gamma(z + 2) integrals, without the binomial and factorial constants.
    log_beta = np.log([1 / (11 * 120), 1 / 11])
    log_gamma = np.log([24 / 2.0**5, 1 / 2.0**2])
    assert_allclose(result.log_bf, log_beta + log_gamma, atol=0.03)
    assert (np.abs(result.log_bf - log_beta - log_gamma) < 4 * result.log_bf_error).all()


@pytest.mark.slow
def test_whole_numbers_stay_whole_for_a_likelihood_that_indexes_with_them() -> None:
    def log_likelihood(logit: Any, data: Any) -> Any:
        log_probs = jnp.stack([-jnp.logaddexp(0.0, logit), -jnp.logaddexp(0.0, -logit)], axis=1)
        return jnp.take_along_axis(log_probs, data, axis=1).sum(axis=1)

    coin = deepbf.Model(
        "coin",
        prior=lambda rng, size: rng.normal(size=size),
        simulator=lambda rng, logit: rng.binomial(1, 1 / (1 + np.exp(-logit[:, None])), (len(logit), 3)),
        log_prior=log_normal,
        log_likelihood=log_likelihood,
    )
    fair = deepbf.Model(
        "fair",
        simulator=lambda rng, size: rng.binomial(1, 0.5, (size, 3)),
        log_likelihood=lambda params, data: np.full(len(data), 3 * np.log(0.5)),
    )
    data = np.array([[1, 1, 0]])
    result = bridge([coin, fair], data, **SMALL)
    assert_allclose(result.log_bf, integrate([coin, fair], data).log_bf, atol=0.02)


def test_an_impossible_data_set_is_named() -> None:
    bounded = deepbf.Model(
        "bounded",
        prior=lambda rng, size: rng.uniform(size=size),
        simulator=lambda rng, top: rng.uniform(0, top[:, None], (len(top), 2)),
        log_prior=lambda top: jnp.zeros_like(top),
        log_likelihood=lambda top, data: jnp.where(data.max(axis=-1) < top, -2 * jnp.log(top), -jnp.inf),
        transform="unit",
    )
    free = deepbf.Model(
        "free", simulator=lambda rng, size: rng.uniform(0, 2, (size, 2)), log_likelihood=lambda _, d: np.zeros(len(d))
    )
    with pytest.raises(ValueError, match=r"observed data set 1 has likelihood 0 .* of model 'bounded'"):
        bridge([bounded, free], [[0.1, 0.2], [0.1, 1.5]], **SMALL)


def bad_model(**changes: Any) -> deepbf.Model:
    parts: dict[str, Any] = {
        "prior": draw_mean,
        "simulator": around_mean,
        "log_prior": FREE_MEAN.log_prior,
        "log_likelihood": FREE_MEAN.log_likelihood,
    }
    return deepbf.Model("bad", **(parts | changes))


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"log_prior": None}, ValueError, "'bad' has no log_prior, which is needed"),
        ({"log_likelihood": None}, ValueError, "'bad' has no log_likelihood"),
        ({"log_likelihood": lambda m, d: m * jnp.nan}, ValueError, "'bad' returned nan for 16 of 16"),
        ({"log_prior": lambda m: m * 0 + jnp.inf}, ValueError, "'bad' returned inf"),
        ({"log_likelihood": lambda m, d: d - m[:, None]}, ValueError, "log_likelihood of model 'bad' must return one"),
        ({"log_prior": lambda m: np.log(np.abs(m))}, TypeError, "'bad' must be written with jax.numpy"),
        ({"transform": "unit"}, ValueError, "'bad' draws parameters outside transform='unit'"),
        ({"log_likelihood": lambda m, d: m * 0 - jnp.inf}, ValueError, "has likelihood 0 at 16 draws"),
    ],
)
def test_bad_models_are_named(changes: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        bridge([bad_model(**changes), ZERO_MEAN], DATA, **SMALL)


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        (np.arange(10.0)[:, None], "draws holds 10 draws.*at least 100"),
        (np.zeros((500, 1)), "a parameter that never changes"),
        (np.random.default_rng(1).normal(size=(200, 3, 1)), "chains of 3 draws"),
        (np.zeros(500), r"draws must have shape \(draws, d\)"),
        (np.full((500, 1), np.nan), "draws has 500 of 500 values not finite"),
    ],
)
def test_bad_draws_are_refused(draws: Floats, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bridge_evidence(draws, lambda x: -0.5 * x[:, 0] ** 2)


@pytest.mark.parametrize(
    ("log_density", "message"),
    [
        (lambda x: np.where(x[:, 0] > 0, 0.0, -np.inf), "posterior draws lie outside the support"),
        (lambda x: np.where(x[:, 0] > 0, 0.0, np.inf), "the log density returned inf"),
        (lambda x: np.log(-np.abs(x[:, 0])), "the log density returned nan"),
        (lambda x: x, "log_density must return one number per point"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_bad_log_densities_are_refused(log_density: Any, message: str) -> None:
    draws = np.random.default_rng(1).normal(size=(500, 1))
    with pytest.raises(ValueError, match=message):
        bridge_evidence(draws, log_density)


def test_proposals_outside_the_support_are_counted() -> None:
    draws = np.random.default_rng(1).uniform(size=(2000, 1))
    evidence = bridge_evidence(draws, lambda x: np.where((x[:, 0] > 0) & (x[:, 0] < 1), 0.0, -np.inf))
    assert evidence.num_proposals_outside[0] > 0
    assert abs(evidence.log_evidence[0]) < 4 * evidence.error[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"num_draws": 10}, "num_draws must be at least 50"), ({"num_chains": 0}, "num_chains must be at least 1")],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bridge([FREE_MEAN, ZERO_MEAN], DATA, **options)
