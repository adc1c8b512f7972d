"""Series, fields and vectors that networks are judged by: what each must satisfy, whatever its models are."""

import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deepbf_studies import problems

SHAPES = {
    "series-event": (80,),
    "series-season": (60,),
    "series-variance-change": (100,),
    "series-hidden-states": (100,),
    "series-local-level": (60,),
    "series-pair": (60, 2),
    "field": (16, 16),
    "change-counts": (20,),
    "vector-fixed-design": (20,),
}
NUM_DRAWS = 4000


@cache
def log_bfs(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return exact log Bayes factors of data sets of the first model, and of the second."""
    study = problems.load(name)
    first, second = (study.exact_log_bf(model.simulate(NUM_DRAWS, seed=1).data) for model in study.models)
    return first, second


def assert_same_mean(first: NDArray[Any], second: NDArray[Any]) -> None:
    error = np.sqrt((first.var() + second.var()) / NUM_DRAWS)
    assert error < 0.01
    assert abs(first.mean() - second.mean()) < 5 * error


@pytest.mark.parametrize("name", SHAPES)
def test_a_problem_is_complete(name: str) -> None:
    study = problems.load(name)
    assert (study.name, study.num_obs) == (name, SHAPES[name][0])
    assert study.structure == ("image" if name == "field" else "series" if name.startswith("series") else "vector")
    assert "\n" not in study.title
    for model in study.models:
        data = model.simulate(7, seed=2).data
        assert data.shape == (7, *SHAPES[name])
        log_bf = study.exact_log_bf(data)
        assert (log_bf.shape, log_bf.dtype) == ((7,), np.float64)
        assert np.isfinite(log_bf).all()
        assert study.exact_log_bf(data[:0]).shape == (0,)


@pytest.mark.parametrize("name", SHAPES)
def test_a_problem_is_neither_trivial_nor_hopeless(name: str) -> None:
    # The cross-entropy of the exact posterior probabilities under equal priors: guessing has log 2, 0.69.
    first, second = log_bfs(name)
    cross_entropy = 0.5 * np.logaddexp(0, -first).mean() + 0.5 * np.logaddexp(0, second).mean()
    print(f"{name}: {cross_entropy:.3f} nats")
    assert 0.15 < cross_entropy < 0.5


@pytest.mark.parametrize("name", SHAPES)
def test_bayes_factors_average_to_one_under_the_other_model(name: str) -> None:
    # E[1/BF; BF > 1 | M1] = P(BF > 1 | M2), and the same with the models swapped; what is averaged is at most 1.
    first, second = log_bfs(name)
    assert_same_mean(np.where(first > 0, np.exp(-np.abs(first)), 0), second > 0)
    assert_same_mean(first < 0, np.where(second < 0, np.exp(-np.abs(second)), 0))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("lowest", [-np.inf, -2.0, -0.7, 0.7, 2.0])
def test_posterior_probabilities_are_calibrated(name: str, lowest: float) -> None:
    # For P = BF / (1 + BF) and any set of Bayes factors: E[1 - P; set | M1] = E[P; set | M2].
    first, second = log_bfs(name)
    highest = {-np.inf: -2.0, -2.0: -0.7, -0.7: 0.7, 0.7: 2.0, 2.0: np.inf}[lowest]
    inside_first, inside_second = ((lowest < values) & (values <= highest) for values in (first, second))
    wrong_first = np.exp(-np.logaddexp(0, first)) * inside_first
    wrong_second = np.exp(-np.logaddexp(0, -second)) * inside_second
    # Sets as rare as a few in a thousand have errors that are themselves uncertain: one draw more or less is allowed.
    error = np.sqrt((wrong_first.var() + wrong_second.var()) / NUM_DRAWS) + 1 / NUM_DRAWS
    assert abs(wrong_first.mean() - wrong_second.mean()) < 5 * error


@pytest.mark.parametrize("name", SHAPES)
def test_each_data_set_has_its_own_answer_in_any_block(name: str) -> None:
    study = problems.load(name)
    data = study.models[0].simulate(1003, seed=3).data
    together = study.exact_log_bf(data)
    some = np.array([1002, 1000, 999, 3, 0])
    np.testing.assert_allclose(study.exact_log_bf(data[some]), together[some], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_a_problem_survives_pickling(name: str) -> None:
    study = problems.load(name)
    copy = pickle.loads(pickle.dumps(study))
    for model, copied in zip(study.models, copy.models, strict=True):
        data = model.simulate(10, seed=4).data
        np.testing.assert_array_equal(copied.simulate(10, seed=4).data, data)
        np.testing.assert_array_equal(copy.exact_log_bf(data), study.exact_log_bf(data))


@pytest.mark.parametrize("name", SHAPES)
def test_simulators_draw_other_numbers_of_observations(name: str) -> None:
    for model in problems.load(name).models:
        assert model.simulate(3, seed=5, num_obs=12).data.shape[:2] == (3, 12)


@pytest.mark.parametrize("name", SHAPES)
def test_data_of_another_shape_or_not_finite_are_refused(name: str) -> None:
    study = problems.load(name)
    with pytest.raises(ValueError, match="data must have shape"):
        study.exact_log_bf(np.zeros(SHAPES[name][:1]))
    with pytest.raises(ValueError, match="data must be finite"):
        study.exact_log_bf(np.full((2, *SHAPES[name]), np.nan))


@pytest.mark.parametrize("name", ["change-counts", "series-hidden-states"])
def test_counts_are_whole_and_not_negative(name: str) -> None:
    for value in (-1.0, 0.5):
        with pytest.raises(ValueError, match="data must be counts"):
            problems.load(name).exact_log_bf(np.full((1, 20), value))


@pytest.mark.parametrize(
    ("name", "too_few"), [("series-event", 10), ("series-variance-change", 1), ("change-counts", 1)]
)
def test_a_series_leaves_room_for_what_happens_in_it(name: str, too_few: int) -> None:
    with pytest.raises(ValueError, match=f"num_obs must be .*; received {too_few}"):
        problems.load(name, num_obs=too_few)
    with pytest.raises(ValueError, match=f"num_obs must be .*; received {too_few}"):
        problems.load(name).exact_log_bf(np.ones((1, too_few)))


def test_problems_kept_out_of_development_are_known_by_name() -> None:
    assert set(problems.KEPT_OUT) >= {"series-local-level", "series-pair", "vector-fixed-design"}
    assert set(problems.KEPT_OUT) < set(problems.names())
