"""BayesFactor: a trained estimator that answers at any data set of the right shape."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student_t

from deepbf import _checks, losses
from deepbf._compilation import compiled, in_batches
from deepbf._numerics import ensemble_error, log_evidence, log_posterior_probs, log_ratio
from deepbf.answer import Answer, TailArea
from deepbf.estimator.curves import LogBfCurve, LogBfPath, curve_over, path_of
from deepbf.estimator.fresh_data import check_models, design_afresh, evaluate_afresh, evaluated_num_obs
from deepbf.evaluation.tail_areas import surprise
from deepbf.layout.data_layout import Data, DataLayout, DataShape, describe_shapes
from deepbf.models.covariates import Covariates
from deepbf.models.hyperparameters import check_values
from deepbf.models.hyperparameters import describe as describe_ranges
from deepbf.models.model import Model
from deepbf.networks.base import AbstractNetwork, prepare
from deepbf.networks.ensemble import TwoViews, ensemble_log_odds
from deepbf.networks.sets import SetSummary, SortedSet
from deepbf.support import FEWEST_OF_SIZE, Support, of_about_the_size, support_of
from deepbf.training.intake import prepared_at_once
from deepbf.training.schedule import Budget
from deepbf.training.trained import TrainedEnsemble, TrainingRecord

if TYPE_CHECKING:
    from deepbf.evaluating import LogBf
    from deepbf.evaluation import Evaluation
    from deepbf.evaluation.design import Design

# Networks that read whole data sets take long for a batch of thousands: up to so many data sets have one of their own.
FEW_DATASETS = 16
# A spread above one natural unit means that the members agree on no more than the order of magnitude.
WIDE_SPREAD = 1.0
# Nats by which an estimator must beat a guess, or it says that it knows nothing: models whose data differ less than
# that need some hundred data sets to be told apart.
LEAST_LEARNED = 0.002
# Simulations that must be expected as far out as the answer, for its digits to rest on data rather than on form.
# With 1,000 of them, one in seven answers beyond exp(6) for the mean of a normal (10 values, 2,500 steps) missed the
# exact value by more than its interval without a word.
FEWEST_FAR_OUT = 3000


class CompiledEnsemble:
    """The maps of a trained ensemble, each compiled when it is first called.

    Data sets are prepared in batches of the size that training had, by its program: compiling another one, for a
    smaller batch, would take longer than a thousand answers.
    """

    def __init__(self, ensemble: TrainedEnsemble) -> None:
        self.batch_size = prepared_at_once(ensemble.layout.shape)
        self.standardiser = ensemble.standardiser
        self._prepare = compiled(prepare, ensemble.preparation)
        self._read = compiled(_log_odds, ensemble.networks, ensemble.spread)

    def rows(self, data: NDArray[np.generic]) -> NDArray[np.float32]:
        """Return what the networks read, one row per data set."""
        return in_batches(self._prepare, data, self.batch_size, before=self.standardiser)

    def log_odds_of_rows(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return each member's log odds, shape (ensemble, batch, K - 1), from what networks read."""
        return in_batches(self._read, rows, FEW_DATASETS if len(rows) <= FEW_DATASETS else self.batch_size, axis=1)

    def log_odds(self, data: NDArray[np.generic]) -> NDArray[np.float32]:
        """Return each member's log odds, shape (ensemble, batch, K - 1)."""
        if len(data) <= FEW_DATASETS:
            return self.log_odds_of_rows(self.rows(data))

        # The rows of many data sets would fill the memory.
        def read(batch: jax.Array) -> jax.Array:
            return self._read(self._prepare(batch))

        return in_batches(read, data, self.batch_size, axis=1, before=self.standardiser)


def _log_odds(networks: AbstractNetwork, spread: float, rows: jax.Array) -> jax.Array:
    return ensemble_log_odds(networks, rows, spread)


def _fractional_log_odds(
    preparation: Any, networks: AbstractNetwork, spread: float, fraction: float, data: jax.Array
) -> jax.Array:
    return ensemble_log_odds(networks, preparation(data, fraction=fraction), spread)


