import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

import deepbf
from tests.criticism.models import BOUNDED, KNOWN, NORMAL, RANGE, normal_posterior

NUM_DRAWS = 4000


def exact_errors(sampler: deepbf.PosteriorSampler, num_obs: int, num_datasets: int = 200) -> tuple[np.ndarray, ...]:
    """Return errors of means, in posterior standard deviations, ratios of standard deviations, and ranks."""
    simulated = NORMAL.simulate(num_datasets, 100 + num_obs, num_obs)
    mean, sd = normal_posterior(simulated.data)
    draws = np.asarray(sampler.sample_many(simulated.data, NUM_DRAWS, seed=1))
    ranks = (draws < np.asarray(simulated.params)[:, None]).mean(axis=1)
    return (draws.mean(axis=1) - mean) / sd, draws.std(axis=1) / sd, ranks


@pytest.mark.parametrize("num_obs", [RANGE[0], 7, RANGE[1]])
def test_the_flow_draws_from_the_conjugate_posterior(normal_sampler: deepbf.PosteriorSampler, num_obs: int) -> None:
    errors, ratios, ranks = exact_errors(normal_sampler, num_obs)
    assert np.abs(errors).mean() < 0.1
    assert np.abs(ratios - 1).mean() < 0.1
    assert stats.kstest(ranks, "uniform").pvalue > 0.01


@pytest.mark.slow
def test_the_gan_draws_from_the_conjugate_posterior(normal_gan: deepbf.PosteriorSampler) -> None:
    errors, ratios, ranks = exact_errors(normal_gan, 8)
    assert np.abs(errors).mean() < 0.2
    assert np.abs(ratios - 1).mean() < 0.2
    assert stats.kstest(ranks, "uniform").pvalue > 0.001


def test_predictions_are_as_wide_as_they_should_be(
    normal_sampler: deepbf.PosteriorSampler, observed: np.ndarray
) -> None:
    predicted = normal_sampler.predictive(observed, NUM_DRAWS, seed=1)
    assert predicted.shape == (NUM_DRAWS, len(observed))
    mean, sd = normal_posterior(observed)
    assert abs(predicted.mean() - mean) < 0.15 * sd
    # The mean of a predicted data set varies by the posterior's variance and by that of a mean of n.
    assert predicted.mean(axis=1).std() == pytest.approx(np.sqrt(sd**2 + 1 / len(observed)), rel=0.1)


def test_each_observation_is_predicted_by_the_others(
    normal_sampler: deepbf.PosteriorSampler, observed: np.ndarray
) -> None:
    drawn = normal_sampler.leave_one_out(observed, NUM_DRAWS, seed=1)
    assert drawn.shape == (len(observed), NUM_DRAWS)
    mean, sd = normal_posterior([np.delete(observed, i) for i in range(len(observed))])
    assert np.abs(drawn.mean(axis=1) - mean).max() < 0.2 * np.sqrt(1 + sd**2)
    np.testing.assert_allclose(drawn.std(axis=1), np.sqrt(1 + sd**2), rtol=0.08)


def test_a_sampler_fitted_at_one_fewer_leaves_one_out(quick_sampler: deepbf.PosteriorSampler) -> None:
    assert quick_sampler.num_obs is None
    assert quick_sampler.leave_one_out(np.zeros(9), 10).shape == (9, 10)
    with pytest.raises(ValueError, match=r"one observation fewer than the 8 observed; this sampler is for 8\. Fit it"):
        quick_sampler.leave_one_out(np.zeros(8), 10)


def test_parameters_come_as_the_prior_lays_them_out(bounded_sampler: deepbf.PosteriorSampler) -> None:
    simulated = BOUNDED.simulate(6, 3)
    one = bounded_sampler.sample(simulated.data[0], 50)
    assert {name: draws.shape for name, draws in one.items()} == {
        "weights": (50, 2), "spread": (50,), "angle": (50,), "level": (50,)
    }  # fmt: skip
    assert isinstance(simulated.params, dict)
    assert list(one) == list(simulated.params)
    many = bounded_sampler.sample_many(simulated.data, 50)
    assert {name: draws.shape for name, draws in many.items()} == {
        "weights": (6, 50, 2), "spread": (6, 50), "angle": (6, 50), "level": (6, 50)
    }  # fmt: skip
    assert all(draws.dtype == np.float64 for draws in many.values())


def test_parameters_come_back_where_they_belong(bounded_sampler: deepbf.PosteriorSampler) -> None:
    simulated = BOUNDED.simulate(300, 3)
    many = bounded_sampler.sample_many(simulated.data, 200)
    assert isinstance(simulated.params, dict)
    for name, truth in simulated.params.items():
        assert np.corrcoef(many[name].mean(axis=1).ravel(), truth.ravel())[0, 1] > 0.8
        assert np.corrcoef(many[name].mean(axis=1).ravel(), np.roll(truth, 1, axis=0).ravel())[0, 1] < 0.5


@pytest.mark.parametrize("far", [0.0, 5.0, -1e3, 1e8])
def test_no_draw_leaves_its_bounds(bounded_sampler: deepbf.PosteriorSampler, far: float) -> None:
    drawn = bounded_sampler.sample(np.full(5, far), 500)
    assert np.all((drawn["weights"] > 0) & (drawn["weights"] < 1))
    assert np.all((drawn["spread"] > 0) & np.isfinite(drawn["spread"]))
    assert np.all((drawn["angle"] > -1) & (drawn["angle"] < 3))
    assert np.all(np.isfinite(drawn["level"]))
    # The simulator takes what was drawn.
    assert np.isfinite(bounded_sampler.predictive(np.full(5, far), 20)).all()


