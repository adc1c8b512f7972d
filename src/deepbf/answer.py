"""The answer: what a user is told about one observed data set, and how much of it to believe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from deepbf._jeffreys import strength_on_jeffreys_scale

# From here on down, data count as atypical of a model: one data set in twenty of its own.
ATYPICAL = 0.05


class TailArea(NamedTuple):
    """A tail area with the 95% interval that a finite number of simulations leaves."""

    prob: float
    low: float
    high: float


@dataclass(frozen=True)
class Answer:
    """A log Bayes factor with its direction, its error and the posterior probabilities.

    Parameters
    ----------
    log_bf
        Natural log of the Bayes factor of `model` against `against`, whichever is favoured.
    model, against
        The direction of `log_bf`, by name.
    error
        Spread of the ensemble's members, as a standard error; None for an ensemble of one.
    interval
        95% interval of `log_bf`: Student's t with one degree of freedom less than there are members.
    names, prior_probs, posterior_probs
        All models, in the order given to `fit`, with their probabilities before and after the data.
    surprise
        For `model` and `against`, by name: the probability, if that model were true, of a Bayes factor at least as much
        against it as this one. Small is surprising. None for an estimator that holds no reference simulations.
    support
        By name of every model: the probability, if that model were true, of data at least as strange as these. Small is
        atypical. None for an estimator that does not know.
    order
        Of exchangeable observations, the share of their orders that are as unusual as the observed one, a part of their
        support. None where order means nothing.
    log_evidence
        Of all models, in the order given to `fit`, up to a constant: differences are log Bayes factors.
    warnings
        What should make a reader careful, in words.
    """

    log_bf: float
    model: str
    against: str
    error: float | None
    interval: tuple[float, float] | None
    names: tuple[str, ...]
    prior_probs: tuple[float, ...]
    posterior_probs: tuple[float, ...]
    surprise: dict[str, TailArea] | None = None
    support: dict[str, TailArea] | None = None
    order: float | None = None
    log_evidence: tuple[float, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    @property
    def favours(self) -> str:
        """The model that the data speak for."""
        return self.model if self.log_bf >= 0 else self.against

    @property
    def over(self) -> str:
        """The model that the data speak against."""
        return self.against if self.log_bf >= 0 else self.model

    @property
    def strength(self) -> str:
        """How strong the evidence is, in Jeffreys' words."""
        return strength_on_jeffreys_scale(self.log_bf)

    @property
    def verdict(self) -> str | None:
        """Whether any of the models makes data like these, in words."""
        if self.support is None:
            return None
        strange = [name for name in self.names if self.support[name].prob <= ATYPICAL]
        if not strange:
            return f"the data are typical of {'both' if len(self.names) == 2 else f'all {len(self.names)}'} models"
        if len(strange) == len(self.names):
            return "the data are atypical of every model here: read the Bayes factor with care"
        usual = [name for name in self.names if name not in strange]
        return f"the data are atypical of {written_list(strange)}, typical of {written_list(usual)}"

    @property
    def ranking(self) -> tuple[str, ...]:
        """All models, the most probable after the data first."""
        scores = [
            evidence + math.log(prior) for evidence, prior in zip(self.log_evidence, self.prior_probs, strict=False)
        ] or list(self.posterior_probs)
        # Negated, so that of equals the first given stays first.
        order = sorted(range(len(self.names)), key=lambda k: -scores[k])
        return tuple(self.names[k] for k in order)

    @property
    def best(self) -> str:
        """The most probable model after the data."""
        return self.ranking[0]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        derived = {
            "favours": self.favours,
            "over": self.over,
            "strength": self.strength,
            "ranking": self.ranking,
            "verdict": self.verdict,
        }
        areas = {
            what: None if found is None else {name: area._asdict() for name, area in found.items()}
            for what, found in (("surprise", self.surprise), ("support", self.support))
        }
        return {**asdict(self), **areas, **derived}

    def __str__(self) -> str:
        rows = [*self._rows(), *(("careful", warning) for warning in self.warnings)]
        lines = [f"In favour of {self.favours} over {self.over}"]
        lines += [f"  {label:<17} {text}" for label, text in rows]
        return "\n".join(lines)

    def _rows(self) -> list[tuple[str, str]]:
        """Return what is printed between the heading and the warnings, as pairs of a label and a text.

        An answer of another kind adds its own rows at the end.
        """
        rows = [
            ("log Bayes factor", self._written_log_bf()),
            ("Bayes factor", f"{write_odds(abs(self.log_bf))}"),
            ("evidence", f"{self.strength} (Jeffreys' scale)"),
            ("probabilities", self._written_probs()),
        ]
        if len(self.names) > 2:
            rows[-1:] = self._written_ranking()
        if self.surprise is not None:
            rows.append(("surprise", self._written_surprise()))
        if self.support is not None and self.verdict is not None:
            rows += [("support", self._written_support(self.support)), ("verdict", self.verdict)]
        return rows

    def _written_log_bf(self) -> str:
        sign = 1.0 if self.log_bf >= 0 else -1.0
        text = f"{abs(self.log_bf):.2f}"
        if self.error is None or self.interval is None:
            return f"{text}, natural log; no error, the ensemble has one member"
        low, high = sorted(sign * end for end in self.interval)
        return f"{text} +- {self.error:.2g}, natural log; 95% interval {low:.2f} to {high:.2f}"

    def _written_surprise(self) -> str:
        said = [f"{write_tail_area(area)} if {name} is true" for name, area in (self.surprise or {}).items()]
        return f"{', '.join(said)}; small is surprising"

    def _written_support(self, support: dict[str, TailArea]) -> str:
        said = [f"{write_tail_area(area)} under {name}" for name, area in support.items()]
        order = ""
        if self.order is not None and self.order <= ATYPICAL:
            order = f"; the order of the observations is no accident ({write_prob(self.order)})"
        return f"{', '.join(said)}; small is atypical{order}"

    def _written_ranking(self) -> list[tuple[str, str]]:
        """One line per model, the most probable first, with the odds of the best against it by the data alone."""
        best = self.names.index(self.best)
        rows = []
        for place, name in enumerate(self.ranking):
            k = self.names.index(name)
            behind = ""
            if place and self.log_evidence:
                gap = self.log_evidence[best] - self.log_evidence[k]
                behind = f"; {write_odds(abs(gap))} {'for' if gap >= 0 else 'against'} {self.best} over it"
            prob = f"{write_prob(self.posterior_probs[k])} (before the data {write_prob(self.prior_probs[k])})"
            rows.append(("ranking" if place == 0 else "", f"{place + 1}. {name} {prob}{behind}"))
        return rows

    def _written_probs(self) -> str:
        after = ", ".join(
            f"{name} {write_prob(prob)}" for name, prob in zip(self.names, self.posterior_probs, strict=True)
        )
        before = ", ".join(write_prob(prob) for prob in self.prior_probs)
        return f"{after}; before the data {before}"


