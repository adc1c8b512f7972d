"""Problems whose data are normal given few parameters: against filters, adaptive integration and prior draws."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy import integrate, stats

from deepbf_studies import problems
from deepbf_studies.problems import field, field_log_bf, fixed_design_log_bf, lagged_pair_log_bf, local_level
from studies.tests.problems import joint_normal

Floats = NDArray[np.float64]


def normal_density(values: Any, scale: Any = 1.0) -> Any:
    """Return the density of N(0, scale^2): plain arithmetic, as adaptive integration asks for it thousands of times."""
    return np.exp(-0.5 * (values / scale) ** 2) / (scale * np.sqrt(2 * np.pi))


# The local level


def kalman_log_likelihood(row: Floats, step_scale: float) -> float:
    mean, variance, total = 0.0, 4.0, 0.0
    for value in row:
        total += np.log(normal_density(value - mean, np.sqrt(variance + 1)))
        gain = variance / (variance + 1)
        mean, variance = mean + gain * (value - mean), variance * (1 - gain) + step_scale**2
    return float(total)


def autoregression_log_likelihood(row: Floats, coefficient: float) -> float:
    def integrand(mean: float) -> float:
        rest = row - mean
        first = normal_density(rest[0], 1 / np.sqrt(1 - coefficient**2))
        return normal_density(mean, 2.0) * first * normal_density(rest[1:] - coefficient * rest[:-1]).prod()

    return float(np.log(integrate.quad(integrand, -15, 15, epsabs=0, epsrel=1e-10, limit=200)[0]))


@pytest.mark.parametrize("length", [1, 2, 9])
def test_the_local_level_by_a_kalman_filter_and_the_autoregression_by_integration(length: int) -> None:
    series = np.cumsum(np.random.default_rng(length).standard_normal((3, length)), axis=1)
    for row, found in zip(series, problems.local_level_log_bf(series), strict=True):
        level = [kalman_log_likelihood(row, scale) for scale in local_level.STEP_SCALES]
        autoregression = [autoregression_log_likelihood(row, c) for c in local_level.COEFFICIENTS]
        # Both grids have four points, so that their sums are in the ratio of their means.
        assert found == pytest.approx(np.logaddexp.reduce(level) - np.logaddexp.reduce(autoregression), abs=1e-8)


def test_simulated_levels_and_autoregressions_have_their_covariances() -> None:
    size, rng = 40_000, np.random.default_rng(1)
    level, autoregression = problems.load("series-local-level", num_obs=3).models
    found = np.cov(level.simulator(rng, {"start": np.zeros(size), "step_scale": np.full(size, 2.0)}).T)
    assert_allclose(found, [[1, 0, 0], [0, 5, 4], [0, 4, 9]], atol=5 * 9 * np.sqrt(2 / size))
    found = np.cov(autoregression.simulator(rng, {"mean": np.zeros(size), "coefficient": np.full(size, 0.6)}).T)
    expected = np.array([[1, 0.6, 0.36], [0.6, 1, 0.6], [0.36, 0.6, 1]]) / 0.64
    assert_allclose(found, expected, atol=5 / 0.64 * np.sqrt(2 / size))


# The pair


@pytest.mark.parametrize("length", [1, 3, 8])
def test_the_pair_by_integration_over_the_coefficient(length: int) -> None:
    pairs = 1.5 * np.random.default_rng(length).standard_normal((3, length, 2))
    for (first, second), found in zip(pairs.transpose(0, 2, 1), lagged_pair_log_bf(pairs), strict=True):

        def evidence(lag: int, first: Floats = first, second: Floats = second) -> float:
            earlier = np.concatenate([np.zeros(lag), first])[:length]
            return integrate.quad(
                lambda c: normal_density(c) * normal_density(second - c * earlier).prod(), -9, 9, epsabs=0, epsrel=1e-10
            )[0]

        expected = np.mean([evidence(lag) for lag in range(1, 6)]) / normal_density(second).prod()
        assert found == pytest.approx(np.log(expected), abs=1e-8)


def test_the_second_column_follows_at_the_lag_it_was_given() -> None:
    model = problems.load("series-pair", num_obs=12).models[0]
    lags = np.arange(1, 6)
    pairs = model.simulator(np.random.default_rng(2), {"lag": lags, "coefficient": np.full(5, 1e9)})
    for lag, pair in zip(lags, pairs, strict=True):
        assert_allclose(pair[lag:, 1] / 1e9, pair[:-lag, 0], atol=1e-7)
        assert np.abs(pair[:lag, 1]).max() < 10


# The field


def test_the_field_by_integration_over_its_variance() -> None:
    fields = 1.5 * np.random.default_rng(3).standard_normal((3, 2, 2))
    # Points of a square of side 1, row by row.
    root = np.sqrt(2)
    distances = np.array([[0, 1, 1, root], [1, 0, root, 1], [1, root, 0, 1], [root, 1, 1, 0]])

    def evidence(flat: Floats, correlation: Floats) -> float:
        def integrand(log_variance: float) -> float:
            variance = np.exp(log_variance)
            density = np.exp(joint_normal.log_density(flat, np.zeros(4), variance * correlation)[0])
            return stats.invgamma.pdf(variance, 3.0, scale=2.0) * density * variance

        return integrate.quad(integrand, -6, 12, epsabs=0, epsrel=1e-10, limit=200)[0]

    rough = [np.exp(-distances / length) for length in (0.8, 1.2, 1.6)]
    smooth = [0.7 * np.exp(-(distances**2) / (2 * length**2)) + 0.3 * np.eye(4) for length in (0.8, 1.1, 1.4)]
    for flat, found in zip(fields.reshape(3, 4), field_log_bf(fields), strict=True):
        evidences = [sum(evidence(flat, matrix) for matrix in matrices) for matrices in (rough, smooth)]
        assert found == pytest.approx(np.log(evidences[0] / evidences[1]), abs=1e-8)


def test_fields_have_no_direction() -> None:
    fields = problems.load("field").models[0].simulate(5, seed=4).data
    log_bf = field_log_bf(fields)
    for turned in (-fields, fields[:, ::-1], fields[:, :, ::-1], fields.transpose(0, 2, 1)):
        assert_allclose(field_log_bf(turned), log_bf, atol=1e-8)


@pytest.mark.parametrize("spectra_fn", [field._rough_spectra, field._smooth_spectra])
@pytest.mark.parametrize("torus_side", [32, 64])
def test_the_torus_has_a_positive_spectrum(spectra_fn, torus_side: int) -> None:
    # With a negative eigenvalue, no Gaussian field on the torus has these correlations.
    assert spectra_fn(torus_side).min() > 1e-3


@pytest.mark.parametrize("model", [0, 1])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_all_of_a_simulated_field_has_its_covariance(model: int, which: int) -> None:
    chosen = problems.load("field", num_obs=3).models[model]
    length, size = (field.ROUGH_LENGTHS, field.SMOOTH_LENGTHS)[model][which], 5000
    params = {"variance": np.ones(size), "length": np.full(size, length)}
    found = np.cov(chosen.simulator(np.random.default_rng(which), params).reshape(size, 9).T)
    rows, columns = np.divmod(np.arange(9), 3)
    distances = np.hypot(np.subtract.outer(rows, rows), np.subtract.outer(columns, columns))
    correlation_fn = (field.rough_correlation, field.smooth_correlation)[model]
    assert_allclose(found, correlation_fn(distances, length), atol=5 * np.sqrt(2 / size))


@pytest.mark.parametrize("model", [0, 1])
def test_neighbours_in_simulated_fields_have_their_correlation(model: int) -> None:
    chosen = problems.load("field", num_obs=4).models[model]
    length, size = (field.ROUGH_LENGTHS[1], field.SMOOTH_LENGTHS[1])[model], 10_000
    params = {"variance": np.full(size, 4.0), "length": np.full(size, length)}
    fields = chosen.simulator(np.random.default_rng(5), params)
    expected = (np.exp(-1 / 1.2), 0.7 * np.exp(-0.5 / 1.1**2))[model]
    tolerance = 5 * 4 * np.sqrt(2 / size)
    assert np.mean(fields[:, 1, 1] ** 2) == pytest.approx(4.0, abs=tolerance)
    assert np.mean(fields[:, 1, 1] * fields[:, 1, 2]) == pytest.approx(4 * expected, abs=tolerance)
    assert np.mean(fields[:, 1, 1] * fields[:, 2, 1]) == pytest.approx(4 * expected, abs=tolerance)


# The regression


def test_the_regression_by_draws_from_its_priors() -> None:
    responses = np.array([[0.5, -0.3, 0.8], [2.0, -0.5, 1.5]])
    points = np.array([-1.0, 0.0, 1.0])
    rng, size = np.random.default_rng(6), 200_000
    variance = stats.invgamma.rvs(3.0, scale=2.0, size=size, random_state=rng)
    scale = np.sqrt(variance)[:, None]
    intercept, slope, quadratic = (scale * s * rng.standard_normal((size, 1)) for s in (2.0, 2.0, 4.0))
    line = intercept + slope * points
    for row, found in zip(responses, fixed_design_log_bf(responses), strict=True):
        curved, straight = (
            normal_density(row - mean, scale).prod(axis=1) for mean in (line + quadratic * points**2, line)
        )
        relative = [density.std() / density.mean() / np.sqrt(size) for density in (curved, straight)]
        error = np.hypot(*relative)
        assert error < 0.02
        assert abs(found - np.log(curved.mean() / straight.mean())) < 5 * error


def test_the_regression_by_integration_over_the_variance() -> None:
    responses = 2 * np.random.default_rng(7).standard_normal((3, 6))
    columns = np.stack([np.ones(6), np.linspace(-1, 1, 6), np.linspace(-1, 1, 6) ** 2])

    def evidence(row: Floats, num_terms: int) -> float:
        used = columns[:num_terms] * np.array([[2.0], [2.0], [4.0]])[:num_terms]
        matrix = np.eye(6) + used.T @ used

        def integrand(log_variance: float) -> float:
            variance = np.exp(log_variance)
            density = np.exp(joint_normal.log_density(row, np.zeros(6), variance * matrix)[0])
            return stats.invgamma.pdf(variance, 3.0, scale=2.0) * density * variance

        return integrate.quad(integrand, -6, 12, epsabs=0, epsrel=1e-10, limit=200)[0]

    expected = [np.log(evidence(row, 3) / evidence(row, 2)) for row in responses]
    assert_allclose(fixed_design_log_bf(responses), expected, atol=1e-8)
    # The design is symmetric, and so are the priors.
    assert_allclose(fixed_design_log_bf(-responses), expected, atol=1e-8)
    assert_allclose(fixed_design_log_bf(responses[:, ::-1]), expected, atol=1e-8)
