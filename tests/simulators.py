"""Models that the tests share, at the top of a module so that worker processes can import them.

Each has an exact answer: normals with a closed form (`deepbf_studies.problems`) or a known covariance (`joint_normal`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deepbf
from studies.tests.problems import joint_normal

Floats = NDArray[np.float64]

NUM_OBS = 10
WALK_LENGTH = 6
NUM_PAIRS = 12
CORRELATION = 0.7


def draw_mean(rng: np.random.Generator, size: int) -> Floats:
    return rng.normal(0.0, 1.0, size)


def around_mean(rng: np.random.Generator, mean: Floats) -> Floats:
    return rng.normal(mean[:, None], 1.0, (len(mean), NUM_OBS))


def around_zero(rng: np.random.Generator, size: int) -> Floats:
    return rng.normal(0.0, 1.0, (size, NUM_OBS))


# The mean of a normal: unknown, against 0. Exact: normal_mean_log_bf(data, prior_scale=1).
FREE_MEAN = deepbf.Model("free mean", prior=draw_mean, simulator=around_mean)
ZERO_MEAN = deepbf.Model("zero mean", simulator=around_zero)
NORMAL_MEAN = [FREE_MEAN, ZERO_MEAN]


def any_free_mean(rng: np.random.Generator, mean: Floats, num_obs: int) -> Floats:
    return rng.normal(mean[:, None], 1.0, (len(mean), num_obs))


def any_zero_mean(rng: np.random.Generator, size: int, num_obs: int) -> Floats:
    return rng.normal(0.0, 1.0, (size, num_obs))


# The same comparison with as many observations as asked for.
ANY_NUMBER = [
    deepbf.Model("free", prior=draw_mean, simulator=any_free_mean),
    deepbf.Model("zero", simulator=any_zero_mean),
]


def random_walk(rng: np.random.Generator, size: int) -> Floats:
    return rng.normal(0.0, 1.0, (size, WALK_LENGTH)).cumsum(axis=1)


def white_noise(rng: np.random.Generator, size: int) -> Floats:
    return rng.normal(0.0, 1.5, (size, WALK_LENGTH))


# Vectors whose order is all that matters.
WALK_OR_NOISE = [
    deepbf.Model("walk", simulator=random_walk),
    deepbf.Model("noise", simulator=white_noise),
]


def walk_or_noise_log_bf(data: Floats) -> Floats:
    """Return the exact log Bayes factor of the random walk over white noise."""
    step = np.arange(1, WALK_LENGTH + 1)
    zero = np.zeros(WALK_LENGTH)
    walk = joint_normal.log_density(data, zero, np.minimum(step[:, None], step[None, :]))
    return walk - joint_normal.log_density(data, zero, 1.5**2 * np.eye(WALK_LENGTH))


def near_minus_one(rng: np.random.Generator, size: int) -> Floats:
    return rng.normal(-1.0, 1.0, (size, NUM_OBS))


def near_plus_one(rng: np.random.Generator, size: int) -> Floats:
    return rng.normal(1.0, 1.0, (size, NUM_OBS))


THREE_MEANS = [
    deepbf.Model("minus", simulator=near_minus_one),
    deepbf.Model("zero", simulator=around_zero),
    deepbf.Model("plus", simulator=near_plus_one),
]


def three_means_log_evidence(data: Floats) -> Floats:
    """Return exact log evidences up to a constant a data set, shape (batch, 3)."""
    return np.stack([-0.5 * ((data - mean) ** 2).sum(axis=1) for mean in (-1.0, 0.0, 1.0)], axis=1)


def correlated_pairs(rng: np.random.Generator, size: int) -> Floats:
    shared, own = rng.normal(size=(2, size, NUM_PAIRS))
    return np.stack([shared, CORRELATION * shared + np.sqrt(1 - CORRELATION**2) * own], axis=2)


def independent_pairs(rng: np.random.Generator, size: int) -> Floats:
    return rng.normal(size=(size, NUM_PAIRS, 2))


# Vector observations with the same marginals: only how the two columns move together tells the models apart.
PAIRS = [
    deepbf.Model("correlated", simulator=correlated_pairs),
    deepbf.Model("independent", simulator=independent_pairs),
]


def pairs_log_bf(data: Floats) -> Floats:
    """Return the exact log Bayes factor of correlated over independent pairs."""
    covariance = np.array([[1.0, CORRELATION], [CORRELATION, 1.0]])
    flat = data.reshape(-1, 2)
    gain = joint_normal.log_density(flat, np.zeros(2), covariance) - joint_normal.log_density(
        flat, np.zeros(2), np.eye(2)
    )
    return gain.reshape(data.shape[:2]).sum(axis=1)


def draw_rate_and_shape(rng: np.random.Generator, size: int) -> dict[str, Floats]:
    return {"rate": rng.gamma(2.0, 1.0, size), "weights": rng.dirichlet([1.0, 2.0], size)}


def weighted_counts(rng: np.random.Generator, params: dict[str, Floats]) -> NDArray[np.int64]:
    rates = params["rate"][:, None] * params["weights"]
    return rng.poisson(rates)


# Integers of shape (size, 2) from a dict of parameters.
WITH_DICT = deepbf.Model("with dict", prior=draw_rate_and_shape, simulator=weighted_counts)


def chunk_of(rng: np.random.Generator) -> int:
    """Return the number of the chunk that this generator was made for: its seed says so, in any worker."""
    return int(rng.bit_generator.seed_seq.spawn_key[-1])  # pyright: ignore[reportAttributeAccessIssue]


class FailsFromChunk:
    """A simulator of `around_zero` that raises in every chunk from one on; it can be sent to other processes."""

    def __init__(self, first_bad: int) -> None:
        self.first_bad = first_bad

    def __call__(self, rng: np.random.Generator, size: int) -> Floats:
        if chunk_of(rng) >= self.first_bad:
            raise ArithmeticError("the solver diverged")
        return around_zero(rng, size)


class ChangesShapeFromChunk:
    """A simulator of normals that has one observation more in every chunk from one on."""

    def __init__(self, first_longer: int) -> None:
        self.first_longer = first_longer

    def __call__(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.normal(size=(size, NUM_OBS + (chunk_of(rng) >= self.first_longer)))


class CallsAtChunk:
    """A simulator of `around_zero` that calls a function when it reaches a chunk."""

    def __init__(self, chunk: int, function: Callable[[], Any]) -> None:
        self.chunk = chunk
        self.function = function

    def __call__(self, rng: np.random.Generator, size: int) -> Floats:
        if chunk_of(rng) == self.chunk:
            self.function()
        return around_zero(rng, size)


def has_loaded_jax() -> bool:
    """Return whether this process has imported JAX; for asking a worker."""
    import sys

    return "jax" in sys.modules


def simulate_truth(models: list[deepbf.Model], size_each: int, seed: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return data sets and the index of the model that made each, `size_each` from each model."""
    seeds = np.random.SeedSequence(seed).spawn(len(models))
    data = [model.simulate(size_each, child).data for model, child in zip(models, seeds, strict=True)]
    return np.concatenate(data), np.repeat(np.arange(len(models)), size_each)
