"""Variants are what their formulas say, of the estimator's own Bayes factors and of exact ones."""

import inspect
import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

import deepbf
from deepbf import BayesFactor, Variants
from deepbf.layout import STRUCTURES, ArrayLayout, DataLayout
from deepbf.variants import splitting
from deepbf.variants.intrinsic import Subsets
from deepbf_studies.problems import normal_mean_log_bf
from tests.simulators import ANY_NUMBER

RNG = np.random.default_rng(8)
# Means that leave the models in doubt, where a short fit is near the exact answer.
DATA = RNG.normal([[0.0], [0.4], [-0.6]], 1.0, (3, 10))


@pytest.fixture(scope="module")
def variants(any_number: BayesFactor) -> Variants:
    return Variants(any_number)


def exact(data: Any) -> Any:
    return normal_mean_log_bf(data, prior_scale=1.0)


def test_a_partial_bayes_factor_is_a_ratio_of_two(variants: Variants) -> None:
    bf = variants.estimator
    found = variants.partial(DATA, 4)
    np.testing.assert_allclose(found.log_bf, bf.log_bf(DATA) - bf.log_bf(DATA[:, :4]), atol=1e-9)
    np.testing.assert_allclose(found.log_bf, exact(DATA) - exact(DATA[:, :4]), atol=0.6)
    places = [7, 0, 3]
    chosen = variants.partial(DATA[0], places)
    assert chosen.log_bf[0] == pytest.approx(bf.log_bf(DATA[0])[0] - bf.log_bf(DATA[0, places])[0], abs=1e-5)
    assert found.error is not None
    members = bf.log_bf_members(DATA) - bf.log_bf_members(DATA[:, :4])
    np.testing.assert_allclose(found.error, members.std(axis=0, ddof=1))


def test_the_other_direction_is_the_other_sign(variants: Variants) -> None:
    turned = Variants(variants.estimator, model="zero", over="free")
    for name, arguments in (("partial", (3,)), ("posterior", ()), ("geometric", (2,)), ("fractional", (0.3,))):
        there, back = (getattr(one, name)(DATA, *arguments) for one in (variants, turned))
        np.testing.assert_allclose(back.log_bf, -there.log_bf, atol=1e-9)
        assert (back.model, back.against) == ("zero", "free")


def test_the_posterior_bayes_factor_takes_the_data_twice(variants: Variants) -> None:
    twice = np.concatenate([DATA, DATA], axis=1)
    found = variants.posterior(DATA)
    bf = variants.estimator
    np.testing.assert_allclose(found.log_bf, bf.log_bf(twice) - bf.log_bf(DATA), atol=1e-9)
    np.testing.assert_allclose(found.log_bf, exact(twice) - exact(DATA), atol=0.8)


def test_intrinsic_ones_average_over_every_training_sample(variants: Variants) -> None:
    bf = variants.estimator
    every = list(itertools.combinations(range(10), 3))
    whole = bf.log_bf_members(DATA)
    inverse = -np.stack([bf.log_bf_members(DATA[:, places]) for places in every])
    arithmetic, geometric = variants.arithmetic(DATA, 3), variants.geometric(DATA, 3)
    expected = (whole + np.asarray(logsumexp(inverse, axis=0)) - math.log(len(every))).mean(axis=0)
    np.testing.assert_allclose(arithmetic.log_bf, expected, atol=1e-5)
    np.testing.assert_allclose(geometric.log_bf, (whole + inverse.mean(axis=0)).mean(axis=0), atol=1e-5)
    for found in (arithmetic, geometric):
        assert (found.num_subsets, found.num_possible, found.monte_carlo_error) == (120, 120, None)
    # The mean of numbers is above their geometric mean.
    assert (arithmetic.log_bf >= geometric.log_bf).all()


@pytest.mark.parametrize("name", ["arithmetic", "geometric"])
def test_random_training_samples_come_with_their_error(variants: Variants, name: str) -> None:
    average = getattr(variants, name)
    whole = average(DATA, 3)
    sampled = [average(DATA, 3, num_subsets=40, seed=seed) for seed in range(30)]
    for one in sampled:
        assert (one.num_subsets, one.num_possible) == (40, 120)
    apart = np.stack([one.log_bf - whole.log_bf for one in sampled])
    errors = np.stack([one.monte_carlo_error for one in sampled if one.monte_carlo_error is not None])
    # Thirty spreads of thirty samples each: a factor of two is far outside what chance does.
    ratio = apart.std(axis=0) / np.sqrt((errors**2).mean(axis=0))
    assert ((ratio > 0.5) & (ratio < 2.0)).all()
    again = average(DATA, 3, num_subsets=40, seed=7)
    np.testing.assert_array_equal(again.log_bf, sampled[7].log_bf)


