"""The two processing trees of the weapon identification study: priors, simulators and densities.

A tree gives the probability of a correct answer in six prime-target cells from three parameters, columns of an array of
shape (size, 3): A (the prime's automatic effect), B (a guess of "tool") and C (control). In process dissociation (PD)
control comes first and the prime acts where control fails; in the Stroop tree the prime comes first.

Data are counts. "Sum": twelve numbers, the correct answers of the six cells, then the wrong ones. "Full": one row a
person, six numbers of correct answers. Functions are functions of a module, so that models built from them pickle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepbf_studies.problems.array_library import Array, library_of, log_gamma_of

CELLS = ("white tool", "white gun", "black tool", "black gun", "neutral tool", "neutral gun")
NUM_CELLS = len(CELLS)
NUM_PARAMS = 3


class LogProbs(NamedTuple):
    """Log probabilities of a correct and of a wrong answer, one array a cell; the arrays broadcast."""

    correct: tuple[Array, ...]
    wrong: tuple[Array, ...]


def uniform_prior(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Return `size` draws of A, B and C, independent and uniform, shape (size, 3)."""
    return rng.random((size, NUM_PARAMS))


def log_uniform_prior(params: Array) -> Array:
    """Return 0 inside the open unit cube and -inf outside; `params` has shape (..., 3)."""
    xp, params = library_of(params)
    inside = ((params > 0) & (params < 1)).all(axis=-1)
    return xp.where(inside, 0.0, -xp.inf)


def log_probs_pd(a: Array, b: Array, c: Array) -> LogProbs:
    """Return the log probabilities of the process dissociation tree.

    Wrong answers are products, so their logarithms are sums that stay exact where the probability vanishes.
    """
    xp, _ = library_of(a)
    not_a, not_b, not_c = 1 - a, 1 - b, 1 - c
    # The answer where control fails: the prime's own, or else a guess.
    tool_after_a, gun_after_a = a + not_a * b, a + not_a * not_b
    log_not_a, log_not_c, log_b, log_not_b = xp.log(not_a), xp.log(not_c), xp.log(b), xp.log(not_b)
    return LogProbs(
        correct=(
            xp.log(c + not_c * tool_after_a),
            xp.log(c + not_c * not_a * not_b),
            xp.log(c + not_c * not_a * b),
            xp.log(c + not_c * gun_after_a),
            xp.log(c + not_c * b),
            xp.log(c + not_c * not_b),
        ),
        wrong=(
            log_not_c + log_not_a + log_not_b,
            log_not_c + xp.log(tool_after_a),
            log_not_c + xp.log(gun_after_a),
            log_not_c + log_not_a + log_b,
            log_not_c + log_not_b,
            log_not_c + log_b,
        ),
    )


def log_probs_stroop(a: Array, b: Array, c: Array) -> LogProbs:
    """Return the log probabilities of the Stroop tree."""
    xp, _ = library_of(a)
    not_a, not_b, not_c = 1 - a, 1 - b, 1 - c
    # The answer where the prime has no effect: control's, or else a guess.
    tool, gun = c + not_c * b, c + not_c * not_b
    log_not_a, log_not_c, log_b, log_not_b = xp.log(not_a), xp.log(not_c), xp.log(b), xp.log(not_b)
    log_tool, log_gun = xp.log(tool), xp.log(gun)
    return LogProbs(
        correct=(
            xp.log(a + not_a * tool),
            log_not_a + log_gun,
            log_not_a + log_tool,
            xp.log(a + not_a * gun),
            log_tool,
            log_gun,
        ),
        wrong=(
            log_not_a + log_not_c + log_not_b,
            xp.log(a + not_a * not_c * b),
            xp.log(a + not_a * not_c * not_b),
            log_not_a + log_not_c + log_b,
            log_not_c + log_not_b,
            log_not_c + log_b,
        ),
    )


LOG_PROBS = {"pd": log_probs_pd, "stroop": log_probs_stroop}


def correct_probs(params: NDArray[np.float64], *, tree: str) -> NDArray[np.float64]:
    """Return the probability of a correct answer in each cell, shape (..., 6), from parameters of shape (..., 3)."""
    with np.errstate(divide="ignore"):
        log_correct = LOG_PROBS[tree](params[..., 0], params[..., 1], params[..., 2]).correct
    # Rounding may end just above 1, which binomial samplers refuse.
    return np.minimum(np.exp(np.stack(log_correct, axis=-1)), 1.0)


