"""Closed-form log Bayes factors against integration, exact arithmetic by hand, and identities."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from deepbf_studies.problems import exponential_log_bf, negbin_poisson_log_bf, normal_mean_log_bf
from studies.tests.problems import joint_normal

PRIORS = {"(i)": ((2.0, 2.0), (4.0, 4.0)), "(ii)": ((1.0, 1.0), (1.0, 1.0)), "uneven": ((0.7, 3.5), (2.5, 0.4))}

COUNTS = np.array([[0, 0, 0, 0], [0, 1, 2, 3], [7, 0, 0, 1], [5, 5, 5, 5], [30, 1, 0, 12]])
TIMES = np.array([[0.0, 0.0, 0.0], [0.1, 0.4, 0.2], [2.0, 0.0, 5.0], [9.0, 9.0, 9.0]])
VALUES = np.array([[0.0, 0.0, 0.0], [1.2, -0.3, 2.0], [-8.0, -7.0, -9.0], [30.0, -30.0, 5.0]])


def log_integral(density_fn, low: float, high: float) -> float:
    """Log of an integral by adaptive quadrature, in pieces so that no narrow peak is missed."""
    edges = np.linspace(low, high, 21)
    pieces = [
        integrate.quad(density_fn, a, b, epsabs=0, epsrel=1e-12, limit=200)[0]
        for a, b in itertools.pairwise(edges.tolist())
    ]
    return math.log(math.fsum(pieces))


@pytest.mark.parametrize("setting", PRIORS)
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_negbin_poisson_is_the_ratio_of_two_integrals(setting: str, counts: NDArray[np.int64]) -> None:
    beta, (shape, rate) = PRIORS[setting]

    def first(p: float) -> float:
        return math.prod(p * (1 - p) ** int(y) for y in counts) * float(stats.beta.pdf(p, *beta))

    def second(lam: float) -> float:
        likelihood = math.prod(math.exp(-lam) * lam ** int(y) / math.factorial(y) for y in counts)
        return likelihood * float(stats.gamma.pdf(lam, shape, scale=1 / rate))

    expected = log_integral(first, 0, 1) - log_integral(second, 0, 80)
    [log_bf] = negbin_poisson_log_bf(counts[None], beta=beta, gamma=(shape, rate))
    assert log_bf == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("times", TIMES, ids=str)
@pytest.mark.parametrize(("gamma", "rate"), [((2.0, 2.0), 3.0), ((0.5, 4.0), 1.3)])
def test_exponential_is_an_integral_over_a_density(
    times: NDArray[np.float64], gamma: tuple[float, float], rate: float
) -> None:
    def first(lam: float) -> float:
        likelihood = math.prod(lam * math.exp(-lam * y) for y in times)
        return likelihood * float(stats.gamma.pdf(lam, gamma[0], scale=1 / gamma[1]))

    expected = log_integral(first, 0, 60) - stats.expon.logpdf(times, scale=1 / rate).sum()
    [log_bf] = exponential_log_bf(times[None], gamma=gamma, rate=rate)
    assert log_bf == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("prior_scale", "noise_scale"), [(1.0, 1.0), (2.0, 0.5), (0.1, 3.0)])
def test_normal_mean_is_a_ratio_of_joint_densities(prior_scale: float, noise_scale: float) -> None:
    num_obs = VALUES.shape[1]
    independent = noise_scale**2 * np.eye(num_obs)
    correlated = independent + prior_scale**2 * np.ones((num_obs, num_obs))
    expected = joint_normal.log_density(VALUES, 0.0, correlated) - joint_normal.log_density(VALUES, 0.0, independent)
    log_bf = normal_mean_log_bf(VALUES, prior_scale=prior_scale, noise_scale=noise_scale)
    np.testing.assert_allclose(log_bf, expected, rtol=1e-9, atol=1e-9)


def test_counts_by_hand() -> None:
    # All zero: E[p^2] = 3/10 under Beta(2, 2); E[exp(-2 rate)] = (4/6)^4 under Gamma(4, 4).
    [log_bf] = negbin_poisson_log_bf([[0, 0]], beta=(2, 2), gamma=(4, 4))
    assert log_bf == pytest.approx(math.log(Fraction(3, 10) / Fraction(4, 6) ** 4), abs=1e-13)


@pytest.mark.parametrize("counts", [(0, 0), (1, 4), (300, 200), (40_000, 60_000)])
def test_counts_in_exact_integers(counts: tuple[int, int]) -> None:
    # Under uniform p, p(y1, y2) = 2 S! / (S + 3)!; under Gamma(1, 1), (S choose y1) 3^-(S + 1).
    S = sum(counts)
    log_first = math.log(2) - math.log((S + 1) * (S + 2) * (S + 3))
    log_second = math.log(math.comb(S, counts[0])) - (S + 1) * math.log(3)
    [log_bf] = negbin_poisson_log_bf([counts], beta=(1, 1), gamma=(1, 1))
    assert log_bf == pytest.approx(log_first - log_second, rel=1e-13, abs=1e-9)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_large_counts_by_hand(dtype: type) -> None:
    # The sum of 300 such counts is beyond int32.  Under uniform p the first model gives n! S! / (S + n + 1)!; under
    # Gamma(1, 1) the second gives S! / (y!)^n / (n + 1)^(S + 1), its factorials by Stirling's formula.
    y, n = 2_000_000_000, 300
    S = n * y
    log_first = math.lgamma(n + 1) - sum(math.log(S + k) for k in range(1, n + 2))
    log_factorials_ratio = 0.5 * math.log(2 * math.pi * S) - n * 0.5 * math.log(2 * math.pi * y)
    log_second = S * math.log(n) + log_factorials_ratio - (S + 1) * math.log(n + 1)
    [log_bf] = negbin_poisson_log_bf(np.full((1, n), y, dtype=dtype), beta=(1, 1), gamma=(1, 1))
    assert log_bf == pytest.approx(log_first - log_second, rel=1e-9)
    [log_bf] = negbin_poisson_log_bf(np.full((1, 1), y, dtype=dtype), beta=(1, 1), gamma=(1, 1))
    assert log_bf == pytest.approx((y + 1) * math.log(2) - math.log((y + 1) * (y + 2)), rel=1e-12)


@pytest.mark.parametrize(
    ("dtype", "count"), [(np.int8, 127), (np.uint8, 255), (np.int32, 2**31 - 1), (np.int64, 2**53)]
)
def test_no_integer_type_is_too_small(dtype: type, count: int) -> None:
    # One more than the count, or the sum of 1,100 of them, is beyond the type.
    counts = np.full((1, 1100), count, dtype=dtype)
    exact = negbin_poisson_log_bf(counts.astype(np.float64), beta=(2, 2), gamma=(4, 4))
    np.testing.assert_array_equal(negbin_poisson_log_bf(counts, beta=(2, 2), gamma=(4, 4)), exact)


@pytest.mark.parametrize("setting", PRIORS)
def test_count_bayes_factors_average_to_one_under_the_second_model(setting: str) -> None:
    (a1, b1), (shape, rate) = PRIORS[setting]
    last = 400
    counts = np.arange(last + 1)
    log_second = stats.nbinom.logpmf(counts, shape, rate / (rate + 1))
    bf_weighted = np.exp(log_second + negbin_poisson_log_bf(counts[:, None], beta=(a1, b1), gamma=(shape, rate)))
    # What the sum leaves out is P(y > last) under the first model, E[(1 - p)^(last + 1)].
    left_out = math.exp(
        math.lgamma(b1 + last + 1) + math.lgamma(a1 + b1) - math.lgamma(b1) - math.lgamma(a1 + b1 + last + 1)
    )
    assert bf_weighted.sum() == pytest.approx(1 - left_out, abs=1e-11)


def test_other_bayes_factors_average_to_one_under_the_second_model() -> None:
    def exponential(y: float) -> float:
        return float(stats.expon.pdf(y, scale=1 / 3) * np.exp(exponential_log_bf([[y]])[0]))

    def normal(y: float) -> float:
        return float(stats.norm.pdf(y) * np.exp(normal_mean_log_bf([[y]], prior_scale=2.0)[0]))

    # The first has tails of a power, 4 / (2 + y)^2 beyond y.
    assert integrate.quad(exponential, 0, 200, limit=500)[0] == pytest.approx(1 - 4 / 202**2, abs=1e-9)
    assert integrate.quad(normal, -15, 15, limit=500)[0] == pytest.approx(1, abs=1e-9)


ALL = {
    "negbin_poisson": lambda data: negbin_poisson_log_bf(data, beta=(2, 2), gamma=(4, 4)),
    "exponential": exponential_log_bf,
    "normal_mean": lambda data: normal_mean_log_bf(data, prior_scale=1.5),
}


@pytest.mark.parametrize("name", ALL)
def test_order_does_not_matter_and_rows_do_not_mix(name: str) -> None:
    data = np.random.default_rng(1).poisson(np.arange(1, 8)[:, None], (7, 20))
    log_bf = ALL[name](data)
    assert len(set(log_bf.tolist())) == 7
    np.testing.assert_allclose(ALL[name](data[:, ::-1]), log_bf, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.concatenate([ALL[name](row[None]) for row in data]), log_bf)
    np.testing.assert_array_equal(ALL[name](data.astype(np.float64)), log_bf)


@pytest.mark.parametrize("name", ALL)
def test_no_data_sets_give_no_answers_and_no_observations_give_zero(name: str) -> None:
    empty = ALL[name](np.empty((0, 5)))
    assert empty.shape == (0,)
    assert empty.dtype == np.float64
    np.testing.assert_allclose(ALL[name](np.empty((2, 0))), 0, atol=1e-14)


@pytest.mark.parametrize("name", ALL)
def test_one_data_set_must_still_have_two_axes(name: str) -> None:
    with pytest.raises(ValueError, match=r"data must have shape .* received shape \(3,\).* data\[None, :\]"):
        ALL[name]([1, 2, 3])


@pytest.mark.parametrize("name", ALL)
def test_missing_values_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="data must be finite; received 1 of 2"):
        ALL[name]([[1.0, np.nan]])


def test_impossible_data_and_priors_are_refused() -> None:
    with pytest.raises(ValueError, match=r"counts, 0 or more; received -1"):
        ALL["negbin_poisson"]([[3, -1]])
    with pytest.raises(ValueError, match=r"whole counts; received 0\.5"):
        ALL["negbin_poisson"]([[3, 0.5]])
    with pytest.raises(ValueError, match=r"waiting times, 0 or more; received -0\.1"):
        exponential_log_bf([[-0.1]])
    with pytest.raises(ValueError, match=r"beta\[1\] must be finite and above 0; received 0"):
        negbin_poisson_log_bf([[1]], beta=(1, 0), gamma=(1, 1))
    with pytest.raises(TypeError, match="gamma must be a pair"):
        exponential_log_bf([[1.0]], gamma=(1.0,))  # pyright: ignore[reportArgumentType]
