"""The intake: every simulation goes to one place, and none is lost."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from deepbf.networks import AbstractPreparation, InputLayout
from deepbf.simulation import CHUNK_SIZE
from deepbf.training.intake import FEWEST_PREPARED, KEPT_SHARE, ONE_IN, PREPARE_ROWS, Intake, Thinning, prepared_at_once
from deepbf.training.pool import Pool

NUM_CHUNKS = 32


class Twice(AbstractPreparation):
    """Rows of two columns: the value, and twice the value."""

    def __call__(self, data: jax.Array) -> jax.Array:
        return data * np.array([1.0, 2.0], np.float32)

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        return InputLayout(num_linear=2, num_summary=2)


def simulations(num_chunks: int, seed: int = 1) -> list[NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    return [(k + rng.normal(size=(num_chunks * CHUNK_SIZE, 1))).astype(np.float32) for k in range(2)]


def pool_of(width: int) -> Pool:
    return Pool(2, width, 16, 1, np.random.default_rng(1), most_added=NUM_CHUNKS * CHUNK_SIZE)


def even_score(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.full((len(rows), 2), np.log(0.5))


def test_what_is_not_set_aside_is_trained_on() -> None:
    pool = pool_of(2)
    intake = Intake(Twice(), (1,), 2, pool)
    data = simulations(NUM_CHUNKS)
    intake.feed(data)
    num_held_out = NUM_CHUNKS // ONE_IN * CHUNK_SIZE
    assert intake.held_out.num_rows == num_held_out
    assert pool.num_rows == NUM_CHUNKS * CHUNK_SIZE - num_held_out
    assert intake.num_simulations == 2 * NUM_CHUNKS * CHUNK_SIZE
    assert not intake.wants_score
    rows = np.concatenate([pool.draw(1)[0, 0, 0].copy() for _ in range(pool.num_rows // 16)])
    together = np.concatenate([rows, intake.held_out.rows()[0]])
    assert_array_equal(np.sort(together[:, 0]), np.sort(data[0][:, 0]))
    assert_array_equal(together[:, 1], 2 * together[:, 0])


def test_rows_beyond_the_unthinned_steps_wait_for_a_score_and_are_then_chosen_among() -> None:
    pool = pool_of(3)
    intake = Intake(Twice(), (1,), 2, pool, thinning=Thinning(2, seed=1), num_steps_unthinned=8)
    intake.feed(simulations(NUM_CHUNKS))
    # Whole chunks, until there are enough.
    unthinned = pool.num_rows
    assert 8 * 16 <= unthinned < 8 * 16 + CHUNK_SIZE
    assert_array_equal(pool.draw(1)[0, 0, :, :, 2], 1.0)
    assert intake.wants_score
    intake.choose_by(even_score)
    assert not intake.wants_score
    waiting = NUM_CHUNKS * CHUNK_SIZE - intake.held_out.num_rows - unthinned
    chosen = pool.num_rows - unthinned
    # Of each model as many as the one with fewer has: less than the share by a few standard deviations.
    spread = np.sqrt(waiting * KEPT_SHARE * (1 - KEPT_SHARE))
    assert abs(chosen - KEPT_SHARE * waiting) < 5 * spread
    intake.feed(simulations(NUM_CHUNKS, seed=2))
    assert pool.num_rows - unthinned > 1.5 * chosen


def test_a_score_without_thinning_is_refused() -> None:
    with pytest.raises(RuntimeError, match="no thinning"):
        Intake(Twice(), (1,), 2, pool_of(2)).choose_by(even_score)


def test_large_data_sets_are_prepared_fewer_at_a_time() -> None:
    assert prepared_at_once((2,)) == PREPARE_ROWS
    assert prepared_at_once((256,)) == PREPARE_ROWS // 2
    assert prepared_at_once((10**6,)) == FEWEST_PREPARED
