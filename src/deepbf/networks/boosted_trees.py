"""Boosted trees, grown by scikit-learn and kept as arrays: for few simulations, and differences that are not smooth."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from deepbf.networks.base import AbstractNetwork, InputLayout

# Every tree is stored as a complete one of this depth: 63 questions, 64 leaves.
DEPTH = 6
NUM_QUESTIONS = 2**DEPTH - 1
NUM_LEAVES = 2**DEPTH
MOST_ROUNDS = 200
LEARNING_RATE = 0.1
# On six problems with 500 to 20,000 rows, one seed each, the excess loss with 8 leaves was that with 31 or less, up to
# 1%, in all cases but two: 3% and 7% more. Mostly they were faster too.
MOST_LEAVES_USED = 8
LEAF_RIDGE = 1.0
# A leaf needs at least this share of the rows, within bounds.
LEAF_SHARE = 0.005
FEWEST_IN_LEAF, MOST_IN_LEAF = 5, 40
# The number of rounds is where the mean log loss of this many splits is lowest, on rows left out.
NUM_SPLITS = 4
VALIDATION_SHARE = 0.2
# From this many rows on, one split says enough.
MANY_ROWS = 4_000
# Growing ends so many rounds after the loss was lowest.
PATIENCE = 20


class BoostedTrees(AbstractNetwork):
    """Log odds that are sums of the leaves of boosted trees, as many as rows left out of the fit call for.

    Trees find thresholds and interactions in columns of any scale. Between the thresholds, and beyond all simulated
    data, their sum is constant: it never says more about a data set than about the outermost simulations, however far
    away that is. So it is a part of an ensemble with smoother members, rather than one to ask alone.

    A new one has trees of zeros: log odds of 0 everywhere. `fit` returns one that was fitted.

    Parameters
    ----------
    feature, threshold
        Shape (rounds, trees in a round, questions): the answer to a question is whether that column exceeds the
        threshold. After question q comes 2 q + 1 if it does not, and 2 q + 2 if it does. Thresholds of infinity fill
        the places below leaves that were reached early.
    leaf
        Shape (rounds, trees in a round, leaves).
    baseline
        One number for each tree in a round, where the sum starts. Two models share one tree in a round.
    """

    feature: jax.Array
    threshold: jax.Array
    leaf: jax.Array
    baseline: jax.Array

    def __init__(self, layout: InputLayout, num_models: int, *, key: jax.Array | None = None) -> None:
        del layout, key
        num_trees = 1 if num_models == 2 else num_models
        self.feature = jnp.zeros((MOST_ROUNDS, num_trees, NUM_QUESTIONS), jnp.int32)
        self.threshold = jnp.full((MOST_ROUNDS, num_trees, NUM_QUESTIONS), jnp.inf, jnp.float32)
        self.leaf = jnp.zeros((MOST_ROUNDS, num_trees, NUM_LEAVES))
        self.baseline = jnp.zeros(num_trees)

    @classmethod
    def choose(cls, rows: NDArray[np.float32], labels: NDArray[np.integer], num_models: int, seed: int) -> int:
        """Return the number of rounds after which the log loss on rows left out is lowest; 0 if trees are no help."""
        del num_models
        with threadpool_limits(1):
            return _choose_num_rounds(np.asarray(rows, np.float32), labels, seed)

    @classmethod
    def fit(
        cls,
        rows: NDArray[np.float32],
        labels: NDArray[np.integer],
        num_models: int,
        seed: int,
        choice: int | None = None,
    ) -> BoostedTrees:
        """Return trees grown on rows of shape (simulations, width) and the models that they came from.

        Every model, 0 to `num_models` - 1, must be among the labels several times. How often each appears is divided
        out: log odds are log evidence ratios, up to the trees' error. A `choice` of the number of rounds that was made
        before saves most of the time.
        """
        blank = cls(InputLayout(rows.shape[1], rows.shape[1]), num_models)
        # The network is asked in float32: trees grown on other values would answer otherwise on their thresholds.
        rows = np.asarray(rows, np.float32)
        # On busy cores, threads that wait for each other cost far more than they save.
        with threadpool_limits(1):
            num_rounds = _choose_num_rounds(rows, labels, seed) if choice is None else choice
            if num_rounds == 0:
                return blank
            grown = _booster(len(labels), seed, num_rounds, early_stopping=False).fit(rows, labels)
        return blank.filled_from(grown, np.bincount(labels, minlength=num_models) / len(labels))

    def filled_from(self, grown: HistGradientBoostingClassifier, shares: NDArray[np.float64]) -> BoostedTrees:
        """Return scikit-learn's trees as arrays, with the log odds of the models' `shares` among the rows taken out."""
        feature, threshold, leaf = (np.array(part) for part in (self.feature, self.threshold, self.leaf))
        for in_round, trees in enumerate(grown._predictors):
            for number, tree in enumerate(trees):
                place = (in_round, number)
                _fill_tree(tree.nodes, feature[place], threshold[place], leaf[place])
        log_shares = np.log(shares)
        # Of two models, scikit-learn has the log odds of the second against the first; of more, one number each.
        baseline = np.ravel(grown._baseline_prediction) - (
            log_shares[1:] - log_shares[0] if len(shares) == 2 else log_shares
        )
        arrays = (feature, threshold, leaf, baseline.astype(np.float32))
        return eqx.tree_at(
            lambda one: (one.feature, one.threshold, one.leaf, one.baseline),
            self,
            tuple(jnp.asarray(array) for array in arrays),
        )

    def __call__(self, inputs: jax.Array) -> jax.Array:
        num_trees = self.baseline.shape[0]
        tree = jnp.arange(MOST_ROUNDS * num_trees)
        feature, threshold = self.feature.reshape(-1), self.threshold.reshape(-1)
        question = jnp.zeros((inputs.shape[0], tree.size), jnp.int32)
        for _ in range(DEPTH):
            place = tree * NUM_QUESTIONS + question
            value = jnp.take_along_axis(inputs, feature[place], axis=1)
            question = 2 * question + 1 + (value > threshold[place])
        leaves = self.leaf.reshape(-1)[tree * NUM_LEAVES + question - NUM_QUESTIONS]
        scores = self.baseline + leaves.reshape(-1, MOST_ROUNDS, num_trees).sum(axis=1)
        return -scores if num_trees == 1 else scores[:, :-1] - scores[:, -1:]


def _booster(num_rows: int, seed: int, num_rounds: int, *, early_stopping: Any) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        learning_rate=LEARNING_RATE,
        max_iter=num_rounds,
        max_leaf_nodes=MOST_LEAVES_USED,
        max_depth=DEPTH,
        min_samples_leaf=int(np.clip(LEAF_SHARE * num_rows, FEWEST_IN_LEAF, MOST_IN_LEAF)),
        l2_regularization=LEAF_RIDGE,
        early_stopping=early_stopping,
        validation_fraction=VALIDATION_SHARE,
        n_iter_no_change=PATIENCE,
        random_state=seed,
    )


def _choose_num_rounds(rows: NDArray[np.float32], labels: NDArray[np.integer], seed: int) -> int:
    """Return the number of rounds after which the mean log loss on rows left out is lowest; 0 if trees are no help."""
    losses = []
    for split_seed in np.random.SeedSequence(seed).generate_state(NUM_SPLITS if len(labels) < MANY_ROWS else 1):
        grown = _booster(len(labels), int(split_seed), MOST_ROUNDS, early_stopping=True).fit(rows, labels)
        losses.append(-np.asarray(grown.validation_score_))
    # A split that ended early would only have become worse.
    longest = max(len(loss) for loss in losses)
    padded = [np.pad(loss, (0, longest - len(loss)), mode="edge") for loss in losses]
    return int(np.argmin(np.mean(padded, axis=0)))


def _fill_tree(
    nodes: NDArray[np.void], feature: NDArray[np.int32], threshold: NDArray[np.float32], leaf: NDArray[np.float32]
) -> None:
    """Write one of scikit-learn's trees, a table of nodes, into the arrays of a complete tree."""
    places = [(0, 0, 0)]
    while places:
        number, question, depth = places.pop()
        node = nodes[number]
        if node["is_leaf"]:
            # Thresholds of infinity lead from here to the leftmost leaf below.
            leaf[(question + 1) * 2 ** (DEPTH - depth) - 1 - NUM_QUESTIONS] = node["value"]
            continue
        feature[question] = node["feature_idx"]
        rounded = np.float32(node["num_threshold"])
        # Rounded down, it parts float32 values exactly as the threshold in float64 does.
        threshold[question] = (
            rounded if rounded <= node["num_threshold"] else np.nextafter(rounded, np.float32(-np.inf))
        )
        places += [(node["left"], 2 * question + 1, depth + 1), (node["right"], 2 * question + 2, depth + 1)]
