"""The weapon identification study: process dissociation against Stroop, as sums over people or person by person.

People name a target, tool or gun, after a prime, white, black or neutral; 36 trials in each of the six cells. *Deep
Bayes Factors* (Kim and Rockova) compares two processing trees on the answers of 42 people. The trees themselves are in
`deepbf_studies.problems.weapon_trees`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.baselines.integration import log_integral
from deepbf.baselines.mode_search import NUM_SEARCH_DRAWS, prepare_search
from deepbf.models import Model
from deepbf_studies.problems import weapon_trees as trees
from deepbf_studies.problems.study import Study
from deepbf_studies.problems.toy_simulators import OfSize

NUM_PEOPLE = 42
NUM_TRIALS = 36
_RELATIVE_ERROR = 1e-6

TREES = {"process dissociation": "pd", "Stroop": "stroop"}


def weapon_sum_study(name: str, num_obs: int) -> Study:
    """Return the study of counts summed over `num_obs` people: twelve numbers, correct answers first, then wrong."""
    num_trials = num_obs * NUM_TRIALS
    return Study(
        name=name,
        title=f"Weapon identification: process dissociation or Stroop, counts summed over {num_obs} people",
        num_obs=num_obs,
        models=sum_models(num_trials),
        structure="vector",
        exact_log_bf=partial(sum_log_bf, num_trials=num_trials),
    )


def weapon_full_study(name: str, num_obs: int) -> Study:
    """Return the study of `num_obs` people, each with six counts of correct answers."""
    models = tuple(
        Model(
            words,
            prior=trees.uniform_prior,
            simulator=OfSize(partial(trees.simulate_full, tree=tree, num_trials=NUM_TRIALS), num_obs),
            log_prior=trees.log_uniform_prior,
            log_likelihood=partial(trees.log_likelihood_full, tree=tree, num_trials=NUM_TRIALS),
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
        exact_log_bf=partial(full_log_bf, num_people=num_obs),
    )


def sum_log_bf(data: ArrayLike, *, num_trials: int) -> NDArray[np.float64]:
    """Return the log Bayes factor of process dissociation over Stroop by integration, one entry a data set.

    `data` has shape (num_datasets, 12): correct and then wrong counts of the six cells, `num_trials` trials a cell.
    Same as `deepbf.baselines.integration.integrate` on the study's models, several times faster.
    """
    counts = _check_counts(data, (2 * trees.NUM_CELLS,), num_trials)
    correct, wrong = counts[:, : trees.NUM_CELLS], counts[:, trees.NUM_CELLS :]
    uneven = correct + wrong != num_trials
    if uneven.any():
        row, cell = np.argwhere(uneven)[0]
        raise ValueError(
            f"data must have {num_trials} answers a cell, correct and wrong together; data set {row} has "
            f"{correct[row, cell]:g} and {wrong[row, cell]:g} in the cell {trees.CELLS[cell]!r}. "
            "Put the six correct counts first, then the six wrong ones."
        )
    first, second = (_tree_log_integrals(counts, tree) for tree in TREES.values())
    return first - second


def _tree_log_integrals(counts: NDArray[np.float64], tree: str) -> NDArray[np.float64]:
    """Return the log evidence of each data set, binomial coefficients aside, on a located grid."""
    draws = trees.uniform_prior(np.random.default_rng(0), NUM_SEARCH_DRAWS)
    search = prepare_search(draws, np.zeros(trees.NUM_PARAMS), np.ones(trees.NUM_PARAMS))
    return np.array(
        [
            log_integral(trees.TreeDensity(tree, row), search, relative_error=_RELATIVE_ERROR, route="grid").log_value
            for row in counts
        ]
    )


def full_log_bf(data: ArrayLike, *, num_people: int) -> NDArray[np.float64]:
    """Return the log Bayes factor of process dissociation over Stroop by integration, one entry a data set.

    `data` has shape (num_datasets, num_people, 6). People share their parameters, so the sums over people hold all the
    evidence: the binomial coefficients, in which "full" differs from "sum", are the same under both models.
    """
    counts = _check_counts(data, (num_people, trees.NUM_CELLS), NUM_TRIALS)
    sums = trees.sum_over_people(counts, num_trials=NUM_TRIALS)
    return sum_log_bf(sums, num_trials=num_people * NUM_TRIALS)


def sum_models(num_trials: int) -> tuple[Model, ...]:
    """Return both trees for counts summed over people, `num_trials` trials a cell in all."""
    return tuple(
        Model(
            words,
            prior=trees.uniform_prior,
            simulator=partial(trees.simulate_sum, tree=tree, num_trials=num_trials),
            log_prior=trees.log_uniform_prior,
            log_likelihood=partial(trees.log_likelihood_sum, tree=tree),
            transform="unit",
        )
        for words, tree in TREES.items()
    )


def _check_counts(data: ArrayLike, shape: tuple[int, ...], most: int) -> NDArray[np.float64]:
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
