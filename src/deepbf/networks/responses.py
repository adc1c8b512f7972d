"""Responses to covariates that are fixed by design: regressions, often of binary responses or counts, often in groups.

The table is known before any data, so what a regression needs are fixed projections of the responses: on covariates
and their products, on groups, and what each choice of covariates leaves unexplained. For a generalised linear model
with its natural link the projections on its own covariates are sufficient; of a normal one with unknown variance the
evidence is a function of residual sums of squares.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deepbf._compilation import IN_A_HURRY, compiled
from deepbf.models.covariates import Covariates
from deepbf.networks.base import AbstractColumns, AbstractPreparation, InputLayout, Pilot, PlainView, Storable, squash
from deepbf.networks.features import MultiScale
from deepbf.networks.vector import VectorColumns, fit_vector_columns

# Up to how many covariates every choice of them is tried as a model; of more, each alone, all but each, and all.
MOST_IN_ALL_SUBSETS = 4
# Projections take up to this share of the rows, so that residuals are left; groups may take more than products.
SHARE_FOR_PRODUCTS = 0.5
MOST_DIRECTIONS = 64
# Columns that the earlier ones explain up to this share of their length are no new direction.
SMALLEST_LENGTH = 1e-6
# Added to sums of squares of standardised responses, per row, before logarithms are taken.
SMALLEST_MEAN_SQUARE = 1e-6
# Group means up to so many are shown in increasing order; of more, evenly spread quantiles of them.
MOST_GROUP_MEANS = 32


class Projections(Storable):
    """Responses along the directions of the table, and what subspaces of it leave unexplained.

    `basis` has orthonormal columns of shape (rows, directions), a constant first. Each of `subspaces`, shape
    (subspaces, directions, directions), projects coordinates in that basis on what one choice of covariates leaves of
    them. `num_straight` leading directions are the constant and the covariates themselves.
    """

    basis: jax.Array
    subspaces: jax.Array
    num_straight: int = eqx.field(static=True)

    @classmethod
    def fit(cls, covariates: Covariates) -> Projections:
        """Return the projections that belong to a table."""
        numbers = [(column - column.mean()) / (column.std() or 1.0) for column in covariates.numbers.values()]
        numbers = [column for column in numbers if np.abs(column).max() > SMALLEST_LENGTH]
        groups = [np.eye(codes.max() + 1)[codes] for codes in covariates.groups.values()]
        constant = np.ones((covariates.num_rows, 1))
        most = min(MOST_DIRECTIONS, covariates.num_rows - 1)
        straight = _orthonormal([constant, *(column[:, None] for column in numbers)], most)
        with_groups = _orthonormal([straight, *groups], most)
        products = [(a * b)[:, None] for a, b in itertools.combinations_with_replacement(numbers, 2)]
        most_with_products = max(with_groups.shape[1], int(SHARE_FOR_PRODUCTS * covariates.num_rows))
        basis = _orthonormal([with_groups, *products], min(most, most_with_products))
        left = []
        for chosen in _choices(len(numbers)):
            columns = [constant, *(numbers[k][:, None] for k in chosen)]
            for some in ([], *([group] for group in groups), *([groups] if len(groups) > 1 else [])):
                spanned = basis.T @ _orthonormal([*columns, *some], most)
                left.append(np.eye(basis.shape[1]) - spanned @ spanned.T)
        return cls(jnp.asarray(basis, jnp.float32), jnp.asarray(np.stack(left), jnp.float32), straight.shape[1])

    def __call__(self, responses: jax.Array) -> jax.Array:
        """Return the columns for responses of shape (batch, rows)."""
        num_rows, num_directions = self.basis.shape
        along = responses @ self.basis
        residuals = responses - along @ self.basis.T
        unexplained = (residuals * residuals).sum(axis=1, keepdims=True)
        # Sums of what is not negative: nothing cancels, however well a subspace explains the responses.
        outside = jnp.einsum("bd,sde->bse", along, self.subspaces)
        sums = jnp.concatenate([unexplained, unexplained + (outside * outside).sum(axis=2)], axis=1)
        scale = jnp.sqrt(unexplained / max(1, num_rows - num_directions) + SMALLEST_MEAN_SQUARE)
        bent = squash(responses)
        return jnp.concatenate(
            [
                squash(along),
                bent @ self.basis,
                (bent * bent) @ self.basis[:, : self.num_straight],
                jnp.log(sums / num_rows + SMALLEST_MEAN_SQUARE),
                squash(along / scale),
            ],
            axis=1,
        )


def _orthonormal(columns: Sequence[NDArray[np.float64]], most: int) -> NDArray[np.float64]:
    """Return up to `most` orthonormal columns that span what these do, taken in their order."""
    found = np.zeros((len(columns[0]), 0))
    for column in np.concatenate(columns, axis=1).T:
        length = np.linalg.norm(column)
        # Twice is enough: the second pass removes what rounding left of the first.
        rest = column - found @ (found.T @ column)
        rest -= found @ (found.T @ rest)
        if found.shape[1] < most and np.linalg.norm(rest) > SMALLEST_LENGTH * max(length, 1.0):
            found = np.column_stack([found, rest / np.linalg.norm(rest)])
    return found


def _choices(num_covariates: int) -> list[tuple[int, ...]]:
    """Return the choices of covariates whose unexplained sums of squares are looked at."""
    every = range(num_covariates)
    if num_covariates <= MOST_IN_ALL_SUBSETS:
        return [chosen for size in range(num_covariates + 1) for chosen in itertools.combinations(every, size)]
    single = [(k,) for k in every]
    all_but_one = [tuple(j for j in every if j != k) for k in every]
    return [(), *single, *all_but_one, tuple(every)]


class GroupMeans(Storable):
    """How the responses of groups differ: their totals as a distribution, whichever group is which.

    `means`, shape (rows, groups), takes the mean of each group, and `roots` are the square roots of their sizes.
    """

    means: jax.Array
    roots: jax.Array

    @classmethod
    def fit(cls, codes: NDArray[np.intp]) -> GroupMeans:
        """Return the means of the groups that rows are of."""
        indicators = np.eye(codes.max() + 1)[codes]
        sizes = indicators.sum(axis=0)
        return cls(jnp.asarray(indicators / sizes, jnp.float32), jnp.asarray(np.sqrt(sizes), jnp.float32))

    def __call__(self, responses: jax.Array) -> jax.Array:
        """Return the columns for responses of shape (batch, rows)."""
        num_groups = self.roots.size
        means = responses @ self.means
        ordered = jnp.sort(means, axis=1)
        if num_groups > MOST_GROUP_MEANS:
            ordered = ordered[:, np.linspace(0, num_groups - 1, MOST_GROUP_MEANS).round().astype(int)]
        totals = squash((means - means.mean(axis=1, keepdims=True)) * self.roots)
        powers = jnp.stack([(totals**power).mean(axis=1) for power in (2, 3, 4)], axis=1)
        within = jnp.log(squash(responses) ** 2 @ self.means - (squash(responses) @ self.means) ** 2 + 1e-2)
        spread = jnp.stack([jnp.log(powers[:, 0] + 1e-4), within.mean(axis=1), (within * within).mean(axis=1)], axis=1)
        return jnp.concatenate([squash(ordered), powers, spread], axis=1)


class ResponseColumns(AbstractColumns):
    """The statistics of a regression; several responses per row are taken one after another."""

    projections: Projections
    groups: tuple[GroupMeans, ...]

    @classmethod
    def fit(cls, covariates: Covariates) -> ResponseColumns:
        """Return the columns that belong to a table."""
        return cls(Projections.fit(covariates), tuple(GroupMeans.fit(codes) for codes in covariates.groups.values()))

    def __call__(self, data: jax.Array) -> jax.Array:
        by_response = jnp.moveaxis(data.reshape(*data.shape[:2], -1), 2, 0)
        columns = [
            jnp.concatenate([self.projections(one), *(group(one) for group in self.groups)], axis=1)
            for one in by_response
        ]
        return jnp.concatenate(columns, axis=1)


class ResponsesSummary(AbstractPreparation):
    """The statistics of a regression, decorrelated at the scales of all models."""

    columns: ResponseColumns
    scales: MultiScale

    @classmethod
    def fit(cls, pilot: Pilot, *, covariates: Covariates) -> ResponsesSummary:
        """Return the summary of responses like the pilot's, one array per model, to these covariates."""
        columns = ResponseColumns.fit(covariates)
        read = compiled(ResponseColumns.__call__, columns, options=IN_A_HURRY)
        return cls(
            columns, MultiScale.fit([np.asarray(read(jnp.asarray(data))) for data in pilot], smallest_spread=1e-4)
        )

    def __call__(self, data: jax.Array) -> jax.Array:
        return self.scales(self.columns(data))

    def layout(self, data_shape: tuple[int, ...]) -> InputLayout:
        return InputLayout(num_linear=self.scales.num_linear, num_summary=self.scales.num_columns)


class ValuesAndStatistics(AbstractColumns):
    """Every response by itself, and the statistics of the regression beside them."""

    values: VectorColumns
    statistics: ResponseColumns

    def __call__(self, data: jax.Array) -> jax.Array:
        return jnp.concatenate([self.values(data), self.statistics(data)], axis=1)


def plain_responses(pilot: Pilot, *, covariates: Covariates) -> PlainView:
    """Return the plain view of responses to these covariates."""
    return PlainView.fit(ValuesAndStatistics(fit_vector_columns(pilot), ResponseColumns.fit(covariates)), pilot)
