"""Two series, the second of which follows the first with an unknown lag or has nothing to do with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.study import OfSize, Study

Floats = NDArray[np.float64]
Params = dict[str, Floats]

LENGTH = 60
LARGEST_LAG = 5
COEFFICIENT_SCALE = 1.0


def lagged_pair_study(name: str, num_obs: int) -> Study:
    """Return two columns of Gaussian noise, the second of which follows the first with a lag of 1 to 5, or does not.

    The exact answer is `lagged_pair_log_bf`.
    """
    return Study(
        name=name,
        title=f"Two time series: the second follows the first with a lag of 1 to {LARGEST_LAG}, or is independent",
        num_obs=num_obs,
        models=(
            Model("follows", prior=_prior, simulator=OfSize(_simulate_following, num_obs)),
            Model("independent", simulator=OfSize(_simulate_independent, num_obs)),
        ),
        structure="series",
        exact_log_bf=lagged_pair_log_bf,
    )


def _prior(rng: np.random.Generator, size: int) -> dict[str, NDArray[np.generic]]:
    """Return coefficients, normal about 0, and lags."""
    return {
        "coefficient": COEFFICIENT_SCALE * rng.standard_normal(size),
        "lag": rng.integers(1, LARGEST_LAG + 1, size=size),
    }


def _simulate_independent(rng: np.random.Generator, size: int, *, num_obs: int) -> Floats:
    """Return two columns of independent standard normal values, shape (size, num_obs, 2)."""
    return rng.standard_normal((size, num_obs, 2))


def _simulate_following(rng: np.random.Generator, params: Params, *, num_obs: int) -> Floats:
    """Return two columns, the second in part the first some steps earlier, shape (data sets, num_obs, 2)."""
    pairs = rng.standard_normal((len(params["lag"]), num_obs, 2))
    for lag in range(1, min(LARGEST_LAG, num_obs - 1) + 1):
        rows = params["lag"] == lag
        pairs[rows, lag:, 1] += params["coefficient"][rows, None] * pairs[rows, :-lag, 0]
    return pairs


def lagged_pair_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of "the second column follows the first" over "independent", per data set.

    `data` has shape (data sets, n, 2). Under both models the first column x is standard normal noise. First model:
    y_t = c x_(t-k) + e_t, with standard normal e_t, c ~ N(0, s^2), s = 1, and the lag k uniform on 1, ..., 5; before
    its beginning, x counts as 0. Second model: y_t = e_t. Given the lag, with A = sum x_(t-k)^2 and
    B = sum x_(t-k) y_t over t > k, the Bayes factor is::

        (1 + s^2 A)^(-1/2) exp(s^2 B^2 / (2 (1 + s^2 A)))

    and the first model's is the mean of these over the lags.

    Examples
    --------
    >>> lagged_pair_log_bf([[[1.0, 0.0], [0.0, 0.0]], [[3.0, 0.0], [0.0, 3.0]]]).round(4)
    array([-0.0604,  1.4884])
    """
    pairs = _checks.check_numeric_array("data", data)
    if pairs.ndim != 3 or pairs.shape[2] != 2:
        raise ValueError(f"data must have shape (data sets, n, 2), two columns; received shape {pairs.shape}.")
    # Whatever is not finite is refused here.
    first, second = (_checks.check_datasets("data", pairs[:, :, column]) for column in (0, 1))
    num_obs = pairs.shape[1]
    log_bf = np.zeros((len(pairs), LARGEST_LAG))
    # At lags as long as the series, nothing follows, and the log Bayes factor is 0.
    for lag in range(1, min(LARGEST_LAG, num_obs - 1) + 1):
        earlier, later = first[:, :-lag], second[:, lag:]
        inflation = 1.0 + COEFFICIENT_SCALE**2 * np.einsum("ij,ij->i", earlier, earlier)
        product = COEFFICIENT_SCALE * np.einsum("ij,ij->i", earlier, later)
        log_bf[:, lag - 1] = 0.5 * (product**2 / inflation - np.log(inflation))
    return np.asarray(logsumexp(log_bf, axis=1)) - np.log(LARGEST_LAG)
