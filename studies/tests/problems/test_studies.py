"""The toy studies: what loads, whether simulators follow their models, and whether densities give the exact answer."""

import pickle
import re
import warnings
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import betaln

from deepbf_studies import problems

NAMES = ("data-1-i", "data-1-ii", "data-2", "data-3")
WEAPON_NAMES = ("weapon-sum", "weapon-full")
# Tested in test_linear_series.py.
SERIES_NAMES = ("ar-ma",)
# Tested in test_known_answers.py.
KNOWN_ANSWER_NAMES = (
    "t-test",
    "pairs",
    "correlated-covariates",
    "regression-rows",
    "probit-groups",
    "heavy-counts",
    "gamma-waits",
    "logistic-fixed",
    "three-counts",
    "normal-mean",
    "grouped-counts",
    "image-blob",
)
# A right simulator fails by chance once in a million; a wrong one has p-values far below.
LEAST_P_VALUE = 1e-6
NUM_DRAWS = 20_000


def draw(name: str, model: int, *, num_obs: int, size: int = NUM_DRAWS, seed: int = 1) -> NDArray[Any]:
    return problems.load(name, num_obs=num_obs).models[model].simulate(size, seed=seed).data


# What loads


def test_the_names_are_the_papers_first_and_then_others() -> None:
    others = ("random-effects", *SERIES_NAMES, "covariate", "five-counts", "influenza")
    # Tested in test_series_and_fields.py.
    series = ("event", "season", "variance-change", "hidden-states", "local-level", "pair")
    judging = (*(f"series-{name}" for name in series), "field", "change-counts", "vector-fixed-design")
    assert problems.names() == (*NAMES, *WEAPON_NAMES, *others, *judging, *KNOWN_ANSWER_NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_obs", [1, 5])
def test_a_study_is_complete(name: str, num_obs: int) -> None:
    study = problems.load(name, num_obs=num_obs)
    assert (study.name, study.num_obs, study.structure) == (name, num_obs, "exchangeable")
    assert "\n" not in study.title
    assert len(study.models) == 2
    for model in study.models:
        simulations = model.simulate(7, seed=2)
        assert simulations.data.shape == (7, num_obs)
        log_bf = study.exact_log_bf(simulations.data)
        assert log_bf.shape == (7,)
        assert log_bf.dtype == np.float64
        assert np.isfinite(log_bf).all()


def test_models_are_named_in_the_order_of_the_bayes_factor() -> None:
    named = {name: tuple(model.name for model in problems.load(name).models) for name in NAMES}
    assert named == {
        "data-1-i": ("negative binomial", "Poisson"),
        "data-1-ii": ("negative binomial", "Poisson"),
        "data-2": ("normal mixture", "normal"),
        "data-3": ("exponential, unknown rate", "exponential, rate 3"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_data_favour_the_model_they_came_from(name: str) -> None:
    study = problems.load(name, num_obs=128)
    first, second = (study.exact_log_bf(model.simulate(200, seed=3).data) for model in study.models)
    # Both expectations are relative entropies, 1 nat and more at 128 observations.
    assert first.mean() > 0.5
    assert second.mean() < -0.5


@pytest.mark.parametrize("name", NAMES)
def test_a_study_survives_pickling(name: str) -> None:
    study = problems.load(name, num_obs=3)
    copy = pickle.loads(pickle.dumps(study))
    for model, copied in zip(study.models, copy.models, strict=True):
        data = model.simulate(10, seed=4).data
        np.testing.assert_array_equal(copied.simulate(10, seed=4).data, data)
        np.testing.assert_array_equal(copy.exact_log_bf(data), study.exact_log_bf(data))


@pytest.mark.parametrize(("typed", "meant"), [("data-1-iii", "data-1-ii"), ("Data 2", "data-2"), ("data3", "data-3")])
def test_an_unknown_name_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"Did you mean '{meant}'") as raised:
        problems.load(typed)
    assert all(f"'{name}'" in str(raised.value) for name in NAMES)


def test_num_obs_is_a_whole_number_of_at_least_one() -> None:
    with pytest.raises(ValueError, match="num_obs must be at least 1; received 0"):
        problems.load("data-3", num_obs=0)
    with pytest.raises(TypeError, match=re.escape("num_obs must be a whole number, at least 1; received 2.5")):
        problems.load("data-3", num_obs=2.5)  # pyright: ignore[reportArgumentType]


# Simulators against the marginal distribution of their model


def assert_frequencies(data: NDArray[np.generic], log_prob: NDArray[np.float64]) -> None:
    """Chi-square test of counts in the cells of a table against their probabilities; one more cell holds the rest."""
    observed = np.zeros(log_prob.shape)
    inside = np.all(data < log_prob.shape, axis=1)
    np.add.at(observed, tuple(data[inside].T), 1)
    probs = np.exp(log_prob)
    # Rare cells join the rest, where the chi-square approximation would fail.
    common = probs * len(data) > 10
    observed = np.append(observed[common], len(data) - observed[common].sum())
    expected = len(data) * np.append(probs[common], 1 - probs[common].sum())
    assert len(observed) > 10
    assert stats.chisquare(observed, expected).pvalue > LEAST_P_VALUE


@pytest.mark.parametrize(("name", "a", "b"), [("data-1-i", 2, 2), ("data-1-ii", 1, 1)])
def test_negative_binomial_pairs(name: str, a: float, b: float) -> None:
    total = np.add.outer(np.arange(40), np.arange(40))
    assert_frequencies(draw(name, 0, num_obs=2), betaln(a + 2, b + total) - betaln(a, b))


@pytest.mark.parametrize(("name", "shape", "rate"), [("data-1-i", 4, 4), ("data-1-ii", 1, 1)])
def test_poisson_pairs(name: str, shape: float, rate: float) -> None:
    # The total is negative binomial, and given the total the first is binomial with probability 1/2.
    first, second = np.meshgrid(np.arange(20), np.arange(20), indexing="ij")
    log_prob = stats.nbinom.logpmf(first + second, shape, rate / (rate + 2))
    log_prob += stats.binom.logpmf(first, first + second, 0.5)
    assert_frequencies(draw(name, 1, num_obs=2), log_prob)


@pytest.mark.parametrize("rate", [0.3, 2.0, 20.0])
def test_poisson_by_either_route(rate: float) -> None:
    poisson = problems.load("data-1-i", num_obs=3).models[1]
    data = poisson.simulator(np.random.default_rng(5), np.full(NUM_DRAWS, rate))
    totals = data.sum(axis=1)
    log_prob = stats.poisson.logpmf(np.arange(150), 3 * rate)
    # Few cells hold a small rate's totals; its pairs, with more, are tested above.
    if rate > 1:
        assert_frequencies(totals[:, None], log_prob)
    # Independent counts: their covariances are 0, with a standard error of rate / sqrt(size).
    covariances = np.cov(data.T)[np.triu_indices(3, k=1)]
    assert np.abs(covariances).max() < 5 * rate / np.sqrt(NUM_DRAWS)
    assert data.mean() == pytest.approx(rate, abs=5 * np.sqrt(rate / data.size))
    assert data.var() == pytest.approx(rate, abs=5 * np.sqrt((rate + 2 * rate**2) / data.size))


@pytest.mark.parametrize("model", [0, 1])
def test_normal_models_one_at_a_time_and_together(model: int) -> None:
    # Alone, 1/2 N(2, 2.5^2) + 1/2 N(-2, 2.5^2) or N(0, 7.25).
    def cdf(y: NDArray[np.float64]) -> NDArray[np.float64]:
        if model == 1:
            return stats.norm.cdf(y, 0, np.sqrt(7.25))
        return (stats.norm.cdf(y, 2, 2.5) + stats.norm.cdf(y, -2, 2.5)) / 2

    data = draw("data-2", model, num_obs=2)
    assert stats.kstest(data[:, 0], cdf).pvalue > LEAST_P_VALUE
    assert stats.kstest(data[:, 1], cdf).pvalue > LEAST_P_VALUE
    # Together, covariance 1 through the shared mean, or 1/2 1.5^2 when half the pairs share a component.
    covariance = [1.5**2 / 2, 1.0][model]
    variance = [2.5**2 + 2**2, 7.25][model]
    products = data[:, 0] * data[:, 1]
    assert abs(products.mean() - covariance) < 5 * products.std() / np.sqrt(NUM_DRAWS)
    half_squares = (data[:, 0] - data[:, 1]) ** 2 / 2
    assert abs(half_squares.mean() - (variance - covariance)) < 5 * half_squares.std() / np.sqrt(NUM_DRAWS)


def test_waiting_times_one_at_a_time_and_together() -> None:
    unknown = draw("data-3", 0, num_obs=3)
    known = draw("data-3", 1, num_obs=3)
    # A Gamma(2, 2) mixture of exponentials is a Lomax with shape 2 and scale 2; its smallest of three has rate tripled.
    assert stats.kstest(unknown[:, 0], stats.lomax(2, scale=2).cdf).pvalue > LEAST_P_VALUE
    assert stats.kstest(unknown.min(axis=1), stats.lomax(2, scale=2 / 3).cdf).pvalue > LEAST_P_VALUE
    assert stats.kstest(known[:, 0], stats.expon(scale=1 / 3).cdf).pvalue > LEAST_P_VALUE
    assert stats.kstest(known.min(axis=1), stats.expon(scale=1 / 9).cdf).pvalue > LEAST_P_VALUE


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_obs", [1, 3])
def test_inverse_bayes_factors_average_to_one_under_the_first_model(name: str, num_obs: int) -> None:
    # The other way round, the variance is infinite where the second model's tails are the lighter ones.
    study = problems.load(name, num_obs=num_obs)
    data = study.models[0].simulate(NUM_DRAWS, seed=6).data
    inverse = np.exp(-study.exact_log_bf(data))
    error = inverse.std() / np.sqrt(NUM_DRAWS)
    assert error < 0.03
    assert abs(inverse.mean() - 1) < 5 * error


def test_extreme_success_probabilities_give_extreme_counts_in_silence() -> None:
    negative_binomial = problems.load("data-1-i", num_obs=1000).models[0]
    probs = np.array([1.0, 1 - 2**-53, 1e-9, 1e-300, 5e-324, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = negative_binomial.simulator(np.random.default_rng(7), probs)
    assert (counts[:2] == 0).all()
    # The mean of 1,000 draws with mean and standard deviation 1e9.
    assert counts[2].mean() == pytest.approx(1e9, abs=5e9 / np.sqrt(1000))
    assert (counts[3:] == 2**53).all()


def test_many_data_sets_are_drawn_in_blocks_without_gaps() -> None:
    # More rows than one block, each with its own probability: every row must have its own mean, (1 - p) / p.
    negative_binomial = problems.load("data-1-i", num_obs=100).models[0]
    probs = np.linspace(0.1, 0.9, 1000)
    counts = negative_binomial.simulator(np.random.default_rng(8), probs)
    z_values = (counts.mean(axis=1) - (1 - probs) / probs) / np.sqrt((1 - probs) / probs**2 / 100)
    assert np.abs(z_values).max() < 6
    assert z_values.std() == pytest.approx(1, abs=0.15)


# Densities


def log_evidence(model, data: NDArray[np.generic], params: NDArray[np.float64], log_cell: float) -> float:
    """Log of the sum of prior times likelihood over a fine grid of parameters."""
    log_joint = model.log_prior(params) + model.log_likelihood(params, data)
    return float(np.logaddexp.reduce(log_joint, axis=None)) + log_cell


@pytest.mark.parametrize("name", ["data-1-i", "data-1-ii", "data-3"])
def test_densities_integrate_to_the_exact_log_bf(name: str) -> None:
    study = problems.load(name, num_obs=6)
    first, second = study.models
    num_cells = 20_000
    unit = (np.arange(num_cells) + 0.5) / num_cells
    for data in first.simulate(5, seed=9).data:
        scale = 1.0 if name.startswith("data-1") else 40.0
        expected = log_evidence(first, data, scale * unit, np.log(scale / num_cells))
        if second.prior is None:
            assert second.log_likelihood is not None
            expected -= second.log_likelihood(None, data)
        else:
            # Wide enough for any rate that the counts allow.
            scale = 10.0 + 3.0 * float(data.max())
            expected -= log_evidence(second, data, scale * unit, np.log(scale / num_cells))
        assert study.exact_log_bf(data[None])[0] == pytest.approx(expected, abs=1e-4)


def test_mixture_densities_integrate_to_the_exact_log_bf() -> None:
    study = problems.load("data-2", num_obs=6)
    first, second = study.models
    grid = np.arange(-16, 16, 0.2)
    pairs = np.stack(np.meshgrid(grid, grid), axis=-1)
    for data in first.simulate(5, seed=10).data:
        expected = log_evidence(first, data, pairs, 2 * np.log(0.2)) - log_evidence(second, data, grid, np.log(0.2))
        assert study.exact_log_bf(data[None])[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", [0, 1])
def test_densities_take_one_data_set_or_one_a_parameter(name: str, model: int) -> None:
    chosen = problems.load(name, num_obs=4).models[model]
    assert chosen.log_likelihood is not None
    params, data = chosen.simulate(6, seed=11)
    assert params is None or isinstance(params, np.ndarray)
    paired = chosen.log_likelihood(params, data)
    assert paired.shape == (6,)
    for i in range(6):
        one = None if params is None else params[i]
        assert chosen.log_likelihood(one, data[i]) == pytest.approx(paired[i], rel=1e-12)
        if params is not None:
            assert chosen.log_likelihood(params, data[i])[i] == pytest.approx(paired[i], rel=1e-12)


def test_densities_agree_with_scipy() -> None:
    negbin, poisson = problems.load("data-1-i").models
    mixture, normal = problems.load("data-2").models
    unknown, known = problems.load("data-3").models
    p, y, t = 0.3, np.array([0, 3, 7]), np.array([0.2, 1.5])
    pair = np.array([1.0, -0.5])
    components = stats.norm.logpdf(t, pair[:, None], 2.0)
    for log_density_fn, arguments, expected in [
        (negbin.log_prior, [p], stats.beta.logpdf(p, 2, 2)),
        (negbin.log_likelihood, [p, y], stats.geom.logpmf(y + 1, p).sum()),
        (poisson.log_prior, [p], stats.gamma.logpdf(p, 4, scale=1 / 4)),
        (poisson.log_likelihood, [p, y], stats.poisson.logpmf(y, p).sum()),
        (mixture.log_prior, [pair], stats.norm.logpdf(pair, [2, -2], 1.5).sum()),
        (mixture.log_likelihood, [pair, t], (np.logaddexp(*components) - np.log(2)).sum()),
        (normal.log_prior, [p], stats.norm.logpdf(p)),
        (normal.log_likelihood, [p, t], stats.norm.logpdf(t, p, 2.5).sum()),
        (unknown.log_prior, [p], stats.gamma.logpdf(p, 2, scale=1 / 2)),
        (unknown.log_likelihood, [p, t], stats.expon.logpdf(t, scale=1 / p).sum()),
        (known.log_likelihood, [None, t], stats.expon.logpdf(t, scale=1 / 3).sum()),
    ]:
        assert log_density_fn is not None
        assert log_density_fn(*arguments) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["data-1-i", "data-3"])
def test_parameters_out_of_range_have_density_zero_in_silence(name: str) -> None:
    data = np.array([1, 0, 2])
    for model in problems.load(name, num_obs=3).models[: 1 if name == "data-3" else 2]:
        assert model.log_prior is not None
        assert model.log_likelihood is not None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outside = np.array([-1.0, 0.0])
            assert (model.log_prior(outside) == -np.inf).all()
            assert (model.log_likelihood(outside, data) == -np.inf).all()


@pytest.mark.parametrize("name", NAMES)
def test_densities_can_be_traced_and_differentiated(name: str) -> None:
    study = problems.load(name, num_obs=5)
    for model in study.models:
        if model.prior is None:
            continue
        params, data = model.simulate(1, seed=12)
        assert isinstance(params, np.ndarray)
        assert model.log_prior is not None
        assert model.log_likelihood is not None
        log_prior, log_likelihood = model.log_prior, model.log_likelihood

        def log_joint(params, log_prior=log_prior, log_likelihood=log_likelihood, data=data[0]):
            return log_prior(params) + log_likelihood(params, data)

        point = params[0]
        value, gradient = jax.jit(jax.value_and_grad(log_joint))(np.asarray(point, dtype=np.float32))
        assert value == pytest.approx(log_joint(point), rel=1e-4)
        steps = 1e-6 * np.eye(np.size(point)).reshape(np.size(point), *np.shape(point))
        slopes = [(log_joint(point + step) - log_joint(point - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(np.ravel(gradient), slopes, rtol=1e-3, atol=1e-3)