@dataclass(frozen=True)
class BayesFactor:
    """A trained estimator of the Bayes factors among a set of models.

    Get one from `deepbf.fit` or `deepbf.load`.

    Parameters
    ----------
    names
        The models' names, in the order that gives every Bayes factor its direction.
    prior_probs
        Their prior probabilities, used where none are passed.
    network
        The architecture, by name.
    ensemble
        The trained map, and the layout of the data that it reads.
    loss
        What it was trained by, by name.
    models
        The models of the fit, for `evaluate`. They are Python functions, so a file does not hold them: None after
        `deepbf.load`.
    values
        The values of the models' hyperparameters that answers are for; see `at`.
    compiled
        The ensemble's compiled maps; made from it unless given.
    """

    names: tuple[str, ...]
    prior_probs: NDArray[np.float64]
    network: str
    ensemble: TrainedEnsemble
    loss: str = losses.DEFAULT
    models: tuple[Model, ...] | None = field(default=None, repr=False, compare=False)
    values: Mapping[str, float] | None = None
    compiled: CompiledEnsemble = field(default=None, repr=False, compare=False)  # pyright: ignore[reportAssignmentType]

    def __post_init__(self) -> None:
        # Estimators at other values of hyperparameters share the compiled maps of the one that they came from.
        if self.compiled is None:
            object.__setattr__(self, "compiled", CompiledEnsemble(self.ensemble))

    @property
    def layout(self) -> DataLayout:
        """What data sets look like."""
        return self.ensemble.layout

    @property
    def structure(self) -> str | dict[str, str]:
        """The structure of the data by name, or that of each array."""
        return self.layout.structure

    @property
    def data_shape(self) -> DataShape:
        """The shape of one data set; of mixed data, those of its arrays by name."""
        return self.layout.user_shape

    @property
    def record(self) -> TrainingRecord:
        """What training did."""
        return self.ensemble.record

    @property
    def num_members(self) -> int:
        """How many networks answer together."""
        return self.ensemble.num_members

    @property
    def num_obs(self) -> tuple[int, int] | None:
        """The fewest and the most observations of a data set, if the estimator was trained for a range of them."""
        return self.layout.num_obs

    @property
    def covariates(self) -> Covariates | None:
        """The table of what is fixed by design, which answers are for; None if the fit had none."""
        return self.layout.covariates

    def at(self, **values: float) -> BayesFactor:
        """Return the estimator for these values of the models' hyperparameters, such as ``bf.at(scale=2.0)``.

        It shares the compiled map with this one, so nothing is compiled again.
        """
        if not self.layout.hyperparameters:
            raise ValueError("the models of this estimator have no hyperparameters; leave `at` out.")
        return replace(self, values=check_values("at", self.layout.hyperparameters, values))

    def sensitivity(
        self,
        observed: Data,
        hyperparameter: str | None = None,
        *,
        num_values: int = 50,
        model: int | str = 0,
        over: int | str = 1,
        **fixed: float,
    ) -> LogBfCurve:
        """Return the log Bayes factor of one observed data set as a curve over a hyperparameter of the priors.

        `hyperparameter` may be left out if there is only one. All others are `fixed` by name.
        """
        return curve_over(self, observed, hyperparameter, num_values=num_values, model=model, over=over, fixed=fixed)

    def log_bf(
        self, data: Data, model: int | str = 0, over: int | str = 1, *, extrapolate: bool = False
    ) -> NDArray[np.float64]:
        """Return the natural log Bayes factor of `model` over `over`, one entry per data set.

        `data` has shape (batch, ...), or is a single data set. Models are named or numbered. The entry is the mean
        of the ensemble's log odds: finite for all finite data. An estimator for a range of sample sizes also takes a
        list of data sets of different lengths, and with `extrapolate` lengths beyond its range, with a warning.
        """
        return self.log_bf_members(data, model, over, extrapolate=extrapolate).mean(axis=0)

    def log_bf_members(
        self, data: Data, model: int | str = 0, over: int | str = 1, *, extrapolate: bool = False
    ) -> NDArray[np.float64]:
        """Return the log Bayes factor by each member of the ensemble, shape (ensemble, batch)."""
        first, second = self.index_of("model", model), self.index_of("over", over)
        return log_ratio(self.log_odds_members(self._checked("data", data, extrapolate)), first, second)

    def posterior_probs(
        self, data: Data, prior_probs: ArrayLike | None = None, *, extrapolate: bool = False
    ) -> NDArray[np.float64]:
        """Return the models' posterior probabilities, shape (batch, K), under any prior probabilities.

        The networks' log odds are log evidence ratios, whatever mixture of models they were trained at, so prior odds
        shift them exactly.
        """
        prior = self.prior_or_own(prior_probs)
        evidence = log_evidence(self.log_odds_members(self._checked("data", data, extrapolate))).mean(axis=0)
        return np.exp(log_posterior_probs(evidence, np.log(prior)))

    def compare(
        self,
        observed: Data,
        *,
        prior_probs: ArrayLike | None = None,
        model: int | str | None = None,
        over: int | str | None = None,
        extrapolate: bool = False,
        seconds: float | None = None,
        steps: int | None = None,
        models: Sequence[Model] | None = None,
        executor: Executor | None = None,
        seed: int = 0,
        progress: bool = True,
    ) -> Answer:
        """Return the answer for one observed data set: at once, or, with a budget, more exactly.

        The Bayes factor is that of `model` over `over`. Left out, these are the first and the second of two models;
        of more than two, the most probable and the runner-up. Given one alone, the other is the best of the rest.

        With `seconds` or `steps`, it zooms in on the parameters that could have made these data; see `deepbf.compare`.
        It then simulates from `models`, which a loaded estimator needs to be given.
        """
        if seconds is not None or steps is not None:
            from deepbf.estimator.zooming import zoom_in

            return zoom_in(
                self, observed, models=models, budget=Budget.of(seconds, steps, None, num_models=len(self.names)),
                started=time.monotonic(), prior_probs=prior_probs, model=model, over=over, executor=executor,
                seed=_checks.check_seed("seed", seed), progress=progress,
            )  # fmt: skip
        prior = self.prior_or_own(prior_probs)
        data = self.layout.check_one("observed", observed, values=self.values, extrapolate=extrapolate)
        summaries, log_odds = self.summaries_and_log_odds(data)
        evidence = log_evidence(log_odds[:, 0])
        mean_evidence = evidence.mean(axis=0)
        first, second = self.compared_pair(mean_evidence, prior, model, over)
        members = evidence[:, first] - evidence[:, second]
        log_bf, error, interval = float(members.mean()), None, None
        spread = ensemble_error(members)
        if spread is not None:
            error = float(spread)
            # Student's t, with one degree of freedom less than there are members.
            half_width = float(student_t.ppf(0.975, len(members) - 1)) * error
            interval = (log_bf - half_width, log_bf + half_width)
        return Answer(
            log_bf=log_bf,
            model=self.names[first],
            against=self.names[second],
            error=error,
            interval=interval,
            names=self.names,
            prior_probs=tuple(prior.tolist()),
            posterior_probs=tuple(np.exp(log_posterior_probs(mean_evidence, np.log(prior))).tolist()),
            surprise=self._surprise(log_bf, first, second, int(self.layout.count(data)[0])),
            log_evidence=tuple((mean_evidence - mean_evidence.max()).tolist()),
            warnings=self._warnings(members, error),
            **self._supported(self._support(data, summaries)),
        )

    def support(self, data: Data, *, extrapolate: bool = False) -> Support | None:
        """Return how typical data sets are of each model: tail areas, shape (batch, K), small for strange data.

        Under each model, the probability of data at least as far from what the model usually makes, in the summaries
        that the networks read. If a model is true, its tail area is below 0.05 for one data set in twenty. The order of
        exchangeable observations counts as well. None for an estimator that does not know: one over hyperparameters,
        or from an older file.
        """
        return self._support(self._checked("data", data, extrapolate))

    def _support(self, data: NDArray[np.generic], summaries: NDArray[np.float32] | None = None) -> Support | None:
        """Return the support of data sets as networks read them, of which these are the summaries if they are known."""
        typicality, reference_num_obs = self.ensemble.typicality, self.ensemble.reference_num_obs
        # Simulations over all values of hyperparameters say nothing about one of them.
        if typicality is None or self.layout.hyperparameters or typicality.distances.shape[1] < FEWEST_OF_SIZE:
            return None
        if len(data) == 0:
            none = np.zeros((0, len(self.names)))
            return Support(none, none, none, np.zeros(0))
        return support_of(
            typicality,
            self.summaries(data) if summaries is None else summaries,
            num_obs=None if reference_num_obs is None else self.layout.count(data),
            reference_num_obs=reference_num_obs,
            ordered=data if self.ensemble.any_order else None,
        )

    def reference_log_bf(
        self, model: int | str = 0, over: int | str = 1, *, num_obs: int | None = None
    ) -> tuple[NDArray[np.float64], ...] | None:
        """Return log Bayes factors at simulations set aside from training, of `model` and of `over`.

        They are what the observed one is compared with for its surprise. With a range of sample sizes, those of about
        `num_obs` observations; None if they are too few to say anything.
        """
        # Simulations over all values of hyperparameters say nothing about one of them.
        if self.ensemble.reference is None or self.layout.hyperparameters:
            return None
        first, second = self.index_of("model", model), self.index_of("over", over)
        found = []
        for source in (first, second):
            log_bf = log_ratio(self.ensemble.reference[source], first, second)
            sizes = self.ensemble.reference_num_obs
            if sizes is not None and num_obs is not None:
                log_bf = log_bf[of_about_the_size(sizes[source], num_obs)]
                if len(log_bf) < FEWEST_OF_SIZE:
                    return None
            found.append(log_bf)
        return tuple(found)

    def evaluate(
        self,
        num_datasets: int = 1500,
        *,
        models: Sequence[Model] | None = None,
        exact: LogBf | None = None,
        observed: Data | None = None,
        num_obs: int | None = None,
        model: int | str = 0,
        over: int | str = 1,
        prior_probs: ArrayLike | None = None,
        num_replicates: int = 1000,
        executor: Executor | None = None,
        seed: int = 0,
        progress: bool = True,
    ) -> Evaluation:
        """Return how good this estimator is, on fresh simulations of two of its models.

        Parameters
        ----------
        num_datasets
            Data sets simulated from each of the two models.
        models
            All models of the fit, in its order: needed for a loaded estimator, whose file does not hold them.
        exact
            Maps data sets along a leading axis to exact log Bayes factors of `model` over `over`, where known.
        observed
            One observed data set, for its surprise.
        num_obs
            Observations per data set, for an estimator that was trained for a range of them; those of `observed` by
            default.
        model, over
            Which of the models, by name or number; the first two by default.
        prior_probs
            Prior probabilities of all models; those of the fit by default. Between two of them, their ratio counts.
        num_replicates, executor, seed, progress
            As in `deepbf.evaluate`, which compares several estimators.
        """
        return evaluate_afresh(
            self, num_datasets, models=models, exact=exact, observed=observed, num_obs=num_obs, model=model, over=over,
            prior_probs=prior_probs, num_replicates=num_replicates, executor=executor, seed=seed, progress=progress,
        )  # fmt: skip

    def path(
        self, observed: Data, model: int | str = 0, over: int | str = 1, *, extrapolate: bool = False
    ) -> LogBfPath:
        """Return the log Bayes factor of the first observations of a data set, for each number of them in the range.

        The estimator must have been trained for a range of sample sizes.
        """
        return path_of(self, observed, model, over, extrapolate=extrapolate)

    def design(
        self,
        threshold: float = 10.0,
        power: float = 0.8,
        *,
        num_obs: Sequence[int] | None = None,
        num_datasets: int = 1000,
        models: Sequence[Model] | None = None,
        model: int | str = 0,
        over: int | str = 1,
        executor: Executor | None = None,
        seed: int = 0,
        progress: bool = True,
    ) -> Design:
        """Return how many observations make strong evidence probable, under each of two models.

        The estimator must have been trained for a range of sample sizes.

        Parameters
        ----------
        threshold
            The Bayes factor, or one over it, from which on evidence counts.
        power
            The wanted probability of such evidence for the model that is true.
        num_obs
            Numbers of observations to try; by default some twenty, evenly spread over the range on a log scale.
        num_datasets
            Data sets simulated from each model at each number.
        models, model, over, executor, seed, progress
            As in `evaluate`.
        """
        return design_afresh(
            self, threshold, power, num_obs=num_obs, num_datasets=num_datasets, models=models, model=model, over=over,
            executor=executor, seed=seed, progress=progress,
        )  # fmt: skip

    def evaluated_num_obs(self, num_obs: int | None, observed: Data | None) -> int | None:
        """Return how many observations to simulate, or None if the estimator is for data of a fixed shape.

        It is `num_obs`, if given, or else the number in `observed`; one of the two must say.
        """
        return evaluated_num_obs(self, num_obs, observed)

    def check_models(self, models: Sequence[Model] | None = None) -> tuple[Model, ...]:
        """Return the models to simulate from, if they are those of the fit by name, order and shape of their data.

        `models` may be left out for an estimator that has just been fitted. Their hyperparameters are fixed as `at`
        says.
        """
        return check_models(self, models)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to one file: weights and JSON, nothing that runs when loaded."""
        from deepbf.estimator.storage import save

        save(self, path)

    def __repr__(self) -> str:
        structure = self.structure if isinstance(self.structure, str) else "mixed"
        loss = "" if self.loss == losses.DEFAULT else f" trained by {self.loss}"
        return (
            f"BayesFactor({' against '.join(self.names)}; {structure} data {self._written_shape()}; "
            f"{self.num_members} x {self.network}{loss}; {self.ensemble.num_simulations:,} simulations, "
            f"{self.record.seconds:.0f} s, held-out loss {self.record.held_out_loss:.4f})"
        )

    def _written_shape(self) -> str:
        layout = self.layout
        if layout.packed:
            shapes = describe_shapes({array.name: array.shape for array in layout.arrays})
            range_of = "" if self.num_obs is None else f", {self.num_obs[0]} to {self.num_obs[1]} observations"
            priors = f", {describe_ranges(layout.hyperparameters)}" if layout.hyperparameters else ""
            return f"of {shapes}{range_of}{priors}"
        if self.num_obs is None:
            return f"of shape {self.data_shape}"
        of_each = f" of shape {layout.shape[1:]}" if layout.shape[1:] else ""
        return f"of {self.num_obs[0]} to {self.num_obs[1]} observations{of_each}"

    def log_odds_members(self, data: NDArray[np.generic]) -> NDArray[np.float32]:
        """Return each member's log odds against the last model, shape (ensemble, batch, K - 1).

        Unlike elsewhere `data` are as networks read them: packed if mixed, nan for absent observations, unchecked.
        """
        if len(data) == 0:
            return np.zeros((self.num_members, 0, len(self.names) - 1), np.float32)
        return self.compiled.log_odds(data)

    def fractional_log_odds(self, data: NDArray[np.generic], fraction: float) -> NDArray[np.float32]:
        """Return each member's log odds for the likelihood to the power `fraction`, shape (ensemble, batch, K - 1).

        The default set networks see frequencies of values, and their number apart from them. Raised to a power, the
        likelihood of independent observations is that of as many fewer with the same frequencies. `data` are as for
        `log_odds_members`.
        """
        preparation, networks, spread = self.ensemble.preparation, self.ensemble.networks, self.ensemble.spread
        summary = preparation.summary if isinstance(preparation, TwoViews) else preparation
        if not isinstance(summary, SetSummary | SortedSet) or not summary.largest:
            raise ValueError(
                f"fractional Bayes factors need a default network for sets, network='auto', and num_obs=(fewest, "
                f"most) in fit; the estimator has network={self.network!r}."
            )
        evaluate = compiled(_fractional_log_odds, preparation, networks, spread, fraction)
        return in_batches(evaluate, data, self.compiled.batch_size, axis=1, before=self.ensemble.standardiser)

    def summaries(self, data: NDArray[np.generic]) -> NDArray[np.float32]:
        """Return what the networks read, one row per data set; `data` are as for `log_odds_members`, at least one."""
        return self.compiled.rows(data)

    def summaries_and_log_odds(self, data: NDArray[np.generic]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return what the networks read, and each member's log odds; data sets are prepared once for both."""
        rows = self.compiled.rows(data)
        return rows, self.compiled.log_odds_of_rows(rows)

    def _checked(self, argument: str, data: Data, extrapolate: bool) -> NDArray[np.generic]:
        return self.layout.check(argument, data, values=self.values, extrapolate=extrapolate)

    def index_of(self, argument: str, model: int | str) -> int:
        """Return the number of a model that `argument` names or numbers."""
        if isinstance(model, str):
            return self.names.index(_checks.check_choice(argument, model, self.names))
        index = _checks.check_count(argument, model, least=0)
        if index >= len(self.names):
            raise ValueError(
                f"{argument} must be below {len(self.names)}, the number of models; received {index}. "
                f"The models are {', '.join(f'{i}: {name}' for i, name in enumerate(self.names))}."
            )
        return index

    def compared_pair(
        self,
        evidence: NDArray[np.floating],
        prior_probs: NDArray[np.float64],
        model: int | str | None,
        over: int | str | None,
    ) -> tuple[int, int]:
        """Return the numbers of the two models that a comparison is about, of which either or both may be left out.

        Of two models, the first is over the second unless one is named; of more, models left out are the best of the
        rest by posterior probability, given log evidences up to a constant and prior probabilities, shape (K,) each.
        """
        ranking = np.argsort(-(evidence + np.log(prior_probs)), kind="stable") if len(self.names) > 2 else np.arange(2)
        first = None if model is None else self.index_of("model", model)
        second = None if over is None else self.index_of("over", over)
        # A model is never compared with itself unless both were named so.
        if first is None:
            first = next(int(k) for k in ranking if k != second)
        if second is None:
            second = next(int(k) for k in ranking if k != first)
        return first, second

    def prior_or_own(self, prior_probs: ArrayLike | None) -> NDArray[np.float64]:
        """Return these prior probabilities, checked, or those of the fit."""
        return self.prior_probs if prior_probs is None else _checks.check_probs("prior_probs", prior_probs, self.names)

    def _surprise(self, log_bf: float, first: int, second: int, num_obs: int) -> dict[str, TailArea] | None:
        reference = self.reference_log_bf(first, second, num_obs=num_obs)
        if reference is None:
            return None
        found = surprise(log_bf, reference, rounding=True)
        columns = zip(*(part[0].tolist() for part in found), strict=True)
        return {self.names[k]: TailArea(*values) for k, values in zip((first, second), columns, strict=True)}

    def _supported(self, support: Support | None) -> dict[str, Any]:
        """Return what an answer says of the support of its one data set."""
        if support is None or np.isnan(support.tail_area[0]).any():
            return {}
        areas = zip(*(part[0].tolist() for part in support[:3]), strict=True)
        order = float(support.order[0])
        return {
            "support": {name: TailArea(*area) for name, area in zip(self.names, areas, strict=True)},
            "order": None if np.isnan(order) else order,
        }

    def _warnings(self, members: NDArray[np.float64], error: float | None) -> tuple[str, ...]:
        said = []
        if self.record.hardly_begun:
            said.append(
                f"training has hardly begun ({self.record.num_steps} steps): trust neither the value nor its error"
            )
        guess = np.log(len(self.names))
        if not self.record.held_out_loss < guess - LEAST_LEARNED:
            said.append(
                f"the estimator tells simulations of the models apart no better than a guess (held-out loss "
                f"{self.record.held_out_loss:.4f}, a guess has {guess:.4f}): such data say nothing, or nothing was "
                "learned"
            )
        if error is not None and error > WIDE_SPREAD:
            said.append(f"the ensemble's members differ by {error:.1f} natural units; train longer")
        # Each member learns from half of the simulations.
        num_each = self.record.num_simulations / len(self.names) / 2
        # Of N data sets from the disfavoured model, at most N / BF have a Bayes factor this large against it.
        if abs(members.mean()) > np.log(max(1.0, num_each / FEWEST_FAR_OUT)):
            said.append("evidence this strong is beyond what the simulations show; trust its direction, not its digits")
        if members.min() < 0 < members.max():
            said.append("the ensemble's members disagree on which model is favoured")
        if self.record.stopped != "budget":
            said.append(f"training did not run to its end ({self.record.stopped})")
        return tuple(said)
