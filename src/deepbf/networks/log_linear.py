"""Quadratic logistic regression with a ridge: the classifier that needs the fewest simulations."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from deepbf.networks.base import AbstractNetwork, InputLayout, squash

# Leading directions that may be multiplied with each other: at most 300 products. How many are, cross-validation
# decides: with some hundred rows, products of all of them are mostly noise.
NUM_MULTIPLIED = (4, 10, 24)
MOST_DIRECTIONS = max(NUM_MULTIPLIED)
# Columns and directions are linear up to about this many standard deviations, and logarithmic beyond. Without that, a
# slope of the wrong sign, among those that hardly any simulation tells, sends data in a heavy tail to the wrong model
# for certain: of Data 1 (i) with 20,000 simulations, 3 test data sets of 6,000 made up 99% of the excess loss.
REACH = 4.0
# A direction, or a column, of less than this share of the widest spread, or of its mean, is rounding in float32.
LEAST_SPREAD = 1e-3
ROUNDING = 1e-6
# Beyond this, differences and sums of a few hundred columns would leave the range of float32.
FARTHEST = 1e30
# Weights of the likelihood against a unit ridge on standardised terms, from nearly flat to nearly free.
INVERSE_RIDGES = tuple(float(c) for c in 10.0 ** np.arange(-5.0, 1.1, 0.5))
NUM_FOLDS = 4
# From this many rows on, one fold says enough about the ridge.
MANY_ROWS = 4_000
# Of the largest slope of the mean log loss. Stopped at 1e-3, fits to 20,000 rows of Data 1 (i) were a third worse.
TOLERANCE = 1e-4
MAX_ITERATIONS = 300


class RidgeChoice(NamedTuple):
    """What cross-validation chose: the weight of the likelihood against the ridge, and how many leading terms."""

    inverse_ridge: float
    num_terms: int


class LogLinear(AbstractNetwork):
    """Log odds that are linear in all columns, plus all products of a few leading directions, fitted with a ridge.

    Rows are standardised, with their tails pulled in. Their leading principal components, at unit variance, are
    multiplied with each other. A multinomial logistic regression on columns and products follows. Cross-validation by
    log loss chooses its ridge, and of how many directions there are products. Where a model is an exponential family
    and rows hold its sufficient statistics, the linear part has the exact form; the products add that of a normal
    approximation. Far from all simulations, log odds grow like the square of the logarithm of the columns.

    Use it where simulations are few, some hundreds to some ten thousand. With more of them a network learns what
    squares cannot express.

    A new one has weights of zero: log odds of 0 everywhere. `fit` returns one that was fitted.
    """

    mean: jax.Array
    inverse_spread: jax.Array
    rotation: jax.Array
    weights: jax.Array
    intercept: jax.Array

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array | None = None) -> None:
        del key
        width, num_directions = layout.width, min(layout.width, MOST_DIRECTIONS)
        self.mean = jnp.zeros(width)
        self.inverse_spread = jnp.zeros(width)
        self.rotation = jnp.zeros((width, num_directions))
        num_terms = width + num_directions * (num_directions + 1) // 2
        self.weights = jnp.zeros((num_terms, num_models - 1))
        self.intercept = jnp.zeros(num_models - 1)

    @classmethod
    def choose(cls, rows: NDArray[np.float32], labels: NDArray[np.integer], num_models: int, seed: int) -> RidgeChoice:
        """Return the choice that cross-validation makes for rows like these, for several fits to share."""
        _, terms, _, _ = cls._prepared(rows, num_models)
        # The matrices are small: on busy cores, threads that wait for each other cost far more than they save.
        with threadpool_limits(1):
            return _choose_ridge(terms, labels, num_models, rows.shape[1], seed)

    @classmethod
    def fit(
        cls,
        rows: NDArray[np.float32],
        labels: NDArray[np.integer],
        num_models: int,
        seed: int,
        choice: RidgeChoice | None = None,
    ) -> LogLinear:
        """Return the regression fitted to rows of shape (simulations, width) and the models that they came from.

        Every model, 0 to `num_models` - 1, must be among the labels at least `NUM_FOLDS` times. How often each appears
        is divided out: log odds are log evidence ratios, up to the regression's error. A `choice` that was made before
        saves most of the time.
        """
        standardised, terms, term_mean, term_spread = cls._prepared(rows, num_models)
        with threadpool_limits(1):
            inverse_ridge, num_terms = choice or _choose_ridge(terms, labels, num_models, rows.shape[1], seed)
            regression = LogisticRegression(tol=TOLERANCE, max_iter=MAX_ITERATIONS, C=inverse_ridge)
            slopes, intercepts = _weights_of(_fitted(regression, terms[:, :num_terms], labels), num_models)
        intercepts = intercepts - np.log(np.bincount(labels, minlength=num_models))
        weights = np.zeros(standardised.weights.shape)
        weights[: slopes.shape[1]] = (slopes[:-1] - slopes[-1]).T
        weights /= term_spread[:, None]
        intercept = intercepts[:-1] - intercepts[-1] - term_mean @ weights
        return eqx.tree_at(
            lambda one: (one.weights, one.intercept),
            standardised,
            (jnp.asarray(weights, jnp.float32), jnp.asarray(intercept, jnp.float32)),
        )

    @classmethod
    def _prepared(
        cls, rows: NDArray[np.float32], num_models: int
    ) -> tuple[LogLinear, NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
        """Return a regression of weights 0 that knows the scales of the rows, its terms at unit spread, and theirs."""
        blank = cls(InputLayout(rows.shape[1], rows.shape[1]), num_models)
        standardised = eqx.tree_at(
            lambda one: (one.mean, one.inverse_spread, one.rotation),
            blank,
            tuple(jnp.asarray(part, jnp.float32) for part in _standardisation(rows, blank.rotation.shape[1])),
        )
        terms = np.array(standardised.terms(jnp.asarray(rows, jnp.float32)))
        # One scale for all terms, for one ridge; it becomes part of the weights.
        term_mean = terms.mean(axis=0, dtype=np.float64)
        term_spread = terms.std(axis=0, dtype=np.float64)
        term_spread = np.where(term_spread > ROUNDING, term_spread, 1.0)
        terms -= term_mean.astype(np.float32)
        terms /= term_spread.astype(np.float32)
        return standardised, terms, term_mean, term_spread

    def terms(self, inputs: jax.Array) -> jax.Array:
        """Return the standardised columns and all products of the leading directions, shape (batch, terms)."""
        near = jnp.clip(inputs, -FARTHEST, FARTHEST) - self.mean
        columns = REACH * squash(jnp.clip(near * self.inverse_spread, -FARTHEST, FARTHEST) / REACH)
        directions = REACH * squash(columns @ self.rotation / REACH)
        # In this order, products of the first few directions come first.
        first, second = np.tril_indices(directions.shape[1])
        return jnp.concatenate([columns, directions[:, first] * directions[:, second]], axis=1)

    def __call__(self, inputs: jax.Array) -> jax.Array:
        return self.terms(inputs) @ self.weights + self.intercept


def _standardisation(rows: NDArray[np.float32], num_directions: int) -> tuple[NDArray[np.float64], ...]:
    """Return columns' means and inverse spreads, and the map from standardised columns to principal components.

    Columns and directions that do not vary get zeros.
    """
    values = rows.astype(np.float64)
    mean, spread = values.mean(axis=0), values.std(axis=0)
    varies = spread > ROUNDING * np.abs(mean)
    inverse_spread = np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)
    columns = REACH * np.arcsinh((values - mean) * inverse_spread / REACH)
    columns -= columns.mean(axis=0)
    variances, directions = np.linalg.eigh(columns.T @ columns / len(columns))
    spreads = np.sqrt(np.maximum(variances[::-1][:num_directions], 0.0))
    kept = spreads > LEAST_SPREAD * max(spreads[0], LEAST_SPREAD)
    rotation = directions[:, ::-1][:, :num_directions] * np.where(kept, 1.0 / np.where(kept, spreads, 1.0), 0.0)
    return mean, inverse_spread, rotation


def _choose_ridge(
    terms: NDArray[np.float32], labels: NDArray[np.integer], num_models: int, width: int, seed: int
) -> RidgeChoice:
    """Return the ridge and the number of leading terms with the least log loss in cross-validation."""
    splits = list(StratifiedKFold(NUM_FOLDS, shuffle=True, random_state=seed).split(terms, labels))
    if len(labels) >= MANY_ROWS:
        splits = splits[:1]
    best_loss, best_ridge, best_num_terms = np.inf, INVERSE_RIDGES[0], width
    for num_multiplied in sorted({min(number, width) for number in NUM_MULTIPLIED}):
        num_terms = width + num_multiplied * (num_multiplied + 1) // 2
        paths = [_fold_losses(terms[:, :num_terms], labels, num_models, *split) for split in splits]
        lowest = np.inf
        # All folds advance together, and none goes on where the ridge has become too weak for most of them.
        for inverse_ridge, losses in zip(INVERSE_RIDGES, zip(*paths, strict=True), strict=False):
            loss = float(np.mean(losses))
            if loss < best_loss:
                best_loss, best_ridge, best_num_terms = loss, inverse_ridge, num_terms
            if loss > lowest:
                break
            lowest = loss
    return RidgeChoice(best_ridge, best_num_terms)


def _fold_losses(
    terms: NDArray[np.float32],
    labels: NDArray[np.integer],
    num_models: int,
    inside: NDArray[np.integer],
    outside: NDArray[np.integer],
) -> Iterator[float]:
    """Yield the log loss on the rows outside of fits to those inside, from the strongest ridge to the weakest."""
    near_terms, near_labels, far_terms, far_labels = terms[inside], labels[inside], terms[outside], labels[outside]
    regression = LogisticRegression(tol=TOLERANCE, max_iter=MAX_ITERATIONS, warm_start=True)
    for inverse_ridge in INVERSE_RIDGES:
        regression.set_params(C=inverse_ridge)
        slopes, intercepts = _weights_of(_fitted(regression, near_terms, near_labels), num_models)
        log_probs = log_softmax(far_terms @ slopes.T + intercepts, axis=1)
        yield float(-log_probs[np.arange(len(far_labels)), far_labels].mean())


def _fitted(
    regression: LogisticRegression, terms: NDArray[np.float32], labels: NDArray[np.integer]
) -> LogisticRegression:
    with warnings.catch_warnings():
        # Where the ridge is weak and the models separate, the last iterations only stretch what is known already.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return regression.fit(terms, labels)


def _weights_of(regression: LogisticRegression, num_models: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return slopes and intercepts for each model; scikit-learn keeps those of the second alone when there are two."""
    slopes = np.asarray(regression.coef_, np.float64)
    intercepts = np.asarray(regression.intercept_, np.float64)
    if num_models > 2:
        return slopes, intercepts
    return np.concatenate([0.0 * slopes, slopes]), np.concatenate([0.0 * intercepts, intercepts])
