"""evaluate: any estimators, on the same fresh simulations of two models."""

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import deepbf
from deepbf import BayesFactor
from deepbf.evaluation import measure
from deepbf_studies import problems
from deepbf_studies.problems import normal_mean_log_bf
from tests import simulators
from tests.simulators import NORMAL_MEAN

STUDY = problems.load("data-3", num_obs=8)


def exact(data: Any) -> Any:
    return normal_mean_log_bf(data, prior_scale=1.0)


def quick(estimators: Any, **options: Any) -> deepbf.Evaluation:
    settings = {"num_datasets": 300, "num_replicates": 50, "progress": False, **options}
    return deepbf.evaluate(settings.pop("models", NORMAL_MEAN), estimators, **settings)


def test_a_trained_estimator_next_to_a_baseline_and_the_truth(normal_mean: BayesFactor) -> None:
    found = quick({"deepbf": normal_mean, "no idea": lambda data: np.zeros(len(data))}, exact=exact)
    assert found.estimators == ("deepbf", "no idea")
    assert found.names == ("free mean", "zero mean")
    assert found.value("excess_loss", "deepbf") < 0.01 < found.value("excess_loss", "no idea")
    assert found.value("spearman", "deepbf") > 0.95
    assert np.isnan(found.value("spearman", "no idea"))
    # An estimator that knows nothing is calibrated and gives the prior back: these checks alone would trust it.
    assert found.value("estimated_prior", "no idea") == 0.5
    assert found.value("auc", "no idea") == 0.5
    assert found.value("loss", "no idea") == pytest.approx(np.log(2))


def test_the_method_is_the_function(normal_mean: BayesFactor) -> None:
    settings: dict[str, Any] = {"exact": exact, "num_replicates": 50, "seed": 3, "progress": False}
    by_method = normal_mean.evaluate(300, **settings)
    by_function = quick({"deepbf": normal_mean}, **settings)
    assert by_method.results.identical(by_function.results)


def test_the_estimator_passes_the_checks_it_should(normal_mean: BayesFactor) -> None:
    found = normal_mean.evaluate(1500, exact=exact, num_replicates=100, progress=False)
    assert [check for check in found.checks if check.verdict == "fails"] == []
    assert found.value("agreement") > 0.97


def test_other_prior_probabilities_change_weights_and_probabilities(normal_mean: BayesFactor) -> None:
    found = normal_mean.evaluate(300, prior_probs=[0.2, 0.8], num_replicates=50, progress=False)
    assert found.results["prior_prob"].values.tolist() == pytest.approx([0.2, 0.8])
    assert abs(found.value("estimated_prior_z")) < 4
    assert found.value("estimated_prior") == pytest.approx(0.2, abs=0.05)


def test_a_pair_of_three(three_means: BayesFactor) -> None:
    names = three_means.names
    found = three_means.evaluate(300, model=names[2], over=0, num_replicates=50, progress=False)
    assert found.names == (names[2], names[0])
    # Prior probabilities 0.2 and 0.5 of the three, between these two.
    np.testing.assert_allclose(found.results["prior_prob"].values, [0.2 / 0.7, 0.5 / 0.7])
    data = three_means.check_models()[2].simulate(300, seed=1).data
    assert np.mean(found.results["log_bf"].values[0, :300]) == pytest.approx(
        three_means.log_bf(data, 2, 0).mean(), abs=1.0
    )


def test_a_loaded_estimator_needs_its_models(normal_mean: BayesFactor, tmp_path: Any) -> None:
    normal_mean.save(tmp_path / "x.deepbf")
    loaded = deepbf.load(tmp_path / "x.deepbf")
    with pytest.raises(ValueError, match=r"pass models=\[...\], those of the fit: free mean, zero mean"):
        loaded.evaluate(progress=False)
    a = loaded.evaluate(100, models=NORMAL_MEAN, num_replicates=20, progress=False)
    b = normal_mean.evaluate(100, num_replicates=20, progress=False)
    assert a.results.identical(b.results)
    for models, says in (
        (list(reversed(NORMAL_MEAN)), "in its order: free mean, zero mean; received zero mean, free mean"),
        (
            [NORMAL_MEAN[0], deepbf.Model("zero mean", simulator=lambda rng, size: rng.normal(size=(size, 3)))],
            r"shape \(10,\), as in the fit; zero mean simulates shape \(3,\)",
        ),
    ):
        with pytest.raises(ValueError, match=says):
            loaded.evaluate(models=models, progress=False)


