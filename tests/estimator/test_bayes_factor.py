"""A trained estimator: directions, probabilities, shapes, and answers at any finite data."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import deepbf
from deepbf import BayesFactor
from deepbf.estimator.bayes_factor import FEW_DATASETS
from deepbf.training.intake import PREPARE_ROWS
from tests import simulators
from tests.simulators import NORMAL_MEAN, NUM_OBS, THREE_MEANS, simulate_truth
from tests.untrained import untrained

DATA, _ = simulate_truth(NORMAL_MEAN, 40, seed=21)


# Direction


def test_swapping_the_models_flips_the_sign_exactly(normal_mean: BayesFactor) -> None:
    assert_array_equal(normal_mean.log_bf(DATA, 1, 0), -normal_mean.log_bf(DATA, 0, 1))
    assert_array_equal(normal_mean.log_bf_members(DATA, 1, 0), -normal_mean.log_bf_members(DATA, 0, 1))


def test_swapping_flips_the_sign_exactly_among_three(three_means: BayesFactor) -> None:
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert_array_equal(three_means.log_bf(DATA, first, second), -three_means.log_bf(DATA, second, first))


def test_models_go_by_name_or_by_number(three_means: BayesFactor) -> None:
    assert_array_equal(three_means.log_bf(DATA, "plus", "zero"), three_means.log_bf(DATA, 2, 1))
    assert_array_equal(three_means.log_bf(DATA, model=2, over="zero"), three_means.log_bf(DATA, 2, 1))
    assert_array_equal(three_means.log_bf(DATA), three_means.log_bf(DATA, "minus", "zero"))


def test_a_model_over_itself_is_zero(three_means: BayesFactor) -> None:
    for k in range(3):
        assert_array_equal(three_means.log_bf(DATA, k, k), 0)


def test_log_bayes_factors_add_up(three_means: BayesFactor) -> None:
    detour = three_means.log_bf(DATA, 0, 1) + three_means.log_bf(DATA, 1, 2)
    assert_allclose(detour, three_means.log_bf(DATA, 0, 2), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "error", "says"),
    [
        ("zero maen", ValueError, "model must be one of 'free mean', 'zero mean'.*Did you mean 'zero mean'"),
        (2, ValueError, "model must be below 2.*0: free mean, 1: zero mean"),
        (-1, ValueError, "model must be at least 0"),
        (0.0, TypeError, "model must be a whole number"),
        (None, TypeError, "model must be a whole number"),
    ],
)
def test_an_unknown_model_is_refused(normal_mean: BayesFactor, model: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        normal_mean.log_bf(DATA, model)
    with pytest.raises(error, match=says.replace("model must", "over must")):
        normal_mean.log_bf(DATA, 0, over=model)


def test_identical_models_give_zero() -> None:
    twins = [deepbf.Model(name, simulator=simulators.around_zero) for name in ("one", "other")]
    estimator = deepbf.fit(twins, structure="exchangeable", steps=300, seed=7, progress=False)
    members = estimator.log_bf_members(simulate_truth(twins, 500, seed=8)[0])
    log_bf, error = members.mean(axis=0), members.std(axis=0, ddof=1)
    assert np.mean(np.abs(log_bf) < 4 * error) > 0.9
    assert np.median(error) < 0.15
    assert np.abs(log_bf).mean() < 0.12
    assert estimator.record.held_out_loss == pytest.approx(np.log(2), abs=0.01)


# Probabilities


@pytest.mark.parametrize("prior", [None, [0.2, 0.2, 0.6]])
def test_posterior_probabilities_sum_to_one(three_means: BayesFactor, prior: Any) -> None:
    probs = three_means.posterior_probs(DATA, prior)
    assert probs.shape == (len(DATA), 3)
    assert (probs >= 0).all()
    assert_allclose(probs.sum(axis=1), 1, rtol=1e-12)


def test_posterior_odds_are_prior_odds_times_the_bayes_factor(three_means: BayesFactor) -> None:
    assert_array_equal(three_means.prior_probs, [0.5, 0.3, 0.2])
    probs = three_means.posterior_probs(DATA)
    expected = three_means.log_bf(DATA, 0, 2) + np.log(0.5 / 0.2)
    moderate = np.abs(expected) < 30
    assert moderate.sum() > 10
    assert_allclose(np.log(probs[moderate, 0] / probs[moderate, 2]), expected[moderate], rtol=1e-9, atol=1e-9)


def test_other_prior_odds_shift_the_posterior_log_odds_exactly(normal_mean: BayesFactor) -> None:
    even = normal_mean.posterior_probs(DATA, [0.5, 0.5])
    uneven = normal_mean.posterior_probs(DATA, [0.9, 0.1])
    moderate = even.min(axis=1) > 1e-10
    shift = np.log(uneven[:, 0] / uneven[:, 1]) - np.log(even[:, 0] / even[:, 1])
    assert moderate.sum() > 10
    assert_allclose(shift[moderate], np.log(9), rtol=1e-9)


def test_prior_probabilities_do_not_touch_the_bayes_factor(three_means: BayesFactor) -> None:
    shifted = dataclasses.replace(three_means, prior_probs=np.array([0.1, 0.1, 0.8]))
    assert_array_equal(shifted.log_bf(DATA), three_means.log_bf(DATA))


@pytest.mark.parametrize("share_of_first", [0.5, 0.8])
def test_the_mean_posterior_probability_is_the_prior(normal_mean: BayesFactor, share_of_first: float) -> None:
    num_first = int(4000 * share_of_first)
    data = [
        model.simulate(size, 31).data for model, size in zip(NORMAL_MEAN, (num_first, 4000 - num_first), strict=True)
    ]
    probs = normal_mean.posterior_probs(np.concatenate(data), [share_of_first, 1 - share_of_first])[:, 0]
    error = probs.std() / np.sqrt(4000)
    assert abs(probs.mean() - share_of_first) < 4 * error
    assert error < 0.01


def test_the_mean_posterior_probability_is_the_prior_of_three(three_means: BayesFactor) -> None:
    data, _ = simulate_truth(THREE_MEANS, 1500, seed=32)
    probs = three_means.posterior_probs(data, [1 / 3, 1 / 3, 1 / 3])
    error = probs.std(axis=0) / np.sqrt(len(data))
    assert (np.abs(probs.mean(axis=0) - 1 / 3) < 4 * error).all()
    assert error.max() < 0.01


@pytest.mark.parametrize("prior", [[0.5], [0.5, 0.6], [1.0, 0.0], [np.nan, 1.0], "even"])
def test_prior_probabilities_are_checked(normal_mean: BayesFactor, prior: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="prior_probs"):
        normal_mean.posterior_probs(DATA, prior)
    with pytest.raises((ValueError, TypeError), match="prior_probs"):
        normal_mean.compare(DATA[0], prior_probs=prior)


# Shapes


def test_one_data_set_is_a_batch_of_one(normal_mean: BayesFactor) -> None:
    single = normal_mean.log_bf(DATA[0])
    assert single.shape == (1,)
    assert single.dtype == np.float64
    assert_array_equal(single, normal_mean.log_bf(DATA[:1]))
    assert_array_equal(single, normal_mean.log_bf(DATA[0].tolist()))
    assert normal_mean.posterior_probs(DATA[0]).shape == (1, 2)


def test_an_answer_does_not_depend_on_the_rest_of_the_batch(normal_mean: BayesFactor) -> None:
    few = normal_mean.log_bf(DATA[:FEW_DATASETS])
    assert_array_equal(normal_mean.log_bf(DATA[3:5]), few[3:5])
    # Two programs answer, for few and for many data sets: the same up to rounding.
    many = normal_mean.log_bf(np.resize(DATA, (PREPARE_ROWS + 9, NUM_OBS)))
    assert many.shape == (PREPARE_ROWS + 9,)
    assert_allclose(many[:FEW_DATASETS], few, rtol=1e-4, atol=1e-4)
    assert_array_equal(many[: len(DATA)], many[50 * len(DATA) : 51 * len(DATA)])


@pytest.mark.parametrize("estimator", ["normal_mean", "walk_or_noise", "three_means", "pairs"])
def test_a_batch_of_none(estimator: str, request: pytest.FixtureRequest) -> None:
    bf = request.getfixturevalue(estimator)
    nothing = np.empty((0, *bf.data_shape))
    assert bf.log_bf(nothing).shape == (0,)
    assert bf.log_bf_members(nothing).shape == (4, 0)
    assert bf.posterior_probs(nothing).shape == (0, len(bf.names))


def test_members_and_their_mean(normal_mean: BayesFactor) -> None:
    members = normal_mean.log_bf_members(DATA)
    assert members.shape == (4, len(DATA))
    assert_allclose(normal_mean.log_bf(DATA), members.mean(axis=0))
    assert members.std(axis=0).min() > 0


def test_the_order_of_exchangeable_observations_does_not_matter(normal_mean: BayesFactor, pairs: BayesFactor) -> None:
    rng = np.random.default_rng(1)
    for estimator, data in ((normal_mean, DATA), (pairs, simulate_truth(simulators.PAIRS, 20, seed=22)[0])):
        log_bf = estimator.log_bf(data)
        shuffled = estimator.log_bf(data[:, rng.permutation(data.shape[1])])
        assert_allclose(shuffled, log_bf, rtol=1e-5, atol=1e-5 * np.abs(log_bf).max())


# Extremes


EXTREMES: dict[str, Any] = {
    "zeros": 0.0,
    "ten million": 1e7,
    "1e30": 1e30,
    "-1e30": -1e30,
    "1e300": 1e300,
    "the largest float": np.finfo(np.float64).max,
    "the smallest float": np.finfo(np.float64).min,
    "tiny": 5e-324,
    "int": np.int64(7),
    "the largest int": np.iinfo(np.int64).max,
    "the smallest int": np.iinfo(np.int64).min,
    "unsigned": np.iinfo(np.uint64).max,
    "true": True,
    "float32": np.float32(3.4e38),
}


@pytest.mark.parametrize("estimator", ["normal_mean", "walk_or_noise", "three_means", "pairs"])
def test_the_answer_is_finite_at_any_finite_data(estimator: str, request: pytest.FixtureRequest) -> None:
    bf = request.getfixturevalue(estimator)
    for case, value in EXTREMES.items():
        data = np.full((2, *bf.data_shape), value)
        # One far observation among ordinary ones, and all of them far.
        data[1].flat[1:] = 0
        assert np.isfinite(bf.log_bf_members(data)).all(), case
        assert_allclose(bf.posterior_probs(data).sum(axis=1), 1, rtol=1e-9, err_msg=case)
        assert np.isfinite(bf.compare(data[0]).log_bf), case


def test_far_data_of_both_signs(normal_mean: BayesFactor) -> None:
    largest = np.finfo(np.float64).max
    data = np.resize([largest, -largest, 0.0, 1e30, -1e7], (1, NUM_OBS))
    assert np.isfinite(normal_mean.log_bf(data)).all()


# Answers


def test_an_answer_is_what_log_bf_says(normal_mean: BayesFactor) -> None:
    answer = normal_mean.compare(DATA[0])
    members = normal_mean.log_bf_members(DATA[0])[:, 0]
    assert answer.log_bf == pytest.approx(members.mean(), rel=1e-12)
    assert answer.error == pytest.approx(members.std(ddof=1), rel=1e-12)
    assert (answer.model, answer.against) == ("free mean", "zero mean")
    assert answer.names == ("free mean", "zero mean")
    assert answer.prior_probs == (0.5, 0.5)
    assert_allclose(answer.posterior_probs, normal_mean.posterior_probs(DATA[0])[0], rtol=1e-12)


def test_surprise_is_the_tail_area_among_simulations_of_each_model(normal_mean: BayesFactor) -> None:
    reference = normal_mean.reference_log_bf()
    assert reference is not None
    assert [len(part) for part in reference] == [len(reference[0])] * 2
    assert len(reference[0]) >= 1000
    for data in DATA[:5]:
        answer = normal_mean.compare(data)
        assert answer.surprise is not None
        # Up to rounding: float32 in the reference, and values that differ by no more count as equal.
        assert answer.surprise["free mean"].prob == pytest.approx(np.mean(reference[0] <= answer.log_bf), abs=1e-3)
        assert answer.surprise["zero mean"].prob == pytest.approx(np.mean(reference[1] >= answer.log_bf), abs=1e-3)


def test_surprise_is_that_of_fresh_simulations(normal_mean: BayesFactor) -> None:
    fresh = [normal_mean.log_bf(model.simulate(4000, seed=77).data) for model in simulators.NORMAL_MEAN]
    answer = normal_mean.compare(DATA[0])
    assert answer.surprise is not None
    for name, share in (
        ("free mean", np.mean(fresh[0] <= answer.log_bf)),
        ("zero mean", np.mean(fresh[1] >= answer.log_bf)),
    ):
        found = answer.surprise[name]
        error = np.hypot((found.high - found.low) / 4, np.sqrt(share * (1 - share) / 4000))
        assert abs(found.prob - share) < 4 * error


def test_surprise_turns_round_with_the_question(three_means: BayesFactor) -> None:
    one_way, other_way = (three_means.compare(DATA[0], model=a, over=b) for a, b in ((0, 2), (2, 0)))
    assert one_way.surprise == other_way.surprise
    assert one_way.surprise is not None
    assert set(one_way.surprise) == {three_means.names[0], three_means.names[2]}


def test_the_interval_is_students_about_the_mean(normal_mean: BayesFactor) -> None:
    answer = normal_mean.compare(DATA[0])
    assert answer.interval is not None
    assert answer.error is not None
    low, high = answer.interval
    assert low < answer.log_bf < high
    # 97.5% point of Student's t with 3 degrees of freedom.
    assert high - answer.log_bf == pytest.approx(3.182446 * answer.error, rel=1e-6)
    assert answer.log_bf - low == pytest.approx(3.182446 * answer.error, rel=1e-6)


def test_one_member_knows_no_error_and_of_two_it_is_their_distance() -> None:
    data = np.random.default_rng(1).normal(size=13)
    alone = untrained("exchangeable", "deepset", num_members=1).compare(data)
    assert (alone.error, alone.interval) == (None, None)
    pair = untrained("exchangeable", "deepset", num_members=2)
    one, other = pair.log_bf_members(data)[:, 0]
    answer = pair.compare(data)
    assert answer.log_bf == pytest.approx((one + other) / 2)
    error = abs(one - other) / np.sqrt(2)
    assert error > 0.01
    assert answer.error == pytest.approx(error, rel=1e-4)
    # One degree of freedom: the Cauchy distribution, whose 97.5% point is tan(0.475 pi).
    half_width = np.tan(0.475 * np.pi) * error
    assert answer.interval == pytest.approx((answer.log_bf - half_width, answer.log_bf + half_width), rel=1e-4)


def test_asking_the_other_way_round(normal_mean: BayesFactor) -> None:
    plain = normal_mean.compare(DATA[0])
    turned = normal_mean.compare(DATA[0], model="zero mean", over="free mean")
    assert turned.log_bf == -plain.log_bf
    assert (turned.favours, turned.over) == (plain.favours, plain.over)
    assert turned.posterior_probs == plain.posterior_probs
    only_model = normal_mean.compare(DATA[0], model=1)
    assert (only_model.model, only_model.against) == ("zero mean", "free mean")
    only_over = normal_mean.compare(DATA[0], over=0)
    assert (only_over.model, only_over.against) == ("zero mean", "free mean")
    assert only_over.log_bf == turned.log_bf


def test_prior_probabilities_of_an_answer(normal_mean: BayesFactor) -> None:
    answer = normal_mean.compare(DATA[0], prior_probs=[0.9, 0.1])
    assert answer.prior_probs == (0.9, 0.1)
    assert answer.log_bf == normal_mean.compare(DATA[0]).log_bf
    assert_allclose(answer.posterior_probs, normal_mean.posterior_probs(DATA[0], [0.9, 0.1])[0], rtol=1e-12)


def test_of_three_models_the_best_is_set_against_the_runner_up(three_means: BayesFactor) -> None:
    for level, ranking in ((1.2, ("plus", "zero")), (-0.8, ("minus", "zero")), (0.1, ("zero", "plus"))):
        answer = three_means.compare(np.full(NUM_OBS, level) + np.linspace(-1, 1, NUM_OBS), prior_probs=[1 / 3] * 3)
        assert (answer.favours, answer.over) == ranking
        assert answer.log_bf > 0
        assert answer.names[int(np.argmax(answer.posterior_probs))] == ranking[0]


def test_the_ranking_of_three_models_heeds_their_prior(three_means: BayesFactor) -> None:
    observed = np.linspace(-1, 1, NUM_OBS) + 0.5
    for prior, best in (([0.01, 0.98, 0.01], "zero"), ([0.01, 0.01, 0.98], "plus")):
        answer = three_means.compare(observed, prior_probs=prior)
        assert answer.model == best
        assert answer.names[int(np.argmax(answer.posterior_probs))] == best


def test_a_pair_of_three_models_may_be_asked_for(three_means: BayesFactor) -> None:
    answer = three_means.compare(DATA[0], model="minus", over="plus")
    assert (answer.model, answer.against) == ("minus", "plus")
    assert answer.log_bf == pytest.approx(three_means.log_bf(DATA[0], 0, 2)[0], rel=1e-12)


@pytest.mark.parametrize(("level", "ranking"), [(1.2, ("plus", "zero")), (-0.8, ("minus", "zero"))])
def test_one_named_model_is_set_against_the_best_of_the_rest(
    three_means: BayesFactor, level: float, ranking: tuple[str, str]
) -> None:
    best, runner_up = ranking
    observed = np.full(NUM_OBS, level) + np.linspace(-1, 1, NUM_OBS)
    for named, other in ((best, runner_up), (runner_up, best)):
        over = three_means.compare(observed, prior_probs=[1 / 3] * 3, over=named)
        assert (over.model, over.against) == (other, named)
        model = three_means.compare(observed, prior_probs=[1 / 3] * 3, model=named)
        assert (model.model, model.against) == (named, other)
        assert over.log_bf == -model.log_bf


def test_disagreement_is_a_warning(normal_mean: BayesFactor) -> None:
    rng = np.random.default_rng(5)
    shifts = np.linspace(0.3, 1.0, 400)[:, None] + rng.normal(size=(400, NUM_OBS))
    members = normal_mean.log_bf_members(shifts)
    split = (members.min(axis=0) < 0) & (members.max(axis=0) > 0)
    agreed = (members.min(axis=0) > 0.5) & (members.std(axis=0, ddof=1) < 0.5)
    assert split.any()
    assert agreed.any()
    assert any("disagree" in warning for warning in normal_mean.compare(shifts[split][0]).warnings)
    assert normal_mean.compare(shifts[agreed][0]).warnings == ()


def test_a_wide_spread_is_a_warning(normal_mean: BayesFactor) -> None:
    wide = normal_mean.compare(np.full(NUM_OBS, 1e6))
    assert wide.error is not None
    assert wide.error > 1
    assert any("members differ by" in warning for warning in wide.warnings)


def test_training_that_has_hardly_begun_is_a_warning(normal_mean: BayesFactor) -> None:
    begun = dataclasses.replace(normal_mean.record, num_steps=5)
    young = dataclasses.replace(normal_mean, ensemble=dataclasses.replace(normal_mean.ensemble, record=begun))
    assert any("hardly begun (5 steps)" in warning for warning in young.compare(np.ones(NUM_OBS)).warnings)
    # One that went on from another has learned before.
    older = dataclasses.replace(begun, num_earlier_simulations=1000)
    grown = dataclasses.replace(young, ensemble=dataclasses.replace(young.ensemble, record=older))
    assert not any("hardly begun" in warning for warning in grown.compare(np.ones(NUM_OBS)).warnings)


def test_it_introduces_itself(three_means: BayesFactor) -> None:
    text = repr(three_means)
    for words in ("minus against zero against plus", "exchangeable", "(10,)", "4 x committee"):
        assert words in text


# What is not data


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (np.zeros(9), ValueError, r"has shape \(9,\).*shape \(10,\).*\(batch, 10\)"),
        (np.zeros((3, 11)), ValueError, r"has shape \(3, 11\).*shape \(10,\)"),
        (np.zeros((2, 3, 10)), ValueError, r"has shape \(2, 3, 10\)"),
        (1.0, ValueError, r"has shape \(\)"),
        ([], ValueError, r"has shape \(0,\)"),
        (
            [[0.0] * 10, [0.0] * 4 + [np.nan] + [0.0] * 5],
            ValueError,
            r"has 1 of 20 values not finite.*nan.*index \(1, 4\)",
        ),
        ([np.inf] + [0.0] * 9, ValueError, r"has 1 of 10 values not finite, the first, inf, at index \(0, 0\)"),
        (["a"] * 10, TypeError, "must hold real numbers.*<U1"),
        ("observed.csv", TypeError, "must hold real numbers"),
        ([None] * 10, TypeError, "must hold real numbers.*object"),
        (None, TypeError, "must hold real numbers"),
        ([1j] * 10, TypeError, "must hold real numbers.*complex"),
        ([[0.0] * 10, [0.0] * 9], ValueError, "holds lists of different lengths"),
    ],
    ids=str,
)
def test_what_is_not_data_is_refused(normal_mean: BayesFactor, data: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=f"^data {says}"):
        normal_mean.log_bf(data)
    with pytest.raises(error, match=f"^data {says}"):
        normal_mean.posterior_probs(data)
    with pytest.raises(error, match=f"^observed {says}"):
        normal_mean.compare(data)


@pytest.mark.parametrize("num_datasets", [0, 2])
def test_an_answer_is_about_one_data_set(normal_mean: BayesFactor, num_datasets: int) -> None:
    with pytest.raises(ValueError, match=rf"observed must be one data set of shape \(10,\); received {num_datasets}"):
        normal_mean.compare(DATA[:num_datasets])


def test_a_batch_of_one_is_one_data_set(normal_mean: BayesFactor) -> None:
    assert normal_mean.compare(DATA[:1]) == normal_mean.compare(DATA[0])
