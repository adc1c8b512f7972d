"""What every problem is made of: `Study`, simulators of any sample size, and densities for NumPy and JAX arrays.

JAX is never loaded here on behalf of NumPy arrays: workers that simulate a study do without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from deepbf import _checks
from deepbf.criticism.predictive_source import ExactPosterior
from deepbf.models import Model

# Any stands for None: almost every study has an exact answer, and whoever loads one of those by name may call it.
ExactLogBf = Callable[[Any], NDArray[np.float64]] | Any

Array = Any
"""A NumPy array, a JAX array, traced or not, or a number; results are of the same library."""


@dataclass(frozen=True)
class Study:
    """A ready-made comparison of models.

    Parameters
    ----------
    name
        What `problems.load` calls it.
    title
        One line in words.
    num_obs
        The number of observations in a data set.
    models
        The competing models, in the order that gives every Bayes factor its direction.
    structure
        What `deepbf.fit` should assume about the data.
    exact_log_bf
        Maps data sets along a leading axis to exact natural log Bayes factors, first model over second; None where
        nobody knows them.
    exact_log_evidence
        For studies of more than two models: maps data sets to exact natural log evidences, shape (data sets, models).
    exact_posteriors
        Exact posterior samplers, one for each model, where they are known.
    observed
        The real data set, where there is one, laid out as the models simulate it.
    covariates
        For data on a fixed design: named columns, each with one entry per observation, that are the same in every data
        set and known to both models.
    """

    name: str
    title: str
    num_obs: int
    models: tuple[Model, ...]
    structure: str | dict[str, str]
    exact_log_bf: ExactLogBf = None
    exact_log_evidence: Callable[[Any], NDArray[np.float64]] | None = None
    exact_posteriors: tuple[ExactPosterior, ...] | None = None
    observed: NDArray[Any] | None = None
    covariates: Mapping[str, NDArray[Any]] | None = None


@dataclass(frozen=True)
class OfSize:
    """A simulator that draws `num_obs` observations, or as many as it is asked for.

    Parameters
    ----------
    draw
        ``draw(rng, params, num_obs=...)``: data sets for these parameters. A function of a module, so that models
        built from it pickle.
    num_obs
        The number of observations where the caller names none.
    """

    draw: Callable[..., Any]
    num_obs: int

    def __call__(self, rng: np.random.Generator, params: Any, num_obs: int | None = None) -> Any:
        """Return data sets for these parameters; a model without parameters gets the number of data sets instead."""
        return self.draw(rng, params, num_obs=self.num_obs if num_obs is None else num_obs)


def in_blocks(
    numbers_fn: Callable[[NDArray[np.float64]], NDArray[np.float64]], data: NDArray[np.float64], *, size: int = 1000
) -> NDArray[np.float64]:
    """Return one number per data set, ``numbers_fn(data)``, computed for `size` data sets at a time.

    This bounds the memory that temporary arrays take, and keeps them in cache.

    Examples
    --------
    >>> in_blocks(lambda block: block.sum(axis=1), np.ones((5, 3)), size=2)
    array([3., 3., 3., 3., 3.])
    """
    blocks = (data[start : start + size] for start in range(0, len(data), size))
    return np.concatenate([np.empty(0), *(numbers_fn(block) for block in blocks)])


def library_of(values: Array) -> tuple[Any, Array]:
    """Return the library that made `values`, and `values` as its array of floats.

    Densities of the studies take arrays of either library, so that baselines in NumPy and gradient-based samplers in
    JAX can use the same function. Lists and plain numbers become NumPy arrays.

    Examples
    --------
    >>> library, array = library_of([1, 2])
    >>> library.__name__, array.dtype
    ('numpy', dtype('float64'))
    """
    if hasattr(values, "__array_namespace__") and not isinstance(values, np.ndarray | np.generic):
        return values.__array_namespace__(), values
    # Float before any sum: integer sums of large counts would wrap around in silence.
    return np, np.asarray(values, dtype=np.float64)


def log_gamma_of(values: Array) -> Array:
    """Return the log of the gamma function at each entry, computed by the library that made `values`.

    Examples
    --------
    >>> log_gamma_of([1.0, 5.0]).round(4)
    array([0.    , 3.1781])
    """
    xp, array = library_of(values)
    if xp is np:
        return gammaln(array)
    from jax.scipy.special import gammaln as jax_gammaln

    return jax_gammaln(array)


def check_rows(argument: str, data: ArrayLike, *, num_columns: int) -> NDArray[np.float64]:
    """Return `data` as float64 of shape (data sets, observations, num_columns), refusing anything else."""
    array = _checks.check_numeric_array(argument, data)
    if array.ndim != 3 or array.shape[2] != num_columns:
        raise ValueError(
            f"{argument} must have shape (data sets, observations, {num_columns}); received shape {array.shape}. "
            f"Pass {argument}[None] for a single data set."
        )
    nonfinite = _checks.describe_nonfinite(array)
    if nonfinite is not None:
        raise ValueError(f"{argument} must be finite; received {nonfinite}. Remove or impute missing observations.")
    return array.astype(np.float64)


def check_binary(argument: str, data: ArrayLike) -> NDArray[np.float64]:
    """Return `data` as float64 of shape (data sets, responses), refusing anything but 0 and 1."""
    array = _checks.check_datasets(argument, data)
    if not ((array == 0) | (array == 1)).all():
        other = array[(array != 0) & (array != 1)][0]
        raise ValueError(f"{argument} must hold binary responses, 0 or 1; received {other:g}. Recode the responses.")
    return array
