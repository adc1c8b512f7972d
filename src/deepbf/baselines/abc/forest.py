"""ABC by random forests: one forest chooses the model, a second says how probable the chosen one is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from deepbf import _checks
from deepbf.baselines.abc.acceptance import HALF_A_DRAW, half_sampling_error
from deepbf.baselines.abc.distance import Summary, feature_scale
from deepbf.baselines.abc.nearest import read_table
from deepbf.baselines.abc.reference import Comparison, compare, name_ranks
from deepbf.baselines.baseline_result import BaselineResult
from deepbf.models.model import Model

# scikit-learn's trees compare in single precision, whose largest number is 3e38.
_LARGEST_VALUE = 1e38
# Fewer draws of a model leave nothing to learn from in half a table.
_FEWEST_DRAWS = 10


def abc_forest(
    models: Sequence[Model],
    observed: ArrayLike,
    *,
    num_simulations: int = 10_000,
    num_trees: int = 500,
    leaf_size: int | None = None,
    num_splits: int = 4,
    summary: Summary | None = None,
    prior_probs: ArrayLike | None = None,
    reference: Sequence[ArrayLike] | None = None,
    seed: int = 0,
) -> BaselineResult:
    """Return the model that a random forest chooses, and its evidence from a second forest's posterior probability.

    The first forest classifies the reference draws by model; the majority of its trees chooses the model at the
    observed data. The second regresses, on the same summaries, whether the first one was wrong out of bag, that is by
    the majority of the trees that were grown without the draw: one minus its value at the observed data estimates the
    posterior probability of the chosen model (Pudlo et al., 2016). Shares of votes are no posterior probabilities, and
    stand only in the diagnostics.

    With two models the probability of the chosen one gives the log Bayes factor, after the prior odds of the reference
    are divided out. With more, the method says nothing about the others: their log evidence is nan, and so are the log
    Bayes factor and its error; ``chosen_prob`` still answers.

    The error rate e at the observed data becomes (N e + 1/2) / (N + 1), N the number of draws, so that no log odds are
    infinite. The table of all summaries is held in memory. A forest does not see how far away data are: beyond the
    simulations its answer is that of their edge.

    Parameters
    ----------
    models
        Two or more models.
    observed
        One data set, or many along a leading axis; all share the same forests.
    num_simulations
        Reference draws of all models together; with `reference`, its arrays decide.
    num_trees
        Trees in each forest.
    leaf_size
        Draws that a leaf holds at least, in both forests; by default half the root of the number of draws. The usual
        sizes, 1 and 5, follow single draws where there are few summaries: with one summary and 4,000 draws, log Bayes
        factors of five data sets were off by up to 3 in one run, and by up to 0.4 with the default.
    num_splits
        Cuts of the table into random halves, on which both forests are grown again for the standard error; each costs
        about as much as the answer itself.
    summary
        Maps data sets along a leading axis to numbers along the same axis; None takes the data themselves. Draws whose
        summary is nan are left out, and counted.
    prior_probs
        In what proportion the models are simulated, rounded by largest remainder. Bayes factors have it divided out.
    reference
        One array of data sets per model, instead of simulating.
    seed
        The same seed gives the same draws and forests. Swapping two models flips the sign exactly.

    Returns
    -------
    Log evidence up to a constant, and the standard error by half-sampling. Diagnostics: ``chosen`` (position of the
    chosen model), ``chosen_prob`` (its posterior probability under the reference's prior odds), ``chosen_prob_error``,
    ``vote_shares`` (data sets, K), ``num_draws`` of each model, ``num_undefined`` draws without a summary, ``bound``
    where the error rate was 0 or 1, ``out_of_bag_error`` of the first forest over the whole table.

    Examples
    --------
    >>> from deepbf.example import counts_example
    >>> models = counts_example(num_obs=2).models
    >>> result = abc_forest(models, [0, 9], num_simulations=1_000, num_trees=20, num_splits=1)
    >>> models[int(result.diagnostics["chosen"][0])].name
    'negative binomial'
    """
    num_trees = _checks.check_count("num_trees", num_trees)
    num_splits = _checks.check_count("num_splits", num_splits)
    leaf_size = None if leaf_size is None else _checks.check_count("leaf_size", leaf_size)
    comparison = compare(
        models,
        observed,
        num_simulations=num_simulations,
        summary=summary,
        prior_probs=prior_probs,
        reference=reference,
        seed=seed,
    )
    table = read_table(comparison)
    num_models = len(comparison.model_set)
    for name, count in zip(comparison.model_set.names, np.bincount(table.labels, minlength=num_models), strict=True):
        if count < _FEWEST_DRAWS:
            raise ValueError(
                f"a forest needs at least {_FEWEST_DRAWS} draws of every model with a finite summary; model {name!r} "
                f"has {count}. Raise num_simulations, or pass a larger reference."
            )
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(num_models + 1,)))
    points, target = _moderate(table.points, comparison), _moderate(comparison.observed, comparison)
    growth = _Growth(
        name_ranks(comparison.model_set.names), num_trees, leaf_size or math.ceil(math.sqrt(len(points)) / 2)
    )
    whole = _grow(growth, points, table.labels, target, rng)

    def on_half(rows: NDArray[np.intp]) -> NDArray[np.float64]:
        half = _grow(growth, points[rows], table.labels[rows], target, rng)
        return np.stack([half.log_evidence[:, 0] - half.log_evidence[:, 1], 1 - half.adjusted_error])

    log_bf_error, chosen_prob_error = half_sampling_error(on_half, len(table.labels), num_splits, rng)
    return _result(comparison, table.num_undefined, whole, log_bf_error, chosen_prob_error)


class _Growth(NamedTuple):
    """What all forests of one call share; `ranks` is the order of the models by name, in which forests see them."""

    ranks: NDArray[np.intp]
    num_trees: int
    leaf_size: int


class _Forests(NamedTuple):
    """What both forests say at the observed data: one entry or row per data set."""

    votes: NDArray[np.float64]
    chosen: NDArray[np.intp]
    error_rate: NDArray[np.float64]
    out_of_bag_error: float
    counts: NDArray[np.int64]

    @property
    def adjusted_error(self) -> NDArray[np.float64]:
        """The error rate with half a draw wrong and half a draw right added."""
        num_draws = self.counts.sum()
        return (num_draws * self.error_rate + HALF_A_DRAW) / (num_draws + 2 * HALF_A_DRAW)

    @property
    def log_evidence(self) -> NDArray[np.float64]:
        """The log evidence of the chosen model, and of the other one if there are only two; nan for the rest."""
        rows, chosen = np.arange(len(self.votes)), self.chosen
        log_posterior = np.full(self.votes.shape, np.nan)
        log_posterior[rows, chosen] = np.log1p(-self.adjusted_error)
        if self.votes.shape[1] == 2:
            log_posterior[rows, 1 - chosen] = np.log(self.adjusted_error)
        # A half of the table may lack a model altogether.
        return log_posterior - np.log(np.maximum(self.counts, HALF_A_DRAW))


def _grow(
    growth: _Growth,
    points: NDArray[np.float64],
    labels: NDArray[np.int16],
    observed: NDArray[np.float64],
    rng: np.random.Generator,
) -> _Forests:
    """Return both stages' answers at `observed`, trained on these draws."""
    seeds = rng.integers(0, 2**31, 2)
    named = growth.ranks[labels]
    num_models = len(growth.ranks)
    classifier = RandomForestClassifier(
        growth.num_trees, min_samples_leaf=growth.leaf_size, n_jobs=-1, random_state=int(seeds[0])
    )
    classifier.fit(points, named)
    # One rule for both: the majority of the trees asked, and among equals the first model by name.
    left_out = [np.delete(np.arange(len(points)), in_bag) for in_bag in classifier.estimators_samples_]
    out_of_bag = _count_votes(classifier, points, left_out, num_models)
    judged = out_of_bag.any(axis=1)
    wrong = out_of_bag[judged].argmax(axis=1) != named[judged]
    everything = [np.arange(len(observed))] * growth.num_trees
    votes = _count_votes(classifier, observed, everything, num_models)
    regressor = RandomForestRegressor(
        growth.num_trees,
        min_samples_leaf=growth.leaf_size,
        max_features=1 / 3,
        n_jobs=-1,
        random_state=int(seeds[1]),
    )
    regressor.fit(points[judged], wrong.astype(np.float64))
    # Threads would add up the trees in an order of their own, and change the last bits from run to run.
    regressor.set_params(n_jobs=1)
    return _Forests(
        votes[:, growth.ranks] / growth.num_trees,
        np.argsort(growth.ranks)[votes.argmax(axis=1)],
        np.clip(regressor.predict(observed), 0.0, 1.0),
        float(wrong.mean()),
        np.bincount(labels, minlength=num_models),
    )


def _count_votes(
    classifier: RandomForestClassifier,
    points: NDArray[np.float64],
    asked: Sequence[NDArray[np.intp]],
    num_models: int,
) -> NDArray[np.float64]:
    """Return how many trees vote for each model, shape (points, K); tree t is asked about the points `asked[t]`."""
    votes = np.zeros((len(points), num_models))
    for tree, rows in zip(classifier.estimators_, asked, strict=True):
        if len(rows):
            # A tree answers with the position of a class, not with the class.
            votes[rows, classifier.classes_[tree.predict(points[rows]).astype(np.intp)]] += 1
    return votes


def _moderate(points: NDArray[np.float64], comparison: Comparison) -> NDArray[np.float64]:
    """Return the points centred and scaled by the first draws, so that single precision keeps their differences.

    Trees do not mind: only the order along each feature matters to them.
    """
    scale = feature_scale(comparison.first.values)
    return np.clip((points - comparison.distance.centre) / scale, -_LARGEST_VALUE, _LARGEST_VALUE)


def _result(
    comparison: Comparison,
    num_undefined: int,
    whole: _Forests,
    log_bf_error: NDArray[np.float64],
    chosen_prob_error: NDArray[np.float64],
) -> BaselineResult:
    num_models = whole.votes.shape[1]
    bound = (whole.error_rate == 0) | (whole.error_rate == 1)
    # With half a draw as all that is known, the log odds are known to about their own delta-method error.
    at_least = np.where(bound, np.sqrt(1 / HALF_A_DRAW), 0.0)
    warnings = []
    if bound.any():
        warnings.append(
            f"the local error rate is 0 or 1 for {bound.sum()} of {len(bound)} data sets: their log evidence is a "
            "bound that half a draw sets. Simulate more."
        )
    if num_models > 2:
        warnings.append(
            f"forests give the posterior probability of the chosen model alone; with {num_models} models the log "
            "evidence of the others is nan. Read chosen, chosen_prob and vote_shares in the diagnostics."
        )
    return comparison.result(
        f"ABC, random forests on {comparison.total} draws",
        whole.log_evidence,
        np.where(np.isnan(log_bf_error), np.nan, np.maximum(log_bf_error, at_least)),
        num_undefined=num_undefined,
        diagnostics={
            "chosen": whole.chosen,
            "chosen_prob": 1 - whole.adjusted_error,
            "chosen_prob_error": chosen_prob_error,
            "vote_shares": whole.votes,
            "bound": bound,
            "out_of_bag_error": np.full(len(bound), whole.out_of_bag_error),
        },
        warnings=warnings,
    )
