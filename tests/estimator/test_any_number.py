"""One estimator for every sample size in a range."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepbf
from deepbf import BayesFactor
from deepbf_studies.problems import normal_mean_log_bf
from tests.simulators import ANY_NUMBER, PAIRS

RNG = np.random.default_rng(5)
SETS = [RNG.normal(0.4, 1.0, number) for number in (3, 1, 24, 17, 24)]


def exact(data: Any) -> Any:
    return normal_mean_log_bf(data, prior_scale=1.0)


@pytest.mark.parametrize("num_obs", [1, 3, 10, 24])
def test_accuracy_at_every_number(any_number: BayesFactor, num_obs: int) -> None:
    found = any_number.evaluate(1500, num_obs=num_obs, exact=exact, num_replicates=20, progress=False)
    assert found.results.attrs["num_obs"] == num_obs
    assert found.value("excess_loss") < 6e-3
    assert found.value("spearman") > 0.9


def test_data_sets_of_different_lengths_in_one_call(any_number: BayesFactor) -> None:
    together = any_number.log_bf(SETS)
    alone = [any_number.log_bf(one)[0] for one in SETS]
    np.testing.assert_array_equal(together, alone)
    expected = [float(exact(one[None])[0]) for one in SETS]
    np.testing.assert_allclose(together, expected, atol=1.0)


@pytest.mark.parametrize("form", ["tuple", "masked", "array"])
def test_the_form_of_the_data_does_not_matter(any_number: BayesFactor, form: str) -> None:
    if form == "array":
        data = np.stack([SETS[2], SETS[4]])
        np.testing.assert_array_equal(any_number.log_bf(data), any_number.log_bf([SETS[2], SETS[4]]))
        return
    if form == "tuple":
        other: Any = tuple(one.tolist() for one in SETS)
    else:
        mask = np.arange(24) >= np.array([len(one) for one in SETS])[:, None]
        padded = np.stack([np.pad(one, (0, 24 - len(one)), constant_values=1e9) for one in SETS])
        other = np.ma.masked_array(padded, mask)
    np.testing.assert_array_equal(any_number.log_bf(other), any_number.log_bf(SETS))


def test_padding_and_masks_in_the_middle_never_change_an_answer(any_number: BayesFactor) -> None:
    """Absent observations may stand anywhere: what is there is all that counts."""
    one = SETS[3]
    places = np.sort(np.random.default_rng(1).permutation(24)[: len(one)])
    data = np.full(24, 7e5)
    data[places] = one
    scattered = np.ma.masked_array(data, mask=~np.isin(np.arange(24), places))
    np.testing.assert_allclose(any_number.log_bf(scattered), any_number.log_bf(one), rtol=0, atol=1e-6)
    # Beyond the longest of the fit, too: twice the padding, the same answer.
    longer = np.full((1, 48), np.nan)
    longer[0, : len(one)] = one
    np.testing.assert_allclose(
        any_number.log_odds_members(longer)[:, 0, 0].mean(), any_number.log_bf(one)[0], atol=1e-6
    )


def test_the_order_does_not_matter(any_number: BayesFactor) -> None:
    one = SETS[3]
    np.testing.assert_allclose(any_number.log_bf(one[::-1]), any_number.log_bf(one), rtol=1e-4, atol=1e-4)


def test_the_same_numbers_twice_are_more_evidence(any_number: BayesFactor) -> None:
    """The network knows n: pooled features of a data set and of its double are the same."""
    one = np.linspace(0.4, 1.2, 12)
    single, double = any_number.log_bf([one, np.concatenate([one, one])])
    expected = [float(exact(data[None])[0]) for data in (one, np.concatenate([one, one]))]
    assert double - single > 0.5 * (expected[1] - expected[0]) > 0.5


def test_an_answer_has_the_surprise_of_its_own_sample_size(any_number: BayesFactor) -> None:
    for one in (SETS[0], SETS[2]):
        answer = any_number.compare(one)
        assert answer.surprise is not None
        fresh = [any_number.log_bf(m.simulate(2000, seed=3, num_obs=len(one)).data) for m in ANY_NUMBER]
        assert answer.surprise["free"].prob == pytest.approx(np.mean(fresh[0] <= answer.log_bf), abs=0.12)
        assert answer.surprise["zero"].prob == pytest.approx(np.mean(fresh[1] >= answer.log_bf), abs=0.12)


def test_it_is_saved_and_loaded(any_number: BayesFactor, tmp_path: Path) -> None:
    any_number.save(tmp_path / "any.deepbf")
    loaded = deepbf.load(tmp_path / "any.deepbf")
    assert loaded.num_obs == any_number.num_obs == (1, 24)
    assert repr(loaded) == repr(any_number)
    assert "of 1 to 24 observations" in repr(loaded)
    np.testing.assert_array_equal(loaded.log_bf(SETS), any_number.log_bf(SETS))
    assert loaded.compare(SETS[3]) == any_number.compare(SETS[3])
    a, b = (
        bf.evaluate(50, models=ANY_NUMBER, num_obs=4, num_replicates=10, progress=False) for bf in (loaded, any_number)
    )
    assert a.results.identical(b.results)


BAD: dict[str, tuple[Any, str]] = {
    "too many": (np.zeros(25), "range, 1 to 24: the first has 25. Fit again .* or pass extrapolate=True"),
    "one too many": ([np.zeros(3), np.zeros(99)], "1 of 2 data sets"),
    "none": ([np.zeros(3), np.zeros(0)], "the first has 0"),
    "nan": ([np.zeros(3), np.array([0.0, np.nan])], r"data\[1\] has 1 of 2 values not finite"),
    "nan in an array": (np.array([[0.0, np.nan]]), "not finite"),
    "vectors": (np.zeros((2, 3, 2)), r"data has shape \(2, 3, 2\)"),
    "a vector among scalars": ([np.zeros(3), np.zeros((2, 2))], r"data\[1\] has shape \(2, 2\)"),
    "a number": (3.0, r"data has shape \(\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_are_refused(any_number: BayesFactor, case: str) -> None:
    data, says = BAD[case]
    with pytest.raises(ValueError, match=says):
        any_number.log_bf(data)


def test_text_is_no_data(any_number: BayesFactor) -> None:
    with pytest.raises(TypeError, match="must hold real numbers"):
        any_number.log_bf([["a"], ["b", "c"]])


def test_a_batch_of_none(any_number: BayesFactor) -> None:
    assert any_number.log_bf(np.zeros((0, 5))).shape == (0,)


def test_beyond_the_range_only_if_asked_and_with_a_warning(any_number: BayesFactor) -> None:
    far = np.full(40, 1.0)
    with pytest.warns(UserWarning, match="outside the trained range, 1 to 24.*extrapolated"):
        found = any_number.log_bf(far, extrapolate=True)
    assert np.isfinite(found).all()
    assert found[0] > 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        any_number.log_bf(SETS, extrapolate=True)
    with pytest.warns(UserWarning, match="extrapolated"):
        assert any_number.compare(far, extrapolate=True).favours == "free"
    with pytest.raises(ValueError, match="the first has 0"):
        any_number.log_bf([np.zeros(0), np.zeros(2)], extrapolate=True)


def test_extreme_data_are_answered(any_number: BayesFactor) -> None:
    data = [np.array([1e300]), np.full(7, -1e30), np.array([0.0, 1e15, -1e15]), np.zeros(24)]
    assert np.isfinite(any_number.log_bf_members(data)).all()


def test_evaluating_needs_a_number(any_number: BayesFactor, normal_mean: BayesFactor) -> None:
    for number in (None, 0, 25):
        with pytest.raises(ValueError, match="num_obs must"):
            any_number.evaluate(num_obs=number, progress=False)
    with pytest.raises(ValueError, match="num_obs cannot be chosen"):
        normal_mean.evaluate(num_obs=3, progress=False)
    found = any_number.evaluate(50, observed=SETS[3], num_replicates=10, progress=False)
    assert found.results.attrs["num_obs"] == 17


def test_the_path_of_the_bayes_factor(any_number: BayesFactor) -> None:
    one = SETS[3]
    found = any_number.path(one)
    assert found.num_obs.tolist() == list(range(1, 18))
    assert found.log_bf[-1] == pytest.approx(any_number.log_bf(one)[0], abs=1e-6)
    assert found.log_bf[4] == pytest.approx(any_number.log_bf(one[:5])[0], abs=1e-6)
    assert found.error is not None
    assert found.error[-1] == pytest.approx(any_number.compare(one).error, rel=1e-4)
    expected = np.array([float(exact(one[None, :number])[0]) for number in found.num_obs])
    np.testing.assert_allclose(found.log_bf, expected, atol=0.6)
    turned = any_number.path(one, model=1, over=0)
    np.testing.assert_array_equal(turned.log_bf, -found.log_bf)
    assert "of free over zero, as observations arrive" in str(found)
    assert found.first_beyond(1e9) is None
    strong = any_number.path(np.full(20, 2.0))
    number = strong.first_beyond(10)
    assert number is not None
    assert abs(strong.log_bf[strong.num_obs == number][0]) >= np.log(10)
    assert np.all(np.abs(strong.log_bf[strong.num_obs < number]) < np.log(10))


def test_a_path_is_of_one_data_set_and_of_an_estimator_that_can(
    any_number: BayesFactor, normal_mean: BayesFactor
) -> None:
    with pytest.raises(ValueError, match=r"observed must be one data set of shape .*; received 5"):
        any_number.path(SETS)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="path needs an estimator for a range of sample sizes"):
        normal_mean.path(np.zeros(10))


@pytest.mark.slow
def test_a_design_against_the_exact_bayes_factor(any_number: BayesFactor) -> None:
    numbers = [2, 6, 12, 24]
    found = any_number.design(3.0, 0.4, num_obs=numbers, num_datasets=600, progress=False)
    for k, (model, sign) in enumerate(zip(ANY_NUMBER, (1, -1), strict=True)):
        for number in numbers:
            log_bf = sign * exact(model.simulate(4000, seed=9, num_obs=number).data)
            rate = found.results["rate"].sel(num_obs=number, model=found.names[k])
            assert float(rate.sel(decision="right")) == pytest.approx(np.mean(log_bf > np.log(3)), abs=0.2)
            # Royall's bound, with room for the noise of 600 data sets.
            assert float(rate.sel(decision="misleading")) < 1 / 3
    assert found.needed("free") is not None
    assert "free is true" in str(found)
    with pytest.raises(ValueError, match="design needs an estimator for a range"):
        deepbf.fit(PAIRS, structure="exchangeable", steps=10, progress=False).design()
    with pytest.raises(ValueError, match="num_obs must say"):
        any_number.design(num_obs=[2, 99], progress=False)
