"""From simulations near the observed data to an answer, and what the global estimator says where there are too few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from deepbf._numerics import log_posterior_probs
from deepbf.answer import Answer
from deepbf.estimator import BayesFactor
from deepbf.estimator.bayes_factor import Data
from deepbf.variants.local_odds import NUM_HALVES, LocalOdds, local_odds
from deepbf.variants.screening import Near
from deepbf.variants.tailored_answer import TailoredAnswer, far_warning

# Below this no line through the log odds can be told.
FEWEST_NEAR = 30
# Simulations against their own model at least as strongly as the observed data are, for its digits to rest on them.
FEWEST_BEYOND = 10


@dataclass(frozen=True)
class Comparison:
    """What was asked: the data, the prior, and perhaps the two models that the Bayes factor is about."""

    estimator: BayesFactor
    observed: Data
    prior_probs: NDArray[np.float64]
    model: int | str | None
    over: int | str | None

    def ask(self, model: int | str | None = None, over: int | str | None = None) -> Answer:
        """Return the global estimator's answer, about two given models or about those asked for."""
        return self.estimator.compare(
            self.observed,
            prior_probs=self.prior_probs,
            model=self.model if model is None else model,
            over=self.over if over is None else over,
        )

    def pair(self, evidence: NDArray[np.float64]) -> tuple[int, int]:
        """Return which models the Bayes factor is about, by the rule of `BayesFactor.compare`."""
        names = self.estimator.names
        asked = [names.index(one) if isinstance(one, str) else one for one in (self.model, self.over)]
        best_first = np.argsort(-(evidence + np.log(self.prior_probs)), kind="stable")
        ranking = best_first if len(names) > 2 else np.arange(2)
        first = int(ranking[0]) if asked[0] is None else asked[0]
        second = next(int(k) for k in ranking if k != first) if asked[1] is None else asked[1]
        return first, second


@dataclass(frozen=True)
class NearEvidence:
    """Counts of all models, and log evidences of those that came near often enough, whose indices are `known`."""

    num_near: NDArray[np.int64]
    num_screened: NDArray[np.int64]
    num_undefined: int
    known: NDArray[np.int64]
    local: LocalOdds | None

    @classmethod
    def of(
        cls, near: Sequence[Near], observed: NDArray[np.float64], num_leading: int, rng: np.random.Generator
    ) -> NearEvidence:
        """Return what the simulations near the observed data, whose features are given, say."""
        num_near = np.array([len(of_model.features) for of_model in near])
        known = np.flatnonzero(num_near >= FEWEST_NEAR)
        local = None
        if len(known) > 1:
            chosen = [near[k] for k in known.tolist()]
            features, screened = [one.features for one in chosen], [one.num_screened for one in chosen]
            local = local_odds(features, screened, observed, num_leading, rng)
        num_screened = np.array([of_model.num_screened for of_model in near])
        return cls(num_near, num_screened, sum(one.num_undefined for one in near), known, local)

    def joined_with(self, evidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log evidences of all models: those found nearby, and the global ones of models that were too rare.

        The two scales meet at the model that is best globally among those found nearby.
        """
        if self.local is None:
            return evidence
        joined = evidence.copy()
        meeting = int(np.argmax(evidence[self.known]))
        joined[self.known] = self.local.log_evidence - self.local.log_evidence[meeting] + evidence[self.known[meeting]]
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

    def warnings(self, names: tuple[str, ...]) -> list[str]:
        """Return what the counts should make a reader careful about."""
        far = [k for k in range(len(names)) if k not in self.known]
        said = [far_warning(names, self.num_near, self.num_screened, k) for k in far]
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


def answer_from(comparison: Comparison, near: NearEvidence, *, radius: float, num_simulations: int) -> TailoredAnswer:
    """Return what is known: of models that came near from what did, of others from the global estimator."""
    names = comparison.estimator.names
    evidence = near.joined_with(global_evidence(comparison))
    first, second = comparison.pair(evidence)
    compared = comparison.ask(first, second)
    tailored = first in near.known and second in near.known
    warnings = near.warnings(names)
    if tailored:
        log_bf, error, interval = near.log_bf(first, second)
        warnings += near.beyond_warnings(names, first, second)
    else:
        log_bf, error, interval = compared.log_bf, compared.error, compared.interval
        warnings += ["this is the answer of the global estimator", *compared.warnings]
    log_prior = np.log(comparison.prior_probs)
    return TailoredAnswer(
        log_bf=log_bf,
        model=names[first],
        against=names[second],
        error=error,
        interval=interval,
        names=names,
        prior_probs=tuple(comparison.prior_probs.tolist()),
        posterior_probs=tuple(np.exp(log_posterior_probs(evidence, log_prior)).tolist()),
        surprise=compared.surprise,
        support=compared.support,
        order=compared.order,
        warnings=tuple(warnings),
        tailored=tailored,
        global_log_bf=compared.log_bf,
        global_error=compared.error,
        num_near=tuple(near.num_near.tolist()),
        num_screened=tuple(near.num_screened.tolist()),
        radius=radius,
        num_simulations=num_simulations,
    )


def global_evidence(comparison: Comparison) -> NDArray[np.float64]:
    """Return the global estimator's log evidences, up to a constant."""
    last = len(comparison.estimator.names) - 1
    found = [float(comparison.estimator.log_bf(comparison.observed, k, last)[0]) for k in range(last)]
    return np.array([*found, 0.0])
