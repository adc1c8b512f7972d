"""Held-out simulations are never trained on, and are the same whatever the tasks were."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from deepbf.simulation import CHUNK_SIZE
from deepbf.training.intake import MOST_DATASETS, ONE_IN, HeldOut


def split_numbers(num_rows: int, chunks_per_task: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the numbers of the rows to train on and of those held out, from tasks of these sizes in turn."""
    held_out = HeldOut(2)
    numbers = np.arange(num_rows, dtype=np.float32)[:, None]
    kept_for_training = []
    start = 0
    for num_chunks in itertools.cycle(chunks_per_task):
        end = min(start + num_chunks * CHUNK_SIZE, num_rows)
        train, of_second = held_out.split([numbers[start:end], -numbers[start:end]])
        assert_array_equal(of_second, -train)
        kept_for_training.append(train[:, 0])
        start = end
        if start == num_rows:
            break
    first, second = held_out.rows()
    assert_array_equal(second, -first)
    assert held_out.num_rows == len(first)
    return np.concatenate(kept_for_training), first[:, 0]


@pytest.mark.parametrize("num_rows", [2 * CHUNK_SIZE, 20 * CHUNK_SIZE + 9])
def test_every_row_goes_to_exactly_one_side_in_order(num_rows: int) -> None:
    train, kept = split_numbers(num_rows, [1])
    assert not set(train) & set(kept)
    assert sorted([*train, *kept]) == list(range(num_rows))
    assert (np.diff(train) > 0).all()
    assert (np.diff(kept) > 0).all()


@pytest.mark.parametrize("chunks_per_task", [[1], [2], [16], [1, 8, 3]])
def test_the_split_does_not_depend_on_the_tasks(chunks_per_task: list[int]) -> None:
    num_rows = 40 * CHUNK_SIZE + 17
    for found, expected in zip(split_numbers(num_rows, chunks_per_task), split_numbers(num_rows, [5]), strict=True):
        assert_array_equal(found, expected)


def test_about_one_in_eight_is_held_out_from_early_on() -> None:
    _, kept = split_numbers(80 * CHUNK_SIZE, [4])
    assert len(kept) == 80 * CHUNK_SIZE / ONE_IN
    assert kept[0] < 2 * CHUNK_SIZE


def test_no_more_than_enough_is_held_out() -> None:
    num_rows = 2 * ONE_IN * MOST_DATASETS
    train, kept = split_numbers(num_rows, [8])
    assert len(kept) == MOST_DATASETS
    assert len(train) == num_rows - MOST_DATASETS


def test_the_bound_does_not_depend_on_the_tasks_either() -> None:
    num_rows = 2 * ONE_IN * MOST_DATASETS
    for found, expected in zip(split_numbers(num_rows, [1]), split_numbers(num_rows, [100]), strict=True):
        assert_array_equal(found, expected)
