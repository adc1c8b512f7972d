"""Predictions of a series from its past: their log evidence goes with that of the Gaussian model that made it."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import toeplitz

from deepbf.networks.series_features import Series
from deepbf.networks.series_predictions import SeriesPredictions
from studies.tests.problems import joint_normal

LENGTH = 30
Floats = NDArray[np.float64]


def autoregressive(coefficient: float, size: int, seed: int) -> NDArray[np.float32]:
    """Return stationary series of unit variance, shape (size, LENGTH)."""
    rng = np.random.default_rng(seed)
    series = [rng.normal(size=size)]
    for _ in range(LENGTH - 1):
        series.append(coefficient * series[-1] + np.sqrt(1 - coefficient**2) * rng.normal(size=size))
    return np.stack(series, axis=1).astype(np.float32)


def features_of(predictions: SeriesPredictions, data: NDArray[np.float32]) -> Floats:
    varies = bool(np.isnan(data).any())
    return np.asarray(predictions(Series.of(jnp.asarray(data), varies=varies)), np.float64).T


def test_of_two_known_processes_the_evidence_goes_with_the_exact_one() -> None:
    pilot = [autoregressive(0.8, 2048, 1), autoregressive(-0.2, 2048, 2)]
    predictions = SeriesPredictions.fit(pilot)
    data = np.concatenate([autoregressive(0.8, 400, 3), autoregressive(-0.2, 400, 4)])
    found = features_of(predictions, data)
    estimate = found[:, 0] - found[:, 1]
    lags = np.arange(LENGTH)
    covariances = [toeplitz(coefficient**lags) for coefficient in (0.8, -0.2)]
    first, second = (joint_normal.log_density(data.astype(float), np.zeros(LENGTH), c) for c in covariances)
    exact = first - second
    # The level is taken off, and five kinds are more than one process needs: a column to learn from, not an answer.
    assert exact.std() > 8.0
    assert np.corrcoef(estimate, exact)[0, 1] > 0.92
    assert (np.sign(estimate) == np.sign(exact)).mean() > 0.95


def test_kinds_tell_coefficients_of_one_model_apart() -> None:
    strong, weak = autoregressive(0.9, 1024, 1), autoregressive(0.1, 1024, 2)
    mixed = np.concatenate([strong, weak])[np.random.default_rng(3).permutation(2048)]
    predictions = SeriesPredictions.fit([mixed, autoregressive(0.0, 2048, 4)])
    # The first coefficients of the mixture's kinds, with all points before there, reach from one process to the other.
    num_kinds = len(predictions.location) // 2
    first = np.asarray(predictions.weights)[:num_kinds, -1, 0, 0]
    assert first.max() > 0.7
    assert first.min() < 0.3


@pytest.mark.parametrize("shape", [(LENGTH,), (LENGTH, 2), (2,), (1,)])
def test_every_shape_and_extreme_values_give_finite_features(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    pilot = [rng.normal(size=(200, *shape)).astype(np.float32), np.ones((200, *shape), np.float32)]
    predictions = SeriesPredictions.fit(pilot)
    data = rng.normal(size=(6, *shape)).astype(np.float32)
    data[1], data[2] = 0.0, 1e15
    data[3, 0] = -1e15
    found = features_of(predictions, data)
    assert found.shape == (6, predictions.num_features)
    assert np.isfinite(found).all()


def test_a_column_that_follows_another_is_predicted_from_it() -> None:
    rng = np.random.default_rng(1)

    def pair(follows: bool, size: int) -> NDArray[np.float32]:
        first, second = rng.normal(size=(2, size, LENGTH + 2))
        if follows:
            second[:, 2:] += first[:, :-2]
            second /= np.sqrt(2.0)
        return np.stack([first, second], axis=2)[:, 2:].astype(np.float32)

    predictions = SeriesPredictions.fit([pair(True, 1024), pair(False, 1024)])
    followed, apart = (features_of(predictions, pair(follows, 300)) for follows in (True, False))
    right = np.concatenate([followed[:, 0] > followed[:, 1], apart[:, 0] < apart[:, 1]])
    assert right.mean() > 0.97


def test_absent_points_count_for_nothing() -> None:
    pilot = [autoregressive(0.7, 512, 1), autoregressive(0.0, 512, 2)]
    shorter = [own.copy() for own in pilot]
    for own in shorter:
        own[::2, 20:] = np.nan
    predictions = SeriesPredictions.fit(shorter)
    data = autoregressive(0.7, 50, 3)[:, :20]
    padded = np.concatenate([data, np.full((50, 10), np.nan, np.float32)], axis=1)
    longer = np.concatenate([data, np.full((50, 5), np.nan, np.float32)], axis=1)
    np.testing.assert_allclose(features_of(predictions, padded), features_of(predictions, longer), rtol=1e-5, atol=1e-4)