def test_seeds_repeat_and_differ(normal_sampler: deepbf.PosteriorSampler, observed: np.ndarray) -> None:
    first, again, other = (normal_sampler.sample(observed, 20, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)
    np.testing.assert_array_equal(
        normal_sampler.predictive(observed, 20, seed=1), normal_sampler.predictive(observed, 20, seed=1)
    )


def test_many_blocks_give_distinct_draws(normal_sampler: deepbf.PosteriorSampler, observed: np.ndarray) -> None:
    drawn = np.asarray(normal_sampler.sample_many(np.tile(observed, (5, 1)), 30_000))
    assert drawn.shape == (5, 30_000)
    assert len(np.unique(drawn[:, 0])) == 5


def test_data_sets_of_different_lengths(normal_sampler: deepbf.PosteriorSampler, observed: np.ndarray) -> None:
    drawn = np.asarray(normal_sampler.sample_many([observed, observed[:4]], NUM_DRAWS))
    assert drawn.shape == (2, NUM_DRAWS)
    assert drawn[0].std() < drawn[1].std()


@pytest.mark.slow
def test_mixed_data(mixed_sampler: deepbf.PosteriorSampler) -> None:
    observed = {"trials": [1.0, 2.0, 1.5, 1.2], "about": [1.4]}
    assert np.asarray(mixed_sampler.sample(observed, 30)).shape == (30,)
    predicted = mixed_sampler.predictive(observed, 30)
    assert {name: array.shape for name, array in predicted.items()} == {"trials": (30, 4), "about": (30, 1)}
    assert mixed_sampler.num_obs == (3, 6)
    with pytest.raises(ValueError, match="needs exchangeable observations"):
        mixed_sampler.leave_one_out(observed, 30)


@pytest.mark.parametrize("num_obs", [None, (4, 12)])
def test_a_model_without_parameters_passes_through(num_obs: tuple[int, int] | None) -> None:
    sampler = deepbf.fit_posterior(KNOWN, structure="exchangeable", num_obs=num_obs)
    observed = np.zeros(8)
    assert sampler.sample(observed, 10) is None
    assert sampler.sample_many(np.zeros((3, 8)), 10) is None
    assert sampler.num_obs == num_obs
    predicted = sampler.predictive(observed, NUM_DRAWS)
    assert predicted.shape == (NUM_DRAWS, 8)
    assert abs(predicted.mean()) < 0.03
    left_out = sampler.leave_one_out(np.zeros(9), 100)
    assert left_out.shape == (9, 100)
    assert len(np.unique(left_out)) == 900
    assert "without parameters" in repr(sampler)
    with pytest.raises(ValueError, match="not finite"):
        sampler.predictive(np.full(8, np.nan))


@pytest.mark.parametrize(
    ("observed", "options", "error", "message"),
    [
        (np.zeros((2, 3, 4)), {}, ValueError, "observed has shape"),
        (np.zeros((2, 6)), {}, ValueError, r"observed must be one data set of shape .*; received 2"),
        (np.full(6, np.nan), {}, ValueError, "6 of 6 values not finite"),
        (np.zeros(3), {}, ValueError, "outside the trained range, 4 to 12: the first has 3"),
        (["a"] * 6, {}, TypeError, "observed must hold real numbers"),
        (np.zeros(6), {"num_draws": 0}, ValueError, "num_draws must be at least 1; received 0"),
        (np.zeros(6), {"num_draws": 1.5}, TypeError, "num_draws must be a whole number"),
        (np.zeros(6), {"seed": -1}, ValueError, "seed must be a non-negative int"),
    ],
)
def test_what_cannot_be_asked(
    normal_sampler: deepbf.PosteriorSampler,
    observed: Any,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    for ask in (normal_sampler.sample, normal_sampler.predictive):
        with pytest.raises(error, match=message):
            ask(observed, **options)


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        (np.zeros((2, 6)), "must be one data set, with 1 axes"),
        (np.zeros(1), "one observation fewer than the 1 observed"),
        (np.zeros(4), "outside the trained range, 4 to 12: the first has 3"),
        (np.array([0.0, np.nan, 1, 2, 3, 4]), "observed has 1 of 6 values not finite"),
    ],
)
def test_what_cannot_be_left_out(normal_sampler: deepbf.PosteriorSampler, observed: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        normal_sampler.leave_one_out(observed, 10)


def test_beyond_the_range_only_when_asked(normal_sampler: deepbf.PosteriorSampler) -> None:
    with pytest.warns(UserWarning, match="extrapolated"):
        drawn = normal_sampler.sample(np.zeros(15), 10, extrapolate=True)
    assert np.isfinite(np.asarray(drawn)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        normal_sampler.sample(np.zeros(RANGE[1]), 10, extrapolate=True)


def test_no_data_set(normal_sampler: deepbf.PosteriorSampler) -> None:
    with pytest.raises(ValueError, match="holds no data set"):
        normal_sampler.sample_many(np.zeros((0, 6)), 10)
