"""Intrinsic Bayes factors: which training samples they average over, and the two ways of averaging."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp


@dataclass(frozen=True)
class Subsets:
    """Training samples: which observations each of them holds, and how many there could be.

    Parameters
    ----------
    indices
        The places of the observations in each training sample, shape (subsets, size).
    num_possible
        The number of all subsets of that size.
    """

    indices: NDArray[np.intp]
    num_possible: int

    @property
    def complete(self) -> bool:
        """Whether every possible subset is among them, so that no error comes from choosing."""
        return len(self.indices) == self.num_possible

    @classmethod
    def choose(cls, num_obs: int, size: int, most: int, seed: int) -> Subsets:
        """Return all subsets of `size` observations out of `num_obs` if there are at most `most`, else random ones.

        There are `most` random ones, drawn independently of each other, each subset with the same probability.

        Examples
        --------
        >>> Subsets.choose(3, 2, most=10, seed=0).indices.tolist()
        [[0, 1], [0, 2], [1, 2]]
        >>> Subsets.choose(40, 20, most=5, seed=0).indices.shape
        (5, 20)
        """
        num_possible = math.comb(num_obs, size)
        if num_possible <= most:
            every = list(itertools.combinations(range(num_obs), size))
            return cls(np.array(every, dtype=np.intp), num_possible)
        rng = np.random.default_rng(seed)
        order = rng.permuted(np.tile(np.arange(num_obs), (most, 1)), axis=1)
        return cls(np.sort(order[:, :size], axis=1), num_possible)


def log_mean_inverse(log_bf: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log of the mean inverse Bayes factor over the last axis, and its standard error.

    Added to the log Bayes factor of all observations, this is the arithmetic intrinsic Bayes factor::

        log (1/L) sum_l 1 / BF_l

    for the Bayes factors BF_l of L training samples. `log_bf` holds their logs, shape (..., L); both results have
    shape (...). The standard error is that of an average over training samples chosen at random, to first order in
    the log; it means nothing if all training samples are there.

    Examples
    --------
    >>> value, error = log_mean_inverse(np.log([0.5, 0.25]))
    >>> round(float(np.exp(value)), 6)
    3.0
    """
    number = log_bf.shape[-1]
    log_mean = np.asarray(logsumexp(-log_bf, axis=-1)) - math.log(number)
    relative = np.exp(-log_bf - log_mean[..., None])
    return log_mean, relative.std(axis=-1, ddof=1 if number > 1 else 0) / math.sqrt(number)


def mean_inverse_log(log_bf: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean log of the inverse Bayes factor over the last axis, and its standard error.

    Added to the log Bayes factor of all observations, this is the geometric intrinsic Bayes factor::

        (1/L) sum_l -log BF_l

    Shapes and the error are as in `log_mean_inverse`. One extreme training sample moves this average far less.

    Examples
    --------
    >>> value, error = mean_inverse_log(np.array([1.0, 3.0]))
    >>> float(value), float(error)
    (-2.0, 1.0)
    """
    number = log_bf.shape[-1]
    return -log_bf.mean(axis=-1), log_bf.std(axis=-1, ddof=1 if number > 1 else 0) / math.sqrt(number)
