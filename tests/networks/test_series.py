"""Networks for series: order matters, padding does not, and no finite series makes an answer that is not finite."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import deepbf
from deepbf._numerics import cross_entropy, log_evidence
from deepbf.networks import NETWORKS, AbstractNetwork, AbstractPreparation
from deepbf.networks.ensemble import ensemble_log_odds, init_ensemble
from deepbf.networks.series import ABSENT
from deepbf.networks.series_features import lagged_sums, partial_autocorrelations
from deepbf.standardise import LARGEST
from deepbf_studies import problems

KEY = jax.random.key(3)

compiled = eqx.filter_jit(lambda preparation, networks, data: ensemble_log_odds(networks, preparation(data))[0])


def series(num_datasets: int, length: int, num_columns: int | None = None, seed: int = 1) -> NDArray[np.float32]:
    """Return random walks that pull back to 0."""
    shape = (num_datasets, length) if num_columns is None else (num_datasets, length, num_columns)
    values = np.random.default_rng(seed).normal(size=shape)
    for t in range(1, length):
        values[:, t] += 0.7 * values[:, t - 1]
    return values.astype(np.float32)


def with_ends(data: NDArray[np.float32], seed: int = 2) -> NDArray[np.float32]:
    """Return the series with random lengths, from 1 to all of it, the rest nan."""
    lengths = np.random.default_rng(seed).integers(1, data.shape[1] + 1, len(data))
    ended = data.copy()
    ended[np.arange(data.shape[1]) >= lengths[:, None]] = np.nan
    return ended


@cache
def fitted(
    length: int, num_columns: int | None = None, *, varies: bool = False
) -> tuple[AbstractPreparation, AbstractNetwork]:
    """Return a preparation fitted to series of two kinds, and an untrained network that reads all of it.

    The other network reads the same summary, and nothing else.
    """
    kind = NETWORKS["series"]["conv"]
    pilot = [series(200, length, num_columns, seed=4), 2 * series(200, length, num_columns, seed=5)]
    if varies:
        pilot = [with_ends(data) for data in pilot]
    preparation = kind.fit_preparation(pilot)
    networks = init_ensemble(kind, preparation.layout(pilot[0].shape[1:]), 2, 1, KEY)
    # Untrained networks are nearly flat: larger weights, so that answers vary.
    return preparation, jax.tree.map(lambda leaf: 3 * leaf if eqx.is_array(leaf) else leaf, networks)


def log_odds(data: NDArray[np.float32], *, varies: bool = False, length: int | None = None) -> Any:
    num_columns = data.shape[2] if data.ndim == 3 else None
    return np.asarray(compiled(*fitted(length or data.shape[1], num_columns, varies=varies), jnp.asarray(data)))


@pytest.mark.parametrize("num_columns", [None, 2])
@pytest.mark.slow
def test_padding_never_changes_an_answer(num_columns: int | None) -> None:
    data = with_ends(series(40, 20, num_columns))
    more = np.full((40, 17, *data.shape[2:]), np.nan, np.float32)
    plain = log_odds(data, varies=True)
    padded = log_odds(np.concatenate([data, more], axis=1), varies=True, length=20)
    assert plain.std() > 0.01
    assert_allclose(padded, plain, atol=1e-6 * max(1.0, np.abs(plain).max()))


@pytest.mark.slow
def test_the_same_beginning_of_another_length_is_another_series() -> None:
    data = np.repeat(series(1, 20), 3, axis=0)
    data[1, 10:], data[2, 1:] = np.nan, np.nan
    answers = log_odds(data, varies=True)[:, 0]
    assert np.isfinite(answers).all()
    assert len(np.unique(answers)) == 3


@pytest.mark.slow
def test_the_order_of_observations_matters() -> None:
    data = series(40, 20)
    shuffled = data[:, np.random.default_rng(6).permutation(20)]
    assert np.abs(log_odds(shuffled) - log_odds(data)).max() > 0.01
    assert np.abs(log_odds(data[:, ::-1].copy()) - log_odds(data)).max() > 0.01


@pytest.mark.parametrize(("length", "num_columns"), [(1, None), (2, None), (20, 5)])
@pytest.mark.slow
def test_finite_at_every_finite_series(length: int, num_columns: int | None) -> None:
    shape = (length,) if num_columns is None else (length, num_columns)
    constants = [np.full(shape, value) for value in (0.0, 0.3, 1e3, LARGEST, -LARGEST)]
    rng = np.random.default_rng(7)
    extremes = [rng.choice([0.0, 1.0, 1e7, -LARGEST, LARGEST], shape) for _ in range(20)]
    assert np.isfinite(log_odds(np.stack([*constants, *extremes]).astype(np.float32))).all()


def test_finite_at_every_finite_series_of_any_length() -> None:
    extremes = np.random.default_rng(7).choice([0.0, 1.0, 1e7, -LARGEST, LARGEST], (200, 20))
    assert np.isfinite(log_odds(with_ends(extremes.astype(np.float32)), varies=True)).all()


def test_absent_values_are_marked_beyond_all_others() -> None:
    preparation, _ = fitted(20, varies=True)
    data = series(3, 20)
    data[0], data[1, 4:] = LARGEST, np.nan
    layout = preparation.layout((20,))
    values = np.asarray(eqx.filter_jit(preparation)(jnp.asarray(data)))[:, layout.num_summary :]
    assert np.abs(values[[0, 2]]).max() < ABSENT / 10
    assert (values[1, 4:] == ABSENT).all()
    assert_allclose(values[1, :4], np.arcsinh(data[1, :4]), atol=1e-6)


@pytest.mark.parametrize("length", [1, 5, 40])
def test_lagged_sums_are_sums_of_lagged_products(length: int) -> None:
    rng = np.random.default_rng(8)
    first, second = rng.normal(size=(2, length, 3, 7)).astype(np.float32)
    num_lags = min(6, length)
    sums = np.asarray(jax.jit(lagged_sums, static_argnums=2)(first, second, num_lags))
    for k in range(num_lags + 1):
        assert_allclose(sums[k], (first[k:] * second[: length - k]).sum(axis=0), atol=1e-5)


def test_partial_autocorrelations_of_an_autoregression_end_with_its_order() -> None:
    # AR(2) with coefficients 0.5 and -0.3, by the Yule-Walker equations.
    correlations = [1.0, 0.5 / 1.3]
    for _ in range(6):
        correlations.append(0.5 * correlations[-1] - 0.3 * correlations[-2])
    partials = np.asarray(partial_autocorrelations(jnp.asarray(correlations[1:])[:, None]))[:, 0]
    assert_allclose(partials, [0.5 / 1.3, -0.3, 0, 0, 0, 0, 0], atol=1e-6)


@pytest.mark.slow
def test_a_short_fit_tells_ar_from_ma() -> None:
    study = problems.load("ar-ma", num_obs=50)
    bf = deepbf.fit(study.models, structure="series", steps=300, seed=1, progress=False)
    tests = [model.simulate(2000, seed=9 + k).data for k, model in enumerate(study.models)]
    excess = [
        cross_entropy(log_evidence(log_bf(data)[:, None]), k).mean() * sign
        for k, data in enumerate(tests)
        for log_bf, sign in ((bf.log_bf, 1), (study.exact_log_bf, -1))
    ]
    # Guessing has an excess loss of about 0.4 here.
    assert sum(excess) / 2 < 0.04
    # Neither model has a direction in time, so nor should the answer, but for noise.
    forward, backward = bf.log_bf(tests[0]), bf.log_bf(tests[0][:, ::-1])
    assert np.corrcoef(np.clip(forward, -10, 10), np.clip(backward, -10, 10))[0, 1] > 0.95
