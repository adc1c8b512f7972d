"""Counts that switch between two rates: in a hidden Markov chain, or independently of each other.

The parameters are drawn from a small grid, so that both evidences are exact: a forward recursion, or a product over
times, for each point of the grid, and the mean of these.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from deepbf import _checks
from deepbf.models import Model
from deepbf_studies.problems.study import OfSize, Study, in_blocks

Floats = NDArray[np.float64]
Params = dict[str, Floats]

LENGTH = 100
LOW_RATES = (1.0, 2.0)
# The high rate, in units of the low one.
RATIOS = (2.0, 3.0, 4.0)
# Probabilities of staying in the low and in the high state.
LOW_STAYS = (0.8, 0.95)
HIGH_STAYS = (0.7, 0.9)
# Columns: low rate, ratio, probability of staying low, probability of staying high.
GRID = np.array(list(itertools.product(LOW_RATES, RATIOS, LOW_STAYS, HIGH_STAYS)))


def hidden_states_study(name: str, num_obs: int) -> Study:
    """Return Poisson counts whose rate is low or high: in a hidden Markov chain, or independently at each time.

    At any one time, both models have the same distribution: the chain starts from its stationary distribution, and the
    independent states are drawn from it. Only the order of the counts tells them apart. The exact answer is
    `hidden_states_log_bf`.
    """
    return Study(
        name=name,
        title="Time series: Poisson counts of two rates, which switch in a hidden Markov chain or independently",
        num_obs=num_obs,
        models=(
            Model("hidden Markov chain", prior=_prior, simulator=OfSize(_simulate_chain, num_obs)),
            Model("independent states", prior=_prior, simulator=OfSize(_simulate_independent, num_obs)),
        ),
        structure="series",
        exact_log_bf=hidden_states_log_bf,
    )


def _prior(rng: np.random.Generator, size: int) -> Params:
    """Return rates and probabilities of staying in a state, all points of the grid with the same probability."""
    low, ratio, stay_low, stay_high = GRID[rng.integers(len(GRID), size=size)].T
    return {"low": low, "high": low * ratio, "stay_low": stay_low, "stay_high": stay_high}


def _share_high(stay_low: Floats, stay_high: Floats) -> Floats:
    """Return the stationary probability of the high state."""
    return (1.0 - stay_low) / (2.0 - stay_low - stay_high)


def _simulate_independent(rng: np.random.Generator, params: Params, *, num_obs: int) -> NDArray[np.int64]:
    """Return counts whose states are drawn independently, shape (data sets, num_obs)."""
    share = _share_high(params["stay_low"], params["stay_high"])
    return _counts(rng, params, rng.uniform(size=(num_obs, len(share))) < share)


def _simulate_chain(rng: np.random.Generator, params: Params, *, num_obs: int) -> NDArray[np.int64]:
    """Return counts whose states are a stationary Markov chain, shape (data sets, num_obs)."""
    stay_low, stay_high = params["stay_low"], params["stay_high"]
    # Time first while the recursion runs, so that each of its steps reads and writes one stretch of memory.
    uniforms = rng.uniform(size=(num_obs, len(stay_low)))
    is_high = np.empty(uniforms.shape, bool)
    is_high[0] = uniforms[0] < _share_high(stay_low, stay_high)
    for time in range(1, num_obs):
        is_high[time] = uniforms[time] < np.where(is_high[time - 1], stay_high, 1.0 - stay_low)
    return _counts(rng, params, is_high)


def _counts(rng: np.random.Generator, params: Params, is_high: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return Poisson counts for states of shape (num_obs, data sets), with the data sets first."""
    return rng.poisson(np.where(is_high, params["high"], params["low"]).T)


def hidden_states_log_bf(data: ArrayLike) -> Floats:
    """Return the log Bayes factor of a hidden Markov chain over independent states, per data set.

    `data` are counts of shape (data sets, n). Given the states z_t, which are low or high, y_t ~ Poisson(r_(z_t)).
    First model: the states are a stationary Markov chain that stays low with probability p and high with probability q.
    Second model: the states are independent, each high with the chain's stationary probability (1 - p) / (2 - p - q).
    Both have the same uniform prior on the points of `GRID`, over which the evidences are means. For each point, the
    first is found by the forward recursion: with f_t(z) the density of y_1, ..., y_t and z_t = z,
    f_t(z) = Poisson(y_t; r_z) sum_z' P(z' -> z) f_(t-1)(z').

    Examples
    --------
    >>> hidden_states_log_bf([[0, 0, 0, 0, 5, 5, 5, 5], [0, 5, 0, 5, 0, 5, 0, 5]]).round(4)
    array([ 1.9089, -2.9468])
    """
    counts = _checks.check_datasets("data", data)
    if (counts < 0).any() or (counts != np.floor(counts)).any():
        raise ValueError("data must be counts, whole numbers of at least 0; received others.")
    chain, independent = (
        in_blocks(lambda block, fn=fn: np.asarray(logsumexp(fn(block), axis=1)), counts)
        for fn in (chain_log_likelihood, independent_log_likelihood)
    )
    return chain - independent


def independent_log_likelihood(counts: Floats) -> Floats:
    """Return the log likelihood at each point of the grid with independent states, shape (data sets, points)."""
    share = _share_high(GRID[:, 2], GRID[:, 3])
    total = np.zeros((len(counts), len(GRID)))
    for now in counts.T:
        low, high, log_scale = _emissions(now)
        total += np.log((1.0 - share) * low + share * high) + log_scale
    return total


def chain_log_likelihood(counts: Floats) -> Floats:
    """Return the log likelihood at each point of the grid with a Markov chain, shape (data sets, points)."""
    stay_low, stay_high = GRID[:, 2], GRID[:, 3]
    total = np.zeros((len(counts), len(GRID)))
    # The probability, given the past, that the next state is high.
    is_high = np.broadcast_to(_share_high(stay_low, stay_high), total.shape)
    for now in counts.T:
        low, high, log_scale = _emissions(now)
        together = (1.0 - is_high) * low + is_high * high
        total += np.log(together) + log_scale
        filtered = is_high * high / together
        is_high = 1.0 - stay_low + filtered * (stay_high + stay_low - 1.0)
    return total


def _emissions(now: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the probabilities of these counts in the low and the high state, divided by the larger, and its log.

    Each has shape (data sets, points of the grid). Dividing by the larger keeps at least one of them at 1, so that
    counts which are unlikely in both states do not underflow.
    """
    low_rate, high_rate = GRID[:, 0], GRID[:, 0] * GRID[:, 1]
    value = now[:, None]
    log_low, log_high = (value * np.log(rate) - rate - gammaln(value + 1.0) for rate in (low_rate, high_rate))
    log_scale = np.maximum(log_low, log_high)
    return np.exp(log_low - log_scale), np.exp(log_high - log_scale), log_scale
