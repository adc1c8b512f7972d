"""Variants that compare Bayes factors of all observations with those of some of them (Section 2.3 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf._jeffreys import strength_on_jeffreys_scale
from deepbf._numerics import ensemble_error, log_ratio
from deepbf.answer import write_odds
from deepbf.estimator.bayes_factor import BayesFactor
from deepbf.estimator.fitting import fit
from deepbf.layout.structure import Structure, find_structure
from deepbf.models.model import Model
from deepbf.variants.intrinsic import Subsets, log_mean_inverse, mean_inverse_log

MOST_SUBSETS = 1000
# Data sets asked about at a time: some hundred megabytes for a hundred observations.
ROWS_AT_A_TIME = 100_000
# As in answers: simulations that must be expected as far out as a Bayes factor, for its digits to rest on data.
FEWEST_FAR_OUT = 1000
MOST_ROWS_PRINTED = 12


@dataclass(frozen=True)
class VariantBayesFactor:
    """Log Bayes factors of one variant, one for each data set.

    Parameters
    ----------
    variant
        Which variant, in words.
    log_bf
        Natural log, of `model` over `against`, shape (data sets,).
    error
        Spread of the ensemble's members, as a standard error; None for an ensemble of one.
    monte_carlo_error
        What choosing some subsets at random adds; None where all of them were used, or none are needed.
    num_subsets, num_possible
        Training samples that were averaged over, and how many there are; 0 where there is nothing to average.
    doubtful
        Where one of the Bayes factors that the variant is made of is larger than the simulations can show: their
        ratio then rests on the form of the network.
    model, against
        The direction, by name.
    needs_independence
        Whether the variant is right only for observations that are independent given the parameters, not for all
        exchangeable ones; printed where it does.
    """

    variant: str
    log_bf: NDArray[np.float64]
    error: NDArray[np.float64] | None
    monte_carlo_error: NDArray[np.float64] | None
    num_subsets: int
    num_possible: int
    doubtful: NDArray[np.bool_]
    model: str
    against: str
    needs_independence: bool = False

    def __str__(self) -> str:
        lines = [f"Log {self.variant} Bayes factor (natural log) of {self.model} over {self.against}"]
        lines += [f"  {self._written(k)}" for k in range(min(len(self.log_bf), MOST_ROWS_PRINTED))]
        if len(self.log_bf) > MOST_ROWS_PRINTED:
            lines.append(f"  ... and {len(self.log_bf) - MOST_ROWS_PRINTED} more")
        if self.num_possible:
            which = "all" if self.monte_carlo_error is None else f"{self.num_subsets:,} random ones"
            lines.append(f"  over {which} of {self.num_possible:,} training samples")
        if self.needs_independence:
            lines.append("  for observations that are independent given the parameters")
        if self.doubtful.any():
            lines.append(
                f"  careful: of {int(self.doubtful.sum())} data sets, a Bayes factor behind the variant is beyond what "
                "the simulations show; trust neither its digits nor its direction there"
            )
        return "\n".join(lines)

    def _written(self, k: int) -> str:
        value = float(self.log_bf[k])
        errors = [] if self.error is None else [f"+- {self.error[k]:.2g} (training)"]
        errors += [] if self.monte_carlo_error is None else [f"+- {self.monte_carlo_error[k]:.2g} (subsets)"]
        favours = self.model if value >= 0 else self.against
        return (
            f"{value:>9.2f} {' '.join(errors)}  {write_odds(abs(value))} for {favours}, "
            f"{strength_on_jeffreys_scale(value)}"
        )


@dataclass(frozen=True)
class Variants:
    """Partial, posterior, fractional and intrinsic Bayes factors from one estimator for a range of sample sizes.

    Get one from `deepbf.fit_variants`, or wrap an estimator that was fitted with `num_obs=(fewest, most)`. All of them
    are differences of log Bayes factors, so none overflows, whatever the data.

    In every method `data` is one data set, or many of one length along a leading axis.

    What the observations must be like depends on the variant:

    - `partial`, `arithmetic` and `geometric` need exchangeable observations, and simulators that, asked for fewer,
      return what some of more would be. Then BF(training) is the ratio of marginal densities of BF(all), and their
      quotient is a ratio of predictive densities, whether or not the observations are independent given the parameters.
    - `posterior` and `fractional` need observations that are independent given the parameters: only then is the
      likelihood of the data twice the square of that of the data, and that of a share of them its power. What a
      simulator draws once for a whole data set, such as a random effect, counts as a parameter here.

    Parameters
    ----------
    estimator
        For exchangeable observations, over a range that includes all observations and the training samples; for the
        posterior Bayes factor twice as many as all.
    model, over
        The direction, by name or number.
    """

    estimator: BayesFactor
    model: int | str = 0
    over: int | str = 1

    def __post_init__(self) -> None:
        layout, structure = self.estimator.layout, self.estimator.structure
        if layout.packed or not layout.arrays[0].structure.any_order:
            raise ValueError(
                f"variants split data into training and test samples, so they need structure='exchangeable'; the "
                f"estimator was fitted with structure={structure!r}, whose parts cannot be exchanged."
            )
        if layout.num_obs is None:
            raise ValueError(
                "variants need Bayes factors at several sample sizes; the estimator is for data sets of shape "
                f"{self.estimator.data_shape}. Fit with num_obs=(fewest, most), or call deepbf.fit_variants."
            )

    def partial(self, data: ArrayLike, training: int | Sequence[int]) -> VariantBayesFactor:
        """Return the Bayes factor of the other observations given those for training: BF(all) / BF(training).

        It is the ratio of the models' predictive densities of the other observations. It needs exchangeable
        observations only, not independent ones. `training` counts the first observations, or lists the places of
        others.

        Examples
        --------
        >>> import deepbf
        >>> from deepbf.example import counts_example
        >>> models = counts_example(num_obs=8).models
        >>> variants = deepbf.fit_variants(models, 8, 2, posterior=False, steps=50, ensemble=2, progress=False)
        >>> variants.partial([0, 1, 0, 2, 1, 0, 0, 3], training=2).log_bf.shape
        (1,)
        """
        batch = self._batch(data)
        num_obs = batch.shape[1]
        if isinstance(training, int | np.integer):
            places = np.arange(_check_training("training", training, num_obs))
        else:
            places = np.asarray(training)
            if places.ndim != 1 or places.dtype.kind not in "iu" or len(np.unique(places)) != len(places):
                raise TypeError(
                    f"training must be a number of observations, or their places, each once; received {training!r}."
                )
            if len(places) == 0 or places.min() < 0 or places.max() >= num_obs:
                raise ValueError(
                    f"training must list places from 0 to {num_obs - 1}, at least one; received {training!r}."
                )
            _check_training("the number of places in training", len(places), num_obs)
        whole, part = self._members(batch), self._members(batch[:, places])
        return self._result("partial", whole - part, (whole, part))

    def posterior(self, data: ArrayLike) -> VariantBayesFactor:
        """Return the posterior Bayes factor: of the data given themselves, BF(data twice) / BF(data).

        For each model this compares the likelihood averaged over the posterior (Aitkin, 1991)::

            integral p(y | theta) p(theta | y) dtheta = integral p(y | theta)^2 p(theta) dtheta / p(y)

        The observations must be independent given the parameters: twice the data then has the square of their
        likelihood. For observations that are only exchangeable the number means something else; do not use it.
        """
        batch = self._batch(data)
        self._check_number("twice the observations", 2 * batch.shape[1])
        twice, once = self._members(np.concatenate([batch, batch], axis=1)), self._members(batch)
        return self._result("posterior", twice - once, (twice, once), needs_independence=True)

    def fractional(self, data: ArrayLike, fraction: float) -> VariantBayesFactor:
        """Return the fractional Bayes factor: the likelihood to the power `fraction` does what a training sample does.

        The observations must be independent given the parameters. The likelihood to a power is then that of as many
        observations as `fraction` of them, with the same frequencies of values; the estimator takes their number as a
        number. For observations that are only exchangeable, use `partial` or an intrinsic Bayes factor.
        """
        batch = self._batch(data)
        if not 0.0 < _checks.check_positive("fraction", fraction) < 1.0:
            raise ValueError(
                f"fraction must be between 0 and 1; received {fraction}. Common is num_training / num_obs."
            )
        low = (self.estimator.num_obs or (1, 1))[0]
        if fraction * batch.shape[1] < low:
            raise ValueError(
                f"fraction must leave at least {low} observations, the fewest of the fit; {fraction} of "
                f"{batch.shape[1]} is {fraction * batch.shape[1]:.3g}. Pass a larger one, or fit from fewer."
            )
        whole = self._members(batch)
        odds = self.estimator.fractional_log_odds(self.estimator.layout.check("data", batch), fraction)
        part = log_ratio(odds, *self._pair())
        return self._result("fractional", whole - part, (whole, part), needs_independence=True)

    def arithmetic(
        self, data: ArrayLike, num_training: int, *, num_subsets: int = MOST_SUBSETS, seed: int = 0
    ) -> VariantBayesFactor:
        """Return the arithmetic intrinsic Bayes factor: the mean partial one over training samples of one size.

        The mean is over all training samples of `num_training` observations if they are at most `num_subsets`, else
        over that many random ones, with their error. It needs exchangeable observations only, not independent ones.
        """
        return self._intrinsic("arithmetic intrinsic", log_mean_inverse, data, num_training, num_subsets, seed)

    def geometric(
        self, data: ArrayLike, num_training: int, *, num_subsets: int = MOST_SUBSETS, seed: int = 0
    ) -> VariantBayesFactor:
        """Return the geometric intrinsic Bayes factor: the mean of log partial ones over training samples.

        Which training samples are averaged over is as in `arithmetic`, and so is what the observations must be like.
        One extreme training sample moves it far less than the arithmetic one.
        """
        return self._intrinsic("geometric intrinsic", mean_inverse_log, data, num_training, num_subsets, seed)

    def _intrinsic(
        self,
        variant: str,
        average: Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]],
        data: ArrayLike,
        num_training: int,
        num_subsets: int,
        seed: int,
    ) -> VariantBayesFactor:
        batch = self._batch(data)
        size = _check_training("num_training", num_training, batch.shape[1])
        most = _checks.check_count("num_subsets", num_subsets)
        subsets = Subsets.choose(batch.shape[1], size, most, _checks.check_seed("seed", seed))
        whole = self._members(batch)
        averages, errors, largest = [], [], []
        for part in self._subset_members(batch, subsets):
            averages.append(average(part)[0])
            errors.append(average(part.mean(axis=0))[1])
            largest.append(np.abs(part.mean(axis=0)).max(axis=-1))
        members = whole + np.concatenate(averages, axis=1)
        return self._result(
            variant,
            members,
            (whole, np.concatenate(largest)[None]),
            monte_carlo_error=None if subsets.complete else np.concatenate(errors),
            subsets=subsets,
        )

    def _subset_members(self, batch: NDArray[np.generic], subsets: Subsets) -> Iterator[NDArray[np.float64]]:
        """Yield log Bayes factors of all subsets of some data sets, shape (members, data sets, subsets)."""
        num_subsets = len(subsets.indices)
        step = max(1, ROWS_AT_A_TIME // num_subsets)
        for start in range(0, len(batch), step):
            part = batch[start : start + step]
            samples = part[:, subsets.indices].reshape(-1, subsets.indices.shape[1], *part.shape[2:])
            members = self._members(samples)
            yield members.reshape(len(members), len(part), num_subsets)

    def _members(self, batch: NDArray[np.generic]) -> NDArray[np.float64]:
        return self.estimator.log_bf_members(batch, self.model, self.over)

    def _pair(self) -> tuple[int, int]:
        return self.estimator.index_of("model", self.model), self.estimator.index_of("over", self.over)

    def _batch(self, data: ArrayLike) -> NDArray[np.generic]:
        """Return data sets of one length along a leading axis, within the range of the estimator."""
        array = _checks.check_numeric_array("data", data)
        num_axes = len(self.estimator.layout.shape)
        if array.ndim == num_axes:
            array = array[None]
        if array.ndim != num_axes + 1:
            raise ValueError(
                f"data must be one data set of {num_axes} axes, or many of one length along a leading axis; received "
                f"shape {array.shape}."
            )
        self._check_number("the observations", array.shape[1])
        return array

    def _check_number(self, what: str, number: int) -> None:
        low, high = self.estimator.num_obs or (0, 0)
        if not low <= number <= high:
            raise ValueError(
                f"{what} must be within the trained range, {low} to {high}; received {number}. "
                "Fit again with a range that includes it."
            )

    def _result(
        self,
        variant: str,
        members: NDArray[np.float64],
        behind: Sequence[NDArray[np.float64]],
        *,
        monte_carlo_error: NDArray[np.float64] | None = None,
        subsets: Subsets | None = None,
        needs_independence: bool = False,
    ) -> VariantBayesFactor:
        """Return the variant whose log Bayes factors by each member are given, and those that they are made of."""
        first, second = self._pair()
        num_each = self.estimator.record.num_simulations / len(self.estimator.names)
        shown = math.log(max(math.e, num_each / FEWEST_FAR_OUT))
        return VariantBayesFactor(
            variant=variant,
            log_bf=members.mean(axis=0),
            error=ensemble_error(members),
            monte_carlo_error=monte_carlo_error,
            num_subsets=0 if subsets is None else len(subsets.indices),
            num_possible=0 if subsets is None else subsets.num_possible,
            doubtful=np.max([np.abs(one.mean(axis=0)) for one in behind], axis=0) > shown,
            model=self.estimator.names[first],
            against=self.estimator.names[second],
            needs_independence=needs_independence,
        )


def fit_variants(
    models: Sequence[Model],
    num_obs: int,
    num_training: int | Sequence[int],
    *,
    posterior: bool = True,
    structure: str = "exchangeable",
    model: int | str = 0,
    over: int | str = 1,
    **options: Any,
) -> Variants:
    """Return partial, posterior, fractional and intrinsic Bayes factors of data sets of `num_obs` observations.

    One network is trained for every number of observations from the smallest training sample to `num_obs`, or to
    twice as many for the posterior Bayes factor. Simulators take the number: ``simulator(rng, params, num_obs)``.

    Partial and intrinsic Bayes factors need exchangeable observations. Posterior and fractional ones need observations
    that are independent given the parameters: see `Variants`.

    Parameters
    ----------
    models
        Two or more models, in the order that gives Bayes factors their direction.
    num_obs
        The number of observations in the data sets that the models are compared by.
    num_training
        The number of observations in a training sample, or several such numbers.
    posterior
        Whether the posterior Bayes factor is wanted, which takes every observation twice. It needs observations that
        are independent given the parameters; pass False where they are not, which also leaves more of the training
        to the other variants.
    structure
        "exchangeable": other data cannot be split.
    model, over
        The direction, by name or number.
    options
        Everything else that `deepbf.fit` takes: `seconds`, `ensemble`, `seed`, ...

    Examples
    --------
    >>> import deepbf
    >>> from deepbf.example import counts_example
    >>> models = counts_example(num_obs=8).models
    >>> variants = deepbf.fit_variants(models, 8, 2, steps=50, ensemble=2, progress=False)
    >>> variants.geometric(models[0].simulate(1, seed=1).data, num_training=2).num_possible
    28
    """
    num_obs = _checks.check_count("num_obs", num_obs, least=2)
    sizes = [num_training] if isinstance(num_training, int | np.integer) else list(num_training)
    if not sizes:
        raise ValueError("num_training must be at least one number of observations; received none.")
    smallest = min(_check_training("num_training", size, num_obs) for size in sizes)
    found = find_structure(structure)
    if not isinstance(found, Structure) or not found.any_order:
        raise ValueError(
            f"structure must be 'exchangeable': variants split data into training and test samples; received "
            f"{structure!r}."
        )
    largest = 2 * num_obs if posterior else num_obs
    return Variants(fit(models, structure=structure, num_obs=(smallest, largest), **options), model, over)


def _check_training(argument: str, number: object, num_obs: int) -> int:
    """Return the size of a training sample, if it leaves something on either side."""
    size = _checks.check_count(argument, number)
    if size >= num_obs:
        raise ValueError(
            f"{argument} must leave observations to compare the models by: at most {num_obs - 1} of {num_obs}; "
            f"received {size}."
        )
    return size
