"""Kernel densities are SciPy's, and divergences those of the normal distributions they are drawn from."""

import numpy as np
import pytest
from scipy.stats import gaussian_kde

from deepbf.evaluation.density import Divergence, common_grid, density


def test_densities_are_those_of_scipy() -> None:
    values = np.random.default_rng(1).gamma(2, size=400)
    grid = common_grid([values])
    np.testing.assert_allclose(density(values, grid), gaussian_kde(values)(grid), rtol=1e-10)
    assert np.trapezoid(density(values, grid), grid) == pytest.approx(1, abs=1e-3)


def test_divergence_of_two_normals_is_the_closed_form() -> None:
    rng = np.random.default_rng(2)
    num_values, shift, scale = 40_000, 0.8, 1.5
    exact, estimated = rng.normal(0, 1, num_values), rng.normal(shift, scale, num_values)
    # Kernels widen both: the closed form at the widths that the estimates have.
    wide = np.array([1.0, scale]) * np.sqrt(1 + num_values ** (-2 / 5))
    expected = np.log(wide[1] / wide[0]) + (wide[0] ** 2 + shift**2) / (2 * wide[1] ** 2) - 0.5
    found = Divergence(exact, estimated)(np.ones((1, num_values)))
    assert found == pytest.approx(expected, rel=0.03)


def test_divergence_is_zero_between_equals_and_not_symmetric() -> None:
    rng = np.random.default_rng(3)
    a, b, ones = rng.normal(0, 1, 300), rng.normal(0, 2, 300), np.ones((1, 300))
    assert Divergence(a, a)(ones) == pytest.approx(0, abs=1e-12)
    assert Divergence(a, b)(ones)[0] > 0.05
    assert abs(Divergence(a, b)(ones)[0] - Divergence(b, a)(ones)[0]) > 0.1


def test_divergence_stays_finite_where_the_samples_do_not_meet() -> None:
    apart = Divergence(np.linspace(-13, -12, 200), np.linspace(12, 13, 200))(np.ones((1, 200)))
    nearer = Divergence(np.linspace(-13, -12, 200), np.linspace(-12.5, -11.5, 200))(np.ones((1, 200)))
    assert np.isfinite(apart).all()
    assert apart[0] > nearer[0] > 0


@pytest.mark.parametrize("value", [0.0, 13.8])
def test_values_that_are_all_the_same_have_a_density(value: float) -> None:
    same = np.full(50, value)
    grid = common_grid([same])
    assert np.trapezoid(density(same, grid), grid) == pytest.approx(1, abs=1e-3)
    assert Divergence(same, same)(np.ones((1, 50))) == pytest.approx(0, abs=1e-12)


def test_divergence_has_no_bound_that_hides_how_far_a_sample_is() -> None:
    # From N(0, 1) to N(0, 0.01): log 0.1 + 1 / 0.02 - 1/2 = 47.2, where the estimator shrinks its answers tenfold.
    values, ones = np.random.default_rng(4).normal(size=1500), np.ones((1, 1500))
    variance = values.var() / 0.01
    assert Divergence(values, 0.1 * values)(ones)[0] == pytest.approx(np.log(0.1) + 0.5 * (variance - 1), rel=0.05)
    # Between normals of the same width a distance d costs d^2 / 2.
    other = np.random.default_rng(5).normal(size=1500)
    for shift in (4.0, 9.7, 100.0):
        assert Divergence(values, other + shift)(ones)[0] == pytest.approx(shift**2 / 2, rel=0.15)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e150])
def test_divergence_is_finite_for_all_finite_samples(scale: float) -> None:
    rng = np.random.default_rng(6)
    samples = [np.zeros(40), rng.normal(size=40), np.r_[np.full(39, -1.0), 1e3], rng.standard_cauchy(40) ** 3]
    weights = np.concatenate([np.ones((1, 40)), rng.multinomial(40, np.full(40, 1 / 40), 50).astype(float)])
    for exact in samples:
        for estimated in samples:
            found = Divergence(scale * exact, scale * estimated)(weights)
            assert np.isfinite(found).all()
            assert (found >= 0).all()
