"""Random effects or one fixed effect: what is simulated, the quadrature against dense normal densities, a short fit."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy import integrate, stats

import deepbf
from deepbf._numerics import cross_entropy, log_evidence
from deepbf_studies import problems
from deepbf_studies.problems import random_effects_log_bf

STUDY = problems.load("random-effects")


def test_the_study_is_complete_and_pickles() -> None:
    assert (STUDY.structure, STUDY.num_obs) == ("nested", 20)
    assert [model.name for model in STUDY.models] == ["random effects", "fixed effect"]
    copy = pickle.loads(pickle.dumps(STUDY))
    for model, copied in zip(STUDY.models, copy.models, strict=True):
        data = model.simulate(10, seed=4).data
        assert data.shape == (10, 20, 15)
        assert_array_equal(copied.simulate(10, seed=4).data, data)
        assert np.isfinite(STUDY.exact_log_bf(data)).all()
    assert problems.load("random-effects", num_obs=3).models[0].simulate(2, seed=1).data.shape == (2, 3, 15)


@pytest.mark.parametrize("model", [0, 1])
def test_groups_have_5_to_15_observations_of_the_right_spread(model: int) -> None:
    simulations = STUDY.models[model].simulate(4000, seed=1)
    data = np.asarray(simulations.data, np.float64)
    sizes = (~np.isnan(data)).sum(axis=2)
    counts = np.bincount(sizes.ravel(), minlength=16)
    assert counts[:5].sum() == 0
    assert stats.chisquare(counts[5:]).pvalue > 1e-6
    # Within groups the variance is 1: squared differences of neighbours have mean 2, variance 8.
    halves = (data[:, :, 1] - data[:, :, 0]) ** 2 / 2
    assert abs(halves.mean() - 1) < 5 * np.sqrt(2 / halves.size)
    # Observations of different groups share the common mean alone, variance 1; of one group, its effect too.
    within, across = (np.mean(data[:, 0, 0] * other) for other in (data[:, 0, 1], data[:, 1, 0]))
    assert abs(across - 1) < 0.25
    assert abs(within - across - (1 - model)) < 0.25


def test_data_favour_the_model_they_came_from() -> None:
    first, second = (STUDY.exact_log_bf(model.simulate(300, seed=3).data) for model in STUDY.models)
    assert np.median(first) > 5
    assert np.median(second) < -1


@pytest.mark.slow
def test_a_short_fit_comes_near_the_exact_answer() -> None:
    study = problems.load("random-effects", num_obs=8)
    bf = deepbf.fit(study.models, structure="nested", steps=200, ensemble=2, seed=1, progress=False)
    differences, scores = [], []
    for label, model in enumerate(study.models):
        data = model.simulate(2000, seed=11).data
        answers = (bf.log_bf(data), study.exact_log_bf(data))
        fitted, exact = (cross_entropy(log_evidence(log_bf[:, None]), label) for log_bf in answers)
        differences.append(fitted - exact)
        scores.append(exact)
    # No knowledge is a loss of log 2; the fit has nine tenths of what there is to know, and more.
    knowable = np.log(2) - np.mean(scores)
    assert knowable > 0.2
    assert np.mean(differences) < 0.1 * knowable


def test_masked_data_need_a_network_that_takes_them() -> None:
    with pytest.raises(ValueError, match=r"structure='vector' needs every value.*'nested'"):
        deepbf.fit(STUDY.models, structure="vector", num_simulations=600, progress=False)


@pytest.mark.parametrize(("masked", "says"), [("half", "mask some columns"), ("all", "mask whole data sets")])
def test_masks_that_make_no_sense_are_refused(masked: str, says: str) -> None:
    def simulator(rng: np.random.Generator, size: int) -> object:
        data = rng.normal(size=(size, 3, 4, 2))
        mask = np.zeros(data.shape, bool)
        if masked == "half":
            mask[:, 1, 2, 0] = True
        else:
            mask[5] = True
        return np.ma.MaskedArray(data, mask=mask)

    models = [deepbf.Model(name, simulator=simulator) for name in ("one", "other")]
    with pytest.raises(ValueError, match=says):
        deepbf.fit(models, structure="nested", num_simulations=600, progress=False)


# The exact answer.


def simulated(num_each: int, seed: int = 1) -> NDArray[np.float64]:
    models = problems.load("random-effects").models
    return np.concatenate([model.simulate(num_each, seed=seed).data for model in models]).astype(np.float64)


def dense_log_density(data_set: NDArray[np.float64], tau: float, scales: tuple[float, float]) -> float:
    """Return the log density of all observations given tau, by their full covariance matrix."""
    mean_scale, noise_scale = scales
    groups = np.nonzero(~np.isnan(data_set))[0]
    covariance = mean_scale**2 + tau**2 * (groups[:, None] == groups) + noise_scale**2 * np.eye(len(groups))
    return float(stats.multivariate_normal.logpdf(data_set[~np.isnan(data_set)], np.zeros(len(groups)), covariance))


def dense_log_bf(data_set: NDArray[np.float64], mean_scale: float, effect_scale: float, noise_scale: float) -> float:
    scales = (mean_scale, noise_scale)

    def log_integrand(tau: float) -> float:
        return dense_log_density(data_set, tau, scales) + float(stats.halfnorm.logpdf(tau, scale=effect_scale))

    taus = np.linspace(0, 12 * effect_scale, 100).tolist()
    heights = [log_integrand(tau) for tau in taus]
    top, peak = max(heights), taus[int(np.argmax(heights))]
    area, _ = integrate.quad(
        lambda tau: float(np.exp(log_integrand(tau) - top)),
        0,
        taus[-1],
        points=[peak],
        epsabs=1e-11,
        epsrel=1e-10,
        limit=300,
    )
    return top + float(np.log(area)) - dense_log_density(data_set, 0.0, scales)


@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (0.5, 2.0, 0.7)], ids=str)
def test_quadrature_agrees_with_dense_normal_densities(scales: tuple[float, float, float]) -> None:
    data = simulated(3)[:, :6, :9]
    data[0, 2:] = np.nan
    data[1, 0, 1:] = np.nan
    mean_scale, effect_scale, noise_scale = scales
    found = random_effects_log_bf(data, mean_scale=mean_scale, effect_scale=effect_scale, noise_scale=noise_scale)
    assert_allclose(found, [dense_log_bf(data_set, *scales) for data_set in data], rtol=0, atol=1e-8)


def test_twice_the_nodes_change_nothing() -> None:
    data = simulated(300)
    # Spreads from none at all to a hundred times what the prior expects.
    far = data[:40] * np.geomspace(1e-3, 300, 40)[:, None, None]
    for values in (data, far, np.zeros((1, 20, 15)), far[-1:, :2], 30 + data[:5]):
        once = random_effects_log_bf(values)
        assert np.isfinite(once).all()
        twice = random_effects_log_bf(values, num_nodes=256)
        assert_allclose(once, twice, rtol=1e-11, atol=1e-8)


def test_absent_observations_and_groups_change_nothing() -> None:
    data = simulated(5)
    wider = np.full((10, 24, 18), np.nan)
    wider[:, 2:22, 3:] = data
    assert_allclose(random_effects_log_bf(wider), random_effects_log_bf(data), rtol=0, atol=1e-9)
    masked = np.ma.MaskedArray(np.nan_to_num(data, nan=7.0), mask=np.isnan(data))
    assert_array_equal(random_effects_log_bf(masked), random_effects_log_bf(data))


def test_one_group_tells_nothing_beyond_the_spread_of_its_mean() -> None:
    # With one observation, N(0, 2 + tau^2) against N(0, 2).
    def integrand(tau: float) -> float:
        return float(2 * stats.norm.pdf(tau) * stats.norm.pdf(3, 0, np.sqrt(2 + tau**2)))

    expected = np.log(integrate.quad(integrand, 0, 20)[0]) - stats.norm.logpdf(3, 0, np.sqrt(2))
    assert_allclose(random_effects_log_bf([[[3.0]]]), expected, atol=1e-9)


def test_inverse_bayes_factors_average_to_one_under_random_effects() -> None:
    data = problems.load("random-effects").models[0].simulate(5_000, seed=6).data
    inverse = np.exp(-random_effects_log_bf(data))
    error = inverse.std() / np.sqrt(len(data))
    assert error < 0.05
    assert abs(inverse.mean() - 1) < 5 * error


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([[1.0, 2.0]], r"shape \(num_datasets, num_groups, num_obs\); received shape \(1, 2\).*data\[None\]"),
        ([[[1.0, np.inf]]], "finite, or nan where there is no observation; received inf"),
        ([[[1.0]], [[np.nan]]], r"every data set needs an observation; data\[1\] has none"),
    ],
)
def test_data_without_an_answer_are_refused(data: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        random_effects_log_bf(data)  # pyright: ignore[reportArgumentType]