def test_simulations_depend_on_the_seed_alone_and_are_not_those_of_a_fit() -> None:
    def seen_data(**options: Any) -> list[Any]:
        seen: list[Any] = []

        def remember(data: Any) -> Any:
            seen.append(data)
            return STUDY.exact_log_bf(data)

        quick({"x": remember}, models=STUDY.models, **options)
        return seen

    one, other = seen_data(seed=1), seen_data(seed=2)
    with ThreadPoolExecutor(2) as executor:
        again = seen_data(seed=1, executor=executor)
    for a, b, c in zip(one, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.isin(a, c).any()
    from deepbf.simulation import Source

    child = np.random.SeedSequence(1).spawn(3)[0]
    of_a_fit = Source.of(STUDY.models, int(child.generate_state(1, np.uint64)[0])).simulate([(0, 128), (1, 128)])
    assert not np.isin(one[0], of_a_fit[0]).any()


def test_the_surprise_of_observed_data(normal_mean: BayesFactor) -> None:
    observed = np.full(10, 1.2)
    found = normal_mean.evaluate(500, observed=observed, num_replicates=20, progress=False)
    assert float(found.results["observed_log_bf"][0]) == pytest.approx(normal_mean.log_bf(observed)[0])
    under_free, under_zero = found.results["surprise"].values[0]
    assert under_zero < 0.02 < 0.3 < under_free
    answer = normal_mean.compare(observed)
    assert answer.surprise is not None
    assert answer.surprise["free mean"].prob == pytest.approx(under_free, abs=0.1)


def not_reached(*_: Any) -> Any:
    raise AssertionError("simulated before the input was checked")


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "one model": (lambda: quick({"x": np.sum}, models=NORMAL_MEAN[:1]), "at least two models"),
    "three models": (lambda: quick({"x": np.sum}, models=simulators.THREE_MEANS), "must be two models"),
    "no estimators": (lambda: quick({}), "dict of at least one estimator"),
    "a bare estimator": (lambda: quick(np.sum), "dict of at least one estimator"),
    "no function": (lambda: quick({"x": 3}), "must be a BayesFactor or a function"),
    "exact": (lambda: quick({"x": np.sum}, exact=3), "exact must be a function"),
    "number": (lambda: quick({"x": np.sum}, num_datasets=1), "num_datasets must be at least 2"),
    "seed": (lambda: quick({"x": np.sum}, seed=-1), "seed must be a non-negative int"),
    "probabilities": (lambda: quick({"x": np.sum}, prior_probs=[1, 1]), "must sum to 1"),
    "replicates": (lambda: quick({"x": np.sum}, num_replicates=1), "num_replicates must be at least 2"),
    "executor": (lambda: quick({"x": np.sum}, executor=4), "executor must have a submit method"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_before_anything_is_simulated(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, says = BAD[case]
    monkeypatch.setattr("deepbf.evaluating.simulate_afresh", not_reached)
    with pytest.raises((ValueError, TypeError), match=says):
        call()


def test_observed_data_of_another_shape_are_refused_before_anything_is_simulated(
    normal_mean: BayesFactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepbf.evaluating.simulate_afresh", not_reached)
    with pytest.raises(ValueError, match=r"observed must be one data set of shape \(10,\)"):
        quick({"x": lambda data: np.zeros(len(data))}, observed=np.zeros(3))
    with pytest.raises(ValueError, match="observed has shape"):
        normal_mean.evaluate(observed=np.zeros(3), progress=False)
    with pytest.raises(ValueError, match="model and over must differ; both are 'free mean'"):
        normal_mean.evaluate(model=0, over=0)


def test_estimators_that_answer_in_the_wrong_shape_are_named() -> None:
    with pytest.raises(ValueError, match=r"estimator 'pairs' must return .* it returned shape \(300, 2\)"):
        quick({"pairs": lambda data: np.zeros((len(data), 2))})
    with pytest.raises(TypeError, match="the answer of estimator 'text' must hold real numbers"):
        quick({"text": lambda data: ["yes"] * len(data)})


def test_a_trained_estimator_is_asked_for_the_models_at_hand(
    normal_mean: BayesFactor, three_means: BayesFactor
) -> None:
    one_way = quick({"x": normal_mean}, seed=1)
    other_way = quick({"x": normal_mean}, models=list(reversed(NORMAL_MEAN)), seed=1)
    # Above 1/2 whichever way round; the simulations differ.
    assert other_way.value("auc") == pytest.approx(one_way.value("auc"), abs=0.1)
    of_three = quick({"x": three_means}, models=three_means.check_models()[1:])
    assert of_three.value("auc") > 0.6
    with pytest.raises(ValueError, match="knows the models free mean, zero mean, but not"):
        quick({"x": normal_mean}, models=three_means.check_models()[1:])


def test_reserved_and_repeated_names_are_refused_before_anything_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepbf.evaluating.simulate_afresh", not_reached)
    with pytest.raises(ValueError, match="none of them 'exact'"):
        quick({"exact": np.sum})
    with pytest.raises(ValueError, match="received '1' again"):
        quick({1: np.sum, "1": np.sum})
    weighted = deepbf.Model("weighted", simulator=NORMAL_MEAN[1].simulator)
    with pytest.raises(ValueError, match="not 'weighted'"):
        quick({"x": np.sum}, models=[NORMAL_MEAN[0], weighted])


def test_an_estimator_that_fails_is_named() -> None:
    def fail(data: Any) -> Any:
        raise ZeroDivisionError("no draws")

    with pytest.raises(RuntimeError, match=r"estimator 'mine' failed at data of shape \(300, 10\) .*no draws"):
        quick({"mine": fail})


def test_the_surprise_of_discrete_data_counts_ties() -> None:
    """Three of five heads: P(at most 3) if fair, P(at least 3) if loaded; ties are most of it."""
    coins = [
        deepbf.Model(name, simulator=lambda rng, size, p=p: rng.binomial(1, p, (size, 5)))
        for name, p in (("loaded", 0.8), ("fair", 0.5))
    ]
    bf = deepbf.fit(coins, structure="exchangeable", steps=200, seed=1, progress=False)
    for heads in range(6):
        found = bf.compare([1] * heads + [0] * (5 - heads)).surprise
        assert found is not None
        assert found["loaded"].prob == pytest.approx(binom.cdf(heads, 5, 0.8), abs=0.03)
        assert found["fair"].prob == pytest.approx(binom.sf(heads - 1, 5, 0.5), abs=0.03)


def test_a_failing_simulator_is_named() -> None:
    failing = deepbf.Model("failing", simulator=lambda rng, size: np.full((size, 10), np.nan))
    with pytest.raises(deepbf.SimulationError, match="Model 'failing' failed"):
        quick({"x": lambda data: np.zeros(len(data))}, models=[NORMAL_MEAN[0], failing])


def test_the_three_ways_in_have_the_same_defaults() -> None:
    defaults = [
        {name: parameter.default for name, parameter in inspect.signature(call).parameters.items()}
        for call in (deepbf.evaluate, BayesFactor.evaluate, measure)
    ]
    assert defaults[0]["num_datasets"] == defaults[1]["num_datasets"] == 1500
    assert len({tuple(found[name] for name in ("num_replicates", "seed", "exact")) for found in defaults}) == 1
