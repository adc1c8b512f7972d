"""Z-values: whether a classifier can tell the observed data from a model's predictions (Section 4).

For each replication, a classifier is trained on the observed data, label 1, against a predictive data set of the same
size, label 0; Z is the mean of its probabilities at another, fresh predictive data set. If the two cannot be told
apart, Z lies about 1/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import clone

from deepbf import _checks
from deepbf.criticism.predictive_source import PredictiveSource, check_observed, check_source, draw_predictive
from deepbf.criticism.quadratic_logistic import MOST_FEATURES, fit_quadratics, num_features
from deepbf.evaluation.density import common_grid, density

Floats = NDArray[np.float64]

DRAWS = ("independent", "joint")
LARGEST_SEED = 2**31
HALF = 0.5
TAIL = 0.025
# Of 1,500 data sets simulated from the model itself (Data 1, 2 and 3, n = 3, 8 and 128), none had 1/2 so far out.
BORDERLINE_TAIL = 0.1
# Independent fits of the same problem agree in Z to about this much; nobody's verdict should hang on less.
ROUNDING = 1e-9


@dataclass(frozen=True)
class ZValues:
    """Draws of Z, the mean probability of being observed that a classifier gives to fresh predictions of a model.

    Parameters
    ----------
    z
        One entry per replication. Near 1/2 the classifier cannot tell predictions from the observed data; near 0 it
        tells them apart without an error.
    model
        The model that made the predictions, by name.
    num_obs
        The number of observations in the observed data, and in each prediction.
    classifier
        The classifier, in words.
    refit
        Whether the classifier was trained anew for every replication.
    num_unconverged
        The number of replications whose classifier did not reach its optimum; they are kept.
    """

    z: Floats
    model: str
    num_obs: int
    classifier: str
    refit: bool
    num_unconverged: int = 0

    @property
    def low(self) -> float:
        """The 2.5% quantile of Z."""
        return float(np.quantile(self.z, TAIL))

    @property
    def high(self) -> float:
        """The 97.5% quantile of Z."""
        return float(np.quantile(self.z, 1 - TAIL))

    @property
    def mean(self) -> float:
        """The mean of Z."""
        return float(self.z.mean())

    @property
    def covers_half(self) -> bool:
        """Whether 1/2 lies between the 2.5% and the 97.5% quantile."""
        return self.low - ROUNDING <= HALF <= self.high + ROUNDING

    @property
    def tail_of_half(self) -> float:
        """The smaller of the shares of Z on either side of 1/2; near 0 if 1/2 lies at the edge or beyond."""
        at_least, at_most = self.z >= HALF - ROUNDING, self.z <= HALF + ROUNDING
        return float(min(at_least.mean(), at_most.mean()))

    @property
    def borderline(self) -> bool:
        """Whether 1/2 is covered, but lies so far out that it hardly ever does where the model is right."""
        return self.covers_half and self.tail_of_half < BORDERLINE_TAIL

    @property
    def verdict(self) -> str:
        """What Z says about the model, in words."""
        if not self.covers_half:
            return f"predictions of {self.model} are told from the observed data: it does not fit them"
        if self.borderline:
            return f"borderline: predictions of {self.model} are nearly told from the observed data"
        return f"predictions of {self.model} are not told from the observed data: no sign against it here"

    def density(self) -> tuple[Floats, Floats]:
        """Return a grid and the kernel density of Z on it, for plots."""
        values = self.z if len(self.z) > 1 else np.repeat(self.z, 2)
        grid = common_grid([values])
        return grid, density(values, grid)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "model": self.model,
            "num_obs": self.num_obs,
            "num_replicates": len(self.z),
            "classifier": self.classifier,
            "refit": self.refit,
            "mean": self.mean,
            "low": self.low,
            "high": self.high,
            "covers_half": self.covers_half,
            "tail_of_half": self.tail_of_half,
            "verdict": self.verdict,
            "num_unconverged": self.num_unconverged,
            "z": self.z.tolist(),
        }

    def __str__(self) -> str:
        inside = "1/2 lies inside" if self.covers_half else "1/2 lies outside"
        how = "trained anew each time" if self.refit else "trained once"
        rows = [
            ("Z", f"mean {self.mean:.3f}, 95% of draws {self.low:.3f} to {self.high:.3f}; {inside}"),
            ("classifier", f"{self.classifier}, {how}"),
            ("from", f"{len(self.z):,} predictions of {self.num_obs} observations"),
        ]
        if not self.refit:
            rows.append(("careful", "what the classifier learned from one prediction shifts every Z alike"))
        if self.num_unconverged:
            rows.append(("careful", f"{self.num_unconverged:,} fits did not reach their optimum"))
        said = self.verdict[0].upper() + self.verdict[1:]
        return "\n".join([said, *(f"  {label:<11} {text}" for label, text in rows)])


def z_values(
    sampler: PredictiveSource,
    observed: ArrayLike,
    *,
    num_replicates: int = 3000,
    classifier: Any = None,
    refit: bool = True,
    draws: str = "independent",
    seed: int = 0,
) -> ZValues:
    """Return draws of Z for one observed data set of independent observations.

    This checks single observations: neither their order nor their dependence enters. It errs on the side of the model,
    for the posterior has seen the observed data, and a quadratic sees means, variances and correlations alone: a model
    that Z does not speak against may still fail a check aimed at something else (`predictive_check`).

    Parameters
    ----------
    sampler
        A posterior sampler of the model in question.
    observed
        One data set: a number for each observation, or a row of several numbers for each.
    num_replicates
        The number of draws of Z.
    classifier
        None for the paper's logistic regression on a quadratic, fitted to all replications at once, 3,000 in a second
        or two at n = 128. Or any scikit-learn classifier with `predict_proba`, which sees the observations as rows.
        It is trained once per replication, and takes as long as that takes.
    refit
        Whether to train anew for every replication. Trained once, a classifier stays cheap, but what it happened to
        learn from one predictive draw shifts every Z alike: a random forest, trained once, excluded 1/2 for 12 of 100
        data sets simulated from the model itself (Data 1 (i), n = 128), trained anew for none.
    draws
        "independent": every observation of a predictive data set comes from its own posterior draw, so that they are
        independent draws of the posterior predictive, as the paper has it. "joint": a data set shares one posterior
        draw, so that what the posterior leaves open widens Z too.
    seed
        The same seed gives the same draws.

    Examples
    --------
    >>> from deepbf.criticism import ExactPosterior
    >>> from deepbf.example import counts_example
    >>> negbin, poisson = counts_example().models
    >>> counts = negbin.simulate(1, seed=11).data[0]
    >>> def draw_rate(rng, counts, num_draws, left_out):
    ...     return rng.gamma(4 + counts.sum(), 1 / (4 + len(counts)), (1, num_draws))
    >>> print(z_values(ExactPosterior(poisson, draw_rate), counts, num_replicates=500).verdict)
    predictions of Poisson are told from the observed data: it does not fit them
    >>> def draw_prob(rng, counts, num_draws, left_out):
    ...     return rng.beta(2 + len(counts), 2 + counts.sum(), (1, num_draws))
    >>> z_values(ExactPosterior(negbin, draw_prob), counts, num_replicates=500).covers_half
    True
    """
    sampler = check_source(sampler)
    num_replicates = _checks.check_count("num_replicates", num_replicates)
    draws = _checks.check_choice("draws", draws, DRAWS)
    seed = _checks.check_seed("seed", seed)
    if classifier is not None:
        _check_classifier(classifier)
    values = check_observed(
        sampler.model, observed, least=2, why="a classifier needs at least 2 to learn from; use predictive_check."
    )
    rows = values.reshape(len(values), -1)
    if classifier is None and num_features(rows.shape[1]) > MOST_FEATURES:
        raise ValueError(
            f"observed has {rows.shape[1]} numbers per observation, which have {num_features(rows.shape[1])} "
            f"values, squares and products; the quadratic takes up to {MOST_FEATURES}. Pass classifier=, such as "
            "sklearn.ensemble.RandomForestClassifier()."
        )
    num_training = num_replicates if refit else 1
    predicted = draw_predictive(sampler, values, num_training + num_replicates, seed)
    predicted = predicted.reshape(len(predicted), *rows.shape)
    # The sampler may use the seed itself, so what is drawn here starts elsewhere.
    rng = np.random.default_rng([seed, 1])
    if draws == "independent":
        # The k-th observation is permuted over the draws, for each k apart: two observations of a data set then share
        # a posterior draw with probability 1 / draws, and are independent otherwise; each value is used once.
        predicted = np.stack([column[rng.permutation(len(predicted))] for column in predicted.swapaxes(0, 1)], axis=1)
    training, fresh = predicted[:num_training], predicted[num_training:]
    # A classifier that is trained once sees all fresh data sets as one long one.
    fresh = fresh.reshape(num_training, -1, rows.shape[1])
    if classifier is None:
        found = fit_quadratics(rows, training, fresh)
        probs, num_unconverged = expit(found.values), int((~found.converged).sum())
    else:
        probs, num_unconverged = _fit_classifiers(classifier, rng, rows, training, fresh), 0
    return ZValues(
        z=probs.reshape(num_replicates, len(values)).mean(axis=1),
        model=sampler.model.name,
        num_obs=len(values),
        classifier="logistic regression on a quadratic" if classifier is None else type(classifier).__name__,
        refit=refit,
        num_unconverged=num_unconverged,
    )


def _check_classifier(classifier: Any) -> None:
    """Raise unless the classifier can be copied, trained, and asked for probabilities."""
    for method in ("get_params", "fit", "predict_proba"):
        if isinstance(classifier, type) or not callable(getattr(classifier, method, None)):
            received = f"the class {classifier.__name__}" if isinstance(classifier, type) else repr(classifier)
            raise TypeError(
                f"classifier must be a scikit-learn classifier with {method}; received {received}. Pass, for example, "
                "sklearn.ensemble.RandomForestClassifier()."
            )


def _fit_classifiers(
    classifier: Any, rng: np.random.Generator, observed: Floats, training: Floats, fresh: Floats
) -> Floats:
    """Return probabilities of being observed at `fresh`, shape (problems, draws), by a copy trained on each problem."""
    # Without a state of its own, a classifier would draw from NumPy's global one, and no seed would repeat it.
    open_seeds = [
        name
        for name, value in classifier.get_params(deep=True).items()
        if name.split("__")[-1] == "random_state" and value is None
    ]
    labels = np.repeat([1, 0], [len(observed), training.shape[1]])
    probs = np.empty(fresh.shape[:2])
    for k, (rows, at) in enumerate(zip(training, fresh, strict=True)):
        copied: Any = clone(classifier)
        copied.set_params(**{name: int(rng.integers(LARGEST_SEED)) for name in open_seeds})
        trained = copied.fit(np.concatenate([observed, rows]), labels)
        predicted = np.asarray(trained.predict_proba(at), dtype=np.float64)
        probs[k] = predicted[:, list(trained.classes_).index(1)]
        if not np.isfinite(probs[k]).all():
            raise ValueError(
                f"classifier {type(trained).__name__} gave probabilities that are not finite in replication {k}; "
                "scale the data, or pass another classifier."
            )
    return probs
