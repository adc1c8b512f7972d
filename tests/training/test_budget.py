"""One budget, and a sensible one."""

import math
from typing import Any

import pytest

from deepbf.training import Budget
from deepbf.training.schedule import MOST_PASSES, fitting_batch_size


def test_each_kind_of_budget() -> None:
    assert Budget.of(None, None, None, num_models=2) == Budget(seconds=60.0)
    assert Budget.of(5, None, None, num_models=2) == Budget(seconds=5.0)
    assert Budget.of(None, 10, None, num_models=2) == Budget(steps=10)
    assert Budget.of(None, None, 5000, num_models=2) == Budget(num_simulations=5000)


@pytest.mark.parametrize(
    ("seconds", "steps", "num_simulations"),
    [(5, 10, None), (5, None, 5000), (None, 10, 5000), (5, 10, 5000), (0, 0, 0)],
)
def test_two_budgets_are_one_too_many(seconds: Any, steps: Any, num_simulations: Any) -> None:
    with pytest.raises(ValueError, match=r"exactly one budget.*Remove all but one"):
        Budget.of(seconds, steps, num_simulations, num_models=2)


@pytest.mark.parametrize("num_models", [2, 5])
def test_too_few_simulations_say_how_many_are_needed(num_models: int) -> None:
    with pytest.raises(ValueError, match="num_simulations must be at least") as caught:
        Budget.of(None, None, 10, num_models=num_models)
    least = int(str(caught.value).split("at least ")[1].split(";")[0])
    assert Budget.of(None, None, least, num_models=num_models).num_simulations == least


def test_how_many_data_sets_and_steps_a_budget_means() -> None:
    by_seconds, by_steps, by_number = Budget(seconds=10.0), Budget(steps=7), Budget(num_simulations=6000)
    assert by_seconds.expected_datasets(3, 50.0) == 500
    assert by_steps.expected_datasets(3, 50.0) == math.inf
    assert by_number.expected_datasets(3, 50.0) == 2000
    assert by_seconds.planned_steps(3, 100) is None
    assert by_steps.planned_steps(3, 100) == 7
    assert by_number.planned_steps(3, 100) == 20 * MOST_PASSES


def test_few_simulations_make_small_batches() -> None:
    assert fitting_batch_size(128, math.inf) == 128
    assert fitting_batch_size(128, 100_000) == 128
    assert fitting_batch_size(128, 640) == 40
    assert fitting_batch_size(128, 10) == 8
