"""Distances from what a model usually makes: calibrated by simulations set aside, finite for anything finite."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from deepbf.networks import InputLayout
from deepbf.support import MOST_COLUMNS, Typicality

LAYOUT = InputLayout(num_linear=3, num_summary=5)


def rows(seed: int, size: int, scale: float = 1.0) -> np.ndarray:
    """Correlated columns of very different widths, one of them heavy-tailed and one that never varies."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=size)
    columns = [
        first,
        first + 0.1 * rng.normal(size=size),
        1e4 * rng.normal(size=size),
        rng.standard_t(2, size),
        np.ones(size),
    ]
    return (scale * np.stack(columns, axis=1)).astype(np.float32)


def fitted() -> Typicality:
    found = Typicality.fit([rows(1, 4000), rows(2, 4000, 3.0)], [rows(3, 4000), rows(4, 4000, 3.0)], LAYOUT)
    assert found is not None
    return found


def test_a_models_own_data_are_as_far_as_those_set_aside() -> None:
    typicality = fitted()
    for model, scale in enumerate((1.0, 3.0)):
        fresh = typicality.distance(rows(5, 4000, scale), model)
        found: Any = stats.ks_2samp(fresh, typicality.distances[model])
        assert found.pvalue > 1e-3


def test_correlations_count() -> None:
    """Each column is usual by itself; the first two are never so far apart."""
    typicality = fitted()
    strange = rows(6, 200)
    strange[:, 1] = -strange[:, 0]
    apart = np.abs(strange[:, 0]) > 0.6
    cut = np.quantile(typicality.distances[0], 0.99)
    assert (typicality.distance(strange, 0)[apart] > cut).all()


def test_a_column_that_never_varies_may_not_start_to() -> None:
    typicality = fitted()
    strange = rows(7, 50)
    usual = typicality.distance(strange, 0)
    strange[:, 4] = 3.0
    # It has no direction of its own to be far along, so nothing is claimed about it.
    np.testing.assert_allclose(typicality.distance(strange, 0), usual, rtol=1e-5)


@pytest.mark.parametrize("value", [1e30, -1e30, 3e38])
def test_distances_are_finite(value: float) -> None:
    far = np.full((2, 5), value, np.float32)
    for model in (0, 1):
        found = fitted().distance(far, model)
        assert np.isfinite(found).all()
        assert (found > fitted().distances[model].max()).all()


def test_nothing_to_go_by() -> None:
    wide = InputLayout(num_linear=0, num_summary=0, num_obs=MOST_COLUMNS + 1, obs_dim=1)
    assert wide.num_describing == MOST_COLUMNS + 1
    raw = np.zeros((50, MOST_COLUMNS + 1), np.float32)
    assert Typicality.fit([raw], [raw], wide) is None
    assert Typicality.fit([rows(1, 1)], [rows(2, 10)], LAYOUT) is None
    few = Typicality.fit([rows(1, 8)], [rows(2, 10)], LAYOUT)
    assert few is not None
    assert np.isfinite(few.distances).all()
