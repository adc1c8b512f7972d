"""Preparations: their layout describes their output, and no finite data make it anything but finite."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deepbf.networks.histogram import MOST_RAMPS, choose_knots
from deepbf.networks.preparation import (
    WIDEST_DECORRELATED,
    ScaledVector,
    SetSummary,
    SquashedSet,
    SquashedVector,
    prepare_vector,
)
from deepbf.standardise import LARGEST
from tests.untrained import pilot_data

KINDS = [
    (SquashedVector, (6,)),
    (SquashedVector, (3, 2)),
    (SquashedVector, ()),
    (ScaledVector, (6,)),
    (ScaledVector, (3, 2)),
    (ScaledVector, ()),
    (SquashedSet, (6,)),
    (SquashedSet, (6, 2)),
    (SetSummary, (6,)),
    (SetSummary, (6, 1)),
    (SetSummary, (6, 2)),
    (SetSummary, (6, 2, 2)),
    (SetSummary, (1,)),
]


@pytest.mark.parametrize(("kind", "data_shape"), KINDS)
def test_the_layout_says_what_comes_out(kind: type[SetSummary], data_shape: tuple[int, ...]) -> None:
    pilot = [data.astype(np.float32) for data in pilot_data(data_shape)]
    preparation = kind.fit(pilot)
    layout = preparation.layout(data_shape)
    prepared = np.asarray(preparation(jnp.asarray(pilot[0])))
    assert prepared.shape == (len(pilot[0]), layout.width)
    assert 0 <= layout.num_linear <= layout.num_summary <= layout.width
    # Moderate for the data it was fitted to, finite for all others.
    assert np.abs(prepared).max() < 50
    for far in (0.0, 1e7, LARGEST, -LARGEST):
        assert np.isfinite(np.asarray(preparation(jnp.full((2, *data_shape), far)))).all()


def test_observations_follow_the_summary_of_vector_observations() -> None:
    pilot = [data.astype(np.float32) for data in pilot_data((6, 2))]
    preparation = SetSummary.fit(pilot)
    layout = preparation.layout((6, 2))
    assert (layout.num_obs, layout.obs_dim) == (6, 2)
    prepared = np.asarray(preparation(jnp.asarray(pilot[0])))
    assert_allclose(
        np.sinh(prepared[:, layout.num_summary :].astype(np.float64)).reshape(-1, 6, 2), pilot[0], rtol=1e-5, atol=1e-6
    )


def test_scalar_observations_are_all_in_the_summary() -> None:
    pilot = [data.astype(np.float32) for data in pilot_data((6,))]
    layout = SetSummary.fit(pilot).layout((6,))
    assert layout.num_obs == 0
    assert layout.width == layout.num_summary


def test_moments_see_what_lies_past_the_last_knot() -> None:
    pilot = [data.astype(np.float32) for data in pilot_data((6,))]
    preparation = SetSummary.fit(pilot)
    edge = choose_knots(np.concatenate(pilot).ravel(), MOST_RAMPS + 1)[-1]
    near, far = (np.asarray(preparation(jnp.full((1, 6), value * edge)))[0] for value in (2, 20))
    assert_allclose(near[: preparation.scales.num_columns], far[: preparation.scales.num_columns], atol=1e-3)
    assert np.abs(near - far).max() > 0.5


@pytest.mark.parametrize("kind", [SquashedVector, SquashedSet])
def test_squashing_is_inverse_sinh_and_nothing_else(kind: type[SquashedVector]) -> None:
    data = np.float32([[[0, 1], [-1, 1e6]]])
    assert_allclose(kind.fit([data])(jnp.asarray(data)), [np.arcsinh([0, 1, -1, 1e6])], rtol=1e-6)


@pytest.mark.parametrize("value", [-LARGEST, -1e7, -100.0])
def test_squashing_is_odd_far_out(value: float) -> None:
    data = jnp.asarray([[value], [-value]], jnp.float32)
    squashed = np.asarray(SquashedVector()(data))
    assert_allclose(squashed[0], -squashed[1], rtol=1e-6)
    assert_allclose(squashed[:, 0], np.arcsinh([value, -value]), rtol=1e-5)


def test_vectors_too_wide_to_decorrelate_are_only_squashed() -> None:
    def pilot(width: int) -> list[np.ndarray]:
        return [np.zeros((4, width), np.float32)] * 2

    assert isinstance(prepare_vector(pilot(WIDEST_DECORRELATED)), ScaledVector)
    assert isinstance(prepare_vector(pilot(WIDEST_DECORRELATED + 1)), SquashedVector)


def test_data_that_never_vary_are_prepared_all_the_same() -> None:
    constant = [np.zeros((50, 6), np.float32)] * 2
    for kind in (ScaledVector, SetSummary):
        prepared = np.asarray(kind.fit(constant)(jnp.zeros((3, 6))))
        assert np.isfinite(prepared).all()
        assert_array_equal(prepared[0], prepared[1])
