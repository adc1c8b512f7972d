"""Logarithms of counts: which columns have them, and that they are logarithms of counts."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

from deepbf.networks.features import CountLogs, _step_of
from deepbf.networks.vector import CountedVector
from deepbf.standardise import LARGEST


def standardised(counts: np.ndarray) -> np.ndarray:
    return ((counts - 30.0) / 17.0).astype(np.float32)


def test_they_are_logarithms_of_counts_from_both_ends() -> None:
    counts = np.random.default_rng(1).integers(0, 61, (2000, 2))
    logs = CountLogs.fit([standardised(counts[:1000]), standardised(counts[1000:])])
    found = np.asarray(logs(jnp.asarray(standardised(counts))))
    expected = np.log(np.concatenate([counts + 0.5, 60 - counts + 0.5], axis=1) / 17.0)
    assert_allclose(found, expected, atol=1e-4)


def test_numbers_that_are_no_counts_have_none() -> None:
    rng = np.random.default_rng(2)
    columns = [
        rng.normal(size=3000),
        rng.uniform(size=3000),
        # Yes or no: nothing to take a logarithm of.
        rng.integers(0, 2, 3000),
        np.zeros(3000),
        np.round(rng.normal(size=3000), 6),
    ]
    data = np.stack(columns, axis=1).astype(np.float32)
    logs = CountLogs.fit([data])
    assert logs.rising == logs.falling == ()
    assert logs(jnp.asarray(data)).shape == (3000, 0)


def test_a_heavy_tail_has_no_upper_end() -> None:
    counts = np.random.default_rng(3).geometric(np.random.default_rng(4).uniform(0.05, 1, 4000))
    logs = CountLogs.fit([standardised(counts[:, None])])
    assert logs.rising == (0,)
    assert logs.falling == ()


def test_the_step_of_a_grid_is_found_whatever_its_unit() -> None:
    counts = np.random.default_rng(5).poisson(12, 2000).astype(np.float64)
    assert abs((_step_of(counts / 4) or 0.0) - 0.25) < 1e-12
    assert _step_of(np.random.default_rng(6).normal(size=2000)) is None


def test_counts_beyond_all_simulated_ones_stay_finite() -> None:
    data = standardised(np.random.default_rng(7).integers(0, 61, (500, 3)))
    preparation = CountedVector.fit([data, data])
    far = np.stack([np.full(3, value, np.float32) for value in (LARGEST, -LARGEST, 0.0)])
    assert np.isfinite(np.asarray(eqx.filter_jit(preparation)(jnp.asarray(far)))).all()
