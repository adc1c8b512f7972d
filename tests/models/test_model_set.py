"""A set of models is checked when it is made."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deepbf import Model, ModelSet
from tests.simulators import FREE_MEAN, THREE_MEANS, ZERO_MEAN


def test_equal_prior_probabilities_unless_given() -> None:
    chosen = ModelSet.of(THREE_MEANS)
    assert chosen.names == ("minus", "zero", "plus")
    assert len(chosen) == 3
    assert_array_equal(chosen.prior_probs, np.full(3, 1 / 3))


def test_given_prior_probabilities_are_kept_in_order() -> None:
    assert ModelSet.of([FREE_MEAN, ZERO_MEAN], [0.25, 0.75]).prior_probs.tolist() == [0.25, 0.75]
    assert ModelSet.of((FREE_MEAN, ZERO_MEAN), (0.25, 0.75)).names == ("free mean", "zero mean")


def test_rounding_in_the_prior_probabilities_is_mended() -> None:
    assert ModelSet.of(THREE_MEANS, [0.3333333, 0.3333333, 0.3333333]).prior_probs.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("models", [[], [FREE_MEAN]], ids=["none", "one"])
def test_fewer_than_two_models(models: list[Model]) -> None:
    with pytest.raises(ValueError, match=f"at least two models.*received {len(models)}"):
        ModelSet.of(models)


def test_one_model_instead_of_a_list() -> None:
    with pytest.raises(TypeError, match="list of two or more models; received the one model 'free mean'"):
        ModelSet.of(FREE_MEAN)  # pyright: ignore[reportArgumentType]


def test_equal_names() -> None:
    twin = Model("zero mean", simulator=FREE_MEAN.simulator)
    with pytest.raises(ValueError, match=r"distinct names.*'zero mean' appears 2 times"):
        ModelSet.of([ZERO_MEAN, FREE_MEAN, twin])


@pytest.mark.parametrize("stranger", [FREE_MEAN.simulator, "free mean", None], ids=["function", "text", "None"])
def test_not_a_model(stranger: Any) -> None:
    with pytest.raises(TypeError, match=rf"models\[1\] must be a deepbf.Model; received {type(stranger).__name__}"):
        ModelSet.of([ZERO_MEAN, stranger])


@pytest.mark.parametrize(
    ("probs", "error", "says"),
    [
        ([1.0], ValueError, r"shape \(1,\) for 2 models \(free mean, zero mean\)"),
        ([0.2, 0.3, 0.5], ValueError, r"shape \(3,\) for 2 models"),
        ([[0.5, 0.5]], ValueError, r"shape \(1, 2\) for 2 models"),
        (0.5, ValueError, r"shape \(\) for 2 models"),
        ([1.5, -0.5], ValueError, "above 0.*-0.5"),
        ([1.0, 0.0], ValueError, "above 0.*probability 0 out of the list"),
        ([0.5, 0.6], ValueError, "sum to 1.*1.1"),
        ([0.5, np.nan], ValueError, "finite.*nan"),
        ([0.5, np.inf], ValueError, "finite.*inf"),
        (["half", "half"], TypeError, "sequence of numbers"),
    ],
)
def test_prior_probabilities_that_are_none(probs: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=f"prior_probs.*{says}"):
        ModelSet.of([FREE_MEAN, ZERO_MEAN], probs)
