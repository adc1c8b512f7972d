"""Images of independent noise with or without a blob at an unknown place: exact by summing over all places.

Given its place, the blob is a normal coefficient times a known shape, which integrates out in closed form.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.study import OfSize, Study, in_blocks

Floats = NDArray[np.float64]
Params = dict[str, Floats]

SIDE = 16
# The standard deviation of the blob's shape, in pixels, and of its height.
WIDTH = 1.5
HEIGHT_SCALE = 2.5


def blob_study(name: str, num_obs: int) -> Study:
    """Return square images of `num_obs` rows: standard normal noise, with a blob of known width or without.

    The exact answer is `blob_log_bf`.
    """
    return Study(
        name=name,
        title=f"Images, {num_obs} x {num_obs}: Gaussian noise, with a blob of unknown place and height or without",
        num_obs=num_obs,
        models=(
            Model("blob", prior=_prior, simulator=OfSize(_simulate_blob, num_obs)),
            Model("noise", simulator=OfSize(_simulate_noise, num_obs)),
        ),
        structure="image",
        exact_log_bf=blob_log_bf,
    )


def _prior(rng: np.random.Generator, size: int) -> Params:
    """Return heights, and the row and the column of the blob between the first, 0, and the last, 1."""
    return {
        "height": HEIGHT_SCALE * rng.standard_normal(size),
        "row": rng.uniform(size=size),
        "column": rng.uniform(size=size),
    }


def _simulate_noise(rng: np.random.Generator, size: int, *, num_obs: int) -> Floats:
    """Return standard normal noise, shape (data sets, num_obs, num_obs)."""
    return rng.standard_normal((size, num_obs, num_obs))


def _simulate_blob(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return noise with a blob about one of the pixels, shape (data sets, num_obs, num_obs)."""
    profiles = _profiles(num_obs)
    down, right = (profiles[np.floor(num_obs * params[axis]).astype(int)] for axis in ("row", "column"))
    blobs = params["height"][:, None, None] * down[:, :, None] * right[:, None, :]
    return blobs + _simulate_noise(rng, len(blobs), num_obs=num_obs)


def _profiles(side: int) -> Floats:
    """Return the blob's shape along one axis, one row for each place of its middle."""
    return np.exp(-0.5 * (np.subtract.outer(np.arange(side), np.arange(side)) / WIDTH) ** 2)


def blob_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of a blob over noise alone, per data set; `data` has shape (data sets, n, n).

    First model: y = h w + e, with independent standard normal e, h ~ N(0, 2.5^2), and w = exp(-d^2 / (2 1.5^2)) at the
    distance d from a pixel, all of which have the same probability. Second model: y = e. Given the pixel, with A = w'w
    and B = w'y, the Bayes factor is::

        (1 + 2.5^2 A)^(-1/2) exp(2.5^2 B^2 / (2 (1 + 2.5^2 A)))

    and the first model's is the mean of these over all pixels.

    Examples
    --------
    >>> blob_log_bf([[[0.0, 0.0], [0.0, 0.0]], [[2.0, 2.0], [2.0, 2.0]]]).round(4)
    array([-1.4406,  5.9293])
    """
    images = _checks.check_numeric_array("data", data)
    if images.ndim != 3 or images.shape[1] != images.shape[2]:
        raise ValueError(f"data must have shape (data sets, n, n), square images; received shape {images.shape}.")
    side = images.shape[1]
    flat = _checks.check_datasets("data", images.reshape(len(images), side * side))
    profiles = _profiles(side)
    squares = (profiles**2).sum(axis=1)
    inflation = 1.0 + HEIGHT_SCALE**2 * np.outer(squares, squares)

    def of_block(block: Floats) -> Floats:
        products = HEIGHT_SCALE * (profiles @ block.reshape(-1, side, side) @ profiles.T)
        log_bf = 0.5 * (products**2 / inflation - np.log(inflation))
        return np.asarray(logsumexp(log_bf, axis=(1, 2))) - 2.0 * np.log(side)

    return in_blocks(of_block, flat)