def written_list(names: Sequence[str]) -> str:
    """Return names as a person would list them.

    Examples
    --------
    >>> written_list(["a"]), written_list(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def write_tail_area(area: TailArea) -> str:
    """Return a tail area, with its interval where a reader may take it for surprising.

    Examples
    --------
    >>> write_tail_area(TailArea(0.35, 0.34, 0.36)), write_tail_area(TailArea(0.02, 0.015, 0.026))
    ('0.350', '0.020 (0.015 to 0.026)')
    >>> write_tail_area(TailArea(0.0, 0.0, 0.0284)), write_tail_area(TailArea(0.0, 0.0, 1e-5))
    ('< 0.029', '< 0.001')
    """
    if area.prob < 0.001:
        # None or next to none of few simulations: what they rule out, not what they show.
        return f"< {max(1, math.ceil(1000 * area.high)) / 1000:.3f}"
    interval = "" if area.prob > 0.1 else f" ({area.low:.3f} to {area.high:.3f})"
    return f"{write_prob(area.prob)}{interval}"


def write_odds(log_odds: float) -> str:
    """Return odds of at least 1 as a person would say them.

    Examples
    --------
    >>> write_odds(0.0), write_odds(2.09), write_odds(800.0)
    ('1.0 to 1', '8.1 to 1', '10^347 to 1')
    """
    if log_odds > math.log(1e6):
        return f"10^{log_odds / math.log(10):.0f} to 1"
    odds = math.exp(log_odds)
    return f"{odds:,.1f} to 1" if odds < 100 else f"{odds:,.0f} to 1"


def write_prob(prob: float) -> str:
    """Return a probability that never rounds to 0 or 1.

    Examples
    --------
    >>> write_prob(0.25), write_prob(1e-9), write_prob(1 - 1e-9)
    ('0.250', '< 0.001', '> 0.999')
    """
    if prob < 0.001:
        return "< 0.001"
    return "> 0.999" if prob > 0.999 else f"{prob:.3f}"
