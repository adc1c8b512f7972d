"""The pool hands out every simulation, new ones first, and gives each member about half of them."""

import itertools
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from deepbf.training.pool import BLOCK_BYTES, MOST_STEPS_A_BLOCK, Pool, half_of_members

NUM_MODELS = 2
BATCH_SIZE = 4


def make_pool(num_members: int = 4, **options: int) -> Pool:
    return Pool(NUM_MODELS, 1, BATCH_SIZE, num_members, np.random.default_rng(1), **options)


def numbered_rows(start: int, num_rows: int) -> list[NDArray[np.float32]]:
    """Return rows that say who they are: their number, negative for the second model."""
    numbers = np.arange(start, start + num_rows, dtype=np.float32)[:, None]
    return [numbers + 1, -numbers - 1]


def draw_segments(pool: Pool, num_steps: int) -> NDArray[np.int64]:
    """Return which segment each member got for each model, shape (steps, members, models)."""
    batches = pool.draw(num_steps)[:num_steps].copy()
    assert (batches[:, :, 0] > 0).all()
    assert (batches[:, :, 1] < 0).all()
    numbers = np.abs(batches[..., 0]).astype(int) - 1
    # A mini-batch is one whole segment, in order.
    assert_array_equal(numbers - numbers[..., :1], np.broadcast_to(np.arange(BATCH_SIZE), numbers.shape))
    return numbers[..., 0] // BATCH_SIZE


def test_new_segments_come_first_each_exactly_once() -> None:
    pool = make_pool()
    pool.add(numbered_rows(0, 12 * BATCH_SIZE))
    num_new = pool.num_new_steps()
    drawn = draw_segments(pool, num_new)
    for m in range(4):
        seen = drawn[:, m, 0].tolist()
        assert seen == sorted(set(seen))
        # New rows of the two models come together; they meet in new company only when used again.
        assert_array_equal(drawn[:, m, 0], drawn[:, m, 1])
    assert pool.num_new_steps() == 0


def test_each_member_owns_half_and_every_segment_is_owned() -> None:
    pool = make_pool()
    pool.add(numbered_rows(0, 12 * BATCH_SIZE))
    drawn = draw_segments(pool, pool.num_new_steps())
    assert drawn.shape[0] == 6
    owners = Counter(drawn[:, :, 0].ravel().tolist())
    assert owners == dict.fromkeys(range(12), 2)


def test_old_segments_are_all_used_again_before_any_is_used_a_third_time() -> None:
    pool = make_pool()
    pool.add(numbered_rows(0, 12 * BATCH_SIZE))
    first = draw_segments(pool, 6)
    rounds = [draw_segments(pool, 6) for _ in range(3)]
    for again, m, k in itertools.product(rounds, range(4), range(NUM_MODELS)):
        assert sorted(again[:, m, k]) == sorted(first[:, m, k])
    assert not np.array_equal(rounds[0][:, :, 0], rounds[0][:, :, 1])


def test_a_new_segment_is_taken_before_old_ones() -> None:
    pool = make_pool()
    pool.add(numbered_rows(0, 12 * BATCH_SIZE))
    draw_segments(pool, 8)
    pool.add(numbered_rows(12 * BATCH_SIZE, 2 * BATCH_SIZE))
    drawn = draw_segments(pool, 2)
    assert_array_equal(drawn[0, :, 0] >= 12, np.ones(4, bool))
    assert_array_equal(drawn[1, :, 0] < 12, np.ones(4, bool))


def test_rows_wait_until_a_segment_is_full() -> None:
    pool = make_pool(num_members=1)
    for start in range(0, BATCH_SIZE - 1):
        pool.add(numbered_rows(start, 1))
        assert not pool.ready()
        assert pool.has_started_segment
    pool.add(numbered_rows(BATCH_SIZE - 1, 1))
    assert pool.ready()
    assert not pool.has_started_segment
    assert pool.num_rows == BATCH_SIZE
    assert draw_segments(pool, 1).ravel().tolist() == [0, 0]


def test_it_does_not_matter_how_rows_arrive() -> None:
    whole, pieces = make_pool(), make_pool()
    whole.add(numbered_rows(0, 50))
    for start in range(0, 50, 7):
        pieces.add(numbered_rows(start, min(7, 50 - start)))
    assert_array_equal(draw_segments(whole, 20), draw_segments(pieces, 20))
    assert whole.num_rows == pieces.num_rows == 50


def test_it_is_ready_only_when_every_member_has_something() -> None:
    pool = make_pool()
    pool.add(numbered_rows(0, BATCH_SIZE))
    assert not pool.ready()
    pool.add(numbered_rows(BATCH_SIZE, BATCH_SIZE))
    assert pool.ready()


