"""Variants that compare Bayes factors of all observations with those of some of them (Section 2.3 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from deepbf import _checks
from deepbf._numerics import log_ratio
from deepbf.estimator import BayesFactor
from deepbf.estimator.fractional import fractional_log_odds
from deepbf.variants.result import VariantBayesFactor
from deepbf.variants.subsets import Subsets, choose_subsets

MOST_SUBSETS = 1000
# Data sets asked about at a time: some hundred megabytes for a hundred observations.
ROWS_AT_A_TIME = 100_000
# As in answers: simulations that must be expected as far out as a Bayes factor, for its digits to rest on data.
FEWEST_FAR_OUT = 1000


@dataclass(frozen=True)
class Variants:
    """Partial, posterior, fractional and intrinsic Bayes factors from one estimator for a range of sample sizes.

    Get one from `deepbf.fit_variants`, or wrap an estimator that was fitted with `num_obs=(fewest, most)`. All of them
    are differences of log Bayes factors, so none overflows, whatever the data.

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
        structure, num_obs = self.estimator.structure, self.estimator.num_obs
        if structure != "exchangeable":
            raise ValueError(
                f"variants split data into training and test samples, so they need structure='exchangeable'; the "
                f"estimator was fitted with structure={structure!r}, whose parts cannot be exchanged."
            )
        if num_obs is None:
            raise ValueError(
                "variants need Bayes factors at several sample sizes; the estimator is for data sets of shape "
                f"{self.estimator.data_shape}. Fit with num_obs=(fewest, most), or call deepbf.fit_variants."
            )

    def partial(self, data: ArrayLike, training: int | Sequence[int]) -> VariantBayesFactor:
        """Return the Bayes factor of the other observations given those for training: BF(all) / BF(training).

        `training` counts the first observations, or lists the places of others. `data` is one data set, or many of one
        length along a leading axis.
        """
        batch = self._batch(data)
        places = check_places(training, batch.shape[1])
        whole, part = self._members(batch), self._members(batch[:, places])
        return self._result("partial", whole - part, (whole, part))

    def posterior(self, data: ArrayLike) -> VariantBayesFactor:
        """Return the posterior Bayes factor: of the data given themselves, BF(data twice) / BF(data)."""
        batch = self._batch(data)
        self._check_number("twice the observations", 2 * batch.shape[1])
        twice, once = self._members(np.concatenate([batch, batch], axis=1)), self._members(batch)
        return self._result("posterior", twice - once, (twice, once))

    def fractional(self, data: ArrayLike, fraction: float) -> VariantBayesFactor:
        """Return the fractional Bayes factor: the likelihood to the power `fraction` does what a training sample does.

        For observations that are independent given the parameters, that is as many observations as `fraction` of them,
        with the same frequencies of values; the estimator takes their number as a number.
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
        odds = fractional_log_odds(self.estimator, self._checked(batch), fraction)
        part = log_ratio(odds, *self._pair())
        return self._result("fractional", whole - part, (whole, part))

    def arithmetic(
        self, data: ArrayLike, num_training: int, *, num_subsets: int = MOST_SUBSETS, seed: int = 0
    ) -> VariantBayesFactor:
        """Return the arithmetic intrinsic Bayes factor: the mean partial one over training samples of one size.

        Over all of them if they are at most `num_subsets`, else over that many random ones, with their error.
        """
        return self._intrinsic("arithmetic intrinsic", log_mean_inverse, data, num_training, num_subsets, seed)

    def geometric(
        self, data: ArrayLike, num_training: int, *, num_subsets: int = MOST_SUBSETS, seed: int = 0
    ) -> VariantBayesFactor:
        """Return the geometric intrinsic Bayes factor: the mean of log partial ones over training samples."""
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
        size = check_training("num_training", num_training, batch.shape[1])
        most = _checks.check_count("num_subsets", num_subsets)
        subsets = choose_subsets(batch.shape[1], size, most, _checks.check_seed("seed", seed))
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
            monte_carlo_error=None if subsets.all_there else np.concatenate(errors),
            subsets=subsets,
        )

    def _subset_members(self, batch: NDArray[np.generic], subsets: Subsets) -> Any:
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
        first, second = (self.estimator.index_of(argument, getattr(self, argument)) for argument in ("model", "over"))
        return first, second

    def _checked(self, batch: NDArray[np.generic]) -> NDArray[np.generic]:
        return self.estimator.check_data("data", batch)

    def _batch(self, data: ArrayLike) -> NDArray[np.generic]:
        """Return data sets of one length along a leading axis, within the range of the estimator."""
        array = _checks.check_numeric_array("data", data)
        num_axes = len(self.estimator.ensemble.data_shape)
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
    ) -> VariantBayesFactor:
        first, second = self._pair()
        record = self.estimator.record
        shown = math.log(max(math.e, record.num_simulations / len(self.estimator.names) / FEWEST_FAR_OUT))
        return VariantBayesFactor(
            variant=variant,
            log_bf=members.mean(axis=0),
            error=members.std(axis=0, ddof=1) if len(members) > 1 else None,
            monte_carlo_error=monte_carlo_error,
            num_subsets=0 if subsets is None else len(subsets.indices),
            num_possible=0 if subsets is None else subsets.num_possible,
            doubtful=np.max([np.abs(one.mean(axis=0)) for one in behind], axis=0) > shown,
            model=self.estimator.names[first],
            against=self.estimator.names[second],
        )


def check_training(argument: str, number: object, num_obs: int) -> int:
    """Return the size of a training sample, if it leaves something on either side."""
    size = _checks.check_count(argument, number)
    if size >= num_obs:
        raise ValueError(
            f"{argument} must leave observations to compare the models by: at most {num_obs - 1} of {num_obs}; "
            f"received {size}."
        )
    return size


def check_places(training: int | Sequence[int], num_obs: int) -> NDArray[np.intp]:
    """Return the places of the training observations."""
    if isinstance(training, int | np.integer):
        return np.arange(check_training("training", training, num_obs))
    places = np.asarray(training)
    if places.ndim != 1 or places.dtype.kind not in "iu" or len(np.unique(places)) != len(places):
        raise TypeError(
            f"training must be a number of observations, or their places, each once; received {training!r}."
        )
    if len(places) == 0 or places.min() < 0 or places.max() >= num_obs:
        raise ValueError(f"training must list places from 0 to {num_obs - 1}, at least one; received {training!r}.")
    check_training("the number of places in training", len(places), num_obs)
    return places.astype(np.intp)


def log_mean_inverse(log_bf: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log of the mean inverse Bayes factor over the last axis, and its standard error over random ones."""
    number = log_bf.shape[-1]
    log_mean = np.asarray(logsumexp(-log_bf, axis=-1)) - math.log(number)
    relative = np.exp(-log_bf - log_mean[..., None])
    return log_mean, relative.std(axis=-1, ddof=1 if number > 1 else 0) / math.sqrt(number)


def mean_inverse_log(log_bf: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean log of the inverse Bayes factor over the last axis, and its standard error."""
    number = log_bf.shape[-1]
    return -log_bf.mean(axis=-1), log_bf.std(axis=-1, ddof=1 if number > 1 else 0) / math.sqrt(number)