def test_a_fraction_of_repeated_data_is_a_training_sample(variants: Variants) -> None:
    """Half of the likelihood of a data set twice is the likelihood of the data set."""
    twice = np.concatenate([DATA, DATA], axis=1)
    bf = variants.estimator
    np.testing.assert_allclose(
        variants.fractional(twice, 0.5).log_bf, bf.log_bf(twice) - bf.log_bf(DATA), rtol=0, atol=1e-4
    )


def test_a_fractional_bayes_factor_against_the_closed_form(variants: Variants) -> None:
    """Of a normal mean: the likelihood to a power is that of a mean of fewer observations, at the same mean."""
    fraction, number = 0.4, 10
    means = DATA.mean(axis=1)

    def log_bf(num: float) -> Any:
        return 0.5 * (num * means) ** 2 / (num + 1.0) - 0.5 * math.log(num + 1.0)

    np.testing.assert_allclose(log_bf(number), exact(DATA), atol=1e-9)
    found = variants.fractional(DATA, fraction)
    np.testing.assert_allclose(found.log_bf, log_bf(number) - log_bf(fraction * number), atol=0.6)


def test_nothing_overflows(variants: Variants) -> None:
    data = np.array([np.full(10, 1e300), np.linspace(-1e15, 1e30, 10), np.zeros(10)])
    for found in (
        variants.partial(data, 2), variants.posterior(data), variants.fractional(data, 0.2),
        variants.arithmetic(data, 2), variants.geometric(data, 2), variants.arithmetic(data, 5, num_subsets=20),
    ):  # fmt: skip
        assert np.isfinite(found.log_bf).all()
        assert found.error is not None
        assert np.isfinite(found.error).all()
        assert found.doubtful.tolist()[:2] == [True, True]


def test_it_prints_itself(variants: Variants) -> None:
    text = str(variants.arithmetic(DATA, 5, num_subsets=50))
    assert text.startswith("Log arithmetic intrinsic Bayes factor (natural log) of free over zero\n")
    assert "(training) +- " in text
    assert text.endswith("over 50 random ones of 252 training samples")
    assert "over all of 45 training samples" in str(variants.geometric(DATA, 2))
    assert "... and 3 more" in str(variants.partial(np.zeros((15, 4)), 2))
    assert "beyond what the simulations show" in str(variants.partial(np.full(10, 50.0), 2))


@pytest.fixture
def exact_variants() -> Variants:
    """Variants of exact Bayes factors, of a normal mean that is unknown over one that is 0."""
    names = ("free", "zero")

    def log_bf_members(data: Any, model: int, over: int) -> Any:
        return np.sign(over - model) * exact(data)[None]

    estimator: Any = SimpleNamespace(
        structure="exchangeable",
        num_obs=(1, 24),
        names=names,
        record=SimpleNamespace(num_simulations=10**9),
        layout=DataLayout((ArrayLayout("", STRUCTURES["exchangeable"], (24,), grows=True, sizes=((1, 24),)),)),
        log_bf_members=log_bf_members,
        index_of=lambda _, model: model,
    )
    return Variants(estimator)


def test_a_partial_bayes_factor_needs_no_independence(exact_variants: Variants) -> None:
    """With the mean drawn inside a simulator without parameters, observations are exchangeable, not independent."""
    for data in DATA:
        predictive = 0.0
        for k in range(4, 10):
            mean, variance = data[:k].sum() / (k + 1), 1 + 1 / (k + 1)
            predictive += norm.logpdf(data[k], mean, math.sqrt(variance)) - norm.logpdf(data[k])
        assert exact_variants.partial(data, 4).log_bf[0] == pytest.approx(predictive, abs=1e-9)


def test_a_posterior_bayes_factor_squares_the_likelihood_of_independent_observations(exact_variants: Variants) -> None:
    """It averages the likelihood over the posterior of the mean, and only if the mean counts as a parameter."""
    data = DATA[1]

    def integral(power: int) -> float:
        """The likelihood ratio to a power, averaged over the prior of the mean."""
        ratio = lambda mean: math.exp(power * (mean * data.sum() - len(data) * mean**2 / 2)) * norm.pdf(mean)  # noqa: E731
        return quad(ratio, -6, 6, epsabs=1e-12)[0]

    found = exact_variants.posterior(data)
    assert found.error is None
    assert found.log_bf[0] == pytest.approx(math.log(integral(2) / integral(1)), abs=1e-8)
    # A model without parameters has no posterior: its likelihood averages to itself, whatever the simulator hides.
    without_parameters = exact(data[None])[0]
    assert abs(found.log_bf[0] - without_parameters) > 0.1


def test_it_is_said_which_variants_need_independent_observations(variants: Variants) -> None:
    says = "independent given the parameters"
    for told in (Variants, Variants.posterior, Variants.fractional, deepbf.fit_variants):
        assert says in " ".join((inspect.getdoc(told) or "").split())
    for told in (Variants.partial, Variants.arithmetic):
        assert "exchangeable observations only" in " ".join((inspect.getdoc(told) or "").split())
    assert says in str(variants.posterior(DATA))
    assert says in str(variants.fractional(DATA, 0.3))
    for needs_less in (variants.partial(DATA, 3), variants.arithmetic(DATA, 3), variants.geometric(DATA, 3)):
        assert says not in str(needs_less)


