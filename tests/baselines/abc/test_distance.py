"""A distance of the user's own needs nothing but itself: a function of two arrays, or Euclidean between points."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from deepbf.baselines.abc import abc_epsilon, abc_logistic, abc_ranked
from deepbf.baselines.abc.distance import DISTANCES, PointDistance
from tests.baselines.abc import problems

MODELS = problems.NORMALS
REFERENCE = problems.draw_reference(MODELS, [300, 180, 120], seed=10)
OBSERVED = np.concatenate([model.simulate(7, 99 + k).data for k, model in enumerate(MODELS)])
STRATA: dict[str, Any] = {"num_strata": 20, "kept_per_stratum": 3, "num_kept": 25}

METHODS: list[Callable[..., Any]] = [
    partial(abc_epsilon, epsilon=1.5),
    partial(abc_ranked, **STRATA),
    partial(abc_logistic, num_kept=50, num_splits=1),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=["epsilon", "ranked", "logistic"])


class Mahalanobis(PointDistance):
    def learn(self, pilot: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        factor = np.linalg.cholesky(np.linalg.inv(np.cov(pilot.T)))
        return lambda values: values @ factor


def manhattan(observed: np.ndarray, draws: np.ndarray) -> np.ndarray:
    return np.abs(observed[:, None] - draws[None]).sum(axis=-1)


def euclidean(observed: np.ndarray, draws: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(draws[None] - observed[:, None]).sum(axis=-1))


def test_a_function_ranks_like_brute_force() -> None:
    draws, labels = problems.in_order(MODELS, REFERENCE, 20, seed=5)
    expected = problems.naive_ranked(manhattan(OBSERVED, draws) ** 2, 20, 3, 25)
    result = abc_ranked(MODELS, OBSERVED, reference=REFERENCE, distance=manhattan, seed=5, **STRATA)
    accepted = [np.bincount(labels[kept], minlength=3) for kept in expected]
    np.testing.assert_array_equal(problems.diagnostic(result, "accepted"), accepted)
    default = abc_ranked(MODELS, OBSERVED, reference=REFERENCE, seed=5, **STRATA)
    assert (problems.diagnostic(result, "accepted") != problems.diagnostic(default, "accepted")).any()


def test_a_function_accepts_like_brute_force() -> None:
    result = abc_epsilon(MODELS, OBSERVED, reference=REFERENCE, distance=manhattan, epsilon=2.5)
    accepted = np.stack([(manhattan(OBSERVED, array) <= 2.5).sum(axis=1) for array in REFERENCE], axis=1)
    np.testing.assert_array_equal(problems.diagnostic(result, "accepted"), accepted)


def test_learned_points_rank_like_brute_force() -> None:
    draws, labels = problems.in_order(MODELS, REFERENCE, 20, seed=5)
    covariance = np.cov(draws[:30].astype(np.float64).T)
    squared = cdist(OBSERVED, draws, "mahalanobis", VI=np.linalg.inv(covariance)).astype(np.float64) ** 2
    expected = problems.naive_ranked(squared, 20, 3, 25)
    result = abc_ranked(MODELS, OBSERVED, reference=REFERENCE, distance=Mahalanobis(), seed=5, **STRATA)
    accepted = [np.bincount(labels[kept], minlength=3) for kept in expected]
    np.testing.assert_array_equal(problems.diagnostic(result, "accepted"), accepted)


@every_method
def test_the_default_metric_as_a_function_gives_the_same_answer(method: Callable[..., Any]) -> None:
    built_in, function = (method(MODELS, OBSERVED, reference=REFERENCE, distance=d) for d in ("euclidean", euclidean))
    np.testing.assert_allclose(built_in.log_evidence, function.log_evidence, rtol=1e-10)


@every_method
def test_a_registered_distance_has_a_name(method: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DISTANCES, "mahalanobis", Mahalanobis())
    named, passed = (method(MODELS, OBSERVED, reference=REFERENCE, distance=d) for d in ("mahalanobis", Mahalanobis()))
    np.testing.assert_array_equal(named.log_evidence, passed.log_evidence)


@every_method
@pytest.mark.parametrize(
    ("distance", "message"),
    [
        (3, "distance must be one of 'euclidean', 'scaled', a function .* or an instance .*; received 3"),
        (Mahalanobis, "an instance of a PointDistance; received <class"),
        (lambda x, y: np.zeros(len(x)), r"distance returned an array of shape .* one distance per pair"),
        (lambda x, y: np.full((len(x), len(y)), np.nan), "distance must return numbers of at least 0; received nan"),
        (lambda x, y: x[:, :1] - y[:, :1].T, "distance must return numbers of at least 0; received -"),
    ],
)
def test_bad_distances(method: Callable[..., Any], distance: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        method(MODELS, OBSERVED, reference=REFERENCE, distance=distance)


def test_learned_points_must_be_finite_rows() -> None:
    class Sums(PointDistance):
        def learn(self, pilot: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            return lambda values: values.sum(axis=1)

    with pytest.raises(ValueError, match=r"Sums.learn returned must turn summaries .* one row each; received shape"):
        abc_ranked(MODELS, OBSERVED, reference=REFERENCE, distance=Sums(), **STRATA)
