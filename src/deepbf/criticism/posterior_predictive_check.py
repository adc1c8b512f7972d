"""Posterior predictive checks: statistics of the observed data among those of predictions (Guttman, 1967; Rubin, 1984).

From the place of one value among draws (`tails_of`) to one statistic (`StatisticCheck`) and several of them
(`PredictiveCheck`). `predictive_check` puts them together.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.answer import TailArea, write_tail_area
from deepbf.criticism.predictive_source import PredictiveSource, check_observed, check_source, draw_predictive
from deepbf.evaluation.tail_areas import binomial_interval

Floats = NDArray[np.float64]
# Takes many data sets along a leading axis, and returns one number for each.
Statistic = Callable[[Floats], Any]
Statistics = str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | Mapping[str, str | Callable[..., Any]]

USUAL_STATISTICS = ("mean", "sd", "min", "max")
# Either tail of the central 95%.
EXTREME = 0.025
# Values that agree to this share of the largest among them are equal: sums in another order differ by as much.
ROUNDING = 1e-12


class Verdict(enum.StrEnum):
    """Whether a model predicts an observed value, by the smaller of its two tail areas.

    Each is equal to its text: ``check["sd"].verdict == "too large"`` and ``Verdict.TOO_LARGE`` say the same.

    Examples
    --------
    >>> tails_of(5.0, np.arange(1000.0)).verdict == "too small"
    True
    >>> Verdict.TOO_SMALL.fails, Verdict.BORDERLINE_SMALL.fails, Verdict.AS_PREDICTED.fails
    (True, False, False)
    """

    AS_PREDICTED = "as predicted"
    BORDERLINE_SMALL = "borderline small"
    BORDERLINE_LARGE = "borderline large"
    TOO_SMALL = "too small"
    TOO_LARGE = "too large"

    # In a notebook, too, a verdict is shown as its text.
    __repr__ = str.__repr__

    @property
    def fails(self) -> bool:
        """Whether the value speaks against the model; a borderline one needs more draws to tell."""
        return self in {Verdict.TOO_SMALL, Verdict.TOO_LARGE}


class Tails(NamedTuple):
    """Tail areas of an observed value among draws; draws equal to it count in both."""

    at_most: TailArea
    at_least: TailArea
    share_equal: float

    @property
    def smaller(self) -> TailArea:
        """The tail that the observed value lies in."""
        return min(self.at_most, self.at_least, key=lambda area: area.prob)

    @property
    def verdict(self) -> Verdict:
        """Whether the observed value is one that the model predicts.

        It is too small or too large if even the upper end of the tail area's 95% interval is below 2.5%, and borderline
        if the area itself is, but so many draws cannot tell it from 2.5%.
        """
        if self.smaller.prob >= EXTREME:
            return Verdict.AS_PREDICTED
        is_small = self.at_most.prob < self.at_least.prob
        if self.smaller.high < EXTREME:
            return Verdict.TOO_SMALL if is_small else Verdict.TOO_LARGE
        return Verdict.BORDERLINE_SMALL if is_small else Verdict.BORDERLINE_LARGE


def tails_of(observed: float, draws: Floats) -> Tails:
    """Return both tail areas of `observed` among `draws`, shape (draws,), with 95% intervals by Clopper and Pearson.

    Draws that agree with the observed value up to rounding count in both tails, so that a statistic which never varies
    is as predicted.

    Examples
    --------
    >>> tails = tails_of(2.0, np.array([1.0, 2.0, 3.0, 4.0]))
    >>> tails.at_most.prob, tails.at_least.prob, tails.share_equal
    (0.5, 0.75, 0.25)
    """
    slack = ROUNDING * max(abs(observed), float(np.abs(draws).max()))
    counts = np.array([(draws <= observed + slack).sum(), (draws >= observed - slack).sum()])
    total = np.full(2, len(draws))
    low, high = binomial_interval(counts, total)
    areas = [TailArea(float(counts[k] / len(draws)), float(low[k]), float(high[k])) for k in range(2)]
    return Tails(areas[0], areas[1], float((counts.sum() - len(draws)) / len(draws)))


@dataclass(frozen=True)
class StatisticCheck:
    """One statistic: its observed value, and its values at data sets from the posterior predictive.

    Parameters
    ----------
    name
        What the statistic is called.
    observed
        Its value at the observed data.
    draws
        Its values at predictions, shape (num_draws,).
    model
        The model, by name.
    """

    name: str
    observed: float
    draws: Floats
    model: str

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """The 2.5%, 50% and 97.5% quantiles of the predictions."""
        low, middle, high = np.quantile(self.draws, [0.025, 0.5, 0.975])
        return float(low), float(middle), float(high)

    @property
    def tails(self) -> Tails:
        """Both tail areas of the observed value; predictions equal to it count in both."""
        return tails_of(self.observed, self.draws)

    @property
    def verdict(self) -> Verdict:
        """Whether the model predicts the observed value: "as predicted", "too large", "borderline small", ..."""
        return self.tails.verdict

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        low, middle, high = self.quantiles
        return {
            "name": self.name,
            "observed": self.observed,
            "low": low,
            "median": middle,
            "high": high,
            "at_most": self.tails.at_most._asdict(),
            "at_least": self.tails.at_least._asdict(),
            "share_equal": self.tails.share_equal,
            "verdict": self.verdict.value,
        }


@dataclass(frozen=True)
class PredictiveCheck:
    """Statistics of the observed data among those of data sets from the posterior predictive.

    Parameters
    ----------
    checks
        One for each statistic, in the order given; ``check["sd"]`` is the one of that name.
    model
        The model, by name.
    num_draws
        The number of data sets from the posterior predictive.
    """

    checks: tuple[StatisticCheck, ...]
    model: str
    num_draws: int

    @property
    def names(self) -> tuple[str, ...]:
        """The statistics, by name."""
        return tuple(check.name for check in self.checks)

    def __getitem__(self, name: str) -> StatisticCheck:
        return self.checks[self.names.index(_checks.check_choice("statistic", name, self.names))]

    @property
    def verdict(self) -> str:
        """What the statistics say about the model, in words."""
        failed = [f"{check.name} ({check.verdict})" for check in self.checks if check.verdict.fails]
        if failed:
            return f"{self.model} does not predict the observed {', '.join(failed)}"
        nearly = [f"{check.name} ({check.verdict})" for check in self.checks if check.verdict != Verdict.AS_PREDICTED]
        if nearly:
            return f"borderline: {self.model} hardly predicts the observed {', '.join(nearly)}"
        return f"{self.model} predicts the observed {', '.join(self.names)}: no sign against it here"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "model": self.model,
            "num_draws": self.num_draws,
            "verdict": self.verdict,
            "statistics": [check.to_dict() for check in self.checks],
        }

    def __str__(self) -> str:
        width = max(12, *(len(name) for name in self.names))
        verdicts = {check.verdict for check in self.checks}
        starts_with_name = verdicts == {Verdict.AS_PREDICTED} or any(one.fails for one in verdicts)
        # A model's name stays as it is written, also at the beginning of a line.
        lines = [self.verdict if starts_with_name else self.verdict[0].upper() + self.verdict[1:]]
        lines.append(f"  {'':<{width}} {'observed':>10} {'95% of predictions':>23} {'as small':>24} {'as large':>24}")
        for check in self.checks:
            low, _, high = check.quantiles
            span = f"{low:.4g} to {high:.4g}"
            small, large = write_tail_area(check.tails.at_most), write_tail_area(check.tails.at_least)
            lines.append(
                f"  {check.name:<{width}} {check.observed:>10.4g} {span:>23} {small:>24} {large:>24}  {check.verdict}"
            )
        lines.append(f"  from {self.num_draws:,} predictions; those equal to the observed value count on both sides")
        return "\n".join(lines)


def predictive_check(
    sampler: PredictiveSource,
    observed: ArrayLike,
    statistics: Statistics = USUAL_STATISTICS,
    *,
    num_draws: int = 2000,
    seed: int = 0,
) -> PredictiveCheck:
    """Return where statistics of the observed data stand among those of data sets from the posterior predictive.

    The posterior has seen the observed data, so tail areas are closer to 1/2 than they would be without that: what
    they find is real, what they do not find may still be there, above all in statistics that a parameter fits.

    Parameters
    ----------
    sampler
        A posterior sampler of the model in question.
    observed
        One data set.
    statistics
        Functions by name, a list of functions, or names of built-in ones: "mean", "sd", "min", "max", "zeros" (the
        share of zeros), "autocorrelation" (of each value with the next). A function takes many data sets along a
        leading axis and returns one number for each: ``{"variance": lambda data: data.var(axis=1)}``.
    num_draws
        The number of data sets from the posterior predictive.
    seed
        The same seed gives the same result.

    Examples
    --------
    >>> from deepbf.criticism import ExactPosterior
    >>> from deepbf.example import counts_example
    >>> negbin, poisson = counts_example().models
    >>> counts = negbin.simulate(1, seed=11).data[0]
    >>> def draw_rate(rng, counts, num_draws, left_out):
    ...     return rng.gamma(4 + counts.sum(), 1 / (4 + len(counts)), (1, num_draws))
    >>> check = predictive_check(ExactPosterior(poisson, draw_rate), counts,
    ...                          {"variance": lambda data: data.var(axis=1), "mean": "mean"})
    >>> check["variance"].verdict, check["mean"].verdict
    ('too large', 'as predicted')
    """
    sampler = check_source(sampler)
    num_draws = _checks.check_count("num_draws", num_draws)
    seed = _checks.check_seed("seed", seed)
    functions = check_statistics(statistics)
    values = check_observed(sampler.model, observed, least=1, why="")
    at_observed = {name: _evaluate(name, fn, values[None], "the data") for name, fn in functions.items()}
    predicted = draw_predictive(sampler, values, num_draws, seed)
    model = sampler.model.name
    checks = tuple(
        StatisticCheck(
            name=name,
            observed=float(at_observed[name][0]),
            draws=_evaluate(name, fn, predicted, "predictions"),
            model=model,
        )
        for name, fn in functions.items()
    )
    return PredictiveCheck(checks, model, num_draws)


def check_statistics(statistics: Any) -> dict[str, Statistic]:
    """Return functions by name, from names of built-in ones, functions, sequences of both, or a mapping.

    Functions in a sequence are called by their own name, lambdas by their place: "statistic 3".
    """
    if isinstance(statistics, str) or callable(statistics):
        statistics = [statistics]
    if isinstance(statistics, Mapping):
        pairs = [(name, f"statistics[{name!r}]", value) for name, value in statistics.items()]
    elif isinstance(statistics, Sequence):
        pairs = []
        for k, value in enumerate(statistics):
            name = value if isinstance(value, str) else getattr(value, "__name__", "<lambda>")
            pairs.append((f"statistic {k + 1}" if name == "<lambda>" else name, f"statistics[{k}]", value))
    else:
        raise TypeError(
            "statistics must be names, functions, or functions by name; received "
            f"{type(statistics).__name__}. Pass, for example, {{'variance': lambda data: data.var(axis=1)}}."
        )
    functions = [
        value if callable(value) else BUILT_IN[_checks.check_choice(argument, value, BUILT_IN)]
        for _, argument, value in pairs
    ]
    if not functions:
        raise ValueError(f"statistics must hold at least one; received none. Built in are {', '.join(BUILT_IN)}.")
    names = [name for name, _, _ in pairs]
    if any(not isinstance(name, str) or not name for name in names):
        raise TypeError(f"statistics must be named by strings; received the names {names}.")
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"statistics must have different names; received {', '.join(doubled)} twice. Pass a dict.")
    return dict(zip(names, functions, strict=True))


def _evaluate(name: str, statistic: Statistic, data: Floats, what: str) -> Floats:
    """Return one finite number for each data set, or say which statistic failed and how."""
    try:
        # A copy: what a statistic does to its argument must not reach the next one.
        found = _checks.check_numeric_array(f"statistic {name!r}", statistic(data.copy()))
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"statistic {name!r} failed on {what} of shape {data.shape}: {said}") from error
    if found.shape != (len(data),):
        raise ValueError(
            f"statistic {name!r} returned shape {found.shape} for {len(data)} data sets, an array of shape "
            f"{data.shape}; return one number for each data set, as lambda data: data.var(axis=1) does."
        )
    problem = _checks.describe_nonfinite(found)
    if problem is not None:
        raise ValueError(f"statistic {name!r} of {what} has {problem}; return a finite number for every data set.")
    return found.astype(np.float64)


def _values(data: Floats) -> Floats:
    """Return all numbers of each data set in a row."""
    return data.reshape(len(data), -1)


def _autocorrelation(data: Floats) -> Floats:
    """Return the correlation of each value with the next, in the order given; 0 where values do not vary."""
    if data.ndim != 2:
        raise ValueError(f"needs one number for each observation; data sets have shape {data.shape[1:]}")
    with np.errstate(over="ignore"):
        centred = data - data.mean(axis=1, keepdims=True)
    # Brought to a largest size of 1: squares of values near 1e150 would overflow in a sum.
    size = np.abs(centred).max(axis=1, keepdims=True)
    scaled = centred / np.where(size > 0, size, 1.0)
    total = (scaled**2).sum(axis=1)
    return (scaled[:, 1:] * scaled[:, :-1]).sum(axis=1) / np.where(total > 0, total, 1.0)


BUILT_IN: dict[str, Statistic] = {
    "mean": lambda data: _values(data).mean(axis=1),
    # A single value has a standard deviation of 0.
    "sd": lambda data: _values(data).std(axis=1, ddof=1 if data[0].size > 1 else 0),
    "min": lambda data: _values(data).min(axis=1),
    "max": lambda data: _values(data).max(axis=1),
    "zeros": lambda data: (_values(data) == 0).mean(axis=1),
    "autocorrelation": _autocorrelation,
}
