"""The weapon identification study: process dissociation against Stroop, as sums over people or person by person.

People name a target, tool or gun, after a prime, white, black or neutral; 36 trials in each of the six cells. *Deep
Bayes Factors* (Kim and Rockova) compares two processing trees on the answers of 42 people.

A tree gives the probability of a correct answer in six prime-target cells from three parameters, columns of an array of
shape (size, 3): A (the prime's automatic effect), B (a guess of "tool") and C (control). In process dissociation (PD)
control comes first and the prime acts where control fails; in the Stroop tree the prime comes first.

Data are counts. "Sum": twelve numbers, the correct answers of the six cells, then the wrong ones. "Full": one row for
each person, six numbers of correct answers. Functions are functions of a module, so that models built from them pickle.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.baselines.integration import log_integral
from deepbf.baselines.mode_search import NUM_SEARCH_DRAWS, prepare_search
from deepbf.models import Model
from deepbf_studies.problems.study import Array, OfSize, Study, library_of, log_gamma_of

Floats = NDArray[np.float64]

NUM_PEOPLE = 42
NUM_TRIALS = 36
_RELATIVE_ERROR = 1e-6

TREES = {"process dissociation": "pd", "Stroop": "stroop"}

CELLS = ("white tool", "white gun", "black tool", "black gun", "neutral tool", "neutral gun")
NUM_CELLS = len(CELLS)
NUM_PARAMS = 3


def weapon_sum_study(name: str, num_obs: int) -> Study:
    """Return the study of counts summed over `num_obs` people: twelve numbers, correct answers first, then wrong.

    Both trees integrate over a cube of three parameters, so the exact answer is by quadrature.
    """
    num_trials = num_obs * NUM_TRIALS
    return Study(
        name=name,
        title=f"Weapon identification: process dissociation or Stroop, counts summed over {num_obs} people",
        num_obs=num_obs,
        models=sum_models(num_trials),
        structure="vector",
        exact_log_bf=partial(_sum_log_bf, num_trials=num_trials),
    )


def weapon_full_study(name: str, num_obs: int) -> Study:
    """Return the study of `num_obs` people, each with six counts of correct answers.

    People share their parameters, so the exact answer is that of the sums over them.
    """
    models = tuple(
        Model(
            words,
            prior=_uniform_prior,
            simulator=OfSize(partial(simulate_full, tree=tree, num_trials=NUM_TRIALS), num_obs),
            log_prior=_log_uniform_prior,
            log_likelihood=partial(_log_likelihood_full, tree=tree, num_trials=NUM_TRIALS),
            transform="unit",
        )
        for words, tree in TREES.items()
    )
    return Study(
        name=name,
        title=f"Weapon identification: process dissociation or Stroop, {num_obs} people one by one",
        num_obs=num_obs,
        models=models,
        structure="exchangeable",
        exact_log_bf=partial(_full_log_bf, num_people=num_obs),
    )


def _sum_log_bf(data: ArrayLike, *, num_trials: int) -> Floats:
    """Return the log Bayes factor of process dissociation over Stroop by integration, for each data set.

    `data` has shape (num_datasets, 12): correct and then wrong counts of the six cells, `num_trials` trials per cell.
    Same as `deepbf.baselines.integration.integrate` on the study's models, several times faster.
    """
    counts = _check_counts(data, (2 * NUM_CELLS,), num_trials)
    correct, wrong = counts[:, :NUM_CELLS], counts[:, NUM_CELLS:]
    uneven = correct + wrong != num_trials
    if uneven.any():
        row, cell = np.argwhere(uneven)[0]
        raise ValueError(
            f"data must have {num_trials} answers per cell, correct and wrong together; data set {row} has "
            f"{correct[row, cell]:g} and {wrong[row, cell]:g} in the cell {CELLS[cell]!r}. "
            "Put the six correct counts first, then the six wrong ones."
        )
    first, second = (_tree_log_integrals(counts, tree) for tree in TREES.values())
    return first - second


def _tree_log_integrals(counts: Floats, tree: str) -> Floats:
    """Return the log evidence of each data set, binomial coefficients aside, on a located grid."""
    draws = _uniform_prior(np.random.default_rng(0), NUM_SEARCH_DRAWS)
    search = prepare_search(draws, np.zeros(NUM_PARAMS), np.ones(NUM_PARAMS))
    return np.array(
        [
            log_integral(TreeDensity(tree, row), search, relative_error=_RELATIVE_ERROR, route="grid").log_value
            for row in counts
        ]
    )


def _full_log_bf(data: ArrayLike, *, num_people: int) -> Floats:
    """Return the log Bayes factor of process dissociation over Stroop by integration, for each data set.

    `data` has shape (num_datasets, num_people, 6). People share their parameters, so the sums over people hold all the
    evidence: the binomial coefficients, in which "full" differs from "sum", are the same under both models.
    """
    counts = _check_counts(data, (num_people, NUM_CELLS), NUM_TRIALS)
    sums = sum_over_people(counts, num_trials=NUM_TRIALS)
    return _sum_log_bf(sums, num_trials=num_people * NUM_TRIALS)


def sum_models(num_trials: int) -> tuple[Model, ...]:
    """Return both trees for counts summed over people, `num_trials` trials per cell in all."""
    return tuple(
        Model(
            words,
            prior=_uniform_prior,
            simulator=partial(simulate_sum, tree=tree, num_trials=num_trials),
            log_prior=_log_uniform_prior,
            log_likelihood=partial(_log_likelihood_sum, tree=tree),
            transform="unit",
        )
        for words, tree in TREES.items()
    )


def _check_counts(data: ArrayLike, shape: tuple[int, ...], most: int) -> Floats:
    counts = _checks.check_numeric_array("data", data)
    if counts.shape[1:] != shape or counts.ndim == 0:
        raise ValueError(
            f"data must have shape (num_datasets, {', '.join(str(n) for n in shape)}); received shape {counts.shape}. "
            "Pass data[None] for a single data set."
        )
    counts = counts.astype(np.float64)
    valid = (counts >= 0) & (counts <= most) & (counts == np.floor(counts))
    if not valid.all():
        raise ValueError(
            f"data must be whole counts from 0 to {most}; received {counts[~valid][0]:g}. Check the number of trials."
        )
    return counts


# The trees.


class LogProbs(NamedTuple):
    """Log probabilities of a correct and of a wrong answer, one array for each cell; the arrays broadcast."""

    correct: tuple[Array, ...]
    wrong: tuple[Array, ...]


def _uniform_prior(rng: np.random.Generator, size: int) -> Floats:
    """Return `size` draws of A, B and C, independent and uniform, shape (size, 3)."""
    return rng.random((size, NUM_PARAMS))


def _log_uniform_prior(params: Array) -> Array:
    """Return 0 inside the open unit cube and -inf outside; `params` has shape (..., 3)."""
    xp, params = library_of(params)
    inside = ((params > 0) & (params < 1)).all(axis=-1)
    return xp.where(inside, 0.0, -xp.inf)


def _log_probs_pd(a: Array, b: Array, c: Array) -> LogProbs:
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


def _log_probs_stroop(a: Array, b: Array, c: Array) -> LogProbs:
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


LOG_PROBS = {"pd": _log_probs_pd, "stroop": _log_probs_stroop}


def correct_probs(params: Floats, *, tree: str) -> Floats:
    """Return the probability of a correct answer in each cell, shape (..., 6), from parameters of shape (..., 3).

    Examples
    --------
    >>> correct_probs(np.array([0.5, 0.25, 0.2]), tree="stroop").round(3)
    array([0.7, 0.4, 0.2, 0.9, 0.4, 0.8])
    """
    with np.errstate(divide="ignore"):
        log_correct = LOG_PROBS[tree](params[..., 0], params[..., 1], params[..., 2]).correct
    # Rounding may end just above 1, which binomial samplers refuse.
    return np.minimum(np.exp(np.stack(log_correct, axis=-1)), 1.0)


def simulate_sum(rng: np.random.Generator, params: Floats, *, tree: str, num_trials: int) -> NDArray[np.int64]:
    """Return correct and then wrong counts of the six cells over `num_trials` trials each, shape (size, 12)."""
    correct = rng.binomial(num_trials, correct_probs(params, tree=tree))
    return np.concatenate([correct, num_trials - correct], axis=-1)


def simulate_full(
    rng: np.random.Generator, params: Floats, *, tree: str, num_obs: int, num_trials: int
) -> NDArray[np.int64]:
    """Return correct counts of `num_obs` people over `num_trials` trials per cell, shape (size, num_obs, 6)."""
    probs = correct_probs(params, tree=tree)
    return rng.binomial(num_trials, probs[:, None, :], (len(params), num_obs, NUM_CELLS))


def _log_likelihood_sum(params: Array, data: Array, *, tree: str) -> Array:
    """Return the log probability of counts summed over people.

    `params` has shape (..., 3) and `data` (..., 12); their leading axes broadcast. Either may be a JAX array.
    """
    _, data = library_of(data)
    correct, wrong = data[..., :NUM_CELLS], data[..., NUM_CELLS:]
    return _log_counts(params, correct, wrong, tree=tree) + _log_binomials(correct, wrong).sum(axis=-1)


def _log_likelihood_full(params: Array, data: Array, *, tree: str, num_trials: int) -> Array:
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

    def __init__(self, tree: str, counts: Floats) -> None:
        self.tree, self.correct, self.wrong = tree, counts[:NUM_CELLS], counts[NUM_CELLS:]

    def __call__(self, points: Floats) -> Floats:
        """Return the log density at each row of A, B, C."""
        inside = np.all((points > 0) & (points < 1), axis=-1, keepdims=True)
        safe = np.where(inside, points, 0.5)
        return np.where(inside[..., 0], self._log_counts(*safe.T), -np.inf)

    def on_grid(self, axes: Floats) -> Floats:
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
    """Return the twelve counts of "sum", shape (..., 12), from one row for each person, shape (..., num_people, 6).

    Examples
    --------
    >>> sum_over_people([[36, 30, 20, 35, 30, 31], [30, 30, 30, 30, 30, 30]], num_trials=36)
    array([66., 60., 50., 65., 60., 61.,  6., 12., 22.,  7., 12., 11.])
    """
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