BAD: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "none to train on": ("partial", (DATA, 0), "training must be at least 1; received 0"),
    "all to train on": ("partial", (DATA, 10), "at most 9 of 10; received 10"),
    "none for the average": ("arithmetic", (DATA, 0), "num_training must be at least 1"),
    "all for the average": ("geometric", (DATA, 10), "num_training must leave observations.*at most 9 of 10"),
    "a place beyond": ("partial", (DATA, [0, 10]), "places from 0 to 9"),
    "no places": ("partial", (DATA, np.array([], int)), "at least one"),
    "every place": ("partial", (DATA, list(range(10))), "at most 9 of 10"),
    "too many to double": (
        "posterior",
        (np.zeros(13),),
        "twice the observations must be .* 1 to 24; received 26",
    ),
    "too long": (
        "partial",
        (np.zeros(25), 2),
        "within the trained range, 1 to 24; received 25",
    ),
    "all of the likelihood": ("fractional", (DATA, 1.0), "fraction must be between 0 and 1"),
    "too small a fraction": ("fractional", (DATA, 0.05), "at least 1 observations.*is 0.5"),
    "nan": ("partial", (np.array([1.0, np.nan, 2.0]), 1), "not finite"),
    "axes": ("partial", (np.zeros((2, 3, 4)), 1), r"received shape \(2, 3, 4\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(variants: Variants, case: str) -> None:
    name, arguments, says = BAD[case]
    with pytest.raises(ValueError, match=says):
        getattr(variants, name)(*arguments)


def test_places_are_whole_numbers_each_once(variants: Variants) -> None:
    for places in ([0, 0], [0.5, 1.0], [[0, 1]]):
        with pytest.raises(TypeError, match="training must be a number of observations, or their places"):
            variants.partial(DATA, places)  # pyright: ignore[reportArgumentType]


def test_what_cannot_be_split_is_refused(walk_or_noise: BayesFactor, normal_mean: BayesFactor) -> None:
    with pytest.raises(ValueError, match=r"need structure='exchangeable'; .*structure='vector'"):
        Variants(walk_or_noise)
    with pytest.raises(ValueError, match="variants need Bayes factors at several sample sizes"):
        Variants(normal_mean)
    with pytest.raises(ValueError, match="structure must be 'exchangeable'"):
        deepbf.fit_variants(ANY_NUMBER, 8, 2, structure="series")
    with pytest.raises(ValueError, match="at most 7 of 8; received 8"):
        deepbf.fit_variants(ANY_NUMBER, 8, [2, 8])
    with pytest.raises(ValueError, match="received none"):
        deepbf.fit_variants(ANY_NUMBER, 8, [])


@pytest.mark.parametrize("num_training", [2, np.int64(2), np.uint8(2), [np.int64(4), 2], np.array([2, 4])])
def test_numbers_of_numpy_are_numbers(num_training: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fit(models: Any, **options: Any) -> None:
        asked.append(options["num_obs"])
        raise KeyboardInterrupt

    monkeypatch.setattr(splitting, "fit", fit)
    with pytest.raises(KeyboardInterrupt):
        deepbf.fit_variants(ANY_NUMBER, 6, num_training)
    assert asked == [(2, 12)]
    assert all(type(number) is int for number in asked[0])


@pytest.mark.slow
def test_one_call_trains_what_is_needed() -> None:
    found = deepbf.fit_variants(ANY_NUMBER, 6, [2, 4], steps=20, ensemble=2, seed=1, progress=False)
    assert found.estimator.num_obs == (2, 12)
    without = deepbf.fit_variants(
        ANY_NUMBER, 6, 3, posterior=False, steps=20, ensemble=2, seed=1, model=1, over=0, progress=False
    )
    assert without.estimator.num_obs == (3, 6)
    assert without.partial(np.zeros(6), 3).model == "zero"
    with pytest.raises(ValueError, match="twice the observations"):
        without.posterior(np.zeros(6))


@pytest.mark.parametrize(("num_obs", "size"), [(5, 2), (12, 6)])
def test_random_subsets_are_subsets_and_evenly_drawn(num_obs: int, size: int) -> None:
    chosen = Subsets.choose(num_obs, size, most=9, seed=3)
    assert chosen.indices.shape == (9, size)
    assert all(len(set(row)) == size for row in chosen.indices.tolist())
    many = Subsets.choose(40, 10, most=4000, seed=1).indices
    counts = np.bincount(many.ravel(), minlength=40)
    assert np.abs(counts - 1000).max() < 6 * math.sqrt(4000 * 0.25 * 0.75)
