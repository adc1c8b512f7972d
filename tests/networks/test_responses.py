"""Statistics of a regression: residual sums of squares by least squares, groups whichever is which, always finite."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from deepbf.models.covariates import Covariates
from deepbf.networks.responses import GroupMeans, Projections, ResponseColumns

RNG = np.random.default_rng(1)
X, Z = RNG.standard_normal((2, 20))
GROUP = np.repeat(["a", "b", "c", "d", "e"], 4)
RESPONSES = RNG.standard_normal((7, 20)) + 2 * X


def log_mean_squares(projections: Projections, responses: np.ndarray) -> np.ndarray:
    """Return the columns that hold log mean squares: after three blocks of projections, before the last."""
    num_directions = projections.basis.shape[1]
    columns = np.asarray(projections(jnp.asarray(responses, jnp.float32)))
    start = 2 * num_directions + projections.num_straight
    assert columns.shape == (len(responses), start + 1 + len(projections.subspaces) + num_directions)
    return columns[:, start + 1 : start + 1 + len(projections.subspaces)]


def test_what_each_choice_of_covariates_leaves_is_what_least_squares_leaves() -> None:
    found = log_mean_squares(Projections.fit(Covariates.of({"x": X, "z": Z, "group": GROUP})), RESPONSES)
    indicators = (GROUP[:, None] == np.unique(GROUP)).astype(float)
    expected = []
    for size in range(3):
        for chosen in itertools.combinations((X, Z), size):
            for groups in ([], [indicators]):
                design = np.column_stack([np.ones(20), *chosen, *groups])
                fitted = design @ np.linalg.lstsq(design, RESPONSES.T, rcond=None)[0]
                expected.append(np.log(((RESPONSES - fitted.T) ** 2).mean(axis=1)))
    assert_allclose(found, np.stack(expected, axis=1), atol=2e-4)


def test_a_line_without_noise_leaves_nothing() -> None:
    found = log_mean_squares(Projections.fit(Covariates.of({"x": X})), (1 + 2 * X)[None])
    # The constant alone leaves the slope; with the covariate, all that is left is rounding.
    assert found[0, 0] > 0
    assert found[0, 1] < -12


def test_which_group_is_which_does_not_count() -> None:
    codes = Covariates.of({"group": GROUP}).groups["group"]
    renamed = np.array([3, 0, 4, 2, 1])[codes]
    responses = jnp.asarray(RESPONSES, jnp.float32)
    assert_allclose(GroupMeans.fit(codes)(responses), GroupMeans.fit(renamed)(responses), atol=1e-5)


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1.0, 1e15])
@pytest.mark.parametrize(
    "table",
    [
        {"x": X},
        {"x": np.ones(20)},
        {"x": X, "same": X},
        {"group": np.arange(20) // 2},
        {f"x{k}": RNG.standard_normal(20) for k in range(25)},
    ],
)
def test_columns_are_finite_for_all_finite_data_and_every_table(table: dict[str, np.ndarray], scale: float) -> None:
    columns = ResponseColumns.fit(Covariates.of(table))
    assert np.isfinite(np.asarray(columns(jnp.asarray(scale * RESPONSES, jnp.float32)))).all()


def test_several_responses_per_row_are_taken_one_after_another() -> None:
    columns = ResponseColumns.fit(Covariates.of({"x": X, "group": GROUP}))
    both = jnp.asarray(np.stack([RESPONSES, RESPONSES**2], axis=2), jnp.float32)
    alone = [np.asarray(columns(both[:, :, k])) for k in range(2)]
    assert_allclose(columns(both), np.concatenate(alone, axis=1), atol=1e-5)
