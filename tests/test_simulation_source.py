"""Chunks: each has a seed of its own, the one that spawning would give."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deepbf import Model, SimulationError
from deepbf.simulation import CHUNK_SIZE, Source, chunk_seed
from tests.simulators import NORMAL_MEAN, ChangesShapeFromChunk, FailsFromChunk


@pytest.mark.parametrize("seed", [0, 1, 2**40])
@pytest.mark.parametrize(("model_index", "chunk_index"), [(0, 0), (0, 5), (2, 0), (2, 33)])
def test_a_chunk_seed_is_what_nested_spawning_gives(seed: int, model_index: int, chunk_index: int) -> None:
    of_model = np.random.SeedSequence(seed).spawn(model_index + 1)[-1]
    of_chunk = of_model.spawn(chunk_index + 1)[-1]
    assert_array_equal(chunk_seed(seed, model_index, chunk_index).generate_state(8), of_chunk.generate_state(8))


def test_no_two_chunks_share_a_seed() -> None:
    states = {
        tuple(chunk_seed(seed, model, chunk).generate_state(4).tolist())
        for seed in range(3)
        for model in range(3)
        for chunk in range(20)
    }
    assert len(states) == 3 * 3 * 20


def test_each_chunk_can_be_drawn_alone() -> None:
    together = Source.of(NORMAL_MEAN, 5).simulate([(3, CHUNK_SIZE), (4, CHUNK_SIZE), (5, 10)])
    assert [len(data) for data in together] == [2 * CHUNK_SIZE + 10] * 2
    for model_index, model in enumerate(NORMAL_MEAN):
        alone = model.simulate(CHUNK_SIZE, chunk_seed(5, model_index, 4)).data
        assert_array_equal(together[model_index][CHUNK_SIZE : 2 * CHUNK_SIZE], alone)


def test_a_transform_runs_on_the_data() -> None:
    plain = Source.of(NORMAL_MEAN, 5).simulate([(0, 8)])
    doubled = Source.of(NORMAL_MEAN, 5).simulate([(0, 8)], lambda data: 2 * data)  # pyright: ignore[reportOperatorIssue, reportArgumentType, reportReturnType]
    for one, other in zip(plain, doubled, strict=True):
        assert_array_equal(2 * np.asarray(one, float), other)


def test_a_failure_carries_its_chunks_seed() -> None:
    models = [NORMAL_MEAN[0], Model("fragile", simulator=FailsFromChunk(7))]
    Source.of(models, 5).simulate([(6, 8)])
    with pytest.raises(SimulationError, match=re.escape("seed=np.random.SeedSequence(5, spawn_key=(1, 7))")):
        Source.of(models, 5).simulate([(6, 8), (7, 8), (8, 8)])


def test_a_shape_that_changes_between_chunks_is_refused() -> None:
    model = Model("growing", simulator=ChangesShapeFromChunk(2))
    with pytest.raises(SimulationError, match=r"'growing'.*shape \(11,\), and of shape \(10,\) before") as caught:
        Source.of([model, NORMAL_MEAN[1]], 5).simulate([(1, 8), (2, 8)])
    # What the message tells a user to paste draws the chunk with the other shape.
    reproduction = str(caught.value).split("Reproduce it with: ")[1]
    assert eval(reproduction, {"model": model, "np": np}).data.shape == (8, 11)