def simulate_sum(
    rng: np.random.Generator, params: NDArray[np.float64], *, tree: str, num_trials: int
) -> NDArray[np.int64]:
    """Return correct and then wrong counts of the six cells over `num_trials` trials each, shape (size, 12)."""
    correct = rng.binomial(num_trials, correct_probs(params, tree=tree))
    return np.concatenate([correct, num_trials - correct], axis=-1)


def simulate_full(
    rng: np.random.Generator, params: NDArray[np.float64], *, tree: str, num_obs: int, num_trials: int
) -> NDArray[np.int64]:
    """Return correct counts of `num_obs` people over `num_trials` trials a cell, shape (size, num_obs, 6)."""
    probs = correct_probs(params, tree=tree)
    return rng.binomial(num_trials, probs[:, None, :], (len(params), num_obs, NUM_CELLS))


def log_likelihood_sum(params: Array, data: Array, *, tree: str) -> Array:
    """Return the log probability of counts summed over people.

    `params` has shape (..., 3) and `data` (..., 12); their leading axes broadcast. Either may be a JAX array.
    """
    _, data = library_of(data)
    correct, wrong = data[..., :NUM_CELLS], data[..., NUM_CELLS:]
    return _log_counts(params, correct, wrong, tree=tree) + _log_binomials(correct, wrong).sum(axis=-1)


def log_likelihood_full(params: Array, data: Array, *, tree: str, num_trials: int) -> Array:
    """Return the log probability of every person's counts.

    `params` has shape (..., 3) and `data` (..., num_people, 6); their leading axes broadcast. Either may be of JAX.
    """
    _, data = library_of(data)
    wrong = num_trials - data
    log_binomials = _log_binomials(data, wrong).sum(axis=(-2, -1))
    return _log_counts(params, data.sum(axis=-2), wrong.sum(axis=-2), tree=tree) + log_binomials


class TreeDensity:
    """The log density of a tree's parameters given twelve counts, up to binomial coefficients.

    Most logarithms depend on one or two parameters alone, so a product grid costs a third of its points one by one.
    """

    def __init__(self, tree: str, counts: NDArray[np.float64]) -> None:
        self.tree, self.correct, self.wrong = tree, counts[:NUM_CELLS], counts[NUM_CELLS:]

    def __call__(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log density at each row of A, B, C."""
        inside = np.all((points > 0) & (points < 1), axis=-1, keepdims=True)
        safe = np.where(inside, points, 0.5)
        return np.where(inside[..., 0], self._log_counts(*safe.T), -np.inf)

    def on_grid(self, axes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log density on the product grid of three rows of nodes inside the cube."""
        a, b, c = axes
        return self._log_counts(a[:, None, None], b[None, :, None], c[None, None, :])

    def _log_counts(self, a: Array, b: Array, c: Array) -> Array:
        log_probs = LOG_PROBS[self.tree](a, b, c)
        terms = [n * log_prob for n, log_prob in zip(self.correct, log_probs.correct, strict=True)]
        terms += [n * log_prob for n, log_prob in zip(self.wrong, log_probs.wrong, strict=True)]
        # Small arrays first: the sums of those that broadcast stay small for longest.
        terms.sort(key=np.size)
        return sum(terms[1:], start=terms[0])


def sum_over_people(data: Array, *, num_trials: int) -> Array:
    """Return the twelve counts of "sum", shape (..., 12), from one row a person, shape (..., num_people, 6)."""
    xp, data = library_of(data)
    return xp.concatenate([data.sum(axis=-2), (num_trials - data).sum(axis=-2)], axis=-1)


def _log_counts(params: Array, correct: Array, wrong: Array, *, tree: str) -> Array:
    """Return the log probability of the counts, binomial coefficients aside; -inf outside the open unit cube."""
    xp, params = library_of(params)
    inside = ((params > 0) & (params < 1)).all(axis=-1)
    # Replaced outside, so that no logarithm and no gradient of it is nan.
    safe = xp.where(inside[..., None], params, 0.5)
    log_probs = LOG_PROBS[tree](safe[..., 0], safe[..., 1], safe[..., 2])
    total = 0.0
    for j in range(NUM_CELLS):
        total = total + correct[..., j] * log_probs.correct[j] + wrong[..., j] * log_probs.wrong[j]
    return xp.where(inside, total, -xp.inf)


def _log_binomials(correct: Array, wrong: Array) -> Array:
    return log_gamma_of(correct + wrong + 1.0) - log_gamma_of(correct + 1.0) - log_gamma_of(wrong + 1.0)
