"""Preparations: their layout describes their output, and no finite data make it anything but finite."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from deepbf.networks import AbstractPreparation
from deepbf.networks.features import MOST_RAMPS, choose_knots
from deepbf.networks.paper_networks import SquashedSet
from deepbf.networks.sets import SetSummary
from deepbf.networks.vector import (
    WIDEST_DECORRELATED,
    CountedVector,
    ScaledVector,
    SquashedVector,
    prepare_plain_vector,
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
    (CountedVector, (6,)),
    (CountedVector, (3, 2)),
    (CountedVector, ()),
    (SquashedSet, (6,)),
    (SquashedSet, (6, 2)),
    (SetSummary, (6,)),
    (SetSummary, (6, 2, 2)),
    (SetSummary, (6, 20)),
]


def as_pilot(data_shape: tuple[int, ...]) -> list[NDArray[np.float32]]:
    return [data.astype(np.float32) for data in pilot_data(data_shape)]


compiled = eqx.filter_jit(lambda preparation, data: preparation(data))


def prepare(preparation: AbstractPreparation, data: Any) -> NDArray[np.float32]:
    return np.asarray(compiled(preparation, jnp.asarray(data, jnp.float32)))


@pytest.mark.parametrize(("kind", "data_shape"), KINDS)
def test_the_layout_says_what_comes_out(kind: Any, data_shape: tuple[int, ...]) -> None:
    pilot = as_pilot(data_shape)
    preparation = kind.fit(pilot)
    layout = preparation.layout(data_shape)
    far = [np.full(data_shape, value) for value in (0.0, 1e7, LARGEST, -LARGEST)]
    prepared = prepare(preparation, np.concatenate([pilot[0], pilot[1], np.stack(far)]))
    assert prepared.shape == (604, layout.width)
    assert 0 <= layout.num_linear <= layout.num_summary <= layout.width
    # Moderate for the data it was fitted to, finite for all others.
    assert np.abs(prepared[:600]).max() < 50
    assert np.isfinite(prepared).all()


@pytest.mark.parametrize("data_shape", [(6,), (6, 2)], ids=str)
def test_the_summary_of_a_set_has_no_observations_left(data_shape: tuple[int, ...]) -> None:
    layout = SetSummary.fit(as_pilot(data_shape)).layout(data_shape)
    assert layout.num_obs == 0
    assert layout.width == layout.num_summary


def test_moments_see_what_lies_past_the_last_knot() -> None:
    pilot = as_pilot((6,))
    preparation = SetSummary.fit(pilot)
    edge = choose_knots(np.concatenate(pilot).ravel(), MOST_RAMPS + 1)[-1]
    near, far = prepare(preparation, [[2 * edge] * 6, [20 * edge] * 6])
    assert preparation.sums is not None
    first = preparation.sums.location.size
    ramps = slice(first, first + preparation.scales.num_columns)
    assert_allclose(near[ramps], far[ramps], atol=1e-3)
    # Sums of the values go on in proportion, however far out.
    assert far[0] - near[0] == pytest.approx(9 * (near[0] - prepare(preparation, [[edge] * 6])[0][0]) * 2, rel=0.01)


def test_the_summary_of_pairs_sees_how_they_move_together() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 400, 30))
    together = np.stack([first, 0.7 * first + np.sqrt(1 - 0.7**2) * second], axis=2).astype(np.float32)
    apart = np.stack([first, second], axis=2).astype(np.float32)
    preparation = SetSummary.fit([together[:200], apart[:200]])
    seen, unseen = (prepare(preparation, data[200:]) for data in (together, apart))
    # Some columns only fill the summary up to a width that other data have, too.
    varies = seen.std(axis=0) > 0
    seen, unseen = seen[:, varies], unseen[:, varies]
    gap = np.abs(seen.mean(axis=0) - unseen.mean(axis=0)) / np.sqrt(0.5 * (seen.var(axis=0) + unseen.var(axis=0)))
    assert gap.max() > 2


@pytest.mark.parametrize("kind", [SquashedVector, SquashedSet])
def test_squashing_is_inverse_sinh_and_nothing_else(kind: Any) -> None:
    data = np.array([[[0, 1], [-1, 1e6]]], np.float32)
    assert_allclose(prepare(kind.fit([data]), data), [np.arcsinh([0, 1, -1, 1e6])], rtol=1e-6)


def test_squashing_is_odd_far_out() -> None:
    values = np.array([LARGEST, 1e7, 100.0])
    assert_allclose(prepare(SquashedVector(), -values[:, None])[:, 0], -np.arcsinh(values), rtol=1e-5)


def test_vectors_too_wide_to_decorrelate_are_only_squashed() -> None:
    def pilot(width: int) -> list[NDArray[np.float32]]:
        return [np.zeros((4, width), np.float32)] * 2

    for prepare_fn, kind in ((prepare_vector, CountedVector), (prepare_plain_vector, ScaledVector)):
        assert isinstance(prepare_fn(pilot(WIDEST_DECORRELATED)), kind)
        assert isinstance(prepare_fn(pilot(WIDEST_DECORRELATED + 1)), SquashedVector)


@pytest.mark.parametrize("kind", [ScaledVector, CountedVector, SetSummary])
def test_data_that_never_vary_are_prepared_all_the_same(kind: Any) -> None:
    prepared = prepare(kind.fit([np.zeros((50, 6), np.float32)] * 2), np.zeros((3, 6)))
    assert np.isfinite(prepared).all()
    assert_array_equal(prepared[0], prepared[1])
