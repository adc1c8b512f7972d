"""Logistic regression on a quadratic, fitted by Newton's method to many small problems at once.

Each problem tells the same observed data from another predictive draw of the same size. The log odds are a constant
plus a linear combination of the values, their squares and, of vectors, all products; a tiny penalty keeps them finite
where the two are told apart without an error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from deepbf.standardise import Standardiser

Floats = NDArray[np.float64]

# The penalty: this times half the variance of the fitted log odds over the problem's own data, per observation.
# Being a variance it does not depend on the units of the data; at 1e-6 it moves Z by less than 1e-4 unless the two are
# told apart without an error, where it stops the log odds at about 10.
RIDGE = 1e-6
# In interquartile ranges of the predictive distribution from its median: so far out, nothing depends on how far.
FARTHEST = 1e3
# Directions in which the features vary less than this share of their own variance are rounding, such as the square of
# values that are 0 or 1.
NEGLIGIBLE = 1e-10
MOST_STEPS = 100
MOST_HALVINGS = 20
TOLERANCE = 1e-9
# Features, as floats, held for a batch of problems: 2 MB, which stays in cache.
BATCH_ENTRIES = 2**18
MOST_FEATURES = 90


class LogOdds(NamedTuple):
    """Log odds of being observed at fresh predictive draws, shape (problems, draws), and which fits converged."""

    values: Floats
    converged: NDArray[np.bool_]


def num_features(num_columns: int) -> int:
    """Return how many values, squares and products an observation of so many columns has.

    Examples
    --------
    >>> [num_features(columns) for columns in (1, 2, 3)]
    [2, 5, 9]
    """
    return num_columns + num_columns * (num_columns + 1) // 2


def fit_quadratics(observed: Floats, training: Floats, fresh: Floats) -> LogOdds:
    """Return log odds at `fresh` of the classifiers that tell `observed` from each of `training`.

    Parameters
    ----------
    observed
        One data set, shape (n, columns).
    training
        One predictive data set for each problem, shape (problems, n, columns).
    fresh
        Where to evaluate each problem's classifier, shape (problems, m, columns).
    """
    ruler = Standardiser.fit([training], num_axes=1)
    observed_features = _features(observed, ruler)
    num_rows = len(observed) + training.shape[1] + fresh.shape[1]
    batch = max(1, BATCH_ENTRIES // (num_rows * observed_features.shape[1]))
    values, converged = [], []
    for start in range(0, len(training), batch):
        rows = slice(start, start + batch)
        predicted, at_fresh = _features(training[rows], ruler), _features(fresh[rows], ruler)
        repeated = np.broadcast_to(observed_features, (len(predicted), *observed_features.shape))
        features = np.concatenate([repeated, predicted], axis=1)
        centre = features.mean(axis=1, keepdims=True)
        centred = features - centre
        # Whitened, features are uncorrelated and of variance 1, or 0 along directions in which they do not vary.
        covariance = np.swapaxes(centred, 1, 2) @ centred / centred.shape[1]
        spread = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        spread = np.where(spread > 0, spread, 1.0)
        variances, directions = np.linalg.eigh(covariance / (spread[:, :, None] * spread[:, None, :]))
        varies = variances > NEGLIGIBLE
        scale = np.where(varies, 1 / np.sqrt(np.where(varies, variances, 1.0)), 0.0)
        whiten = directions * scale[:, None, :] / spread[:, :, None]
        coefficients, found = _newton(_with_constant(centred @ whiten), len(observed))
        log_odds = _with_constant((at_fresh - centre) @ whiten) @ coefficients[..., None]
        values.append(log_odds[..., 0])
        converged.append(found)
    return LogOdds(np.concatenate(values), np.concatenate(converged))


def _features(data: Floats, ruler: Standardiser) -> Floats:
    """Return values, squares and products of standardised columns, along the last axis."""
    with np.errstate(over="ignore"):
        scaled = np.clip((data - ruler.location) / ruler.scale, -FARTHEST, FARTHEST)
    first, second = np.triu_indices(data.shape[-1])
    return np.concatenate([scaled, scaled[..., first] * scaled[..., second]], axis=-1)


def _with_constant(whitened: Floats) -> Floats:
    return np.concatenate([np.ones((*whitened.shape[:-1], 1)), whitened], axis=-1)


def _newton(design: Floats, num_observed: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return penalised coefficients, shape (problems, features + 1), and whether each problem's gradient vanishes.

    Newton's method, whose step is halved for each problem until its loss does not rise.
    """
    num_problems, num_rows, num_columns = design.shape
    # Signed so that each row's loss is log(1 + exp(-sign x log odds)).
    sign = np.where(np.arange(num_rows) < num_observed, 1.0, -1.0)
    penalty = np.where(np.arange(num_columns) > 0, RIDGE, 0.0)
    coefficients = np.zeros((num_problems, num_columns))
    converged = np.zeros(num_problems, dtype=bool)

    def loss(log_odds: Floats, at: Floats) -> Floats:
        return np.logaddexp(0.0, -sign * log_odds).mean(axis=1) + 0.5 * (penalty * at**2).sum(axis=1)

    for _ in range(MOST_STEPS):
        active = np.flatnonzero(~converged)
        if len(active) == 0:
            break
        # Copying what is left costs more than it saves until most are done.
        rows = design[active] if len(active) < num_problems else design
        current = coefficients[active]
        log_odds = (rows @ current[..., None])[..., 0]
        wrong = expit(-sign * log_odds)
        gradient = -((sign * wrong)[:, None, :] @ rows)[:, 0] / num_rows + penalty * current
        converged[active] = np.abs(gradient).max(axis=1) < TOLERANCE
        weighted = rows * (wrong * (1 - wrong))[..., None]
        # The last term only keeps the constant's curvature above 0 where every row is told apart.
        hessian = np.swapaxes(rows, 1, 2) @ weighted / num_rows + np.diag(penalty + 1e-14)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        before = loss(log_odds, current)
        change = (rows @ step[..., None])[..., 0]
        share = np.ones(len(current))
        for _ in range(MOST_HALVINGS):
            after = loss(log_odds - share[:, None] * change, current - share[:, None] * step)
            # Near the optimum, losses differ by rounding alone.
            rises = ~(after <= before + 1e-15)
            if not rises.any():
                break
            share = np.where(rises, share / 2, share)
        coefficients[active] = current - share[:, None] * step
    return coefficients, converged