def test_when_full_the_oldest_segments_are_overwritten() -> None:
    pool = make_pool(capacity_bytes=0)
    for segment in range(20):
        pool.add(numbered_rows(segment * BATCH_SIZE, BATCH_SIZE))
        if pool.num_new_steps():
            draw_segments(pool, pool.num_new_steps())
    # The fewest slots there are: two a member.
    remembered = set(draw_segments(pool, 40)[8:].ravel().tolist())
    assert remembered == set(range(12, 20))
    assert pool.num_rows == 20 * BATCH_SIZE


def test_one_large_addition_overwrites_nothing_unread() -> None:
    pool = make_pool(capacity_bytes=0, most_added=32 * BATCH_SIZE)
    pool.add(numbered_rows(0, 32 * BATCH_SIZE))
    drawn = draw_segments(pool, pool.num_new_steps())
    assert set(drawn.ravel().tolist()) == set(range(32))


def test_after_overwriting_members_still_own_half_each() -> None:
    pool = make_pool(capacity_bytes=0)
    for segment in range(21):
        pool.add(numbered_rows(segment * BATCH_SIZE, BATCH_SIZE))
        draw_segments(pool, pool.num_new_steps())
    draw_segments(pool, 12)
    for m in range(4):
        owned = set(draw_segments(pool, 16)[:, m].ravel().tolist())
        assert 3 <= len(owned) <= 5


@pytest.mark.parametrize("num_rows", [1, 3, BATCH_SIZE + 1, 5 * BATCH_SIZE + 2])
def test_completing_the_last_segment_leaves_no_row_unused(num_rows: int) -> None:
    pool = make_pool(num_members=1)
    pool.add(numbered_rows(0, num_rows))
    pool.complete_last_segment()
    assert not pool.has_started_segment
    batches = pool.draw(pool.num_new_steps())[: -(-num_rows // BATCH_SIZE)].copy()
    assert set(np.abs(batches).ravel().tolist()) == set(range(1, num_rows + 1))
    # Filled up with rows of the same model.
    assert (batches[:, :, 0] > 0).all()
    assert (batches[:, :, 1] < 0).all()
    assert pool.num_rows == num_rows


def test_completing_a_full_pool_changes_nothing() -> None:
    pool = make_pool(num_members=1)
    pool.add(numbered_rows(0, 2 * BATCH_SIZE))
    pool.complete_last_segment()
    assert pool.num_new_steps() == 2


def test_a_drawn_block_survives_the_next_draw() -> None:
    pool = make_pool()
    pool.add(numbered_rows(0, 24 * BATCH_SIZE))
    first = pool.draw(3)
    before = first.copy()
    pool.draw(3)
    assert_array_equal(first, before)


@pytest.mark.parametrize(("width", "num_members"), [(1, 1), (100, 4), (100_000, 4)])
def test_a_block_has_bounded_size(width: int, num_members: int) -> None:
    pool = Pool(2, width, 8, num_members, np.random.default_rng(1), capacity_bytes=0)
    step_bytes = 2 * 8 * width * 4 * num_members
    assert 1 <= pool.most_steps_a_block <= MOST_STEPS_A_BLOCK
    assert pool.most_steps_a_block == 1 or pool.most_steps_a_block * step_bytes <= BLOCK_BYTES


@pytest.mark.parametrize("num_members", range(1, 13))
def test_halves_are_balanced(num_members: int) -> None:
    halves = half_of_members(num_members)
    counts = Counter(itertools.chain.from_iterable(halves))
    assert set(counts) == set(range(num_members))
    assert len(set(counts.values())) == 1
    if num_members > 1:
        sizes = {len(half) for half in halves}
        assert sizes <= {num_members // 2, -(-num_members // 2)}
        assert counts[0] / len(halves) == 0.5


@pytest.mark.parametrize("num_members", range(2, 13))
def test_the_first_two_segments_serve_every_member(num_members: int) -> None:
    first, second = half_of_members(num_members)[:2]
    assert set(first) | set(second) == set(range(num_members))
    assert not set(first) & set(second)


@pytest.mark.parametrize("num_members", [2, 3, 4, 5, 8, 10, 16])
def test_no_two_members_see_mostly_the_same(num_members: int) -> None:
    # Under random halves a pair shares a quarter of all segments, or a little less for few members. Members that
    # share nearly all that either sees would agree without being right.
    halves = half_of_members(num_members)
    for first, second in itertools.combinations(range(num_members), 2):
        shared = np.mean([first in half and second in half for half in halves])
        assert shared <= 0.3
