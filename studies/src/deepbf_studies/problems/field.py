"""Gaussian fields on a square grid, rough or smooth with independent noise: exact, as the length scale is one of a few.

The overall scale is unknown, with an inverse gamma prior for its square, so that given the length scale a field is
multivariate t.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.normal_evidence import CovarianceGrid, covariance_grid, log_t_evidence
from deepbf_studies.problems.study import OfSize, Study

Floats = NDArray[np.float64]
Params = dict[str, Floats]
Correlation = Callable[[Floats, float], Floats]

SIDE = 16
# Length scales, in units of the distance between neighbours.
ROUGH_LENGTHS = np.array([0.8, 1.2, 1.6])
SMOOTH_LENGTHS = np.array([0.8, 1.1, 1.4])
# The share of the smooth field's variance that is independent noise.
NUGGET = 0.3
# Shape and rate of the inverse gamma prior of the variance.
VARIANCE_PRIOR = (3.0, 2.0)

# So large that no correlation reaches around it: then its spectrum is positive.
SMALLEST_TORUS = 32
# Bounds the memory for fields on the torus.
FIELDS_AT_A_TIME = 500


def field_study(name: str, num_obs: int) -> Study:
    """Return Gaussian fields of `num_obs` rows and columns: exponential, or squared exponential plus a nugget.

    The exact answer is `field_log_bf`.
    """
    return Study(
        name=name,
        title=f"Gaussian fields, {num_obs} x {num_obs}: exponential covariance, or squared exponential plus a nugget",
        num_obs=num_obs,
        models=(
            Model(
                "exponential",
                prior=partial(_prior, lengths=ROUGH_LENGTHS),
                simulator=OfSize(_simulate_rough, num_obs),
            ),
            Model(
                "squared exponential",
                prior=partial(_prior, lengths=SMOOTH_LENGTHS),
                simulator=OfSize(_simulate_smooth, num_obs),
            ),
        ),
        structure="image",
        exact_log_bf=field_log_bf,
    )


def rough_correlation(distances: Floats, length: float) -> Floats:
    """Return the exponential correlation, exp(-d / length)."""
    return np.exp(-distances / length)


def smooth_correlation(distances: Floats, length: float) -> Floats:
    """Return the squared exponential correlation, exp(-d^2 / (2 length^2)), of which a share is independent noise."""
    smooth = (1.0 - NUGGET) * np.exp(-0.5 * (distances / length) ** 2)
    return np.where(distances == 0, 1.0, smooth)


def _prior(rng: np.random.Generator, size: int, *, lengths: Floats) -> Params:
    """Return variances, inverse gamma, and length scales from the list of possible ones."""
    shape, rate = VARIANCE_PRIOR
    return {"variance": rate / rng.standard_gamma(shape, size), "length": rng.choice(lengths, size)}


def _simulate_rough(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return fields of exponential covariance, shape (data sets, num_obs, num_obs)."""
    return _simulate(rng, params, num_obs, ROUGH_LENGTHS, _rough_spectra(_torus_side(num_obs)))


def _simulate_smooth(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return fields of squared exponential covariance plus a nugget, shape (data sets, num_obs, num_obs)."""
    return _simulate(rng, params, num_obs, SMOOTH_LENGTHS, _smooth_spectra(_torus_side(num_obs)))


def _simulate(rng: np.random.Generator, params: Params, side: int, lengths: Floats, spectra: Floats) -> Floats:
    """Return the corners of fields on a torus, which filter white noise by the square root of their spectrum.

    A matrix product for each length scale would serve as well, but not for few data sets on a busy machine, where
    threads of linear algebra wait for each other far longer than they work.
    """
    which = np.searchsorted(lengths, params["length"])
    filters = np.sqrt(spectra)
    fields = np.empty((len(which), side, side))
    for start in range(0, len(fields), FIELDS_AT_A_TIME):
        rows = slice(start, start + FIELDS_AT_A_TIME)
        white = rng.standard_normal((len(which[rows]), spectra.shape[1], spectra.shape[1]))
        torus = np.fft.irfft2(np.fft.rfft2(white) * filters[which[rows]], s=white.shape[1:], axes=(1, 2))
        fields[rows] = torus[:, :side, :side]
    return np.sqrt(params["variance"])[:, None, None] * fields


def _torus_side(side: int) -> int:
    """Return the side of a torus on which all distances within the field are the same as in the plane."""
    return max(2 * side, SMALLEST_TORUS)


@lru_cache(maxsize=4)
def _rough_spectra(torus_side: int) -> Floats:
    """Return the spectra of the first model, one for each length scale."""
    return np.stack([_spectrum(torus_side, rough_correlation, length) for length in ROUGH_LENGTHS])


@lru_cache(maxsize=4)
def _smooth_spectra(torus_side: int) -> Floats:
    """Return the spectra of the second model, one for each length scale."""
    return np.stack([_spectrum(torus_side, smooth_correlation, length) for length in SMOOTH_LENGTHS])


def _spectrum(torus_side: int, correlation_fn: Correlation, length: float) -> Floats:
    """Return the eigenvalues of the correlation matrix on a torus, as `rfft2` lays them out."""
    steps = np.minimum(np.arange(torus_side), torus_side - np.arange(torus_side))
    return np.fft.rfft2(correlation_fn(np.hypot(steps[:, None], steps), length)).real


def field_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of an exponential over a squared exponential covariance, per data set.

    `data` has shape (data sets, n, n). A field is N(0, v R), with v inverse gamma of shape 3 and rate 2. At distance
    d > 0, the first model has the correlation exp(-d / l), with l uniform on `ROUGH_LENGTHS`; the second has
    (1 - 0.3) exp(-d^2 / (2 l^2)), with l uniform on `SMOOTH_LENGTHS`. Each evidence is a mean of multivariate t
    densities over the length scales.

    Examples
    --------
    >>> field_log_bf([[[0.0, 0.0], [0.0, 0.0]], [[1.0, -1.0], [-1.0, 1.0]]]).round(4)
    array([-0.0375,  0.4122])
    """
    fields = _checks.check_numeric_array("data", data)
    if fields.ndim != 3 or fields.shape[1] != fields.shape[2]:
        raise ValueError(f"data must have shape (data sets, n, n), square fields; received shape {fields.shape}.")
    side = fields.shape[1]
    flat = _checks.check_datasets("data", fields.reshape(len(fields), side * side))
    shape, rate = VARIANCE_PRIOR
    rough, smooth = (
        log_t_evidence(flat, grid, shape=shape, rate=rate) for grid in (_rough_grid(side), _smooth_grid(side))
    )
    return rough - smooth


@lru_cache(maxsize=4)
def _rough_grid(side: int) -> CovarianceGrid:
    """Return the correlation matrices of the first model, one for each length scale."""
    return _grid(side, rough_correlation, ROUGH_LENGTHS)


@lru_cache(maxsize=4)
def _smooth_grid(side: int) -> CovarianceGrid:
    """Return the correlation matrices of the second model, one for each length scale."""
    return _grid(side, smooth_correlation, SMOOTH_LENGTHS)


def _grid(side: int, correlation_fn: Correlation, lengths: Floats) -> CovarianceGrid:
    """Return the correlation matrices of all points of a square, row by row."""
    points = np.stack(np.divmod(np.arange(side * side), side), axis=1)
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    return covariance_grid([correlation_fn(distances, length) for length in lengths])
