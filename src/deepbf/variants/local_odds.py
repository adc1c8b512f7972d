"""Evidence near the observed data: a ridge logistic regression among the simulations that came near, and its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from deepbf.answer import write_odds
from deepbf.evaluation.tail_areas import binomial_interval
from deepbf.variants.screening import Near

# Weight of the likelihood against a unit ridge on standardised features, and how much longer the leading ones are made,
# for they alone nearly tell the models apart. Among the members, which nearly agree, the ridge holds the differences,
# and leaves what they share alone. Measured on Data 1 (i): docs/tailoring.md.
INVERSE_RIDGE = 0.3
LEADING_WEIGHT = 5.0
# How long the other features may be made: cross-validation decides, for of few simulations they learn noise.
OTHER_WEIGHTS = (1.0, 0.1, 0.01)
NUM_FOLDS = 3
MAX_ITERATIONS = 1000
# Fits on random halves, for the error.
NUM_HALVES = 16
# Below this no line through the log odds can be told.
FEWEST_NEAR = 30
# Simulations against their own model at least as strongly as the observed data are, for its digits to rest on them.
FEWEST_BEYOND = 10


class LocalOdds(NamedTuple):
    """Log evidences of some models at the observed data, by a classifier among the simulations near it.

    Parameters
    ----------
    log_evidence
        Shape (models,), up to a constant.
    halves
        Shape (halves, models): log evidences by fits on random halves of the simulations, each with the acceptance
        rates of all. Their spread is the classifier's error alone.
    simulated
        For each model, the log evidences at its own simulations, shape (simulations, models).
    """

    log_evidence: NDArray[np.float64]
    halves: NDArray[np.float64]
    simulated: list[NDArray[np.float64]]

    @classmethod
    def fit(
        cls,
        near: Sequence[NDArray[np.float64]],
        num_screened: Sequence[int],
        observed: NDArray[np.float64],
        num_leading: int,
        rng: np.random.Generator,
    ) -> LocalOdds:
        """Return the models' log evidences, from the features of the simulations of each that came near.

        The first `num_leading` features are trusted most. Cross-validation decides how much the others count.

        Given acceptance, the classifier's log odds hold the counts as prior odds. Taking those out and multiplying by
        the acceptance rates leaves the number screened alone::

            log odds - log(a_1 / a_2) + log(a_1 / n_1) - log(a_2 / n_2) = log odds - log(n_1 / n_2)
        """
        log_screened = np.log(np.asarray(num_screened, np.float64))
        is_leading = np.arange(near[0].shape[1]) < num_leading
        tried = [np.where(is_leading, LEADING_WEIGHT, other) for other in OTHER_WEIGHTS]
        # The matrices are small: on busy cores, threads that wait for each other cost far more than they save.
        with threadpool_limits(1):
            # The weights under which simulations left out are told apart best.
            told_apart = [
                cross_val_score(
                    _classifier(weights), *_stacked(near), scoring="neg_log_loss", cv=StratifiedKFold(NUM_FOLDS)
                ).mean()
                for weights in tried
            ]
            whole = _fit(near, tried[int(np.argmax(told_apart))])
            at_observed = _scores(whole, observed[None])[0] - log_screened
            simulated = [_scores(whole, features) - log_screened for features in near]
            log_counts = np.log([len(features) for features in near])
            halves = []
            for _ in range(NUM_HALVES):
                some = [features[rng.permutation(len(features))[: (len(features) + 1) // 2]] for features in near]
                log_halved = np.log([len(features) for features in some])
                # With every feature at full length: what was left out for want of simulations is uncertain all the
                # same.
                halves.append(_scores(_fit(some, tried[0]), observed[None])[0] - log_halved + log_counts - log_screened)
        return cls(at_observed, np.stack(halves), simulated)


@dataclass(frozen=True)
class NearEvidence:
    """What the simulations near the observed data say: counts of all models, and log evidences of some.

    Parameters
    ----------
    num_near, num_screened
        For each model, how many of its simulations came near, and of how many; shape (models,).
    num_undefined
        How many simulations of all models have no finite summary.
    known
        The models that came near often enough to train on, by number.
    local
        Log evidences of the known models, in the order of `known`; None if fewer than two are known.
    """

    num_near: NDArray[np.int64]
    num_screened: NDArray[np.int64]
    num_undefined: int
    known: NDArray[np.int64]
    local: LocalOdds | None

    @classmethod
    def of(
        cls, near: Sequence[Near], observed: NDArray[np.float64], num_leading: int, rng: np.random.Generator
    ) -> NearEvidence:
        """Return what the simulations of each model that came near say, given the features of the observed data."""
        num_near = np.array([len(of_model.features) for of_model in near])
        known = np.flatnonzero(num_near >= FEWEST_NEAR)
        local = None
        if len(known) > 1:
            chosen = [near[k] for k in known.tolist()]
            features, screened = [one.features for one in chosen], [one.num_screened for one in chosen]
            local = LocalOdds.fit(features, screened, observed, num_leading, rng)
        num_screened = np.array([of_model.num_screened for of_model in near])
        return cls(num_near, num_screened, sum(one.num_undefined for one in near), known, local)

    def joined_with(self, evidence: NDArray[np.float64], meeting: int | None = None) -> NDArray[np.float64]:
        """Return log evidences of all models: those found nearby, and the global ones of models that were too rare.

        `evidence` holds the global ones, shape (models,). The two scales meet at the known model `meeting`, which
        keeps its global log evidence; by default at the one that is best globally among those found nearby.
        """
        if self.local is None:
            return evidence
        joined = evidence.copy()
        met = int(np.argmax(evidence[self.known])) if meeting is None else self._position(meeting)
        joined[self.known] = self.local.log_evidence - self.local.log_evidence[met] + evidence[self.known[met]]
        return joined

    def log_bf(self, first: int, second: int) -> tuple[float, float, tuple[float, float]]:
        """Return the log Bayes factor of two known models, its error and its 95% interval."""
        assert self.local is not None
        one, other = self._position(first), self._position(second)
        log_bf = float(self.local.log_evidence[one] - self.local.log_evidence[other])
        spread = (self.local.halves[:, one] - self.local.halves[:, other]).std(ddof=1)
        pair = [first, second]
        # The variance of the log of a binomial rate, by the delta method.
        binomial = float((1 / self.num_near[pair] - 1 / self.num_screened[pair]).sum())
        error = math.sqrt(float(spread) ** 2 + binomial)
        half_width = float(student_t.ppf(0.975, NUM_HALVES - 1)) * error
        return log_bf, error, (log_bf - half_width, log_bf + half_width)

    def count_warnings(self, names: tuple[str, ...]) -> list[str]:
        """Return what the counts should make a reader careful about, in words."""
        said = [self._far_warning(names, k) for k in range(len(names)) if k not in self.known]
        if self.num_undefined:
            said.append(
                f"summary is nan or inf for {self.num_undefined:,} of {self.num_screened.sum():,} simulations; they "
                "count as not near"
            )
        return said

    def beyond_warnings(self, names: tuple[str, ...], first: int, second: int) -> list[str]:
        """Return a warning if next to no simulation of the disfavoured model is as far out as the observed data."""
        assert self.local is not None
        one, other = self._position(first), self._position(second)
        observed = self.local.log_evidence[one] - self.local.log_evidence[other]
        favoured, disfavoured, rare = (one, other, second) if observed >= 0 else (other, one, first)
        simulated = self.local.simulated[disfavoured]
        beyond = int((simulated[:, favoured] - simulated[:, disfavoured] >= abs(observed)).sum())
        if beyond >= FEWEST_BEYOND:
            return []
        return [
            f"of {len(simulated):,} simulations of {names[rare]} near the data, {beyond} are as strongly against it: "
            "the answer extrapolates from the others; trust its direction, not its digits"
        ]

    def _position(self, model: int) -> int:
        return int(np.flatnonzero(self.known == model)[0])

    def _far_warning(self, names: tuple[str, ...], far: int) -> str:
        """Return in words that a model came near too rarely, with the bound that its count gives."""
        num_near, num_screened = int(self.num_near[far]), int(self.num_screened[far])
        counted = f"{names[far]} came near the observed data in {num_near:,} of {num_screened:,} simulations"
        # Of the acceptance rates, lower and upper limits that hold with 95% each.
        low, high = binomial_interval(self.num_near, self.num_screened, level=0.9)
        best = int(np.argmax(low))
        if best == far or low[best] <= high[far]:
            return f"{counted}, too few to train on, and no other model surely more often: none of them may fit"
        log_bound = float(np.log(low[best]) - np.log(high[far]))
        return (
            f"{counted}, too few to train on. At most {high[far]:.1e} of its data do (95%), and {low[best]:.1e} or "
            f"more of those of {names[best]}: for coming so near, at least {write_odds(log_bound)} (log BF "
            f"{log_bound:.1f}) in favour of {names[best]}"
        )


def _fit(near: Sequence[NDArray[np.float64]], weights: NDArray[np.float64]) -> Pipeline:
    return _classifier(weights).fit(*_stacked(near))


def _classifier(weights: NDArray[np.float64]) -> Pipeline:
    return make_pipeline(
        StandardScaler(),
        FunctionTransformer(partial(np.multiply, weights)),
        LogisticRegression(C=INVERSE_RIDGE, max_iter=MAX_ITERATIONS),
    )


def _stacked(near: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    return np.concatenate(near), np.repeat(np.arange(len(near)), [len(of_model) for of_model in near])


def _scores(fitted: Pipeline, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log odds with one column for each model, up to a constant for each row."""
    decision = np.asarray(fitted.decision_function(features), np.float64)
    return np.stack([np.zeros(len(decision)), decision], axis=1) if decision.ndim == 1 else decision
